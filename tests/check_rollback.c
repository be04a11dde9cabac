/* Reloads that fail: each changes nothing, and says why. */

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/client.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

#define HELLO "routes = ( { path = \"/hello\" text = \"Hello\" } )\n"

/* What a row needs beside the configuration; %PORT% stands for a port that is taken. */
static int taken_port(unsigned *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 8) == 0);
    ck_assert(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static const struct {
    const char *name;
    const char *config; /* NULL: the file is removed */
    int status;
    const char *reason; /* pattern */
} failure_rows[] = {
    { "unknown key", SERVER_BASE "wrokers = 2\n", 78,
      "hayate\\.conf:3: .*wrokers.*did you mean \"workers\"" },
    { "syntax", SERVER_BASE "workers = = 2\n", 78, "hayate\\.conf:3: " },
    { "value out of range", SERVER_BASE "workers = 0\n", 78, "hayate\\.conf:3: " },
    { "unclosed comment", SERVER_BASE "/* workers = 2\n", 78, "hayate\\.conf:[0-9]+: " },
    { "duplicate route",
      SERVER_BASE "routes = ( { path = \"/a\" text = \"a\" },\n{ path = \"/a\" text = \"b\" } )\n",
      78, "hayate\\.conf:4: " },
    { "no file", NULL, 78, "hayate\\.conf" },
    { "missing fragment", SERVER_BASE "include = [ \"gone.conf\" ]\n", 78, "gone\\.conf" },
    { "busy port", SERVER_CONTROL "listen = [ \"127.0.0.1:0\", \"127.0.0.1:%PORT%\" ]\n", 1,
      "127\\.0\\.0\\.1:%PORT%" },
    { "busy admin port", SERVER_BASE "admin = { listen = [ \"127.0.0.1:%PORT%\" ] }\n", 1,
      "127\\.0\\.0\\.1:%PORT%" },
    { "log in no directory", SERVER_BASE "log = \"gone/log\"\n", 78,
      "hayate\\.conf:3: .*gone/log" },
    { "log that is a directory", SERVER_BASE "log = \".\"\n", 78, "hayate\\.conf:3: .*directory" },
    { "access log in no directory", SERVER_BASE "access_log = \"gone/log\"\n", 78,
      "hayate\\.conf:3: .*gone/log" },
    { "unix socket in no directory",
      SERVER_CONTROL "listen = [ \"127.0.0.1:0\", \"unix:${DIR}/gone/socket\" ]\n", 1,
      "gone/socket" },
};

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The descriptors of the master, each with what it is open on; connections of control clients come
 * and go. */
static const char *list_files(const struct server *server)
{
    const char *files[512], *all = "";
    char target[256];
    size_t count = 0;
    DIR *directory = opendir(text_format("/proc/%d/fd", (int)server->pid));

    ck_assert(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const char *path = text_format("/proc/%d/fd/%s", (int)server->pid, entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        ck_assert(count < sizeof files / sizeof *files);
        if (length > 0)
            files[count++] = text_format("%s %.*s\n", entry->d_name, (int)length, target);
    }
    closedir(directory);
    qsort(files, count, sizeof *files, compare_texts);
    for (size_t i = 0; i < count; i++)
        all = text_format("%s%s", all, files[i]);
    return all;
}

/* As it was, when the children that did not get ready have gone. */
static void await_files(const struct server *server, const char *before, unsigned processes)
{
    WAIT_FOR(process_group(server->pid, NULL, 0) == processes);
    struct deadline deadline = deadline_start();
    while (strcmp(list_files(server), before) != 0)
        if (!deadline_wait(&deadline))
            ck_abort_msg("before:\n%safter:\n%s", before, list_files(server));
}

START_TEST(failure_changes_nothing)
{
    struct server server;
    struct client client;
    struct reply reply;
    unsigned port;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE HELLO "workers = 2\n" });
    client_open(&client, server.url);
    pid_t workers[] = { server_worker(&server, 1), server_worker(&server, 2) };
    const char *files = list_files(&server);
    const char *running = server_expect(&server, 0, LIST("config", "--running"));
    int fd = taken_port(&port);
    const char *number = text_format("%u", port);
    if (failure_rows[_i].config == NULL)
        ck_assert_int_eq(unlink(server.config), 0);
    else
        server_rewrite(&server, text_replace(failure_rows[_i].config, "%PORT%", number));
    const char *reason = text_replace(failure_rows[_i].reason, "%PORT%", number);

    size_t mark = server_mark(&server);
    const char *answer = server_expect(&server, failure_rows[_i].status, LIST("reload"));
    ck_assert_msg(text_matches(answer, reason), "%s", answer);
    server_await(&server, mark,
                 text_format("error .*reload failed, generation 1 stays: .*%s", reason));
    ck_assert_msg(text_matches(server_expect(&server, 0, LIST("status")), reason), "%s",
                  server_expect(&server, 0, LIST("status")));
    /* By signal, too. */
    mark = server_mark(&server);
    server_signal(&server, SIGHUP);
    server_await(&server, mark, "error .*reload failed, generation 1 stays: ");

    ck_assert_uint_eq(server_generation(&server), 1);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(server_worker(&server, i + 1), workers[i]);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    ck_assert_msg(!reply.is_last, "the failed reload ends connections");
    client_close(&client);
    ck_assert_int_eq(access(scratch_path("gone"), F_OK), -1);
    ck_assert_str_eq(server_expect(&server, 0, LIST("config", "--running")), running);
    await_files(&server, files, 3);

    close(fd);
    server_rewrite(&server, SERVER_BASE HELLO "workers = 1\n");
    server_reload(&server);
    ck_assert_uint_gt(server_generation(&server), 1);
    ck_assert_uint_eq(server_ready_workers(&server), 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(unreadable_file)
{
    struct server server;

    if (geteuid() == 0 && suite_skip("root reads every file"))
        return;
    server_start_plain(&server);
    ck_assert_int_eq(chmod(server.config, 0), 0);
    const char *answer = server_expect(&server, 78, LIST("reload"));
    ck_assert_msg(text_matches(answer, "hayate\\.conf.*[Pp]ermission"), "%s", answer);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(file_that_is_a_directory)
{
    struct server server;

    server_start_plain(&server);
    ck_assert_int_eq(unlink(server.config), 0);
    ck_assert_int_eq(mkdir(server.config, 0755), 0);
    server_expect(&server, 78, LIST("reload"));
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Workers that do not get ready. */
static const struct {
    const char *fault, *reason;
} worker_rows[] = {
    { "start", "worker [12] .*killed by SIGABRT" },
    { "mute",
      "worker [12] .*killed by SIGKILL \\(said nothing in the time it had to get ready\\)" },
    { "wrong",
      "worker [12] .*exited with status 1 \\(its own first request got the wrong status\\)" },
};

START_TEST(worker_that_cannot_start)
{
    struct server server;
    struct client client;
    struct reply reply;

    if (suite_lacks_faults())
        return;
    server_start(&server, &(struct server_options){ .config = SERVER_BASE HELLO "workers = 2\n" });
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    pid_t workers[] = { server_worker(&server, 1), server_worker(&server, 2) };
    const char *files = list_files(&server);
    server_rewrite(&server,
                   text_format(SERVER_BASE "workers = 2\nlog = \"new\"\naccess_log = \"access\"\n"
                                           "routes = ( { path = \"/a\" fault = \"%s\" } )\n",
                               worker_rows[_i].fault));
    const char *answer = server_expect(&server, 1, LIST("reload"));
    ck_assert_msg(text_matches(answer, worker_rows[_i].reason), "%s", answer);
    server_await(
        &server, 0,
        text_format("error .*reload failed, generation 1 stays: %s", worker_rows[_i].reason));
    ck_assert_uint_eq(server_generation(&server), 1);
    await_files(&server, files, 3);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(server_worker(&server, i + 1), workers[i]);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    ck_assert_msg(!reply.is_last, "the failed reload ends connections");
    client_close(&client);
    server_rewrite(&server, SERVER_BASE HELLO);
    server_reload(&server);
    ck_assert_uint_gt(server_generation(&server), 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    /* That of a client: what it died of was a request of its own. */
    server_await(&server, 0, "stopped in .*: 0 requests cut$");
}
END_TEST

/* The first start is a reload from nothing, and all that there is to go back to is nothing. */
START_TEST(worker_that_fails_the_first_start)
{
    struct server server;

    if (suite_lacks_faults())
        return;
    const char *config = text_format(SERVER_BASE SERVER_ADMIN
                                     "workers = 2\nroutes = ( { path = \"/a\" fault = \"%s\" } )\n",
                                     worker_rows[_i].fault);
    const char *log =
        server_expect_failure(&server, &(struct server_options){ .config = config }, 1);
    ck_assert_msg(
        text_matches(log, text_format("error .*cannot start: %s", worker_rows[_i].reason)), "%s",
        log);
    ck_assert_msg(!text_matches(log, "started in|restarting"), "%s", log);
    ck_assert_int_eq(access(server.control, F_OK), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rollback");
    TCase *tests = suite_case(suite, "rollback");

    tcase_add_loop_test(tests, failure_changes_nothing, 0, SUITE_ROWS(failure_rows));
    tcase_add_test(tests, unreadable_file);
    tcase_add_test(tests, file_that_is_a_directory);
    tcase_add_loop_test(tests, worker_that_cannot_start, 0, SUITE_ROWS(worker_rows));
    tcase_add_loop_test(tests, worker_that_fails_the_first_start, 0, SUITE_ROWS(worker_rows));
    return suite_run(suite);
}
