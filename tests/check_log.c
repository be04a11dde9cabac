/* The log and the access log: what a line is, where it goes, and that no sink stops the server. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

#define STAMP "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"
#define HELLO "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"

START_TEST(json_log)
{
    struct server server;

    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE "log_format = \"json\"\n" });
    const struct json *line = json_parse(server.started);
    ck_assert_msg(text_matches(json_string(json_get(line, "time")), "^" STAMP "$"), "%s",
                  server.started);
    ck_assert_str_eq(json_string(json_get(line, "level")), "info");
    ck_assert_int_eq((int)json_number(json_get(line, "pid")), server.pid);
    /* Something to escape. */
    server_rewrite(&server, SERVER_BASE "\"wro\\\"kers\" = \"\\\\\xc3\xa9\xff\"\n");
    server_expect(&server, 78, LIST("reload"));
    server_kill_worker(&server, 1, SIGKILL);
    server_await(&server, 0, "SIGKILL");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_uint_gt(
        json_check_lines(server_log(&server), LIST("time", "level", "pid", "message")), 4);
}
END_TEST

static const struct {
    const char *level;
    bool has_info, has_warning;
} level_rows[] = {
    { "debug", true, true },
    { "info", true, true },
    { "warning", false, true },
    { "error", false, false },
};

START_TEST(log_level)
{
    struct server server;

    server_spawn(&server,
                 &(struct server_options){ .config = text_format(SERVER_BASE "log_level = \"%s\"\n",
                                                                 level_rows[_i].level) });
    WAIT_FOR(access(server.control, F_OK) == 0);
    WAIT_FOR(server_worker(&server, 1) != 0);
    pid_t worker = server_kill_worker(&server, 1, SIGTERM); /* a warning */
    server_await_worker(&server, 1, worker);
    server_rewrite(&server, "wrokers = 2\n");
    server_expect(&server, 78, LIST("reload")); /* an error */
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    const char *log = server_log(&server);
    ck_assert_int_eq(text_count_lines(log, " info ") > 0, level_rows[_i].has_info);
    ck_assert_int_eq(text_count_lines(log, " warning .*told to stop") > 0,
                     level_rows[_i].has_warning);
    ck_assert_uint_gt(text_count_lines(log, " error "), 0);
}
END_TEST

START_TEST(log_changes_with_a_reload)
{
    struct server server;

    server_start_plain(&server);
    server_rewrite(&server, SERVER_BASE "log = \"new.log\"\nlog_format = \"json\"\n");
    server_reload(&server);
    server_await_file(&server, "new.log", 0, "generation 2");
    size_t mark = server_mark(&server);
    server_kill_worker(&server, 1, SIGKILL);
    server_await_file(&server, "new.log", 0, "SIGKILL");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_uint_eq(server_mark(&server), mark);
    json_check_lines(scratch_read("new.log"), LIST("time", "level", "message"));
}
END_TEST

/* Reopening, as logrotate has it: the file is renamed, then we are told. */

static void reopen_by_command(const struct server *server)
{
    server_expect(server, 0, LIST("reopen"));
}

static void reopen_by_signal(const struct server *server)
{
    server_signal(server, SIGUSR1);
}

static void reopen_by_reload(const struct server *server)
{
    server_replace(server, 2);
}

static void (*const reopen_rows[])(const struct server *server) = {
    reopen_by_command,
    reopen_by_signal,
    reopen_by_reload,
};

START_TEST(logs_are_reopened)
{
    struct server server;

    server_spawn(&server,
                 &(struct server_options){ .config = SERVER_BASE "workers = 2\nlog = \"log\"\n"
                                                                 "access_log = \"access\"\n" });
    const char *started = server_await_file(&server, "log", 0, " started in ");
    const char *url = text_extract(started, "(http://[^ ]*)");
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(client_get(url, "/hello?before", NULL), 200);
    WAIT_FOR(text_count_lines(scratch_read("access"), "before") == 10);
    ck_assert_int_eq(rename(scratch_path("log"), scratch_path("log.1")), 0);
    ck_assert_int_eq(rename(scratch_path("access"), scratch_path("access.1")), 0);
    reopen_rows[_i](&server);
    WAIT_FOR(access(scratch_path("log"), F_OK) == 0 && access(scratch_path("access"), F_OK) == 0);
    if (_i == 1) /* a signal is not acknowledged: its log line is, or the workers still hold on */
        server_expect(&server, 0, LIST("reopen"));
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(client_get(url, "/hello?after", NULL), 200);
    WAIT_FOR(text_count_lines(scratch_read("access"), "after") +
                 text_count_lines(scratch_read("access.1"), "after") ==
             10);
    ck_assert_uint_eq(text_count_lines(scratch_read("access.1"), "after"), 0);
    server_kill_worker(&server, 1, SIGKILL);
    server_await_file(&server, "log", 0, "SIGKILL");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_uint_eq(text_count_lines(scratch_read("log.1"), "SIGKILL|stopp"), 0);
}
END_TEST

START_TEST(reopen_that_fails_keeps_the_old_files)
{
    struct server server;

    ck_assert_int_eq(mkdir(scratch_path("logs"), 0755), 0);
    server_start(&server, &(struct server_options){ .config = SERVER_BASE
                                                    "access_log = \"logs/access\"\n" });
    ck_assert_int_eq(rename(scratch_path("logs"), scratch_path("moved")), 0);
    server_expect(&server, 1, LIST("reopen"));
    server_await(&server, 0, "(error|warning) .*logs/access");
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    WAIT_FOR(text_count_lines(scratch_read("moved/access"), "/hello") == 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The soft limit of a worker. Only its own account may do that, and who has all powers. */
static void limit_descriptors(pid_t worker, rlim_t most)
{
    struct rlimit limit;
    unsigned uid = (unsigned)strtoul(process_status(worker, "Uid"), NULL, 10);
    unsigned gid = (unsigned)strtoul(process_status(worker, "Gid"), NULL, 10);
    int status;

    pid_t pid = fork();
    if (pid == 0) {
        bool is_bad =
            geteuid() == 0 && (setresgid(gid, gid, gid) == -1 || setresuid(uid, uid, uid) == -1);
        is_bad = is_bad || prlimit(worker, RLIMIT_NOFILE, NULL, &limit) == -1;
        limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
        _exit(is_bad || prlimit(worker, RLIMIT_NOFILE, &limit, NULL) == -1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

/* A worker that may open nothing more cannot take the new files; once it may again, it does. */
START_TEST(worker_without_room_keeps_the_old_files)
{
    struct server server;

    if (suite_has_valgrind() && suite_skip("the limit of descriptors would not be its own"))
        return;
    server_start(&server, &(struct server_options){ .config = SERVER_BASE
                                                    "workers = 2\naccess_log = \"access\"\n" });
    pid_t worker = server_worker(&server, 2);
    limit_descriptors(worker, 0);
    size_t mark = server_mark(&server);
    const char *why = text_format("worker 2 \\(pid %d\\) keeps the old log files: "
                                  "Too many open files",
                                  (int)worker);
    const char *answer = server_expect(&server, 1, LIST("reopen"));
    ck_assert_msg(text_count_lines(answer, why) == 1, "%s", answer);
    ck_assert_msg(text_count_lines(answer, "") == 1, "%s", answer);
    server_await(&server, mark, text_format(" error +master.*%s$", why));
    server_await(&server, mark, " error +worker.*the old ones stay: Too many open files$");

    limit_descriptors(worker, RLIM_INFINITY);
    mark = server_mark(&server);
    server_expect(&server, 0, LIST("reopen"));
    ck_assert_uint_eq(server_count(&server, mark, "keeps the old|old ones stay"), 0);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Sinks that take nothing. */

static const struct {
    const char *name, *config;
} sink_rows[] = {
    { "log on a FIFO that nobody reads", "log = \"fifo\"\n" },
    { "access log on a FIFO that nobody reads", "access_log = \"fifo\"\n" },
    { "access log on a FIFO that is full", "access_log = \"blocked\"\n" },
    { "log on a FIFO that is full", "log = \"blocked\"\nlog_level = \"debug\"\n" },
};

static void serve_thousands(const struct server *server, const char *url)
{
    struct client client;
    struct reply reply;

    /* More than a pipe holds. */
    for (int connection = 0; connection < 4; connection++) {
        client_open(&client, url);
        client_send(&client, text_repeat(HELLO, 1000));
        for (int i = 0; i < 1000; i++)
            client_expect(&client, &reply, 200);
        client_close(&client);
    }
    pid_t worker = server_worker(server, 1);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    server_await_worker(server, 1, worker);
    server_reload(server);
    ck_assert_uint_eq(client_get(url, "/hello", NULL), 200);
}

START_TEST(sink_that_takes_nothing_stops_nobody)
{
    struct server server;

    ck_assert_int_eq(mkfifo(scratch_path("fifo"), 0666), 0);
    ck_assert_int_eq(mkfifo(scratch_path("blocked"), 0666), 0);
    int reader = open(scratch_path("blocked"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int writer = open(scratch_path("blocked"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    while (write(writer, "x", 1) == 1)
        ;
    server_spawn(&server,
                 &(struct server_options){
                     .config = text_format(SERVER_BASE "workers = 2\n%s", sink_rows[_i].config) });
    WAIT_FOR(access(server.control, F_OK) == 0);
    const char *url = json_string(json_at(json_get(server_status(&server), "listening"), 0));
    serve_thousands(&server, url);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    close(reader);
    close(writer);
}
END_TEST

/* Standard error and output that take nothing. */

static int open_closed_pipe(void)
{
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    return ends[1];
}

/* Its other end stays open, and nobody reads there. */
static int open_full_pipe(void)
{
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], "x", 1) == 1)
        ;
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, 0), 0);
    return ends[1];
}

static int open_full_socket(void)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    while (send(ends[1], "x", 1, MSG_DONTWAIT) == 1)
        ;
    return ends[1];
}

static int open_full_device(void)
{
    return open("/dev/full", O_WRONLY | O_CLOEXEC);
}

static int (*const output_rows[])(void) = {
    open_closed_pipe,
    open_full_pipe,
    open_full_socket,
    open_full_device,
};

START_TEST(output_that_takes_nothing_stops_nobody)
{
    struct server server;
    int end = output_rows[_i]();

    ck_assert_int_ge(end, 0);
    server_spawn(&server, &(struct server_options){ .config = SERVER_BASE
                                                    "workers = 2\naccess_log = \"stdout\"\n",
                                                    .output = end });
    WAIT_FOR(access(server.control, F_OK) == 0);
    const char *url = json_string(json_at(json_get(server_status(&server), "listening"), 0));
    serve_thousands(&server, url);
    /* The description is others' too: it must block as before. */
    ck_assert_int_eq(fcntl(end, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    close(end);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *tests = suite_case(suite, "log");

    tcase_add_test(tests, json_log);
    tcase_add_loop_test(tests, log_level, 0, SUITE_ROWS(level_rows));
    tcase_add_test(tests, log_changes_with_a_reload);
    tcase_add_loop_test(tests, logs_are_reopened, 0, SUITE_ROWS(reopen_rows));
    tcase_add_test(tests, reopen_that_fails_keeps_the_old_files);
    tcase_add_test(tests, worker_without_room_keeps_the_old_files);
    tcase_add_loop_test(tests, sink_that_takes_nothing_stops_nobody, 0, SUITE_ROWS(sink_rows));
    tcase_add_loop_test(tests, output_that_takes_nothing_stops_nobody, 0, SUITE_ROWS(output_rows));
    return suite_run(suite);
}
