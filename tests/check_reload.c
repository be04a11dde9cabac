/* Reloads that succeed: what they change, and that nothing is lost. */

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

#define PATIENT "timeouts = { header = \"1h\" drain = \"1h\" }\n"

/* What a reload changes. */

START_TEST(worker_count)
{
    static const unsigned counts[] = { 4, 1, 3, 3, 2 };
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE "workers = 2\n" });
    for (int i = 0; i < SUITE_ROWS(counts); i++) {
        server_rewrite(&server, text_format(SERVER_BASE "workers = %u\n", counts[i]));
        server_reload(&server);
        ck_assert_uint_eq(server_ready_workers(&server), counts[i]);
        ck_assert_int_gt(server_worker(&server, counts[i]), 0);
        ck_assert_int_eq(server_worker(&server, counts[i] + 1), 0);
        for (int request = 0; request < 20; request++)
            ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(addresses_come_and_go)
{
    struct server server;

    server_start(&server,
                 &(struct server_options){ .config = SERVER_CONTROL
                                           "workers = 2\n"
                                           "listen = [ \"127.0.0.1:0\", \"127.0.0.2:0\" ]\n" });
    const char *kept = server.urls[0], *removed = server.urls[1];
    ck_assert_uint_eq(client_get(removed, "/hello", NULL), 200);
    server_rewrite(&server, SERVER_CONTROL "workers = 2\n"
                                           "listen = [ \"127.0.0.3:0\", \"127.0.0.1:0\" ]\n");
    size_t mark = server_mark(&server);
    server_reload(&server);
    struct client client;
    WAIT_FOR(client_try_open(&client, removed) == -1);
    ck_assert_uint_eq(client_get(kept, "/hello", NULL), 200);
    const char *status = server_expect(&server, 0, LIST("status"));
    const char *added = text_extract(status, "(http://127\\.0\\.0\\.3:[0-9]+)");
    if (added == NULL)
        added = text_extract(server_await(&server, mark, "127\\.0\\.0\\.3:[0-9]"),
                             "(http://127\\.0\\.0\\.3:[0-9]+)");
    ck_assert_uint_eq(client_get(added, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(routes_change)
{
    struct server server;
    const char *body;

    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE
                                           "workers = 2\n"
                                           "routes = ( { path = \"/a\" text = \"old\" } )\n" });
    ck_assert_uint_eq(client_get(server.url, "/a", &body), 200);
    ck_assert_str_eq(body, "old");
    server_rewrite(&server,
                   SERVER_BASE "workers = 2\nroutes = ( { path = \"/a\" text = \"new\" },\n"
                               "{ path = \"/b\" text = \"b\" } )\n");
    server_replace(&server, 2);
    for (int i = 0; i < 20; i++) {
        ck_assert_uint_eq(client_get(server.url, "/a", &body), 200);
        ck_assert_str_eq(body, "new");
        ck_assert_uint_eq(client_get(server.url, "/b", &body), 200);
    }
    server_rewrite(&server,
                   SERVER_BASE "workers = 2\nroutes = ( { path = \"/b\" text = \"b\" } )\n");
    server_replace(&server, 2);
    ck_assert_uint_eq(client_get(server.url, "/a", NULL), 404);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(fragments_change)
{
    struct server server;

    ck_assert_int_eq(mkdir(scratch_path("conf.d"), 0755), 0);
    scratch_write("conf.d/a.conf", "routes = ( { path = \"/a\" text = \"a\" } )\n");
    server_start(&server, &(struct server_options){ .config = SERVER_BASE
                                                    "workers = 2\n"
                                                    "include = [ \"conf.d/*.conf\" ]\n" });
    ck_assert_uint_eq(client_get(server.url, "/a", NULL), 200);
    ck_assert_uint_eq(client_get(server.url, "/b", NULL), 404);
    scratch_write("conf.d/b.conf", "routes = ( { path = \"/b\" text = \"b\" } )\n");
    server_replace(&server, 2);
    ck_assert_uint_eq(client_get(server.url, "/a", NULL), 200);
    ck_assert_uint_eq(client_get(server.url, "/b", NULL), 200);
    scratch_write("conf.d/b.conf", "routes = ( { path = \"/a\" text = \"b\" } )\n");
    const char *answer = server_expect(&server, 78, LIST("reload"));
    ck_assert_msg(text_matches(answer, "conf\\.d/b\\.conf:1: "), "%s", answer);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(unchanged_file_makes_a_generation_and_says_so)
{
    struct server server;

    server_start_plain(&server);
    size_t mark = server_mark(&server);
    const char *answer = server_expect(&server, 0, LIST("reload"));
    ck_assert_msg(text_matches(answer, "generation 2"), "%s", answer);
    ck_assert_msg(text_matches(answer, "not changed|unchanged"), "%s", answer);
    server_await(&server, mark, "info .*generation 2.*(not changed|unchanged)");
    ck_assert_uint_eq(server_generation(&server), 2);
    /* And a changed one says what. */
    server_rewrite(&server, SERVER_BASE "workers = 3\n");
    mark = server_mark(&server);
    answer = server_expect(&server, 0, LIST("reload"));
    ck_assert_msg(!text_matches(answer, "not changed|unchanged"), "%s", answer);
    server_await(&server, mark, "generation 3.*workers");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(overrides_are_kept)
{
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE "workers = 1\n",
                                                    .arguments = LIST("-o", "workers=3") });
    ck_assert_uint_eq(server.workers, 3);
    server_rewrite(&server, SERVER_BASE "workers = 2\n");
    server_reload(&server);
    ck_assert_uint_eq(server_ready_workers(&server), 3);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

static void expect_drift(const struct server *server, const char *text)
{
    const char *status = server_expect(server, 0, LIST("status"));
    ck_assert_msg(text_matches(status, text), "no %s in:\n%s", text, status);
    ck_assert_int_eq(json_get(server_status(server), "drift")->type,
                     strstr(text, "as on disk") != NULL ? JSON_FALSE : JSON_TRUE);
}

/* Of the file, of a fragment, of one that comes or goes; and none when all is as it was. */
START_TEST(drift_shows)
{
    static const char *const steps[][3] = {
        { "hayate.conf", SERVER_BASE "workers = 2\n", "differs on disk: [^ ]*hayate\\.conf" },
        { "conf.d/a.conf", "workers = 2\n", "differs on disk: [^ ]*a\\.conf" },
        { "conf.d/a.conf", NULL, "differs on disk" },
        { "conf.d/b.conf", "watch = false\n", "differs on disk" },
        { "hayate.conf", NULL, "differs on disk: [^ ]*hayate\\.conf" },
    };
    static const char before[] = SERVER_BASE "include = [ \"conf.d/*.conf\" ]\n";
    static const char fragment[] = "workers = 1\n";
    struct server server;

    ck_assert_int_eq(mkdir(scratch_path("conf.d"), 0755), 0);
    scratch_write("conf.d/a.conf", fragment);
    server_start(&server, &(struct server_options){ .config = before });
    expect_drift(&server, "hayate\\.conf, as on disk");
    for (int i = 0; i < SUITE_ROWS(steps); i++) {
        if (steps[i][1] != NULL)
            scratch_write(steps[i][0], steps[i][1]);
        else
            ck_assert_int_eq(unlink(scratch_path(steps[i][0])), 0);
        expect_drift(&server, steps[i][2]);
        server_rewrite(&server, before);
        scratch_write("conf.d/a.conf", fragment);
        unlink(scratch_path("conf.d/b.conf"));
        expect_drift(&server, "hayate\\.conf, as on disk");
    }
    scratch_write("conf.d/a.conf", "workers = 2\n");
    server_reload(&server);
    expect_drift(&server, "hayate\\.conf, as on disk");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Connections over a reload. */

/* One more, once the worker has heard of the reload: which may be after the next request. */
START_TEST(keep_alive_connection_gets_one_more_answer)
{
    struct deadline deadline = deadline_start();
    struct server server;
    struct client client;
    struct reply reply;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE PATIENT });
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    ck_assert(!reply.is_last);
    server_reload(&server);
    ck_assert(client_is_silent(&client));
    do {
        client_send_get(&client, "/hello");
        client_expect(&client, &reply, 200);
        ck_assert_str_eq(reply_body(&reply), "Hello");
    } while (!reply.is_last && deadline_wait(&deadline));
    ck_assert(reply.is_last);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(idle_connection_is_closed_at_the_deadline)
{
    struct server server;
    struct client client;
    struct reply reply;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE
                                                    "timeouts = { drain = \"200ms\" }\n" });
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    server_reload(&server);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(request_in_flight_is_finished)
{
    struct server server;
    struct client half, slow;
    struct reply reply;

    server_start(&server, &(struct server_options){
                              .config = SERVER_BASE PATIENT
                              "workers = 1\nroutes = ( { path = \"/hello\" text = \"old\" },"
                              "{ path = \"/slow\" text = \"slow\" delay = \"1s\" } )\n" });
    pid_t worker = server_worker(&server, 1);
    client_open(&half, server.url);
    client_send(&half, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\nHo");
    client_expect(&half, &reply, 200);
    client_open(&slow, server.url);
    client_send_get(&slow, "/slow");
    server_rewrite(&server, SERVER_BASE PATIENT
                   "workers = 1\nroutes = ( { path = \"/hello\" text = \"new\" } )\n");
    server_reload(&server);
    const char *body = "";
    WAIT_FOR(client_get(server.url, "/hello", &body) == 200 && strcmp(body, "new") == 0);
    /* It began under the old configuration, and is answered by it. */
    client_expect(&slow, &reply, 200);
    ck_assert_str_eq(reply_body(&reply), "slow");
    ck_assert(process_is_alive(worker));
    client_send(&half, "st: a\r\n\r\n");
    client_expect(&half, &reply, 200);
    ck_assert_str_eq(reply_body(&reply), "old");
    client_close(&half);
    client_close(&slow);
    WAIT_FOR(!process_is_alive(worker));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* All of them, as long as somebody is left. */
START_TEST(draining_generations_show)
{
    struct server server;
    struct client clients[3];

    site_start(&server, "workers = 1\ntimeouts = { drain = \"1h\" }\n");
    for (unsigned i = 0; i < 3; i++) {
        client_open(&clients[i], server.url);
        client_send_get(&clients[i], "/never");
        WAIT_FOR(site_counter(&server, "connections_accepted") >= i + 1);
        server_reload(&server);
        for (unsigned k = 0; k <= i; k++)
            ck_assert(text_matches(server_expect(&server, 0, LIST("status")),
                                   text_format("1 +[0-9]+ +%u +draining ", k + 1)));
    }
    const struct json *children = json_get(server_status(&server), "children");
    ck_assert_uint_eq(json_count(children), 4);
    for (unsigned i = 0; i < 4; i++) {
        const struct json *child = json_at(children, i);
        ck_assert(json_number(json_get(child, "generation")) == 4 - i);
        ck_assert_str_eq(json_string(json_get(child, "state")), i == 0 ? "ready" : "draining");
    }
    server_signal(&server, SIGTERM);
    server_await(&server, 0, "SIGTERM: stopping");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0); /* at once */
    for (unsigned i = 0; i < 3; i++)
        client_close(&clients[i]);
}
END_TEST

/* One that is stuck does not see its deadline: the master does. The reload is no worse for it. */
START_TEST(draining_never_outlives_its_deadline)
{
    struct server server;
    struct client client;

    if (suite_lacks_faults())
        return;
    site_start_faulty(&server, text_format(FAULT, "loop"),
                      "workers = 1\ntimeouts = { watchdog = 0  drain = \"200ms\" }\n");
    pid_t pid = server_worker(&server, 1);
    client_open(&client, server.url);
    client_send_get(&client, "/crash");
    WAIT_FOR(text_matches(server_expect(&server, 0, LIST("status")), "GET /crash"));
    server_reload(&server);
    server_await(&server, 0,
                 text_format("worker 1 \\(pid %d\\) of generation 1 killed by SIGKILL "
                             "\\(did not leave in time\\) .*GET /crash",
                             pid));
    WAIT_FOR(json_count(json_get(server_status(&server), "children")) == 1);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Who was told that the reload is done never meets the old configuration. */
START_TEST(acknowledged_means_in_force)
{
    struct server server;
    char answer[4096];
    const char *body = "";

    server_start(&server, &(struct server_options){ .config = SERVER_BASE "workers = 2\n" });
    for (int i = 0; i < 50; i++) {
        const char *text = text_format("%d", i);
        server_rewrite(&server, text_format(SERVER_BASE "workers = 2\nroutes = ( { path = \"/a\" "
                                                        "text = \"%s\" } )\n",
                                            text));
        /* At once after the answer: `hayate reload` takes a moment to leave. */
        int fd = server_connect_control(&server);
        ck_assert_int_eq(send(fd, "reload\n", 7, MSG_NOSIGNAL), 7);
        ck_assert_int_gt(recv(fd, answer, sizeof answer, MSG_WAITALL), 0);
        ck_assert_int_eq(answer[0], '0');
        ck_assert_uint_eq(client_get(server.url, "/a", &body), 200);
        ck_assert_str_eq(body, text);
        close(fd);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Several at once. */

START_TEST(concurrent_reloads_all_succeed)
{
    struct process processes[6];
    struct server server;

    server_start_plain(&server);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct launch launch = { .arguments = LIST("reload", "--control", server.control),
                             .out = null,
                             .err = null };
    for (int i = 0; i < SUITE_ROWS(processes); i++)
        process_start(&processes[i], &launch);
    for (int i = 0; i < SUITE_ROWS(processes); i++)
        ck_assert_int_eq(process_wait(&processes[i]), 0);
    close(null);
    unsigned generation = server_generation(&server);
    ck_assert_uint_ge(generation, 2);
    ck_assert_uint_le(generation, 7);
    ck_assert_uint_eq(server_ready_workers(&server), 2);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Whoever asks last is served last: the last content is what counts. */
START_TEST(many_hangups_end_with_the_last_file)
{
    struct server server;

    server_start_plain(&server);
    for (unsigned i = 1; i <= 20; i++) {
        server_rewrite(&server, text_format(SERVER_BASE "workers = %u\n", 1 + i % 4));
        server_signal(&server, SIGHUP);
    }
    server_rewrite(&server, SERVER_BASE "workers = 5\n");
    server_signal(&server, SIGHUP);
    WAIT_FOR(server_ready_workers(&server) == 5);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Descriptors of the master after many reloads are as many as before. */
START_TEST(reloads_leak_no_descriptor)
{
    struct server server;

    server_start_plain(&server);
    server_reload(&server);
    WAIT_FOR(server_ready_workers(&server) == 2 && process_group(server.pid, NULL, 0) == 3);
    unsigned before = process_count_files(server.pid);
    for (int i = 0; i < 10; i++) {
        server_rewrite(&server,
                       i % 2 == 0 ? SERVER_BASE "wrokers = 2\n" : SERVER_BASE "workers = 2\n");
        server_expect(&server, i % 2 == 0 ? 78 : 0, LIST("reload"));
    }
    WAIT_FOR(process_group(server.pid, NULL, 0) == 3 && process_count_files(server.pid) == before);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reload");
    TCase *tests = suite_case(suite, "reload");

    tcase_add_test(tests, worker_count);
    tcase_add_test(tests, addresses_come_and_go);
    tcase_add_test(tests, routes_change);
    tcase_add_test(tests, fragments_change);
    tcase_add_test(tests, unchanged_file_makes_a_generation_and_says_so);
    tcase_add_test(tests, overrides_are_kept);
    tcase_add_test(tests, drift_shows);
    tcase_add_test(tests, keep_alive_connection_gets_one_more_answer);
    tcase_add_test(tests, idle_connection_is_closed_at_the_deadline);
    tcase_add_test(tests, request_in_flight_is_finished);
    tcase_add_test(tests, draining_generations_show);
    tcase_add_test(tests, draining_never_outlives_its_deadline);
    tcase_add_test(tests, acknowledged_means_in_force);
    tcase_add_test(tests, concurrent_reloads_all_succeed);
    tcase_add_test(tests, many_hangups_end_with_the_last_file);
    tcase_add_test(tests, reloads_leak_no_descriptor);
    return suite_run(suite);
}
