/* Starting: what is said, and what a launcher may have done to us. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "conf/conf.h"
#include "support/client.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

#define STAMP "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "
#define SPAN "[0-9]+(\\.[0-9]+)? (ms|s)"

START_TEST(start_line)
{
    static const char *const words[] = { "1 worker,", "2 workers,", "3 workers," };
    struct server server;

    server_start(&server, &(struct server_options){
                              .config = text_format(SERVER_BASE "workers = %d\n", _i + 1) });
    const char *pattern =
        text_format(STAMP "info  master\\[%d\\]: hayate [0-9]+\\.[0-9]+\\.[0-9]+ "
                          "started in " SPAN "( \\(" SPAN " of it since its first instruction\\))?"
                          ": %s generation 1, "
                          "http://127\\.0\\.0\\.1:%u$",
                    server.pid, words[_i], server.port);
    ck_assert_msg(text_matches(server.started, pattern), "%s", server.started);
    for (int worker = 1; worker <= _i + 1; worker++)
        server_await(&server, 0,
                     text_format(STAMP "info  master\\[%d\\]: worker %d \\(pid [0-9]+\\) ready in "
                                       "[0-9.]+ ms$",
                                 server.pid, worker));
    ck_assert_uint_eq(server_ready_workers(&server), (unsigned)_i + 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(every_line_has_the_form)
{
    struct server server;

    server_start_plain(&server);
    server_reload(&server);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    const char *log = server_log(&server);
    ck_assert_uint_eq(text_count_lines(log, ""),
                      text_count_lines(log, STAMP "(debug|info |warning|error) "
                                                  "(master|worker|admin)\\[[0-9]+\\]: [^ ]"));
}
END_TEST

/* What launchers do. The log is a file, since descriptor 2 may be gone. */

static void close_standard(void)
{
    close_range(0, 2, 0);
}

static void close_output(void)
{
    close(1);
}

static void block_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
}

static void ignore_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_IGN);
}

static void umask_none(void)
{
    umask(0);
}

static void umask_all(void)
{
    umask(077);
}

static void enter_removed_directory(void)
{
    const char *path = scratch_path("gone");

    if (mkdir(path, 0700) != 0 || chdir(path) != 0 || rmdir(path) != 0)
        _exit(124);
}

static void enter_unreadable_directory(void)
{
    const char *path = scratch_path("closed");

    if (mkdir(path, 0700) != 0 || chdir(path) != 0 || chmod(path, 0) != 0)
        _exit(124);
}

static void leak_descriptors(void)
{
    for (int i = 0; i < 20; i++)
        if (dup(0) < 0)
            _exit(124);
}

static void limit_descriptors(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 40;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static const struct {
    const char *name;
    void (*prepare)(void);
    const char *environment;
} launcher_rows[] = {
    { "nothing", NULL, NULL },
    { "descriptors 0 to 2 closed", close_standard, NULL },
    { "descriptor 1 closed", close_output, NULL },
    { "signals blocked", block_signals, NULL },
    { "signals ignored", ignore_signals, NULL },
    { "umask 0", umask_none, NULL },
    { "umask 077", umask_all, NULL },
    { "directory removed", enter_removed_directory, NULL },
    { "directory unreadable", enter_unreadable_directory, NULL },
    { "descriptors leaked", leak_descriptors, NULL },
    { "soft limit of descriptors low", limit_descriptors, NULL },
    { "LIBEV_FLAGS", NULL, "LIBEV_FLAGS=1" },
    { "LIBEV_FLAGS nonsense", NULL, "LIBEV_FLAGS=none" },
    { "no HOME, no PATH", NULL, "PATH" },
};

static unsigned permissions(const char *path)
{
    struct stat status;

    ck_assert_msg(stat(path, &status) == 0, "%s: %s", path, strerror(errno));
    return status.st_mode & 07777;
}

START_TEST(launcher_does_not_matter)
{
    struct server server;

    server_spawn(&server,
                 &(struct server_options){ .config = SERVER_CONTROL
                                           "listen = [ \"127.0.0.1:0\", "
                                           "\"unix:${DIR}/socket\" ]\n"
                                           "workers = 2\nlog = \"log\"\naccess_log = \"access\"\n",
                                           .environment = launcher_rows[_i].environment != NULL
                                                              ? LIST(launcher_rows[_i].environment)
                                                              : NULL,
                                           .prepare = launcher_rows[_i].prepare });
    const char *line = server_await_file(&server, "log", 0, " started in ");
    const char *url = text_extract(line, " (http://127\\.0\\.0\\.1:[0-9]+)");
    ck_assert_ptr_nonnull(url);
    ck_assert_uint_eq(client_get(url, "/hello", NULL), 200);
    ck_assert_uint_eq(permissions(scratch_path("socket")), 0666);
    ck_assert_uint_eq(permissions(server.control), 0600);
    ck_assert_uint_eq(permissions(scratch_path("log")) & 0133, 0);

    /* A worker's death is seen, a reload works, a graceful stop too. */
    pid_t worker = server_worker(&server, 1);
    ck_assert_int_gt(worker, 0);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    server_await_worker(&server, 1, worker);
    ck_assert_int_eq(kill(server.pid, SIGHUP), 0);
    WAIT_FOR(server_generation(&server) == 2);
    ck_assert_uint_eq(client_get(url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_msg(access(scratch_path("socket"), F_OK) != 0, "the unix socket was left behind");
    ck_assert_msg(access(server.control, F_OK) != 0, "the control socket was left behind");
    ck_assert_str_eq(scratch_read("hayate.out"), "");
}
END_TEST

/* A worker's own first request goes to none that depends on others: readiness is 503 till then. */
START_TEST(readiness_may_come_first)
{
    static const char *const routes[] = {
        "{ path = \"/readyz\" health = \"ready\" }",
        "{ path = \"/readyz\" health = \"ready\" }, { path = \"/hello\" text = \"Hello\" }",
        "{ path = \"/late\" text = \"x\" delay = \"4s\" }, { path = \"/readyz\" health = \"ready\" "
        "}",
        "{ path = \"/post\" text = \"x\" methods = \"POST\" }, { path = \"/readyz\" health = "
        "\"ready\" }",
    };
    struct server server;

    server_start(&server, &(struct server_options){
                              .config = text_format(SERVER_BASE "workers = 1\nroutes = ( %s )\n",
                                                    routes[_i]) });
    ck_assert_uint_eq(client_get(server.url, "/readyz", NULL), 200);
    /* Nor must it keep a successor from starting when nobody serves. */
    pid_t worker = server_kill_worker(&server, 1, SIGKILL);
    server_await_worker(&server, 1, worker);
    ck_assert_uint_eq(client_get(server.url, "/readyz", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

static void limit_descriptors_hard(void)
{
    struct rlimit limit = { 100, 100 };

    setrlimit(RLIMIT_NOFILE, &limit);
}

START_TEST(hard_limit_of_descriptors_lowers_connections)
{
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE "workers = 1\n",
                                                    .prepare = limit_descriptors_hard });
    server_await(&server, 0, "warning master.*(limits\\.)?connections");
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

static void bind_to_one_cpu(void)
{
    cpu_set_t all, one;
    int cpu = 0;

    if (sched_getaffinity(0, sizeof all, &all) != 0)
        _exit(124);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        _exit(124);
}

START_TEST(auto_workers_follow_the_affinity)
{
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE "workers = \"auto\"\n",
                                                    .prepare = bind_to_one_cpu });
    ck_assert_uint_eq(server.workers, 1);
    server_await(&server, 0, "info .*(affinity|quota)");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(built_in_defaults)
{
    struct server server;

    if (access(conf_default_file(), F_OK) == 0 && suite_skip("a default file is installed"))
        return;
    server_start(&server, &(struct server_options){
                              .arguments = LIST(
                                  "-o", text_format("control=%s", scratch_path("hayate.control")),
                                  "-o", "listen=127.0.0.1:0") });
    server_await(&server, 0, "built-in defaults");
    const char *body;
    ck_assert_uint_eq(client_get(server.url, "/hello", &body), 200);
    ck_assert_str_eq(body, "Hello");
    ck_assert_uint_eq(client_get(server.url, "/healthz", NULL), 200);
    ck_assert_uint_eq(client_get(server.url, "/readyz", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The title of a process: its command line, whose NULs are blanks. */
static const char *title(pid_t pid)
{
    size_t length;
    const char *path = text_format("/proc/%d/cmdline", pid);
    char *text = (char *)(uintptr_t)text_read(path, 0, &length);

    for (size_t i = 0; i < length; i++)
        if (text[i] == '\0' && text[i + 1] != '\0')
            text[i] = ' ';
    return text;
}

START_TEST(process_titles)
{
    struct server server;

    if (suite_has_valgrind() && suite_skip("valgrind shows its own title"))
        return;
    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE "workers = 2\n" SERVER_ADMIN });
    for (unsigned generation = 1; generation <= 2; generation++) {
        for (unsigned worker = 1; worker <= 2; worker++)
            ck_assert_str_eq(title(server_worker(&server, worker)),
                             text_format("hayate: worker %u, generation %u", worker, generation));
        ck_assert_msg(text_matches(title(server.pid), "^hayate: master"), "%s", title(server.pid));
        if (generation == 1)
            server_reload(&server);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Voluntary context switches of master, workers and admin. */
static unsigned long count_switches(const struct server *server)
{
    pid_t members[8];
    unsigned count = process_group(server->pid, members, 8);
    unsigned long switches = 0;

    ck_assert_uint_eq(count, 4);
    for (unsigned i = 0; i < count; i++)
        switches += strtoul(process_status(members[i], "voluntary_ctxt_switches"), NULL, 10);
    return switches;
}

/* Two seconds in which nobody woke up. A few windows, since the start has an aftermath. */
START_TEST(idle_is_idle)
{
    struct deadline deadline = deadline_start();
    struct timespec window = { .tv_sec = 2 };
    struct server server;
    struct client client;
    struct reply reply;
    unsigned long before, after;

    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE "workers = 2\n" SERVER_ADMIN });
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    if (_i == 0)
        client_close(&client);
    do {
        before = count_switches(&server);
        nanosleep(&window, NULL);
        after = count_switches(&server);
    } while (before != after && deadline_left(&deadline) > 0);
    ck_assert_uint_eq(before, after);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("start");
    TCase *tests = suite_case(suite, "start");

    tcase_add_loop_test(tests, start_line, 0, 3);
    tcase_add_test(tests, every_line_has_the_form);
    tcase_add_loop_test(tests, launcher_does_not_matter, 0, SUITE_ROWS(launcher_rows));
    tcase_add_loop_test(tests, readiness_may_come_first, 0, 4);
    tcase_add_test(tests, hard_limit_of_descriptors_lowers_connections);
    tcase_add_test(tests, auto_workers_follow_the_affinity);
    tcase_add_test(tests, built_in_defaults);
    tcase_add_test(tests, process_titles);
    tcase_add_loop_test(tests, idle_is_idle, 0, 2);
    return suite_run(suite);
}
