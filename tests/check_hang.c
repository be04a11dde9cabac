/* Workers that hang or are stopped, seen from beside. */

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/client.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

/* Hangs, seen from beside. */

static const struct {
    const char *fault, *reason;
} stuck_rows[] = {
    { "loop", "stuck for longer than timeouts\\.watchdog" },
    { "block", "stuck for longer than timeouts\\.watchdog" },
    { "stop", "stopped by a signal for longer than timeouts\\.watchdog" },
};

START_TEST(sibling_serves_while_one_is_stuck)
{
    struct server server;
    struct client client;

    if (suite_lacks_faults())
        return;
    site_start_faulty(&server, text_format(FAULT, stuck_rows[_i].fault),
                      "workers = 2\ntimeouts = { watchdog = \"2s\" }\n");
    client_open(&client, server.url);
    client_send_get(&client, "/crash");
    /* Whichever queue they come to, they are answered. */
    for (int i = 0; i < 40; i++)
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    client_close(&client);
    server_await(&server, 0,
                 text_format("worker [12] .* killed by SIGKILL \\(%s\\) after .*, answering GET "
                             "/crash from 127\\.0\\.0\\.1:[0-9]+; restarting in 0 ms$",
                             stuck_rows[_i].reason));
    WAIT_FOR(server_ready_workers(&server) == 2);
    ck_assert_uint_eq(server_count(&server, 0, "killed"), 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(admin_answers_while_the_only_worker_is_stuck)
{
    struct server server;
    struct client client;

    if (suite_lacks_faults())
        return;
    site_start_faulty(&server, text_format(FAULT, "loop"),
                      SERVER_ADMIN "workers = 1\ntimeouts = { watchdog = 0 }\n");
    const char *admin = server_admin(&server);
    client_open(&client, server.url);
    client_send_get(&client, "/crash");
    pid_t worker = server_worker(&server, 1);
    WAIT_FOR(text_matches(process_status(worker, "State"), "^R"));
    for (int i = 0; i < 20; i++) {
        ck_assert_uint_eq(client_get(admin, "/healthz", NULL), 200);
        ck_assert_uint_eq(client_get(admin, "/readyz", NULL), 200);
    }
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    client_close(&client);
    site_await_successor(&server, 1, worker);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(admin_is_replaced)
{
    struct server server;

    site_start_faulty(&server, "", SERVER_ADMIN "workers = 1\n");
    const char *admin = server_admin(&server);
    pid_t pid = (pid_t)atoi(text_extract(server_await(&server, 0, "admin \\(pid"), "pid ([0-9]+)"));
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    server_await(&server, 0, text_format("admin \\(pid %d\\) killed by SIGKILL", pid));
    WAIT_FOR(client_get(admin, "/healthz", NULL) == 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(stopped_worker_is_replaced)
{
    struct server server;

    site_start_faulty(&server, "", "workers = 2\ntimeouts = { watchdog = \"1s\" }\n");
    pid_t pid = server_kill_worker(&server, 1, SIGSTOP);
    server_await(&server, 0, text_format("worker 1 \\(pid %d\\) .*SIGKILL", pid));
    site_await_successor(&server, 1, pid);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(worker_stopped_for_a_moment_is_kept)
{
    struct server server;

    site_start_faulty(&server, "", "workers = 1\ntimeouts = { watchdog = \"1h\" }\n");
    pid_t pid = server_kill_worker(&server, 1, SIGSTOP);
    server_await(&server, 0, "stopped");
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_worker(&server, 1), pid);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(stuck_worker_is_killed_for_a_stop)
{
    struct server server;
    struct client client;

    if (suite_lacks_faults())
        return;
    site_start_faulty(&server, text_format(FAULT, "loop"),
                      "workers = 1\ntimeouts = { watchdog = 0 drain = \"100ms\" }\n");
    client_open(&client, server.url);
    client_send_get(&client, "/crash");
    WAIT_FOR(text_matches(process_status(server_worker(&server, 1), "State"), "^R"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 1);
    server_await(&server, 0, "SIGKILL .*GET /crash");
    client_close(&client);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hang");
    TCase *tests = suite_case(suite, "hang");

    tcase_add_loop_test(tests, sibling_serves_while_one_is_stuck, 0, SUITE_ROWS(stuck_rows));
    tcase_add_test(tests, admin_answers_while_the_only_worker_is_stuck);
    tcase_add_test(tests, admin_is_replaced);
    tcase_add_test(tests, stopped_worker_is_replaced);
    tcase_add_test(tests, worker_stopped_for_a_moment_is_kept);
    tcase_add_test(tests, stuck_worker_is_killed_for_a_stop);
    return suite_run(suite);
}
