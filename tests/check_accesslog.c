/* The access log: one line a request, and nothing of a client's that is not escaped. */

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

#define HELLO "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"

/* The access log. */

static const struct {
    const char *request;
    unsigned status;
    const char *combined; /* pattern, behind the address and the date */
} access_rows[] = {
    { HELLO, 200, "\"GET /hello HTTP/1\\.1\" 200 5 \"-\" \"-\"$" },
    { "HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n", 200,
      "\"HEAD /hello HTTP/1\\.1\" 200 (0|-) \"-\" \"-\"$" },
    { "GET /hello HTTP/1.0\r\n\r\n", 200, "\"GET /hello HTTP/1\\.0\" 200 5 \"-\" \"-\"$" },
    { "GET /gone?a=b HTTP/1.1\r\nHost: a\r\nReferer: http://b/\r\nUser-Agent: curl/8 (x)\r\n\r\n",
      404, "\"GET /gone\\?a=b HTTP/1\\.1\" 404 [0-9]+ \"http://b/\" \"curl/8 \\(x\\)\"$" },
    { "GET /hello HTTP/1.1\r\nHost: a\r\nUser-Agent: a\"b\\c\r\nReferer: \xc3\xa9\r\n\r\n", 200,
      "\"GET /hello HTTP/1\\.1\" 200 5 \"\\\\xC3\\\\xA9\" \"a\\\\x22b\\\\x5Cc\"$" },
    { "GET /%0d%0aX:%20y HTTP/1.1\r\nHost: a\r\n\r\n", 404,
      "\"GET /%0d%0aX:%20y HTTP/1\\.1\" 404 " },
    { "POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 405,
      "\"POST /hello HTTP/1\\.1\" 405 " },
    { "OPTIONS /hello HTTP/1.1\r\nHost: a\r\n\r\n", 204,
      "\"OPTIONS /hello HTTP/1\\.1\" 204 (0|-) " },
    { "GET /hello HTTP/1.1\r\nHost: a\r\nUser-Agent: x\xc2\x9b"
      "31m\xe2\x80\xa8\r\n\r\n",
      200, "\"GET /hello HTTP/1\\.1\" 200 5 \"-\" \"x\\\\xC2\\\\x9B31m\\\\xE2\\\\x80\\\\xA8\"$" },
    { "GET /\x1b[31m\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400, " 400 [0-9]+ " },
    { "GET /hello HTTP/1.1\r\nHost: a\r\nUser-Agent: \x1b[31m\r\n\r\n", 400, " 400 [0-9]+ " },
    { "nonsense\r\n\r\n", 400, " 400 [0-9]+ " },
    { "GET /hello HTTP/1.1\r\n\r\n", 400, " 400 [0-9]+ " },
};

/* Printable ASCII in lines, nothing else. */
static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text != '\n' && (*text < 0x20 || *text > 0x7e))
            return false;
    return true;
}

static void ask(const struct server *server, const char *request, unsigned status)
{
    struct client client;
    struct reply reply;

    client_open(&client, server->url);
    client_send(&client, request);
    bool is_head = strncmp(request, "HEAD", 4) == 0;
    enum client_result result = client_receive(&client, &reply, is_head);
    ck_assert_msg(result == CLIENT_REPLY, "%s", client.fault);
    ck_assert_uint_eq(reply.status, status);
    client_close(&client);
}

START_TEST(combined_access_log)
{
    struct server server;

    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE "access_log = \"access\"\n" });
    ask(&server, access_rows[_i].request, access_rows[_i].status);
    WAIT_FOR(text_count_lines(scratch_read("access"), "") == 1);
    const char *log = scratch_read("access");
    const char *line = text_find_line(
        log,
        text_format("^127\\.0\\.0\\.1 - - \\[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9]{2}:[0-9]{2}:"
                    "[0-9]{2} [-+][0-9]{4}\\] .*%s",
                    access_rows[_i].combined));
    ck_assert_msg(line != NULL && is_plain(log), "%s", log);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(json_access_log)
{
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE
                                                    "access_log = \"access\"\n"
                                                    "access_log_format = \"json\"\n" });
    for (int i = 0; i < SUITE_ROWS(access_rows); i++) {
        ask(&server, access_rows[i].request, access_rows[i].status);
        WAIT_FOR(text_count_lines(scratch_read("access"), "") == (unsigned)i + 1);
    }
    const char *log = scratch_read("access");
    ck_assert_uint_eq(json_check_lines(log, LIST("status")), SUITE_ROWS(access_rows));
    ck_assert_msg(text_matches(log, "/hello") && strchr(log, '\x1b') == NULL &&
                      strstr(log, "\xc2\x9b") == NULL && strstr(log, "\xe2\x80\xa8") == NULL,
                  "%s", log);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* One line a request, also of those that came in one piece, from several workers. */
START_TEST(one_line_a_request)
{
    struct server server;
    struct client client;
    struct reply reply;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE
                                                    "workers = 4\naccess_log = \"access\"\n" });
    for (int connection = 0; connection < 10; connection++) {
        client_open(&client, server.url);
        client_send(&client, text_repeat(HELLO, 100));
        for (int i = 0; i < 100; i++)
            client_expect(&client, &reply, 200);
        client_close(&client);
    }
    WAIT_FOR(text_count_lines(scratch_read("access"), "") == 1000);
    ck_assert_uint_eq(text_count_lines(scratch_read("access"),
                                       "^127\\.0\\.0\\.1 .* \"GET /hello HTTP/1\\.1\" 200 5 "),
                      1000);
    /* Neither what a worker asks itself before it is ready, nor what health checks ask of admin. */
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_uint_eq(text_count_lines(scratch_read("access"), ""), 1000);
}
END_TEST

START_TEST(access_log_to_stdout)
{
    struct server server;

    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE "access_log = \"stdout\"\n" });
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    WAIT_FOR(text_count_lines(scratch_read("hayate.out"), "\"GET /hello HTTP/1\\.1\" 200 5 ") == 1);
    ck_assert_uint_eq(server_count(&server, 0, "GET /hello"), 0);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("accesslog");
    TCase *tests = suite_case(suite, "accesslog");

    tcase_add_loop_test(tests, combined_access_log, 0, SUITE_ROWS(access_rows));
    tcase_add_test(tests, json_access_log);
    tcase_add_test(tests, one_line_a_request);
    tcase_add_test(tests, access_log_to_stdout);
    return suite_run(suite);
}
