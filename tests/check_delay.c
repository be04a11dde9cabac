/* drain_delay: for a while after the beginning of a stop, readiness is gone and nothing else. */

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

/* What comes before a workers = line. Signals of a test, and no clock, decide how long it takes. */
#define PATIENT "timeouts = { header = \"1h\" drain = \"1h\" watchdog = 0 }\n"

#define LONG_DELAY                                                                   \
    PATIENT SERVER_ADMIN "drain_delay = \"1h\"\nworkers = 2\n"                       \
                         "routes = ( { path = \"/hello\" text = \"Hello\" },"        \
                         " { path = \"/never\" text = \"Never\" delay = \"1h\" },\n" \
                         " { path = \"/readyz\" health = \"ready\" } )\n"

static void start_delayed(struct server *server)
{
    server_start(server, &(struct server_options){ .config = SERVER_BASE LONG_DELAY });
}

static void begin_stop(const struct server *server)
{
    server_signal(server, SIGTERM);
    server_await(server, 0, "not ready any more; serving goes on for .*drain_delay");
}

static void expect_unready(const char *url)
{
    const char *body = "";

    ck_assert_uint_eq(client_get(url, "/readyz", &body), 503);
    ck_assert_str_eq(body, "not ready: stopping\n");
}

/* The admin child that is ready; 0: none. */
static pid_t find_admin(const struct server *server)
{
    const struct json *children = json_get(server_status(server), "children");

    for (unsigned i = 0; i < json_count(children); i++) {
        const struct json *child = json_at(children, i);
        if (strcmp(json_string(json_get(child, "role")), "admin") == 0 &&
            strcmp(json_string(json_get(child, "state")), "ready") == 0)
            return (pid_t)json_number(json_get(child, "pid"));
    }
    return 0;
}

START_TEST(delay_serves_on)
{
    struct server server;
    struct client kept;
    struct reply reply;

    start_delayed(&server);
    site_open_in_flight(&kept, &server, "");
    ck_assert_uint_eq(client_get(server.url, "/readyz", NULL), 200);
    begin_stop(&server);
    for (int i = 0; i < 20; i++) {
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
        client_send_get(&kept, "/hello");
        client_expect(&kept, &reply, 200);
        ck_assert(!reply.is_last);
        expect_unready(server.url);
        expect_unready(server_admin(&server));
    }
    const struct json *status = server_status(&server);
    ck_assert(json_get(status, "ready")->type == JSON_FALSE);
    ck_assert(text_matches(server_expect(&server, 0, LIST("status")), "not ready: stopping"));
    ck_assert_uint_eq(server_ready_workers(&server), 2);
    server_expect(&server, 0, LIST("reopen"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    client_close(&kept);
}
END_TEST

START_TEST(delay_refuses_what_a_stop_refuses)
{
    struct server server;

    start_delayed(&server);
    begin_stop(&server);
    server_rewrite(&server, SERVER_BASE "workers = 3\n");
    server_expect(&server, 1, LIST("reload"));
    server_expect(&server, 1, LIST("upgrade"));
    server_signal(&server, SIGHUP);
    server_await(&server, 0, "warning .*reload refused: a stop is in progress");
    server_signal(&server, SIGUSR2);
    server_await(&server, 0, "warning .*upgrade refused: a stop is in progress");
    ck_assert_uint_eq(server_generation(&server), 1);
    expect_unready(server.url);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* A worker, or the admin child, that dies meanwhile is replaced. */
START_TEST(delay_replaces_who_dies)
{
    struct server server;

    start_delayed(&server);
    pid_t admin = find_admin(&server);
    begin_stop(&server);
    pid_t pid = server_kill_worker(&server, 1, SIGKILL);
    site_await_successor(&server, 1, pid);
    ck_assert_int_gt(admin, 0);
    ck_assert_int_eq(kill(admin, SIGKILL), 0);
    server_await(&server, 0, text_format("admin \\(pid %d\\) killed by SIGKILL", admin));
    WAIT_FOR(client_get(server_admin(&server), "/healthz", NULL) == 200);
    expect_unready(server.url);
    expect_unready(server_admin(&server));
    size_t mark = server_mark(&server);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_uint_eq(server_count(&server, mark, " ready in "), 0);
}
END_TEST

/* The workers drain by themselves, and others go on for them. */
START_TEST(delay_after_a_signal_to_the_group)
{
    struct server server;
    struct client half;
    struct reply reply;

    start_delayed(&server);
    site_open_in_flight(&half, &server, HALF);
    pid_t pids[] = { server_worker(&server, 1), server_worker(&server, 2) };
    ck_assert_int_eq(kill(-server.pid, SIGINT), 0);
    server_await(&server, 0, "serving goes on for .*drain_delay");
    for (unsigned i = 0; i < 2; i++)
        server_await_worker(&server, i + 1, pids[i]);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    expect_unready(server.url);
    client_send(&half, REST);
    client_expect(&half, &reply, 200);
    client_close(&half);
    ck_assert_int_eq(kill(-server.pid, SIGINT), 0);
    ck_assert_int_eq(server_wait(&server), 0);
}
END_TEST

/* Who is to come after a while is not to come at all then. */
START_TEST(second_signal_while_admin_backs_off)
{
    struct server server;
    struct client never;
    pid_t admin, dead = 0;

    start_delayed(&server);
    site_open_in_flight(&never, &server, NEVER);
    begin_stop(&server);
    for (int i = 0; i < 4; i++) {
        WAIT_FOR((admin = find_admin(&server)) > 0 && admin != dead);
        ck_assert_int_eq(kill(admin, SIGKILL), 0);
        dead = admin;
    }
    server_await(&server, 0, "admin .* restarting in 400 ms$");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    client_close(&never);
}
END_TEST

START_TEST(delay_ends_in_a_drain)
{
    struct server server;
    struct client half, idle;
    struct reply reply;

    site_start(&server, PATIENT "workers = 1\ndrain_delay = \"200ms\"\n");
    site_open_in_flight(&half, &server, HALF);
    site_open_in_flight(&idle, &server, "");
    server_signal(&server, SIGTERM);
    server_await(&server, 0, "drain_delay is over: draining");
    ck_assert_msg(client_read_end(&idle), "%s", idle.fault);
    client_close(&idle);
    ck_assert_int_eq(client_try_open(&idle, server.url), -1);
    client_send(&half, REST);
    client_expect(&half, &reply, 200);
    ck_assert(reply.is_last);
    client_close(&half);
    ck_assert_int_eq(server_wait(&server), 0);
    server_await(&server, 0, "stopped in .*: 0 requests cut$");
}
END_TEST

static const int stop_rows[] = { SIGTERM, SIGINT, SIGQUIT };

START_TEST(second_signal_ends_the_delay_at_once)
{
    struct server server;
    struct client never;

    start_delayed(&server);
    site_open_in_flight(&never, &server, NEVER);
    server_signal(&server, stop_rows[_i]);
    server_await(&server, 0, "drain_delay");
    ck_assert_int_eq(server_stop(&server, stop_rows[_i]), 0);
    server_await(&server, 0, "stopped in .*: 1 request cut$");
    ck_assert_msg(client_read_end(&never), "%s", never.fault);
    client_close(&never);
}
END_TEST

/* Each waits for the one stop that there is. */
START_TEST(clients_of_stop_wait_through_the_delay)
{
    struct server server;
    int clients[2];

    site_start(&server, "drain_delay = \"200ms\"\n");
    for (int i = 0; i < 2; i++) {
        clients[i] = server_connect_control(&server);
        ck_assert_int_eq(write(clients[i], "stop\n", 5), 5);
    }
    for (int i = 0; i < 2; i++) {
        char text[64] = "";
        size_t length = 0;
        for (ssize_t got = 1; got > 0 && length < sizeof text - 1; length += (size_t)got)
            ck_assert_int_ge(got = read(clients[i], text + length, sizeof text - 1 - length), 0);
        ck_assert_str_eq(text, "0\nstopped\n");
        close(clients[i]);
    }
    ck_assert_int_eq(server_wait(&server), 0);
    ck_assert_uint_eq(server_count(&server, 0, "drain_delay is over"), 1);
}
END_TEST

/* The old generation of a reload, and a reload that is under way, when the stop comes. */
START_TEST(delay_after_a_reload)
{
    struct server server;
    struct client half;
    struct reply reply;

    start_delayed(&server);
    site_open_in_flight(&half, &server, HALF);
    server_reload(&server);
    server_signal(&server, SIGHUP);
    begin_stop(&server);
    expect_unready(server.url);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    client_send(&half, REST);
    client_expect(&half, &reply, 200);
    client_close(&half);
    WAIT_FOR(process_group(server.pid, NULL, 0) == 4); /* only those who serve */
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("delay");
    TCase *tests = suite_case(suite, "delay");

    tcase_add_test(tests, delay_serves_on);
    tcase_add_test(tests, delay_refuses_what_a_stop_refuses);
    tcase_add_test(tests, delay_replaces_who_dies);
    tcase_add_test(tests, delay_after_a_signal_to_the_group);
    tcase_add_test(tests, second_signal_while_admin_backs_off);
    tcase_add_test(tests, delay_ends_in_a_drain);
    tcase_add_loop_test(tests, second_signal_ends_the_delay_at_once, 0, SUITE_ROWS(stop_rows));
    tcase_add_test(tests, clients_of_stop_wait_through_the_delay);
    tcase_add_test(tests, delay_after_a_reload);
    return suite_run(suite);
}
