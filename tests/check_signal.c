/* Signals to the master and to workers, and what a stop does to those who are being served. */

#include <signal.h>
#include <unistd.h>

#include "support/client.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

#define ROUTES                                              \
    "routes = ( { path = \"/hello\" text = \"Hello\" },"    \
    " { path = \"/slow\" text = \"Slow\" delay = \"1s\" }," \
    " { path = \"/never\" text = \"Never\" delay = \"1h\" } )\n"

/* A test, and not a timeout, decides how long a stop takes. */
#define PATIENT "timeouts = { header = \"1h\" drain = \"1h\" }\n"

static void start(struct server *server, const char *more)
{
    server_start(server,
                 &(struct server_options){ .config = text_format(SERVER_BASE ROUTES "%s", more) });
}

#define SLOW "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"

/* The half request is answered, with the last answer of its connection. */
static void finish_half(struct client *client)
{
    struct reply reply;

    client_send(client, REST);
    client_expect(client, &reply, 200);
    ck_assert(reply.is_last);
    ck_assert_msg(client_read_end(client), "%s", client->fault);
    client_close(client);
}

/* A stop has reached the only worker when it closes a connection that waits for a request. */
static void await_drain(struct client *idle)
{
    ck_assert_msg(client_read_end(idle), "%s", idle->fault);
    client_close(idle);
}

/* Signals to the master. */

static const int stop_rows[] = { SIGTERM, SIGINT, SIGQUIT };

START_TEST(stops)
{
    struct server server;
    struct client client;

    start(&server, "workers = 2\n");
    client_open(&client, server.url);
    ck_assert_int_eq(server_stop(&server, stop_rows[_i]), 0);
    ck_assert_int_eq(client_try_open(&client, server.url), -1);
    ck_assert_int_ne(access(server.control, F_OK), 0);
}
END_TEST

START_TEST(hangup_reloads)
{
    struct server server;

    start(&server, "workers = 2\n");
    server_signal(&server, SIGHUP);
    server_await(&server, 0, "info .*generation 2");
    WAIT_FOR(server_generation(&server) == 2);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(usr2_upgrades)
{
    struct server server;

    if (suite_has_valgrind() && suite_skip("the program that runs is that of valgrind"))
        return;
    start(&server, "workers = 1\n");
    pid_t worker = server_worker(&server, 1);
    server_signal(&server, SIGUSR2);
    server_await(&server, 0, "SIGUSR2: upgrading");
    server_await(&server, 0, "upgraded from .*: generation 2 serves");
    WAIT_FOR(!process_is_alive(worker));
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

static const int ignored_rows[] = { SIGWINCH, SIGTTIN, SIGTTOU, SIGPIPE, SIGALRM };

START_TEST(ignored_by_the_master)
{
    struct server server;

    start(&server, "workers = 1\n");
    size_t mark = server_mark(&server);
    pid_t worker = server_worker(&server, 1);
    server_signal(&server, ignored_rows[_i]);
    /* A signal that was sent is taken before the next event: two answers come after it. */
    ck_assert_int_eq(server_worker(&server, 1), worker);
    ck_assert_int_eq(server_worker(&server, 1), worker);
    ck_assert_uint_eq(server_generation(&server), 1);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_uint_eq(server_count(&server, mark, ""), 0);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Signals to a worker. */

START_TEST(worker_told_to_stop_is_replaced)
{
    struct server server;
    struct client half, slow;
    struct reply reply;

    start(&server, PATIENT "workers = 1\n");
    site_open_in_flight(&half, &server, HALF);
    site_open_in_flight(&slow, &server, SLOW);
    pid_t worker = server_worker(&server, 1);
    size_t mark = server_mark(&server);
    ck_assert_int_eq(kill(worker, stop_rows[_i]), 0);
    server_await_worker(&server, 1, worker);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    client_expect(&slow, &reply, 200);
    ck_assert_str_eq(reply_body(&reply), "Slow");
    client_close(&slow);
    ck_assert(process_is_alive(worker));
    finish_half(&half);
    WAIT_FOR(!process_is_alive(worker));
    server_await(&server, mark, text_format("worker 1 \\(pid %d\\)", worker));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

static const int worker_ignored_rows[] = { SIGHUP,   SIGUSR1, SIGUSR2, SIGPIPE,
                                           SIGWINCH, SIGTTIN, SIGTTOU };

START_TEST(ignored_by_a_worker)
{
    struct server server;
    struct client client;
    struct reply reply;

    start(&server, "workers = 1\n");
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    pid_t worker = server_worker(&server, 1);
    ck_assert_int_eq(kill(worker, worker_ignored_rows[_i]), 0);
    for (int i = 0; i < 3; i++) {
        client_send_get(&client, "/hello");
        client_expect(&client, &reply, 200);
        ck_assert(!reply.is_last);
    }
    client_close(&client);
    ck_assert_int_eq(server_worker(&server, 1), worker);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* As a terminal's ^C or a service manager does: nobody is refilled. */
START_TEST(signal_to_the_whole_group)
{
    struct server server;
    struct client half, idle;

    start(&server, PATIENT "workers = 1\n" SERVER_ADMIN);
    site_open_in_flight(&half, &server, HALF);
    site_open_in_flight(&idle, &server, "");
    size_t mark = server_mark(&server);
    ck_assert_int_eq(kill(-server.pid, stop_rows[_i]), 0);
    await_drain(&idle);
    finish_half(&half);
    ck_assert_int_eq(server_wait(&server), 0);
    ck_assert_msg(server_count(&server, mark, "worker [0-9]+ .* ready in |error ") == 0, "%s",
                  server_log(&server));
}
END_TEST

/* Stops. */

START_TEST(stop_finishes_what_is_in_flight)
{
    struct server server;
    struct client slow, half, idle;
    struct reply reply;

    start(&server, PATIENT "workers = 1\n");
    site_open_in_flight(&slow, &server, SLOW);
    site_open_in_flight(&half, &server, HALF);
    site_open_in_flight(&idle, &server, "");
    server_signal(&server, SIGTERM);
    await_drain(&idle);
    client_expect(&slow, &reply, 200);
    ck_assert_str_eq(reply_body(&reply), "Slow");
    client_close(&slow);
    ck_assert(!process_has_ended(&server.process));
    finish_half(&half);
    ck_assert_int_eq(server_wait(&server), 0);
}
END_TEST

static const struct {
    int first, second;
} second_rows[] = { { SIGTERM, SIGTERM }, { SIGINT, SIGINT }, { SIGQUIT, SIGTERM } };

START_TEST(second_stop_is_at_once)
{
    struct server server;
    struct client never, half;

    start(&server, PATIENT "workers = 2\n");
    site_open_in_flight(&never, &server, NEVER);
    site_open_in_flight(&half, &server, HALF);
    size_t mark = server_mark(&server);
    server_signal(&server, second_rows[_i].first);
    server_await(&server, mark, "stop");
    server_signal(&server, second_rows[_i].second);
    ck_assert_int_eq(server_wait(&server), 0);
    ck_assert_msg(client_read_end(&never), "%s", never.fault);
    client_close(&never);
    client_close(&half);
}
END_TEST

START_TEST(drain_timeout_cuts)
{
    struct server server;
    struct client client;

    start(&server, "workers = 1\ntimeouts = { drain = \"100ms\" }\n");
    site_open_in_flight(&client, &server, NEVER);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
}
END_TEST

static const struct {
    int signal;
    const char *line;
} refused_rows[] = { { SIGHUP, "(warning|error) .*reload" }, { SIGUSR2, "warning .*upgrade" } };

START_TEST(stop_is_final)
{
    struct server server;
    struct client half, idle;

    start(&server, PATIENT "workers = 1\n");
    site_open_in_flight(&half, &server, HALF);
    site_open_in_flight(&idle, &server, "");
    size_t mark = server_mark(&server);
    server_signal(&server, SIGTERM);
    server_await(&server, mark, "stop");
    server_signal(&server, refused_rows[_i].signal);
    server_await(&server, mark, refused_rows[_i].line);
    await_drain(&idle);
    finish_half(&half);
    ck_assert_int_eq(server_wait(&server), 0);
    ck_assert_uint_eq(server_count(&server, mark, "generation 2|started in"), 0);
}
END_TEST

START_TEST(worker_that_dies_in_a_stop_is_not_replaced)
{
    struct server server;
    struct client half;

    start(&server, PATIENT "workers = 1\n");
    site_open_in_flight(&half, &server, HALF);
    pid_t worker = server_worker(&server, 1);
    size_t mark = server_mark(&server);
    server_signal(&server, SIGTERM);
    server_await(&server, mark, "stop");
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    server_wait(&server);
    server_await(&server, mark, "worker 1 .*SIGKILL");
    ck_assert_uint_eq(server_count(&server, mark, " ready in "), 0);
    client_close(&half);
}
END_TEST

START_TEST(stop_while_reloading)
{
    struct server server;

    start(&server, "workers = 4\n");
    for (int i = 0; i < _i; i++)
        server_signal(&server, SIGHUP);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* From birth on: before the start line, even. */
START_TEST(stop_while_starting)
{
    struct server server;

    server_spawn(&server, &(struct server_options){ .config = SERVER_BASE ROUTES "workers = 8\n" });
    const char *seen = server_await(&server, 0, "^.");
    int status = server_stop(&server, SIGTERM);
    ck_assert_msg(status == 0, "exit %d after %s", status, seen);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("signal");
    TCase *tests = suite_case(suite, "signal");

    tcase_add_loop_test(tests, stops, 0, SUITE_ROWS(stop_rows));
    tcase_add_test(tests, hangup_reloads);
    tcase_add_test(tests, usr2_upgrades);
    tcase_add_loop_test(tests, ignored_by_the_master, 0, SUITE_ROWS(ignored_rows));
    tcase_add_loop_test(tests, worker_told_to_stop_is_replaced, 0, SUITE_ROWS(stop_rows));
    tcase_add_loop_test(tests, ignored_by_a_worker, 0, SUITE_ROWS(worker_ignored_rows));
    tcase_add_loop_test(tests, signal_to_the_whole_group, 0, SUITE_ROWS(stop_rows));
    tcase_add_test(tests, stop_finishes_what_is_in_flight);
    tcase_add_loop_test(tests, second_stop_is_at_once, 0, SUITE_ROWS(second_rows));
    tcase_add_test(tests, drain_timeout_cuts);
    tcase_add_loop_test(tests, stop_is_final, 0, SUITE_ROWS(refused_rows));
    tcase_add_test(tests, worker_that_dies_in_a_stop_is_not_replaced);
    tcase_add_loop_test(tests, stop_while_reloading, 1, 4);
    tcase_add_test(tests, stop_while_starting);
    return suite_run(suite);
}
