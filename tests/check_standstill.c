/* What looks like a hang and is none kills nobody: a debugger, a frozen container, a clock that
 * jumps; and a watchdog that is off. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/load.h"
#include "support/lone.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

#define LOOP text_format(FAULT, "loop")

/* Has a worker take the request that never ends. Returns it, once it says so. */
static pid_t make_stuck(const struct server *server, struct client *client, const char *path)
{
    pid_t found = 0;

    client_open(client, server->url);
    client_send_get(client, path);
    struct deadline deadline = deadline_start();
    do {
        const struct json *list = json_get(server_status(server), "children");
        for (unsigned i = 0; i < json_count(list) && found == 0; i++) {
            const struct json *child = json_at(list, i);
            if (strstr(json_string(json_get(child, "answering")), path) != NULL)
                found = (pid_t)json_number(json_get(child, "pid"));
        }
    } while (found == 0 && deadline_wait(&deadline));
    ck_assert_int_gt(found, 0);
    return found;
}

/* The second is the clock: it is killed when a whole period has passed since the first was stuck,
 * which is held by a debugger, stopped at first and then running. */
START_TEST(debugged_worker_is_spared)
{
    struct server server;
    struct client clients[3];
    int status;

    if (suite_lacks_faults())
        return;
    site_start_faulty(&server, LOOP, "workers = 3\ntimeouts = { watchdog = \"2s\" }\n");
    pid_t debugged = make_stuck(&server, &clients[0], "/crash?0");
    if (ptrace(PTRACE_SEIZE, debugged, NULL, NULL) == -1) {
        suite_skip("no process may be traced here");
        client_close(&clients[0]);
        server_stop(&server, SIGTERM);
        return;
    }
    for (unsigned i = 1; i < 3; i++) {
        if (i == 1) {
            ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, debugged, NULL, NULL), 0);
            ck_assert_int_eq(waitpid(debugged, &status, __WALL), debugged);
            ck_assert(WIFSTOPPED(status));
        } else {
            ck_assert_int_eq(ptrace(PTRACE_CONT, debugged, NULL, 0), 0);
        }
        pid_t other = make_stuck(&server, &clients[i], text_format("/crash?%u", i));
        ck_assert_int_ne(other, debugged);
        server_await(&server, 0, text_format("\\(pid %d\\) killed by SIGKILL \\(stuck ", other));
        client_close(&clients[i]);
        ck_assert_uint_eq(server_count(&server, 0, text_format("\\(pid %d\\) killed", debugged)),
                          0);
        ck_assert(process_is_alive(debugged));
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    }
    /* Nobody's any more: it is stuck like any other. */
    ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, debugged, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(debugged, &status, __WALL), debugged);
    ck_assert_int_eq(ptrace(PTRACE_DETACH, debugged, NULL, 0), 0);
    server_await(&server, 0,
                 text_format("\\(pid %d\\) killed by SIGKILL \\(stuck .*GET /crash\\?0", debugged));
    client_close(&clients[0]);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The two ways in which a whole server stands still. */

static const char *cgroup; /* of the test; NULL: by signals */

static void write_to(const char *file, const char *text)
{
    int fd = open(text_format("%s/%s", cgroup, file), O_WRONLY | O_CLOEXEC);

    ck_assert_msg(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s/%s",
                  cgroup, file);
    close(fd);
}

/* A version 2 group of our own with the server in it. (One of version 1 would hold what is frozen
 * in it for good, SIGKILL or not, if the test died.) */
static bool make_cgroup(const struct server *server)
{
    pid_t pids[16];
    const char *root =
        text_extract(text_read("/proc/self/mounts", 0, NULL), "[^ ]+ ([^ ]+) cgroup2 rw");

    if (root == NULL)
        return false;
    cgroup = text_format("%s/hayate-test-%d", root, (int)getpid());
    if (mkdir(cgroup, 0755) == -1)
        return false;
    if (access(text_format("%s/cgroup.freeze", cgroup), W_OK) == -1) {
        rmdir(cgroup);
        return false;
    }
    unsigned count = process_group(server->pid, pids, 16);
    ck_assert_uint_le(count, 16);
    for (unsigned i = 0; i < count; i++)
        write_to("cgroup.procs", text_format("%d", pids[i]));
    return true;
}

static void stand_still(const struct server *server)
{
    if (cgroup == NULL) {
        ck_assert_int_eq(kill(-server->pid, SIGSTOP), 0);
        WAIT_FOR(text_matches(process_status(server->pid, "State"), "^T"));
        return;
    }
    write_to("cgroup.freeze", "1");
    WAIT_FOR(text_matches(text_read(text_format("%s/cgroup.events", cgroup), 0, NULL), "frozen 1"));
}

static void go_on(const struct server *server)
{
    if (cgroup == NULL)
        ck_assert_int_eq(kill(-server->pid, SIGCONT), 0);
    else
        write_to("cgroup.freeze", "0");
}

static void start_still(struct server *server, int how, const char *more)
{
    site_start(server, more);
    ck_assert_int_gt(server->pid, 1); /* it names a process group, too */
    cgroup = NULL;
    if (how == 1 && !make_cgroup(server)) {
        cgroup = NULL;
        suite_skip("no cgroup can be frozen here: by signals again");
    }
}

/* How long it stands still is what is tested: longer than the watchdog's period. */
static void sleep_ms(int milliseconds)
{
    struct timespec time = { .tv_sec = milliseconds / 1000,
                             .tv_nsec = milliseconds % 1000 * 1000000L };
    nanosleep(&time, NULL);
}

START_TEST(frozen_server_goes_on)
{
    struct load_result result;
    struct server server;

    start_still(&server, _i, "workers = 2\ntimeouts = { watchdog = \"1s\" }\n");
    pid_t pids[] = { server_worker(&server, 1), server_worker(&server, 2) };
    struct load *load = load_start(server.url, "/hello", "Hello", 3, 1);
    for (int round = 0; round < 3; round++) {
        load_await(load, 50);
        stand_still(&server);
        sleep_ms(1300);
        go_on(&server);
    }
    load_await(load, 50);
    load_stop(load, &result);
    ck_assert_msg(result.failed == 0, "%lu failed: %s", result.failed, result.failure);
    ck_assert_int_eq(server_worker(&server, 1), pids[0]);
    ck_assert_int_eq(server_worker(&server, 2), pids[1]);
    ck_assert_uint_eq(server_count(&server, 0, "killed"), 0);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    if (cgroup != NULL)
        WAIT_FOR(rmdir(cgroup) == 0);
}
END_TEST

static bool is_refused(const struct server *server)
{
    struct client client;

    if (client_try_open(&client, server->url) == -1)
        return true;
    client_close(&client);
    return false;
}

/* The deadline passes while it stands still: the worker, not the master, cuts what is left. */
START_TEST(frozen_while_it_drains)
{
    struct server server;
    struct client client;

    start_still(&server, _i, "workers = 1\ntimeouts = { drain = \"500ms\" }\n");
    client_open(&client, server.url);
    client_send_get(&client, "/never");
    WAIT_FOR(json_number(json_get(server_status(&server), "connections_accepted")) >= 1);
    server_signal(&server, SIGTERM);
    /* Until the worker has heard of it. */
    WAIT_FOR(is_refused(&server));
    stand_still(&server);
    sleep_ms(2500);
    go_on(&server);
    int status = server_wait(&server);
    ck_assert_msg(status == 0, "exit %d: %s", status, text_tail(server_log(&server)));
    server_await(&server, 0, "stopped in .*: 1 request cut$");
    client_close(&client);
    if (cgroup != NULL)
        WAIT_FOR(rmdir(cgroup) == 0);
}
END_TEST

/* Is not all of the log of the same day? */
static bool has_jumped(const struct server *server)
{
    const char *day = text_extract(server_log(server), "^([0-9]{4}-[0-9]{2}-[0-9]{2})T");

    ck_assert(day != NULL);
    return server_count(server, 0, day) < server_count(server, 0, ".");
}

/* What hangs is found, what does not is left alone, and deadlines come when they should. */
START_TEST(jumping_clock_kills_nobody)
{
    const char *program = getenv("HAYATE");
    const char *library =
        text_format("%.*s/tests/support/jump.so", (int)(strrchr(program, '/') - program), program);
    struct server server;
    struct client idle, stuck;
    struct reply reply;

    if (suite_lacks_faults() || (lone_is_instrumented() && suite_skip("nothing can be preloaded")))
        return;
    if (access(library, R_OK) == -1 && suite_skip("there is no library to preload"))
        return;
    const char *config = SERVER_BASE "workers = 2\n"
                                     "timeouts = { watchdog = \"1s\"  idle = \"1s\" }\n"
                                     "routes = ( { path = \"/hello\" text = \"Hello\" },\n"
                                     "{ path = \"/crash\" fault = \"loop\" },\n"
                                     "{ path = \"/slow\" text = \"Slow\" delay = \"1500ms\" } )\n";
    server_start(&server, &(struct server_options){
                              .config = config,
                              .environment = LIST(text_format("LD_PRELOAD=%s", library)) });
    if (!has_jumped(&server) && suite_skip("the program is static, nothing can be preloaded")) {
        server_stop(&server, SIGTERM);
        return;
    }
    pid_t pids[] = { server_worker(&server, 1), server_worker(&server, 2) };
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_uint_eq(client_get(server.url, "/slow", NULL), 200);
    client_open(&idle, server.url);
    client_send_get(&idle, "/hello");
    client_expect(&idle, &reply, 200);
    ck_assert(!reply.is_last);
    ck_assert_msg(client_read_end(&idle), "%s", idle.fault);
    ck_assert_int_eq(server_worker(&server, 1), pids[0]);
    ck_assert_int_eq(server_worker(&server, 2), pids[1]);
    ck_assert_uint_eq(server_count(&server, 0, "killed"), 0);
    pid_t pid = make_stuck(&server, &stuck, "/crash");
    server_await(&server, 0, text_format("\\(pid %d\\) killed by SIGKILL \\(stuck ", pid));
    client_close(&stuck);
    client_close(&idle);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Off, and turned on by a reload: then what still hangs of the generation before is found. */
START_TEST(watchdog_that_is_off)
{
    struct server server;
    struct client client;

    if (suite_lacks_faults())
        return;
    site_start_faulty(&server, LOOP, "workers = 2\ntimeouts = { watchdog = \"0s\" }\n");
    pid_t pid = make_stuck(&server, &client, "/crash");
    /* Nothing looks at it: the master does not wake up. (Three of the shortest periods.) */
    const char *before = process_status(server.pid, "voluntary_ctxt_switches");
    unsigned long switches = strtoul(before, NULL, 10);
    sleep_ms(300);
    ck_assert_uint_eq(strtoul(process_status(server.pid, "voluntary_ctxt_switches"), NULL, 10),
                      switches);
    ck_assert(process_is_alive(pid));
    ck_assert_uint_eq(server_count(&server, 0, "killed"), 0);
    const char *config = scratch_read("hayate.conf");
    server_rewrite(&server, text_replace(config, "\"0s\"", "\"200ms\""));
    server_reload(&server);
    server_await(&server, 0,
                 text_format("\\(pid %d\\) of generation 1 killed by SIGKILL \\(stuck ", pid));
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("standstill");
    TCase *tests = suite_case(suite, "standstill");

    tcase_add_test(tests, debugged_worker_is_spared);
    tcase_add_test(tests, jumping_clock_kills_nobody);
    tcase_add_test(tests, watchdog_that_is_off);
    tests = suite_case(suite, "frozen");
    tcase_add_loop_test(tests, frozen_server_goes_on, 0, 2);
    tcase_add_loop_test(tests, frozen_while_it_drains, 0, 2);
    return suite_run(suite);
}
