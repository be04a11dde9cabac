/* Stops: what they wait for, what they cut and kill, and what they end with. */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/client.h"
#include "support/json.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"
#include "worker/worker.h"

/* What comes before a workers = line. Signals of a test, and no clock, decide how long it takes. */
#define PATIENT "timeouts = { header = \"1h\" drain = \"1h\" watchdog = 0 }\n"

/* What is cut, and counted. */

static const struct {
    int count;
    const char *line;
} cut_rows[] = {
    { 0, "stopped in .*: 0 requests cut$" },
    { 1, "stopped in .*: 1 request cut$" },
    { 3, "stopped in .*: 3 requests cut$" },
};

START_TEST(what_is_cut_is_counted)
{
    struct server server;
    struct client clients[3];

    site_start(&server, "workers = 2\ntimeouts = { drain = \"100ms\" }\n");
    for (int i = 0; i < cut_rows[_i].count; i++)
        site_open_in_flight(&clients[i], &server, NEVER);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    server_await(&server, 0, cut_rows[_i].line);
    for (int i = 0; i < cut_rows[_i].count; i++)
        client_close(&clients[i]);
}
END_TEST

/* What was cut before is not the stop's. */
START_TEST(only_what_the_stop_cuts_is_counted)
{
    struct server server;
    struct client client;

    site_start(&server, "workers = 1\n");
    site_open_in_flight(&client, &server, NEVER);
    pid_t pid = server_kill_worker(&server, 1, SIGKILL);
    site_await_successor(&server, 1, pid);
    ck_assert(site_counter(&server, "cut") == 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    server_await(&server, 0, "stopped in .*: 0 requests cut$");
    client_close(&client);
}
END_TEST

START_TEST(second_signal_counts_too)
{
    struct server server;
    struct client never, half;

    site_start(&server, PATIENT "workers = 1\n");
    site_open_in_flight(&never, &server, NEVER);
    site_open_in_flight(&half, &server, HALF);
    server_signal(&server, SIGTERM);
    server_await(&server, 0, "SIGTERM: stopping");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    server_await(&server, 0, "stopped in .*: 2 requests cut$");
    client_close(&never);
    client_close(&half);
}
END_TEST

/* Who is stopped by a signal cannot leave: it is killed after the cap, the others end in order. */
START_TEST(stopped_worker_is_killed)
{
    bool is_group = _i == 1;
    struct server server;
    struct client clients[8];
    struct reply reply;

    site_start(&server, "workers = 2\ntimeouts = { drain = \"2s\" watchdog = 0 }\n");
    for (int i = 0; i < 8; i++)
        site_open_in_flight(&clients[i], &server, "GET /slow HTTP/1.1\r\n" H "\r\n");
    pid_t pid = server_worker(&server, 1);
    ck_assert_int_gt(pid, 0);
    WAIT_FOR(text_matches(process_status(pid, "State"), "^S")); /* it has counted what it has */
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    server_await(&server, 0, "worker 1 .* was stopped by a signal");
    if (is_group)
        ck_assert_int_eq(kill(-server.pid, SIGTERM), 0);
    ck_assert_int_eq(is_group ? server_wait(&server) : server_stop(&server, SIGTERM), 1);
    server_await(
        &server, 0,
        text_format("worker 1 \\(pid %d\\) killed by SIGKILL \\(did not leave in time\\)", pid));
    unsigned answered = 0;
    for (int i = 0; i < 8; i++) {
        answered += client_receive(&clients[i], &reply, false) == CLIENT_REPLY;
        client_close(&clients[i]);
    }
    /* What the stopped one had is what was lost, and all of it is counted. */
    server_await(
        &server, 0,
        text_format("stopped in .*: %u requests? cut, a child had to be killed$", 8 - answered));
}
END_TEST

START_TEST(killed_by_others_is_no_failure_of_the_stop)
{
    struct server server;
    struct client half;

    site_start(&server, PATIENT "workers = 1\n");
    site_open_in_flight(&half, &server, HALF);
    pid_t pid = server_worker(&server, 1);
    ck_assert_int_gt(pid, 0);
    server_signal(&server, SIGTERM);
    server_await(&server, 0, "SIGTERM: stopping");
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(server_wait(&server), 0);
    server_await(&server, 0, "stopped in ");
    client_close(&half);
}
END_TEST

/* No worker is there, and the next one comes only after a while. */
START_TEST(stop_during_a_back_off)
{
    struct server server;
    pid_t pid = 0;

    site_start(&server, _i == 0 ? PATIENT "workers = 1\n"
                                : PATIENT "workers = 1\ndrain_delay = \"100ms\"\n");
    for (int i = 0; i < 6; i++) {
        pid = server_await_worker(&server, 1, pid);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
    }
    server_await(&server, 0, "restarting in 1600 ms$");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    server_await(&server, 0, "stopped in ");
}
END_TEST

/* A first start whose workers say nothing: there is nobody who could leave. */
START_TEST(stop_of_a_start_that_hangs)
{
    struct server server;

    if (suite_lacks_faults())
        return;
    server_spawn(&server,
                 &(struct server_options){ .config = SERVER_BASE
                                           "workers = 2\ndrain_delay = \"1h\"\n"
                                           "routes = ( { path = \"/\" fault = \"mute\" } )\n" });
    server_await(&server, 0, "worker 2 .* started, ");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 1);
    server_await(&server, 0, "killed by SIGKILL");
    ck_assert_uint_eq(server_count(&server, 0, " started in "), 0);
}
END_TEST

/* A process that is not ready yet; 0: none. */
static pid_t find_starting(const struct server *server)
{
    const struct json *list = json_get(server_status(server), "children");
    for (unsigned i = 0; i < json_count(list); i++) {
        const struct json *entry = json_at(list, i);
        if (strcmp(json_string(json_get(entry, "state")), "starting") == 0)
            return (pid_t)json_number(json_get(entry, "pid"));
    }
    return 0;
}

/* Workers of a reload that failed have a second left: a stop gives them no more. */
START_TEST(stop_after_a_reload_that_hangs)
{
    struct server server;
    pid_t pid;

    if (suite_lacks_faults())
        return;
    site_start(&server, "workers = 1\n" PATIENT);
    server_rewrite(&server, SERVER_BASE PATIENT
                   "workers = 3\nroutes = ( { path = \"/a\" fault = \"mute\" } )\n");
    server_signal(&server, SIGHUP);
    WAIT_FOR((pid = find_starting(&server)) > 0);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    server_await(&server, 0, "reload failed");
    server_signal(&server, SIGTERM);
    int status = server_wait(&server);
    ck_assert_msg(status == 0 || status == 1, "%d", status); /* 1: one was still there */
    server_await(&server, 0, "stopped in ");
}
END_TEST

/* The workers have the signal before the master has looked at its own: whoever comes in between is
 * still served, for nobody else would. But they wait for the master for a few seconds only. */
START_TEST(group_whose_master_is_slow)
{
    struct server server;
    struct client kept, queued;
    struct reply reply;

    site_start(&server, PATIENT "workers = 2\n");
    site_open_in_flight(&kept, &server, "");
    ck_assert_int_eq(kill(server.pid, SIGSTOP), 0);
    int64_t since = clock_monotonic();
    ck_assert_int_eq(kill(-server.pid, _i == 0 ? SIGTERM : SIGINT), 0);
    do {
        client_send_get(&kept, "/hello");
        client_expect(&kept, &reply, 200);
    } while (!reply.is_last);
    client_close(&kept);
    int count = 0;
    while (count < 8 && clock_monotonic() - since < WORKER_LEAVE_PATIENCE / 2) {
        client_open(&queued, server.url);
        client_send(&queued, HALF);
        client_send(&queued, REST);
        client_expect(&queued, &reply, 200);
        client_close(&queued);
        count++;
    }
    if (count == 0)
        suite_skip("the machine is too slow: the workers wait no longer for their master");
    server_signal(&server, SIGCONT);
    ck_assert_int_eq(server_wait(&server), 0);
    ck_assert_uint_eq(server_count(&server, 0, "worker [0-9]+ .* started, "), 2);
}
END_TEST

/* Under load. */

struct visitor {
    pthread_t thread;
    const char *url;
    bool is_fresh;
    _Atomic unsigned long answered;
    unsigned long lost, unaccepted; /* requests; of them, the first of a connection */
    char failure[120];
};

/* Asks until nobody listens any more. */
static void *visit(void *argument)
{
    struct visitor *visitor = argument;
    struct client client;
    struct reply reply;

    while (client_try_open(&client, visitor->url) == 0) {
        bool is_first = true, goes_on;
        do {
            enum client_result result = CLIENT_END;
            if (client_send_bytes(&client, GET, strlen(GET)))
                result = client_receive(&client, &reply, false);
            bool is_right = result == CLIENT_REPLY && reply.status == 200;
            if (is_right)
                atomic_fetch_add(&visitor->answered, 1);
            else if (is_first && client.in.length == 0)
                visitor->unaccepted++;
            else if (visitor->lost++ == 0)
                snprintf(visitor->failure, sizeof visitor->failure, "%s",
                         result == CLIENT_END || !client.fault ? "closed" : client.fault);
            goes_on = is_right && !reply.is_last && !visitor->is_fresh;
            is_first = false;
        } while (goes_on);
        client_abort(&client);
    }
    return NULL;
}

static const struct {
    int signal;
    bool is_group;
    const char *delay;
} load_rows[] = {
    { SIGTERM, false, "0" },    { SIGTERM, true, "0" },   { SIGINT, true, "0" },
    { SIGTERM, false, "50ms" }, { SIGINT, true, "50ms" },
};

START_TEST(nothing_in_flight_is_lost)
{
    struct visitor visitors[12] = { { .url = NULL } };
    struct server server;
    unsigned long unaccepted = 0;

    site_start(&server, text_format("workers = 3\ndrain_delay = \"%s\"\n", load_rows[_i].delay));
    for (int i = 0; i < SUITE_ROWS(visitors); i++) {
        visitors[i].url = server.url;
        visitors[i].is_fresh = i % 2 == 1;
        ck_assert(pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]) == 0);
    }
    for (int i = 0; i < SUITE_ROWS(visitors); i++)
        WAIT_FOR(atomic_load(&visitors[i].answered) >= 20);
    ck_assert_int_eq(kill(load_rows[_i].is_group ? -server.pid : server.pid, load_rows[_i].signal),
                     0);
    ck_assert_int_eq(server_wait(&server), 0);
    for (int i = 0; i < SUITE_ROWS(visitors); i++) {
        pthread_join(visitors[i].thread, NULL);
        ck_assert_msg(visitors[i].lost == 0, "%s visitor lost %lu: %s",
                      visitors[i].is_fresh ? "fresh" : "persistent", visitors[i].lost,
                      visitors[i].failure);
        unaccepted += visitors[i].unaccepted;
    }
    /* Connections that are made as the address goes are served too; a handshake in just that moment
     * may be late. */
    ck_assert_uint_le(unaccepted, 1);
    server_await(&server, 0, "stopped in .*: 0 requests cut$");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stop");
    TCase *tests = suite_case(suite, "stop");

    tcase_add_loop_test(tests, what_is_cut_is_counted, 0, SUITE_ROWS(cut_rows));
    tcase_add_test(tests, only_what_the_stop_cuts_is_counted);
    tcase_add_test(tests, second_signal_counts_too);
    tcase_add_loop_test(tests, stopped_worker_is_killed, 0, 2);
    tcase_add_test(tests, killed_by_others_is_no_failure_of_the_stop);
    tcase_add_loop_test(tests, stop_during_a_back_off, 0, 2);
    tcase_add_test(tests, stop_of_a_start_that_hangs);
    tcase_add_test(tests, stop_after_a_reload_that_hangs);
    tcase_add_loop_test(tests, group_whose_master_is_slow, 0, 2);
    tcase_add_loop_test(tests, nothing_in_flight_is_lost, 0, SUITE_ROWS(load_rows));
    return suite_run(suite);
}
