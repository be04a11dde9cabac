/* Deadlines and limits of connections. */

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

/* Deadlines. What is sent, and the status that comes before the end; 0: none. */

static const struct {
    const char *timeouts, *request;
    unsigned status;
} deadline_rows[] = {
    { "header = \"200ms\"", "", 0 },
    { "header = \"200ms\"", "G", 408 },
    { "header = \"200ms\"", "GET /hello HTTP/1.1\r\n" H, 408 },
    { "header = \"200ms\"", "\r\n", 408 },
    { "body = \"200ms\"", "POST /post HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nab", 408 },
    { "body = \"200ms\"", "POST /post HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\n",
      408 },
    { "idle = \"200ms\"", GET, 200 },
};

START_TEST(deadlines)
{
    struct server server;
    struct client client;
    struct reply reply;

    site_start(&server,
               text_format("workers = 1\ntimeouts = { %s }\n", deadline_rows[_i].timeouts));
    client_open(&client, server.url);
    client_send(&client, deadline_rows[_i].request);
    if (deadline_rows[_i].status != 0)
        client_expect(&client, &reply, deadline_rows[_i].status);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    if (deadline_rows[_i].status != 200)
        ck_assert(site_counter(&server, "timeouts") == 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The total counts: a byte now and then does not buy time. */
START_TEST(trickled_head_is_ended)
{
    struct deadline deadline = deadline_start();
    struct server server;
    struct client client;
    struct reply reply;

    site_start(&server, "workers = 1\ntimeouts = { header = \"500ms\" idle = \"1h\" }\n");
    client_open(&client, server.url);
    client_send(&client, "GET /hello HTTP/1.1\r\nA: ");
    while (client_is_silent(&client) && deadline_wait(&deadline))
        client_send_bytes(&client, "x", 1);
    client_expect(&client, &reply, 408);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(client_that_does_not_read_is_ended)
{
    struct server server;
    struct client client;
    pthread_t thread;

    site_start(&server, "workers = 1\ntimeouts = { send = \"500ms\" }\n");
    client_open(&client, server.url);
    const char *text = text_repeat(GET, 100000);
    struct site_sender sender = { &client, text, strlen(text) };
    ck_assert_int_eq(pthread_create(&thread, NULL, site_send, &sender), 0);
    WAIT_FOR(site_counter(&server, "timeouts") == 1);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    shutdown(client.fd, SHUT_RDWR);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Limits. */

static const char *const limit_rows[] = { "connections = 3", "per_address = 3" };

START_TEST(connections_are_limited)
{
    struct client clients[3], other;
    struct server server;
    struct reply reply;

    site_start(&server, text_format("workers = 1\nlimits = { %s }\n"
                                    "timeouts = { header = \"1h\" }\n",
                                    limit_rows[_i]));
    for (int i = 0; i < 3; i++) {
        client_open(&clients[i], server.url);
        client_send(&clients[i], GET "GET /hello HTTP/1.1\r\nHo");
        client_expect(&clients[i], &reply, 200);
    }
    client_open(&other, server.url);
    client_expect(&other, &reply, 503);
    ck_assert(reply.is_last);
    ck_assert_msg(client_read_end(&other), "%s", other.fault);
    client_close(&other);
    ck_assert(site_counter(&server, "refused") == 1);
    server_await(&server, 0, text_extract(limit_rows[_i], "^([a-z_]+)"));
    /* The others go on, and one that leaves makes room. */
    client_send(&clients[1], "st: a\r\n\r\n");
    client_expect(&clients[1], &reply, 200);
    client_close(&clients[0]);
    WAIT_FOR(client_get(server.url, "/hello", NULL) == 200);
    client_close(&clients[1]);
    client_close(&clients[2]);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* At the limit, a connection between requests gives its place to a new one: the oldest first. */
START_TEST(idle_connections_make_room)
{
    struct client clients[4];
    struct server server;
    struct reply reply;

    site_start(&server, "workers = 1\nlimits = { connections = 3 }\n");
    for (int i = 0; i < 4; i++) {
        client_open(&clients[i], server.url);
        client_send_get(&clients[i], "/hello");
        client_expect(&clients[i], &reply, 200);
    }
    ck_assert_msg(client_read_end(&clients[0]), "%s", clients[0].fault);
    for (int i = 1; i < 4; i++) {
        client_send_get(&clients[i], "/hello");
        client_expect(&clients[i], &reply, 200);
    }
    for (int i = 0; i < 4; i++)
        client_close(&clients[i]);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The limits are the whole server's: which worker the kernel chooses makes no difference. */

#define PLACES 20

/* Opens one that stays busy, unless it is refused. */
static bool hold(struct client *client, const struct server *server)
{
    struct reply reply;

    client_open(client, server->url);
    client_send(client, GET "GET /hello HTTP/1.1\r\nHo");
    if (client_receive(client, &reply, false) == CLIENT_REPLY && reply.status == 200)
        return true;
    client_close(client);
    return false;
}

static const char *const shared_rows[] = { "connections = 20", "per_address = 20" };

START_TEST(workers_share_the_places)
{
    struct client clients[PLACES], other;
    struct server server;

    site_start(&server, text_format("workers = 4\nlimits = { %s }\n"
                                    "timeouts = { header = \"1h\" }\n",
                                    shared_rows[_i]));
    for (int i = 0; i < PLACES; i++)
        ck_assert_msg(hold(&clients[i], &server), "only %d have a place", i);
    for (int i = 0; i < 40; i++)
        ck_assert_msg(!hold(&other, &server), "one too many");
    for (int i = 0; i < 40; i++) {
        struct client *client = &clients[i * 7 % PLACES];
        if (i % 2)
            client_abort(client);
        else
            client_close(client);
        WAIT_FOR(hold(client, &server));
    }
    for (int i = 0; i < PLACES; i++)
        client_close(&clients[i]);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* A worker says what is idle in it when its turn is over, and the answers are out before. */
static unsigned idle_of(const struct server *server)
{
    const struct json *children = json_get(server_status(server), "children");
    unsigned sum = 0;
    for (unsigned i = 0; i < json_count(children); i++)
        sum += (unsigned)json_number(json_get(json_at(children, i), "idle"));
    return sum;
}

/* The oldest goes, whichever worker has it. */
START_TEST(workers_make_room_for_each_other)
{
    struct client clients[2 * PLACES];
    struct server server;
    struct reply reply;

    site_start(&server, _i == 0 ? "workers = 4\nlimits = { connections = 20 }\n"
                                : "workers = 4\nlimits = { connections = 20 }\n"
                                  "timeouts = { idle = \"0s\" }\n");
    for (int i = 0; i < 2 * PLACES; i++) {
        client_open(&clients[i], server.url);
        client_send_get(&clients[i], "/hello");
        client_expect(&clients[i], &reply, 200);
        if (i < PLACES)
            WAIT_FOR(idle_of(&server) == i + 1U);
        else
            ck_assert_msg(client_read_end(&clients[i - PLACES]), "%d: %s", i,
                          clients[i - PLACES].fault);
    }
    for (int i = PLACES; i < 2 * PLACES; i++) {
        client_send_get(&clients[i], "/hello");
        client_expect(&clients[i], &reply, 200);
    }
    for (int i = 0; i < 2 * PLACES; i++)
        client_close(&clients[i]);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Who waits for a place is told that there is none, also when the time for its head is shorter. */
START_TEST(refusal_comes_before_the_deadline)
{
    struct client clients[PLACES], other;
    struct server server;
    struct reply reply;

    site_start(&server, "workers = 2\nlimits = { connections = 20 }\n"
                        "timeouts = { header = \"50ms\" }\n");
    for (int i = 0; i < PLACES; i++) {
        client_open(&clients[i], server.url);
        client_send_get(&clients[i], "/never");
    }
    WAIT_FOR(client_get(server.url, "/hello", NULL) == 503);
    for (int i = 0; i < 5; i++) {
        client_open(&other, server.url);
        client_send_get(&other, "/hello");
        client_expect(&other, &reply, 503);
        client_close(&other);
    }
    for (int i = 0; i < PLACES; i++)
        client_abort(&clients[i]); /* a half-close would still get its answer, in an hour */
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* What a worker held when it was killed is free again; so it is after a reload. */
START_TEST(dead_workers_hold_no_places)
{
    struct client clients[PLACES], more[PLACES], other;
    struct server server;

    site_start(&server, "workers = 2\nlimits = { connections = 20 }\n"
                        "timeouts = { header = \"1h\" drain = \"100ms\" }\n");
    for (int i = 0; i < PLACES; i++)
        ck_assert(hold(&clients[i], &server));
    if (_i == 0) {
        pid_t first = server_worker(&server, 1), second = server_worker(&server, 2);
        kill(first, SIGKILL);
        kill(second, SIGKILL);
        site_await_successor(&server, 1, first);
        site_await_successor(&server, 2, second);
    } else {
        server_reload(&server);
        server_await(&server, 0, "worker 1.* of generation 1 left");
        server_await(&server, 0, "worker 2.* of generation 1 left");
    }
    for (int i = 0; i < PLACES; i++)
        ck_assert_msg(hold(&more[i], &server), "only %d have a place", i);
    ck_assert(!hold(&other, &server));
    for (int i = 0; i < PLACES; i++) {
        client_close(&more[i]);
        client_close(&clients[i]);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(requests_of_a_connection_are_limited)
{
    struct server server;
    struct client client;
    struct reply reply;

    site_start(&server, "workers = 1\nlimits = { requests = 3 }\n");
    client_open(&client, server.url);
    client_send(&client, GET GET GET GET);
    for (int i = 0; i < 3; i++) {
        client_expect(&client, &reply, 200);
        ck_assert_int_eq(reply.is_last, i == 2);
    }
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The answer to a refused request reaches a client that is still sending. */
START_TEST(refusal_is_not_lost_in_a_reset)
{
    struct server server;
    struct client client;
    struct reply reply;

    site_start(&server, "workers = 1\nlimits = { body = \"1k\" }\n");
    for (int i = 0; i < 50; i++) {
        client_open(&client, server.url);
        client_send(&client, "POST /post HTTP/1.1\r\n" H "Content-Length: 60000\r\n\r\n");
        client_send_bytes(&client, text_repeat("x", 60000), 60000);
        client_expect(&client, &reply, 413);
        ck_assert(reply.is_last);
        client_close(&client);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limits");
    TCase *tests = suite_case(suite, "limits");

    tcase_add_loop_test(tests, deadlines, 0, SUITE_ROWS(deadline_rows));
    tcase_add_test(tests, trickled_head_is_ended);
    tcase_add_test(tests, client_that_does_not_read_is_ended);
    tcase_add_loop_test(tests, connections_are_limited, 0, SUITE_ROWS(limit_rows));
    tcase_add_test(tests, idle_connections_make_room);
    tcase_add_loop_test(tests, workers_share_the_places, 0, SUITE_ROWS(shared_rows));
    tcase_add_loop_test(tests, workers_make_room_for_each_other, 0, 2);
    tcase_add_test(tests, refusal_comes_before_the_deadline);
    tcase_add_loop_test(tests, dead_workers_hold_no_places, 0, 2);
    tcase_add_test(tests, requests_of_a_connection_are_limited);
    tcase_add_test(tests, refusal_is_not_lost_in_a_reset);
    return suite_run(suite);
}
