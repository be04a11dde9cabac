/* Deaths that repeat, many at once, and what the master does when it cannot fork. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/lone.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

/* Kills whatever of it is not spared. Returns how many. */
static unsigned kill_all_but(const struct server *server, pid_t spared)
{
    pid_t pids[64];
    unsigned count = process_group(server->pid, pids, 64), killed = 0;

    ck_assert_uint_le(count, 64);
    for (unsigned i = 0; i < count; i++)
        if (pids[i] > 0 && pids[i] != server->pid && pids[i] != spared)
            killed += kill(pids[i], SIGKILL) == 0;
    return killed;
}

static pid_t admin_pid(const struct server *server)
{
    return (pid_t)atoi(text_extract(server_await(server, 0, "admin \\(pid"), "pid ([0-9]+)"));
}

/* Workers whose next process waits, for at least so long. */
static unsigned count_waiting(const struct server *server, double seconds)
{
    const struct json *list = json_get(server_status(server), "children");
    unsigned count = 0;

    for (unsigned i = 0; i < json_count(list); i++) {
        const struct json *child = json_at(list, i);
        count += strcmp(json_string(json_get(child, "state")), "waiting") == 0 &&
                 json_number(json_get(child, "worker")) >= 1 &&
                 json_number(json_get(child, "delay_seconds")) >= seconds;
    }
    return count;
}

/* Whatever starts is killed until both places wait long enough to be looked at. */
START_TEST(crash_loop_is_bounded_and_ends)
{
    struct server server;
    struct client client;
    struct reply reply;
    const char *body = "";

    site_start(&server, SERVER_ADMIN "workers = 2\n");
    const char *url = server_admin(&server);
    pid_t admin = admin_pid(&server);
    size_t mark = server_mark(&server);
    do {
        WAIT_FOR((kill_all_but(&server, admin), count_waiting(&server, .8) == 2));
        const char *status = server_expect(&server, 0, LIST("status"));
        if (client_get(url, "/readyz", &body) != 503 || count_waiting(&server, .8) != 2)
            continue; /* too late */
        ck_assert_str_eq(body, "not ready: no worker\n");
        ck_assert_msg(text_matches(status, "0 of 2 workers, not ready: no worker"), "%s", status);
        ck_assert_uint_eq(text_count_lines(status, "waiting +restarts after a back-off of"), 2);
        break;
    } while (true);

    /* The cause is gone. Who came meanwhile waits, and is answered. */
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    client_close(&client);
    WAIT_FOR(client_get(url, "/readyz", NULL) == 200 && server_ready_workers(&server) == 2);

    for (unsigned worker = 1; worker <= 2; worker++) {
        const char *ends = text_format("worker %u .* restarting in ", worker);
        unsigned deaths = server_count(&server, mark, ends);
        ck_assert_uint_ge(deaths, 5);
        ck_assert_uint_eq(server_count(&server, mark, text_format("worker %u .* started", worker)),
                          deaths);
        for (unsigned delay = 100; delay <= 800; delay *= 2)
            ck_assert_uint_eq(server_count(&server, mark, text_format("%s%u ms$", ends, delay)), 1);
        /* Each life has a line when it begins, when it is ready, and when it ends. */
        ck_assert_uint_le(server_count(&server, mark, text_format("worker %u ", worker)),
                          3 * deaths + 1);
    }
    ck_assert_uint_eq(server_count(&server, mark, "."),
                      server_count(&server, mark, "worker [12] "));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(sibling_serves_during_a_back_off)
{
    struct server server;
    bool has_waited = false;

    site_start(&server, "workers = 2\n");
    pid_t sibling = server_worker(&server, 2);
    for (int try = 0; try < 10 && !has_waited; try++) {
        WAIT_FOR((kill_all_but(&server, sibling), count_waiting(&server, .8) == 1));
        for (int i = 0; i < 30; i++)
            ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
        has_waited = count_waiting(&server, .8) == 1;
    }
    ck_assert(has_waited);
    ck_assert_int_eq(server_worker(&server, 2), sibling);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Somebody who has mended the cause need not wait. */
START_TEST(reload_ends_a_back_off)
{
    struct server server;

    site_start(&server, "workers = 2\n");
    WAIT_FOR((kill_all_but(&server, 0), count_waiting(&server, 3.) == 2));
    server_reload(&server);
    size_t mark = server_mark(&server);
    ck_assert_uint_eq(server_ready_workers(&server), 2);
    ck_assert_uint_eq(count_waiting(&server, 0.), 0);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    /* Nor has the old place come back. */
    ck_assert_uint_eq(server_count(&server, mark, "started, generation 1$"), 0);
}
END_TEST

START_TEST(draining_worker_is_not_replaced)
{
    struct server server;
    struct client client;

    site_start(&server, "workers = 1\ntimeouts = { drain = \"1h\" }\n");
    client_open(&client, server.url);
    client_send_get(&client, "/never");
    WAIT_FOR(site_counter(&server, "connections_accepted") >= 1);
    pid_t old = server_worker(&server, 1);
    server_reload(&server);
    pid_t new = server_worker(&server, 1);
    ck_assert(old > 0 && new > 0 && old != new &&process_is_alive(old));
    ck_assert_int_eq(kill(old, SIGKILL), 0);
    const char *line = server_await(
        &server, 0, text_format("\\(pid %d\\) of generation 1 killed by SIGKILL", old));
    ck_assert_msg(!text_matches(line, "restarting"), "%s", line);
    WAIT_FOR(json_count(json_get(server_status(&server), "children")) == 1);
    ck_assert_int_eq(server_worker(&server, 1), new);
    ck_assert_uint_eq(server_count(&server, 0, "worker 1 .*started"), 2);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(stop_while_no_worker_is_alive)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGQUIT };
    struct server server;

    site_start(&server, "workers = 2\ntimeouts = { drain = \"1h\" }\n");
    do {
        WAIT_FOR((kill_all_but(&server, 0), count_waiting(&server, .4) == 2));
        server_signal(&server, SIGSTOP); /* so that none is born between the look and the signal */
        WAIT_FOR(text_matches(process_status(server.pid, "State"), "^T"));
        if (process_group(server.pid, NULL, 0) == 1)
            break;
        server_signal(&server, SIGCONT);
    } while (true);
    size_t mark = server_mark(&server);
    server_signal(&server, signals[_i]);
    server_signal(&server, SIGCONT);
    ck_assert_int_eq(server_wait(&server), 0);
    server_await(&server, mark, "stopped in .*: [0-9]+ requests? cut$");
}
END_TEST

#define MANY 16

/* SIGCHLD counts for one, however many have died. */
START_TEST(many_dead_at_once)
{
    struct server server;
    pid_t pids[MANY];

    site_start(&server, text_format("workers = %u\n", MANY));
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_int_gt(pids[i] = server_worker(&server, i + 1), 0);
    size_t mark = server_mark(&server);
    server_signal(&server, SIGSTOP);
    WAIT_FOR(text_matches(process_status(server.pid, "State"), "^T"));
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_int_eq(kill(pids[i], SIGKILL), 0);
    WAIT_FOR(process_group(server.pid, NULL, 0) == 1);
    server_signal(&server, SIGCONT);
    WAIT_FOR(server_ready_workers(&server) == MANY);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert_uint_eq(server_count(&server, mark,
                                       text_format("\\(pid %d\\) killed by SIGKILL "
                                                   ".*; restarting in 0 ms$",
                                                   pids[i])),
                          1);
        ck_assert_int_ne(server_worker(&server, i + 1), pids[i]);
        ck_assert_str_eq(process_status(pids[i], "State"), ""); /* nor a zombie */
    }
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* As PID 1. */

/* What starts it stays in front of it, in the same process group, and ends as it does. */
static void become_init(void)
{
    int status;

    if (unshare(CLONE_NEWPID | CLONE_NEWNS) == -1 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
        _exit(126);
    pid_t pid = fork();
    if (pid == 0 && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
        return;
    if (pid <= 0 || waitpid(pid, &status, 0) == -1)
        _exit(126);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125);
}

static bool can_become_init(void)
{
    int status;
    pid_t pid = fork();

    ck_assert(pid >= 0);
    if (pid == 0) {
        become_init();
        _exit(0);
    }
    ck_assert(waitpid(pid, &status, 0) == pid);
    return status == 0;
}

/* The children of a process, zombies too. */
static unsigned count_children(pid_t parent)
{
    DIR *proc = opendir("/proc");
    unsigned count = 0;

    ck_assert(proc != NULL);
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;)
        count += atoi(entry->d_name) > 0 &&
                 atoi(process_status((pid_t)atoi(entry->d_name), "PPid")) == parent;
    closedir(proc);
    return count;
}

static pid_t find_child(pid_t parent)
{
    DIR *proc = opendir("/proc");
    pid_t found = 0;

    ck_assert(proc != NULL);
    for (struct dirent *entry; (entry = readdir(proc)) != NULL && found == 0;)
        if (atoi(entry->d_name) > 0 &&
            atoi(process_status((pid_t)atoi(entry->d_name), "PPid")) == parent)
            found = (pid_t)atoi(entry->d_name);
    closedir(proc);
    return found;
}

/* Orphans in its namespace, which live until the end of the pipe that the test has is closed. */
static void leave_orphans(pid_t init, unsigned count, const int ends[2])
{
    char byte;
    int status;
    pid_t pid = fork();

    ck_assert(pid >= 0);
    if (pid == 0) {
        close(ends[1]);
        int space = open(text_format("/proc/%d/ns/pid", (int)init), O_RDONLY | O_CLOEXEC);
        if (space < 0 || setns(space, CLONE_NEWPID) == -1 || (pid = fork()) == -1)
            _exit(1);
        if (pid > 0)
            _exit(waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1);
        for (unsigned i = 0; i < count; i++)
            if (fork() == 0)
                _exit(read(ends[0], &byte, 1) == 0 ? (int)i : 99);
        _exit(0);
    }
    ck_assert(waitpid(pid, &status, 0) == pid);
    ck_assert_int_eq(status, 0);
}

START_TEST(strangers_are_reaped_quietly)
{
    struct server server;
    int ends[2];

    if (!can_become_init() && suite_skip("no pid namespaces here"))
        return;
    server_start(&server, &(struct server_options){ .config = SERVER_BASE "workers = 2\n",
                                                    .prepare = become_init });
    pid_t init = find_child(server.pid);
    ck_assert_int_gt(init, 0);
    ck_assert(text_matches(process_status(init, "NSpid"), "[0-9]+\t1$"));
    ck_assert_uint_eq(count_children(init), 2);
    size_t mark = server_mark(&server);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    leave_orphans(init, MANY, ends);
    WAIT_FOR(count_children(init) == 2 + MANY);
    close(ends[1]);
    WAIT_FOR(count_children(init) == 2);
    ck_assert_uint_eq(server_mark(&server), mark);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    /* Its own are still seen among them. */
    server_expect(&server, 0, LIST("reload"));
    server_expect(&server, 0, LIST("stop"));
    ck_assert_int_eq(server_wait(&server), 0);
}
END_TEST

/* An account of its own, whose processes are counted. */

static uid_t lone_uid(void)
{
    return 20000 + (uid_t)getpid() % 40000;
}

static void become_lone(void)
{
    uid_t uid = 20000 + (uid_t)getppid() % 40000;
    if (setgroups(0, NULL) == -1 || setgid(uid) == -1 || setuid(uid) == -1)
        _exit(126);
}

/* The soft limit, by somebody with the same account. 0: as many as the hard one allows. */
static void limit_processes(const struct server *server, rlim_t most)
{
    struct rlimit limit;
    int status;
    pid_t pid = fork();

    ck_assert(pid >= 0);
    if (pid == 0) {
        become_lone();
        if (prlimit(server->pid, RLIMIT_NPROC, NULL, &limit) == -1)
            _exit(1);
        limit.rlim_cur = most > 0 ? most : limit.rlim_max;
        _exit(prlimit(server->pid, RLIMIT_NPROC, &limit, NULL) == 0 ? 0 : 1);
    }
    ck_assert(waitpid(pid, &status, 0) == pid);
    ck_assert_int_eq(status, 0);
}

/* Then the limit goes, or the master has to stop. */
START_TEST(fork_that_fails_is_retried)
{
    struct server server;

    if (suite_lacks_root())
        return;
    if (_i == 1 && lone_is_instrumented() && suite_skip("the leak checker must fork at the end"))
        return;
    ck_assert_int_eq(chown(scratch_path(""), lone_uid(), lone_uid()), 0);
    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE SERVER_ADMIN "workers = 2\n",
                                           .prepare = become_lone });
    const char *admin = server_admin(&server);
    pid_t spared = admin_pid(&server);
    limit_processes(&server, 1);
    size_t mark = server_mark(&server);
    ck_assert_uint_eq(kill_all_but(&server, spared), 2);
    for (unsigned worker = 1; worker <= 2; worker++)
        for (unsigned delay = 100; delay <= 800; delay *= 2)
            server_await(&server, mark,
                         text_format("error .*worker %u: cannot fork: %s; again in %u ms$", worker,
                                     strerror(EAGAIN), delay));
    ck_assert_uint_eq(count_waiting(&server, .8), 2);
    ck_assert_uint_eq(client_get(admin, "/readyz", NULL), 503);
    /* A try is a line, and each delay is longer than the one before. */
    for (unsigned delay = 100; delay <= 800; delay *= 2)
        ck_assert_uint_eq(server_count(&server, mark, text_format("again in %u ms$", delay)), 2);
    ck_assert_uint_eq(server_count(&server, mark, "started"), 0);
    /* A reload is refused for the same reason, and changes nothing. */
    ck_assert(text_matches(server_expect(&server, 1, LIST("reload")), "cannot fork"));
    if (_i == 0) {
        limit_processes(&server, 0);
        WAIT_FOR(client_get(admin, "/readyz", NULL) == 200);
        WAIT_FOR(server_ready_workers(&server) == 2);
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crashloop");
    TCase *tests = suite_case(suite, "loop");

    tcase_add_test(tests, crash_loop_is_bounded_and_ends);
    tcase_add_test(tests, sibling_serves_during_a_back_off);
    tcase_add_test(tests, reload_ends_a_back_off);
    tcase_add_test(tests, draining_worker_is_not_replaced);
    tcase_add_loop_test(tests, stop_while_no_worker_is_alive, 0, 3);
    tests = suite_case(suite, "many");
    tcase_add_test(tests, many_dead_at_once);
    tcase_add_test(tests, strangers_are_reaped_quietly);
    tcase_add_loop_test(tests, fork_that_fails_is_retried, 0, 2);
    return suite_run(suite);
}
