/* Connections: pipelines, late answers, half-closes, deadlines and limits. */

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

/* Pipelines. */

START_TEST(ten_thousand_in_a_pipeline)
{
    struct server server;
    struct client client;
    struct reply reply;
    pthread_t thread;
    void *sent;

    site_start(&server, "workers = 1\n");
    client_open(&client, server.url);
    const char *text = text_repeat(GET, 10000);
    struct site_sender sender = { &client, text, strlen(text) };
    ck_assert_int_eq(pthread_create(&thread, NULL, site_send, &sender), 0);
    for (int i = 0; i < 10000; i++) {
        client_expect(&client, &reply, 200);
        ck_assert(slice_equal(reply.body, SLICE("Hello")) && !reply.is_last);
    }
    ck_assert_int_eq(pthread_join(thread, &sent), 0);
    ck_assert_ptr_nonnull(sent);
    ck_assert(client_is_silent(&client));
    client_close(&client);
    ck_assert(site_counter(&server, "requests") == 10000);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(pipeline_then_half_close)
{
    struct server server;
    struct client client;
    struct reply reply;

    site_start(&server, "workers = 1\n");
    client_open(&client, server.url);
    client_send(&client, text_repeat(GET, 100));
    client_end(&client);
    for (int i = 0; i < 100; i++)
        client_expect(&client, &reply, 200);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(late_answer_after_a_half_close)
{
    struct server server;
    struct client client;
    struct reply reply;

    site_start(&server, "workers = 1\n");
    client_open(&client, server.url);
    client_send(&client, "GET /slow HTTP/1.1\r\n" H "\r\n");
    client_end(&client);
    client_expect(&client, &reply, 200);
    ck_assert_str_eq(reply_body(&reply), "Slow");
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* One worker answers others while an answer is late. */
START_TEST(late_answers_hold_nobody_up)
{
    struct client late[50];
    struct server server;

    site_start(&server, "workers = 1\n");
    for (int i = 0; i < SUITE_ROWS(late); i++) {
        client_open(&late[i], server.url);
        client_send_get(&late[i], "/never");
    }
    for (int i = 0; i < 50; i++)
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    for (int i = 0; i < SUITE_ROWS(late); i++) {
        ck_assert(client_is_silent(&late[i]));
        client_close(&late[i]);
    }
    /* They were sent in order, so they are owed an answer: the second stop cuts that short. */
    server_signal(&server, SIGTERM);
    server_await(&server, 0, "stopping");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(late_answers_to_nobody)
{
    struct client late[50];
    struct server server;

    site_start(&server, "workers = 1\n");
    pid_t worker = server_worker(&server, 1);
    for (int i = 0; i < SUITE_ROWS(late); i++) {
        client_open(&late[i], server.url);
        client_send_get(&late[i], "/slow");
    }
    /* Some go away in order, some do not. */
    for (int i = 0; i < SUITE_ROWS(late); i++)
        (i % 2 == 0 ? client_close : client_abort)(&late[i]);
    WAIT_FOR(site_counter(&server, "connections_accepted") == SUITE_ROWS(late));
    WAIT_FOR(json_number(json_get(json_at(json_get(server_status(&server), "children"), 0),
                                  "connections")) == 0);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_worker(&server, 1), worker);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(continue_is_asked_for)
{
    struct server server;
    struct client client;
    struct reply reply;

    site_start(&server, "workers = 1\n");
    client_open(&client, server.url);
    client_send(&client, "POST /post HTTP/1.1\r\n" H "Expect: 100-continue\r\n"
                         "Content-Length: 3\r\n\r\n");
    client_expect(&client, &reply, 100);
    ck_assert(client_is_silent(&client));
    client_send(&client, "abc" GET);
    client_expect(&client, &reply, 200);
    ck_assert_str_eq(reply_body(&reply), "Post");
    client_expect(&client, &reply, 200);
    ck_assert_str_eq(reply_body(&reply), "Hello");
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* A large body, sent while nobody waits for the answer, costs nothing but its bytes. */
START_TEST(body_at_the_limit)
{
    struct server server;
    struct client client;
    struct reply reply;

    site_start(&server, "workers = 1\nlimits = { body = \"100k\" }\n");
    for (int more = 0; more < 2; more++) {
        size_t length = 100 * 1024 + (size_t)more;
        client_open(&client, server.url);
        client_send(&client,
                    text_format("POST /post HTTP/1.1\r\n" H "Content-Length: %zu\r\n\r\n", length));
        if (more == 0)
            client_send(&client, text_repeat("x", length));
        client_expect(&client, &reply, more == 0 ? 200 : 413);
        client_close(&client);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The admin listener. */

START_TEST(admin_serves_health_alone)
{
    struct server server;

    site_start(&server, "workers = 1\n" SERVER_ADMIN);
    const char *admin = server_admin(&server);
    ck_assert_uint_eq(client_get(admin, "/healthz", NULL), 200);
    ck_assert_uint_eq(client_get(admin, "/readyz", NULL), 200);
    ck_assert_uint_eq(client_get(admin, "/hello", NULL), 404);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    /* With routes of our own, health is not on the public port. */
    ck_assert_uint_eq(client_get(server.url, "/healthz", NULL), 404);
    server_reload(&server);
    ck_assert_uint_eq(client_get(admin, "/healthz", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(not_ready_while_stopping)
{
    struct server server;
    struct client client;
    struct reply reply;
    const char *body;

    site_start(&server,
               "workers = 1\n" SERVER_ADMIN "timeouts = { header = \"1h\" drain = \"1h\" }\n");
    const char *admin = server_admin(&server);
    client_open(&client, server.url);
    client_send(&client, GET "GET /hello HTTP/1.1\r\nHo");
    client_expect(&client, &reply, 200);
    server_signal(&server, SIGTERM);
    WAIT_FOR(client_get(admin, "/readyz", &body) == 503);
    ck_assert_msg(text_matches(body, "stopping"), "%s", body);
    ck_assert_uint_eq(client_get(admin, "/healthz", NULL), 200);
    client_send(&client, "st: a\r\n\r\n");
    client_expect(&client, &reply, 200);
    client_close(&client);
    ck_assert_int_eq(server_wait(&server), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("connection");
    TCase *tests = suite_case(suite, "connection");

    tcase_add_test(tests, ten_thousand_in_a_pipeline);
    tcase_add_test(tests, pipeline_then_half_close);
    tcase_add_test(tests, late_answer_after_a_half_close);
    tcase_add_test(tests, late_answers_hold_nobody_up);
    tcase_add_test(tests, late_answers_to_nobody);
    tcase_add_test(tests, continue_is_asked_for);
    tcase_add_test(tests, body_at_the_limit);
    tcase_add_test(tests, admin_serves_health_alone);
    tcase_add_test(tests, not_ready_while_stopping);
    return suite_run(suite);
}
