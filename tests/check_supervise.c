/* What only many workers, or two events at once, bring out in the master. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/lone.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

/* More queues to share out than a channel holds messages. */
START_TEST(hundreds_of_workers)
{
    struct server server;

    if (lone_is_instrumented() && suite_skip("so many instrumented processes take too much memory"))
        return;
    server_start(&server, &(struct server_options){ .config = SERVER_BASE "workers = 400\n" });
    ck_assert_uint_eq(server.workers, 400);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    /* Nearly all queues go to a few, and the sockets of the others are surplus from then on. */
    server_rewrite(&server, SERVER_BASE "workers = 2\n");
    server_reload(&server);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_uint_eq(server_count(&server, 0, "killed"), 0);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* A scraper that stays connected to an admin process which a reload has replaced. */
START_TEST(old_admin_does_not_hold_up_a_stop)
{
    struct server server;
    struct client client;
    struct reply reply;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE SERVER_ADMIN
                                                    "timeouts = { drain = \"1h\" }\n" });
    client_open(&client, server_admin(&server));
    client_send_get(&client, "/healthz");
    client_expect(&client, &reply, 200);
    server_reload(&server);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    client_close(&client);
}
END_TEST

/* Two signals in one turn of the master's loop: the logs are rotated while a generation that has
 * them open already gets ready. */
START_TEST(reopen_during_a_reload)
{
    struct server server;

    server_spawn(&server, &(struct server_options){ .config = SERVER_BASE
                                                    "log = \"log\"\naccess_log = \"access\"\n" });
    server_await_file(&server, "log", 0, " started in ");
    ck_assert_int_eq(kill(server.pid, SIGSTOP), 0);
    ck_assert_int_eq(kill(server.pid, SIGHUP), 0);
    ck_assert_int_eq(kill(server.pid, SIGUSR1), 0);
    ck_assert_int_eq(rename(scratch_path("log"), scratch_path("log.1")), 0);
    ck_assert_int_eq(rename(scratch_path("access"), scratch_path("access.1")), 0);
    ck_assert_int_eq(kill(server.pid, SIGCONT), 0);
    WAIT_FOR(server_generation(&server) == 2);
    const char *url = json_string(json_at(json_get(server_status(&server), "listening"), 0));
    server_await_file(&server, "log", 0, "generation 2 serves");
    ck_assert_uint_eq(client_get(url, "/hello", NULL), 200);
    server_await_file(&server, "access", 0, "GET /hello");
    ck_assert_str_eq(scratch_read("access.1"), "");
    server_expect(&server, 0, LIST("reopen"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(stopped_workers_are_not_ready)
{
    struct server server;

    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE SERVER_ADMIN
                                           "workers = 2\ntimeouts = { watchdog = \"1h\" }\n" });
    const char *admin = server_admin(&server), *body = "";
    pid_t workers[] = { server_worker(&server, 1), server_worker(&server, 2) };
    ck_assert_uint_eq(client_get(admin, "/readyz", NULL), 200);
    ck_assert_int_eq(kill(workers[0], SIGSTOP), 0);
    server_await(&server, 0, "worker 1 .* was stopped by a signal");
    ck_assert_uint_eq(client_get(admin, "/readyz", NULL), 200);
    /* The sibling serves its queue too. */
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(kill(workers[1], SIGSTOP), 0);
    WAIT_FOR(client_get(admin, "/readyz", &body) == 503);
    ck_assert_str_eq(body, "not ready: no worker\n");
    ck_assert_int_eq(kill(workers[0], SIGCONT), 0);
    ck_assert_int_eq(kill(workers[1], SIGCONT), 0);
    WAIT_FOR(client_get(admin, "/readyz", NULL) == 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Who asked for a reload that the stop does not let happen is told so, at once. */
START_TEST(stop_answers_waiting_reloads)
{
    struct server server;
    struct client client;
    char text[256] = "";

    site_start(&server, "timeouts = { drain = \"1h\" }\n");
    client_open(&client, server.url);
    client_send_get(&client, "/never"); /* holds the stop up */
    WAIT_FOR(json_number(json_get(server_status(&server), "connections_accepted")) >= 1);
    int waiting = server_connect_control(&server), late = server_connect_control(&server);
    ck_assert_int_eq(kill(server.pid, SIGTERM), 0);
    server_await(&server, 0, "SIGTERM: stopping");
    for (int i = 0; i < 2; i++) {
        int fd = i == 0 ? waiting : late;
        size_t length = 0;
        ck_assert_int_eq(write(fd, "reload\n", 7), 7);
        for (ssize_t got = 1; got > 0 && length < sizeof text - 1; length += (size_t)got)
            ck_assert_int_ge(got = read(fd, text + length, sizeof text - 1 - length), 0);
        text[length] = '\0';
        ck_assert_str_eq(text, "1\nrefused: a stop is in progress\n");
        close(fd);
    }
    ck_assert_int_eq(kill(server.pid, SIGTERM), 0); /* cuts the request */
    ck_assert_int_eq(server_wait(&server), 0);
    client_close(&client);
}
END_TEST

/* A client that has said all it wants to say still gets its answer. */
START_TEST(half_closed_control_client_is_answered)
{
    struct server server;

    server_start_plain(&server);
    int fd = server_connect_control(&server);
    ck_assert_int_eq(write(fd, "reload\n", 7), 7);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    char text[256] = "";
    size_t length = 0;
    for (ssize_t got = 1; got > 0 && length < sizeof text - 1; length += (size_t)got)
        ck_assert_int_ge(got = read(fd, text + length, sizeof text - 1 - length), 0);
    ck_assert_msg(strncmp(text, "0\ngeneration 2 serves", 21) == 0, "%s", text);
    close(fd);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("supervise");
    TCase *tests = suite_case(suite, "supervise");

    tcase_add_test(tests, hundreds_of_workers);
    tcase_add_test(tests, old_admin_does_not_hold_up_a_stop);
    tcase_add_test(tests, reopen_during_a_reload);
    tcase_add_test(tests, stopped_workers_are_not_ready);
    tcase_add_test(tests, stop_answers_waiting_reloads);
    tcase_add_test(tests, half_closed_control_client_is_answered);
    return suite_run(suite);
}
