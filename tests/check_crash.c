/* Deaths and hangs, of workers and of the master. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

#define SPAN "[0-9]+(\\.[0-9]+)? (ms|s)"
/* Without one where the test lacks_traces. */
#define TRACE "(; at( ([A-Za-z0-9._-]+\\+)?0x[0-9a-f]+)+)?"

/* Killed from outside. */

static const struct {
    int signal;
    const char *line; /* after the name of the worker */
} kill_rows[] = {
    { SIGKILL, "killed by SIGKILL after " SPAN "; restarting in 0 ms$" },
    { SIGSEGV, "killed by SIGSEGV(, core dumped)? after " SPAN "; restarting in 0 ms" TRACE "$" },
    { SIGBUS, "killed by SIGBUS(, core dumped)? after " SPAN "; restarting in 0 ms" TRACE "$" },
    { SIGFPE, "killed by SIGFPE(, core dumped)? after " SPAN "; restarting in 0 ms" TRACE "$" },
    { SIGILL, "killed by SIGILL(, core dumped)? after " SPAN "; restarting in 0 ms" TRACE "$" },
    { SIGABRT, "killed by SIGABRT(, core dumped)? after " SPAN "; restarting in 0 ms" TRACE "$" },
    { SIGTERM, ".*exited with status 0 after " SPAN "$" },
};

START_TEST(killed_worker_is_replaced)
{
    struct server server;

    site_start_faulty(&server, "", "workers = 2\n");
    pid_t pid = server_worker(&server, 1), other = server_worker(&server, 2);
    ck_assert_int_eq(kill(pid, kill_rows[_i].signal), 0);
    server_await(&server, 0, text_format("worker 1 \\(pid %d\\).* %s", pid, kill_rows[_i].line));
    site_await_successor(&server, 1, pid);
    ck_assert_int_eq(server_worker(&server, 2), other);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The sockets are the master's: who comes while nobody serves them waits for the successor. */
START_TEST(nobody_who_waits_is_lost)
{
    struct client clients[20];
    struct server server;
    struct reply reply;

    site_start_faulty(&server, "", "workers = 1\n");
    for (int round = 0; round < 3; round++) {
        pid_t pid = server_kill_worker(&server, 1, SIGKILL);
        WAIT_FOR(!process_is_alive(pid));
        for (int i = 0; i < SUITE_ROWS(clients); i++) {
            client_open(&clients[i], server.url);
            client_send_get(&clients[i], "/hello");
        }
        for (int i = 0; i < SUITE_ROWS(clients); i++) {
            client_expect(&clients[i], &reply, 200);
            client_close(&clients[i]);
        }
        site_await_successor(&server, 1, pid);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(waiting_requests_are_named)
{
    struct client clients[3];
    struct server server;
    struct reply reply;

    site_start_faulty(&server, "", "workers = 1\n");
    for (int i = 0; i < 3; i++) {
        client_open(&clients[i], server.url);
        client_send(&clients[i], text_format("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
                                             "GET /never?%d HTTP/1.1\r\nHost: a\r\n\r\n",
                                             i));
        client_expect(&clients[i], &reply, 200);
    }
    /* The last one waits once a later request has been answered. */
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    unsigned port = client_port(&clients[0]);
    server_kill_worker(&server, 1, SIGKILL);
    server_await(&server, 0,
                 text_format("killed by SIGKILL after " SPAN ", with 3 requests waiting, oldest "
                             "GET /never\\?0 from 127\\.0\\.0\\.1:%u; restarting in 0 ms$",
                             port));
    for (int i = 0; i < 3; i++)
        client_close(&clients[i]);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(repeated_deaths_back_off)
{
    struct server server;
    pid_t pid = 0;

    site_start_faulty(&server, "", "workers = 2\n");
    for (int i = 0; i < 3; i++) {
        pid = site_await_successor(&server, 1, pid);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
    }
    server_await(&server, 0, "worker 1 .*; restarting in 0 ms$");
    server_await(&server, 0, "worker 1 .*; restarting in 100 ms$");
    server_await(&server, 0, "worker 1 .*; restarting in 200 ms$");
    site_await_successor(&server, 1, pid);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(deaths_show_in_the_status)
{
    struct server server;

    site_start_faulty(&server, "", "workers = 1\n");
    pid_t pid = server_kill_worker(&server, 1, SIGKILL);
    site_await_successor(&server, 1, pid);
    const struct json *worker = json_at(json_get(server_status(&server), "children"), 0);
    ck_assert(json_number(json_get(worker, "restarts")) == 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Real faults. */

static const struct {
    const char *fault, *line;
    bool is_reported; /* by valgrind */
} fault_rows[] = {
    { "segv", "killed by SIGSEGV(, core dumped)?", false },
    { "deep", "killed by SIGSEGV(, core dumped)?", true },
    { "overflow", "killed by SIGSEGV(, core dumped)?", true },
    { "wild", "killed by SIGSEGV(, core dumped)?", true },
    { "copy", "killed by SIGSEGV(, core dumped)?", true },
    { "abort", "killed by SIGABRT(, core dumped)?", false },
    { "exit", "exited with status 3", false },
    { "loop", "killed by SIGKILL \\(stuck [^)]*\\)", false },
    { "block", "killed by SIGKILL \\(stuck [^)]*\\)", false },
    { "stop", "killed by SIGKILL \\(stopped [^)]*\\)", false },
};

START_TEST(fault_is_named_and_survived)
{
    struct server server;
    struct client client;

    if (suite_lacks_faults() || (fault_rows[_i].is_reported && suite_has_valgrind() &&
                                 suite_skip("valgrind would report the fault")))
        return;
    site_start_faulty(&server, text_format(FAULT, fault_rows[_i].fault),
                      "workers = 2\ntimeouts = { watchdog = \"1s\" }\n");
    pid_t pids[] = { server_worker(&server, 1), server_worker(&server, 2) };
    client_open(&client, server.url);
    client_send(&client, "GET /crash?\x1b[31m\"x\\ HTTP/1.1\r\nHost: a\r\n\r\n");
    /* Whatever the parser makes of these bytes, this one is well-formed. */
    client_close(&client);
    client_open(&client, server.url);
    client_send_get(&client, "/crash?a=%1b");
    unsigned port = client_port(&client);
    const char *line = server_await(
        &server, 0,
        text_format(
            "error master\\[%d\\]: worker [12] \\(pid [0-9]+\\) %s after " SPAN
            ", answering GET /crash\\?a=%%1b from 127\\.0\\.0\\.1:%u; restarting in 0 ms" TRACE "$",
            server.pid, fault_rows[_i].line, port));
    unsigned worker = (unsigned)atoi(text_extract(line, "worker ([12])"));
    site_await_successor(&server, worker, pids[worker - 1]);
    ck_assert_int_eq(server_worker(&server, 3 - worker), pids[2 - worker]);
    ck_assert_msg(client_read_end(&client) || strstr(client.fault, "reset") != NULL, "%s",
                  client.fault);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Backtraces. */

static bool lacks_traces(void)
{
#if defined ENABLE_SANITIZERS
    return suite_skip("the sanitizers have handlers of their own");
#elif !defined __x86_64__ && !defined __AARCH64EL__
    return suite_skip("no backtraces on this processor");
#else
    return suite_has_valgrind() && suite_skip("the program is valgrind's then");
#endif
}

static const struct {
    const char *fault;
    const char *functions; /* the innermost, one a line */
} trace_rows[] = {
    { "deep", "^fault_innermost\nfault_middle\n(fail_in_a_call\n)?serve\n" },
    { "overflow", "^(fault_overflow\n){32}$" },
    { "wild", "^0x0\nfault_wild\n(fail_in_a_call\n)?serve\n" },
    { "copy", "^[^\n]*\nfault_copy\n(fail_in_a_call\n)?serve\n" },
    { "abort", "^([^\n]*\n){1,5}serve\n" },
};

/* The functions at an address of the program, inlined ones first, each with its newline; "" where
 * there is no addr2line. */
static const char *functions_at(const struct server *server, const char *offset)
{
    char line[1024];
    const char *names = "";
    const char *command =
        text_format("exec addr2line -f -i -e \"$(readlink /proc/%d/exe)\" %s 2>/dev/null",
                    (int)server->pid, offset);
    FILE *tool = popen(command, "r");
    ck_assert_ptr_nonnull(tool);
    /* Each second line is a place in a source. */
    for (int i = 0; fgets(line, sizeof(line), tool); i++)
        if (i % 2 == 0)
            names = text_format("%s%s", names, line);
    pclose(tool);
    return names;
}

/* The same for all frames of a line of the log; those of other files than the program stay as they
 * are. NULL: no addr2line. */
static const char *functions_of(const struct server *server, const char *line)
{
    const char *names = "", *frame = text_extract(line, "; at (.*)$");
    ck_assert_msg(frame != NULL, "%s", line);
    while (*frame) {
        size_t length = strcspn(frame, " ");
        const char *name = text_format("%.*s\n", (int)length, frame);
        if (strncmp(name, "hayate+", 7) == 0)
            name = functions_at(server, text_copy(frame + 7, length - 7));
        if (!*name)
            return NULL;
        names = text_format("%s%s", names, name);
        frame += length + strspn(frame + length, " ");
    }
    return names;
}

static void crash(const struct server *server)
{
    struct client client;
    client_open(&client, server->url);
    client_send_get(&client, "/crash");
    client_read_end(&client);
    client_close(&client);
}

START_TEST(trace_names_the_functions)
{
    struct server server;

    if (suite_lacks_faults() || lacks_traces())
        return;
    site_start_faulty(&server, text_format(FAULT, trace_rows[_i].fault), "workers = 1\n");
    crash(&server);
    const char *line = server_await(&server, 0, "killed by .*; at ");
    const char *names = functions_of(&server, line);
    if (names || !suite_skip("no addr2line (package binutils)"))
        ck_assert_msg(text_matches(names, trace_rows[_i].functions), "%s: %s", line, names);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Its mappings are not those of the master that was executed since. */
START_TEST(trace_of_an_older_binary)
{
    struct server server;
    struct client client;
    struct reply reply;

    if (suite_lacks_faults() || lacks_traces())
        return;
    site_start_faulty(&server, text_format(FAULT, "deep"),
                      "workers = 1\ntimeouts = { drain = \"1h\" }\n");
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    server_expect(&server, 0, LIST("upgrade"));
    client_send_get(&client, "/crash");
    const char *line = server_await(&server, 0, "killed by .*; at ");
    client_close(&client);
    const char *names = functions_of(&server, line);
    if (names)
        ck_assert_msg(text_matches(names, trace_rows[0].functions), "%s: %s", line, names);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(trace_of_the_admin_child)
{
    struct server server;

    if (lacks_traces())
        return;
    site_start_faulty(&server, "", SERVER_ADMIN "workers = 1\n");
    const struct json *children = json_get(server_status(&server), "children");
    pid_t pid = (pid_t)json_number(json_get(json_at(children, 1), "pid"));
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(kill(pid, SIGABRT), 0);
    const char *line =
        server_await(&server, 0, text_format("admin \\(pid %d\\) killed by SIGABRT.*; at ", pid));
    ck_assert_msg(text_matches(line, "; at( [^ ]+)+ hayate\\+0x[0-9a-f]+$"), "%s", line);
    /* Not in what status tells. */
    const char *last =
        json_string(json_get(json_get(server_status(&server), "last_crash"), "text"));
    ck_assert_msg(text_matches(last, "admin .* killed by SIGABRT") && !strstr(last, "; at "), "%s",
                  last);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Bytes of a client that are no text never reach the log as they are. */
START_TEST(hostile_request_is_escaped_in_the_log)
{
    struct server server;
    struct client client;

    site_start_faulty(&server, "", "workers = 1\n");
    client_open(&client, server.url);
    client_send(&client, "GET /never?\"\\\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n");
    struct reply reply;
    if (client_is_silent(&client)) {
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
        server_kill_worker(&server, 1, SIGKILL);
        server_await(&server, 0, "killed by SIGKILL");
    } else {
        client_expect(&client, &reply, 400);
    }
    client_close(&client);
    const char *log = server_log(&server);
    ck_assert_msg(strstr(log, "\xc3") == NULL && !text_matches(log, "/never\\?\""), "%s", log);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Memory. */

/* The group that a server is to be in; v1, where we may make one. */
static const char *group;

static void enter_group(void)
{
    FILE *file = fopen(text_format("%s/cgroup.procs", group), "w");
    if (file) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
    }
}

static bool write_limit(const char *name, const char *limit)
{
    FILE *file = fopen(text_format("%s/%s", group, name), "w");
    bool is_written = file && fputs(limit, file) >= 0;
    return file && fclose(file) == 0 && is_written;
}

/* True: it is there, with a limit, and without swap that goes around it. */
static bool make_group(void)
{
    const char *own = text_extract(text_read("/proc/self/cgroup", 0, NULL), ":memory:(/[^\n]*)");
    if (own) {
        group = text_format("/sys/fs/cgroup/memory%s/hayate-test-%d", strcmp(own, "/") ? own : "",
                            (int)getpid());
        if (mkdir(group, 0755) == -1)
            return false;
        write_limit("memory.swappiness", "0");
        return write_limit("memory.limit_in_bytes", "48M");
    }
    own = text_extract(text_read("/proc/self/cgroup", 0, NULL), "0::(/[^\n]*)");
    group = text_format("/sys/fs/cgroup%s/hayate-test-%d", own && strcmp(own, "/") ? own : "",
                        (int)getpid());
    if (mkdir(group, 0755) == -1)
        return false;
    write_limit("memory.swap.max", "0");
    return write_limit("memory.max", "48M");
}

START_TEST(killed_for_memory)
{
    struct server server;

    if (suite_lacks_faults() || suite_lacks_root() ||
        (suite_has_valgrind() && suite_skip("valgrind takes more memory than there is")))
        return;
#if defined ENABLE_SANITIZERS
    if (suite_skip("the sanitizers take more memory than there is"))
        return;
#endif
    bool is_there = make_group();
    if (!is_there) {
        rmdir(group);
        suite_skip("no cgroup of ours with a limit of memory to be had");
        return;
    }
    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE
                                           "workers = 1\ntimeouts = { watchdog = 0 }\n"
                                           "routes = ( { path = \"/hello\" text = \"Hello\" }, { "
                                           "path = \"/crash\" fault = \"memory\" } )\n",
                                           .prepare = enter_group });
    pid_t pid = server_kill_worker(&server, 1, SIGKILL);
    server_await(&server, 0, text_format("pid %d\\) killed by SIGKILL after", pid));
    pid = server_await_worker(&server, 1, pid);
    crash(&server);
    const char *line =
        server_await(&server, 0, text_format("worker 1 \\(pid %d\\) killed by SIGKILL ", pid));
    server_await_worker(&server, 1, pid);
    int status = server_stop(&server, SIGTERM);
    WAIT_FOR(rmdir(group) == 0);
    ck_assert_msg(text_matches(line,
                               "\\(by the kernel, out of memory: oom_kill of the cgroup rose to "
                               "1\\) after " SPAN ", answering GET /crash from "),
                  "%s", line);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(worker_that_fails_its_first_start)
{
    struct server server;

    if (suite_lacks_faults())
        return;
    const char *log = server_expect_failure(
        &server,
        &(struct server_options){ .config = SERVER_BASE
                                  "routes = ( { path = \"/hello\" fault = \"start\" } )\n" },
        1);
    ck_assert_msg(text_matches(log, "error .*cannot start: .*worker.*SIGABRT"), "%s", log);
    ck_assert_msg(!text_matches(log, "started in|restarting"), "%s", log);
}
END_TEST

/* The master dies. */

START_TEST(master_killed)
{
    struct server server;
    struct client client;
    struct reply reply;

    site_start_faulty(&server, "", SERVER_ADMIN "workers = 2\n");
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    unsigned port = server.port;
    ck_assert_int_eq(server_stop(&server, SIGKILL), -SIGKILL);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);

    /* The same port, and the control socket it left behind. */
    server_start(&server,
                 &(struct server_options){
                     .config = text_format(SERVER_CONTROL "listen = \"127.0.0.1:%u\"\n", port) });
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(master_crashes)
{
    struct server server;

    site_start_faulty(&server, "", "workers = 2\n");
    ck_assert_int_eq(server_stop(&server, SIGABRT), -SIGABRT);
    if (lacks_traces())
        return;
    const char *line = server_await(&server, 0, "killed by");
    ck_assert_msg(text_matches(line, text_format("^hayate\\[%d\\]: killed by SIGABRT; at"
                                                 "( [^ ]+)+ hayate\\+0x[0-9a-f]+",
                                                 server.pid)),
                  "%s", line);
}
END_TEST

/* Has the server read all that came on this connection? Its row of /proc/net/tcp: address, peer,
 * state ESTABLISHED, bytes to send and bytes to read. */
static bool is_read(const struct server *server, const struct client *client)
{
    const char *row = text_format("^ *[0-9]+: [0-9A-F]+:%04X [0-9A-F]+:%04X 01 [0-9A-F]+:00000000 ",
                                  server->port, client_port(client));

    return text_count_lines(text_read("/proc/net/tcp", 0, NULL), row) == 1;
}

/* server_wait sees that they are gone, though nothing reads the end of the channel. */
START_TEST(master_killed_while_a_worker_is_stuck)
{
    static const char *const faults[] = { "loop", "block" };
    struct server server;
    struct client client;
    struct reply reply;

    if (suite_lacks_faults())
        return;
    site_start_faulty(&server, text_format(FAULT, faults[_i]),
                      "workers = 2\ntimeouts = { watchdog = 0 }\n");
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    client_send_get(&client, "/crash");
    WAIT_FOR(is_read(&server, &client));
    ck_assert_int_eq(server_stop(&server, SIGKILL), -SIGKILL);
    client_close(&client);
}
END_TEST

START_TEST(master_killed_while_a_request_is_in_flight)
{
    struct server server;
    struct client client;
    struct reply reply;

    site_start_faulty(&server, "", "workers = 1\ntimeouts = { header = \"1h\" drain = \"1h\" }\n");
    client_open(&client, server.url);
    client_send(&client, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\nHo");
    client_expect(&client, &reply, 200);
    pid_t worker = server_worker(&server, 1);
    server_signal(&server, SIGKILL);
    ck_assert_int_eq(process_wait(&server.process), -SIGKILL);
    struct client other;
    WAIT_FOR(client_try_open(&other, server.url) == -1);
    ck_assert(process_is_alive(worker));
    client_send(&client, "st: a\r\n\r\n");
    client_expect(&client, &reply, 200);
    ck_assert(reply.is_last);
    client_close(&client);
    WAIT_FOR(!process_is_alive(worker));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crash");
    TCase *tests = suite_case(suite, "crash");

    tcase_add_loop_test(tests, killed_worker_is_replaced, 0, SUITE_ROWS(kill_rows));
    tcase_add_test(tests, nobody_who_waits_is_lost);
    tcase_add_test(tests, waiting_requests_are_named);
    tcase_add_test(tests, repeated_deaths_back_off);
    tcase_add_test(tests, deaths_show_in_the_status);
    tcase_add_loop_test(tests, fault_is_named_and_survived, 0, SUITE_ROWS(fault_rows));
    tcase_add_loop_test(tests, trace_names_the_functions, 0, SUITE_ROWS(trace_rows));
    tcase_add_test(tests, trace_of_an_older_binary);
    tcase_add_test(tests, trace_of_the_admin_child);
    tcase_add_test(tests, hostile_request_is_escaped_in_the_log);
    tcase_add_test(tests, killed_for_memory);
    tcase_add_test(tests, worker_that_fails_its_first_start);
    tcase_add_test(tests, master_killed);
    tcase_add_test(tests, master_crashes);
    tcase_add_loop_test(tests, master_killed_while_a_worker_is_stuck, 0, 2);
    tcase_add_test(tests, master_killed_while_a_request_is_in_flight);
    return suite_run(suite);
}
