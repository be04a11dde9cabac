/* HTTP over the wire: rows of requests, and what comes back. */

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "support/client.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

#define CONFIG                                                                \
    SERVER_BASE                                                               \
    "workers = 1\n"                                                           \
    "routes = ( { path = \"/hello\" text = \"Hello\" },\n"                    \
    "{ path = \"/a\" text = \"A\" }, { path = \"/b\" text = \"B\" },\n"       \
    "{ path = \"/late\" text = \"Late\" delay = \"10ms\" },\n"                \
    "{ path = \"/post\" text = \"Post\" methods = [ \"GET\", \"POST\" ] },\n" \
    "{ path = \"/html\" text = \"<p>\" type = \"text/html; charset=utf-8\" "  \
    "status = 404 headers = { X-A = \"1\" } },\n"                             \
    "{ path = \"/empty\" text = \"\" status = 204 },\n"                       \
    "{ path = \"/old\" redirect = \"/hello\" },\n"                            \
    "{ path = \"/moved\" redirect = \"http://b/c?d\" status = 301 },\n"       \
    "{ path = \"/live\" health = \"live\" }, { path = \"/ready\" health = \"ready\" } )\n"

#define H "Host: a\r\n"
#define GET "GET /hello HTTP/1.1\r\n" H "\r\n"
#define HEAD 1000 /* added to a status: the answer to HEAD */
#define LONG_TARGET "%LONG%"
#define MANY_FIELDS "%FIELDS%"

struct row {
    const char *request;
    unsigned statuses[5]; /* of the answers, in order; 0 ends them */
    bool is_closed;       /* the server closes after the last */
    const char *field;    /* pattern of the head of the first; NULL: any */
    const char *bodies;   /* of all answers, one behind the other; NULL: any */
};

static const struct row rows[] = {
    /* Routes and methods. */
    { GET, { 200 }, false, "\r\nContent-Length: 5\r\n", "Hello" },
    { GET, { 200 }, false, "\r\nContent-Type: text/plain", "Hello" },
    { GET,
      { 200 },
      false,
      "\r\nDate: [A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT\r\n",
      "Hello" },
    { GET, { 200 }, false, "^HTTP/1\\.1 200 OK\r\n", "Hello" },
    { "HEAD /hello HTTP/1.1\r\n" H "\r\n", { HEAD + 200 }, false, "\r\nContent-Length: 5\r\n", "" },
    { "GET /gone HTTP/1.1\r\n" H "\r\n", { 404 }, false, "^HTTP/1\\.1 404 Not Found\r\n", NULL },
    { "HEAD /gone HTTP/1.1\r\n" H "\r\n", { HEAD + 404 }, false, NULL, "" },
    { "GET / HTTP/1.1\r\n" H "\r\n", { 404 }, false, NULL, NULL },
    { "GET /hello/ HTTP/1.1\r\n" H "\r\n", { 404 }, false, NULL, NULL },
    { "GET /hell HTTP/1.1\r\n" H "\r\n", { 404 }, false, NULL, NULL },
    { "GET /Hello HTTP/1.1\r\n" H "\r\n", { 404 }, false, NULL, NULL },
    { "GET /hello?a=b HTTP/1.1\r\n" H "\r\n", { 200 }, false, NULL, "Hello" },
    { "GET /%68ell%6F HTTP/1.1\r\n" H "\r\n", { 200 }, false, NULL, "Hello" },
    { "GET /x/../hello HTTP/1.1\r\n" H "\r\n", { 200 }, false, NULL, "Hello" },
    { "GET http://a/hello HTTP/1.1\r\n" H "\r\n", { 200 }, false, NULL, "Hello" },
    { "DELETE /hello HTTP/1.1\r\n" H "\r\n",
      { 405 },
      false,
      "\r\nAllow: GET, HEAD, OPTIONS\r\n",
      NULL },
    { "POST /post HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc", { 200 }, false, NULL, "Post" },
    { "PUT /post HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc",
      { 405 },
      false,
      "\r\nAllow: GET, HEAD, POST, OPTIONS\r\n",
      NULL },
    { "OPTIONS /hello HTTP/1.1\r\n" H "\r\n",
      { 204 },
      false,
      "\r\nAllow: GET, HEAD, OPTIONS\r\n",
      "" },
    { "OPTIONS * HTTP/1.1\r\n" H "\r\n", { 204 }, false, NULL, "" },
    { "OPTIONS /gone HTTP/1.1\r\n" H "\r\n", { 404 }, false, NULL, NULL },
    { "GET /html HTTP/1.1\r\n" H "\r\n",
      { 404 },
      false,
      "\r\nContent-Type: text/html; charset=utf-8\r\n(.*\r\n)?X-A: 1\r\n|"
      "\r\nX-A: 1\r\n(.*\r\n)?Content-Type: text/html; charset=utf-8\r\n",
      "<p>" },
    { "GET /empty HTTP/1.1\r\n" H "\r\n", { 204 }, false, NULL, "" },
    { "GET /live HTTP/1.1\r\n" H "\r\n", { 200 }, false, NULL, NULL },
    { "GET /ready HTTP/1.1\r\n" H "\r\n", { 200 }, false, NULL, NULL },

    /* Redirects. */
    { "GET /old HTTP/1.1\r\n" H "\r\n", { 308 }, false, "\r\nLocation: /hello\r\n", NULL },
    { "GET /old?a=b&c HTTP/1.1\r\n" H "\r\n",
      { 308 },
      false,
      "\r\nLocation: /hello\\?a=b&c\r\n",
      NULL },
    { "HEAD /old HTTP/1.1\r\n" H "\r\n", { HEAD + 308 }, false, "\r\nLocation: /hello\r\n", "" },
    { "GET /moved?e HTTP/1.1\r\n" H "\r\n",
      { 301 },
      false,
      "\r\nLocation: http://b/c\\?d&e\r\n",
      NULL },

    /* Persistence. */
    { GET GET GET, { 200, 200, 200 }, false, NULL, "HelloHelloHello" },
    { "\r\n" GET, { 200 }, false, NULL, "Hello" },
    { "GET /hello HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
      { 200 },
      true,
      "\r\nConnection: close\r\n",
      "Hello" },
    { "GET /hello HTTP/1.1\r\n" H "Connection: close\r\n\r\n" GET, { 200 }, true, NULL, "Hello" },
    { "GET /hello HTTP/1.1\r\n" H "Connection: foo, Close\r\n\r\n", { 200 }, true, NULL, "Hello" },
    { "GET /hello HTTP/1.0\r\n\r\n", { 200 }, true, NULL, "Hello" },
    { "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
      { 200 },
      false,
      "\r\nConnection: keep-alive\r\n",
      "Hello" },
    { "HEAD /hello HTTP/1.0\r\n\r\n", { HEAD + 200 }, true, NULL, "" },

    /* Pipelines: in order, whatever is late. */
    { "GET /a HTTP/1.1\r\n" H "\r\nGET /late HTTP/1.1\r\n" H "\r\nGET /b HTTP/1.1\r\n" H "\r\n",
      { 200, 200, 200 },
      false,
      NULL,
      "ALateB" },
    { "GET /late HTTP/1.1\r\n" H "\r\nGET /late HTTP/1.1\r\n" H "\r\nGET /a HTTP/1.1\r\n" H "\r\n",
      { 200, 200, 200 },
      false,
      NULL,
      "LateLateA" },
    { "HEAD /a HTTP/1.1\r\n" H "\r\nGET /gone HTTP/1.1\r\n" H "\r\nGET /b HTTP/1.1\r\n" H "\r\n",
      { HEAD + 200, 404, 200 },
      false,
      NULL,
      NULL },
    { GET "nonsense\r\n\r\n" GET, { 200, 400 }, true, NULL, NULL },

    /* Bodies are skipped. */
    { "POST /hello HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nGET /" GET,
      { 405, 200 },
      false,
      NULL,
      NULL },
    { "POST /post HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
      "5\r\nGET /\r\nA;x=y\r\n0123456789\r\n0\r\nX-T: t\r\n\r\n" GET,
      { 200, 200 },
      false,
      NULL,
      "PostHello" },
    { "GET /hello HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc" GET,
      { 200, 200 },
      false,
      NULL,
      "HelloHello" },
    { "POST /late HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc" GET,
      { 405, 200 },
      false,
      NULL,
      NULL },

    /* Refused. */
    { "GET /hello HTTP/1.1\r\n\r\n", { 400 }, true, "\r\nConnection: close\r\n", NULL },
    { "GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", { 400 }, true, NULL, NULL },
    { "GET /hello HTTP/1.1\r\n" H "A : b\r\n\r\n", { 400 }, true, NULL, NULL },
    { "GET /hello HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n", { 400 }, true, NULL, NULL },
    { "GET  /hello HTTP/1.1\r\n" H "\r\n", { 400 }, true, NULL, NULL },
    { "GET /he llo HTTP/1.1\r\n" H "\r\n", { 400 }, true, NULL, NULL },
    { "GET hello HTTP/1.1\r\n" H "\r\n", { 400 }, true, NULL, NULL },
    { "GET /%zz HTTP/1.1\r\n" H "\r\n", { 400 }, true, NULL, NULL },
    { "nonsense\r\n\r\n", { 400 }, true, NULL, NULL },
    { "GET /hello\r\n\r\n", { 400 }, true, NULL, NULL },
    { "POST /post HTTP/1.1\r\n" H
      "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      { 400 },
      true,
      NULL,
      NULL },
    { "POST /post HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
      { 400 },
      true,
      NULL,
      NULL },
    { "POST /post HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", { 400 }, true, NULL, NULL },
    { "POST /post HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
      { 400 },
      true,
      NULL,
      NULL },
    { "POST /post HTTP/1.1\r\n" H "Content-Length: 1048577\r\n\r\n", { 413 }, true, NULL, NULL },
    { "POST /post HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n100001\r\n",
      { 413 },
      true,
      NULL,
      NULL },
    { "GET /" LONG_TARGET " HTTP/1.1\r\n" H "\r\n", { 414 }, true, NULL, NULL },
    { "GET /hello HTTP/1.1\r\n" H "A: " LONG_TARGET "\r\n\r\n", { 431 }, true, NULL, NULL },
    { "GET /hello HTTP/1.1\r\n" H MANY_FIELDS "\r\n", { 431 }, true, NULL, NULL },
    { "BREW /hello HTTP/1.1\r\n" H "\r\n", { 501 }, true, NULL, NULL },
    { "POST /post HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      { 501 },
      true,
      NULL,
      NULL },
    { "GET /hello HTTP/2.0\r\n" H "\r\n", { 505 }, true, NULL, NULL },
    { "GET /hello HTTP/1.1\r\n" H "Expect: tea\r\n\r\n", { 417 }, false, NULL, NULL },

    /* Expect: 100-continue. */
    { "POST /post HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc" GET,
      { 200, 200 },
      false,
      NULL,
      "PostHello" },
    { "POST /post HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n",
      { 413 },
      true,
      NULL,
      NULL },
};

/* The answers to a request, which was sent whole or in pieces. */
static void check_answers(struct client *client, const struct row *row)
{
    const char *bodies = "";
    struct reply reply;

    for (unsigned i = 0; i < 5 && row->statuses[i] != 0; i++) {
        unsigned status = row->statuses[i] % HEAD;
        enum client_result result;
        do {
            result = client_receive(client, &reply, row->statuses[i] > HEAD);
            ck_assert_msg(result == CLIENT_REPLY, "answer %u: %s\n%s", i + 1, client->fault,
                          row->request);
        } while (reply.status == 100);
        ck_assert_msg(reply.status == status, "answer %u: %u, not %u\n%s", i + 1, reply.status,
                      status, row->request);
        const char *head = text_copy(reply.head.data, reply.head.length);
        ck_assert_msg(i > 0 || row->field == NULL || text_matches(head, row->field), "%s", head);
        bodies = text_format("%s%s", bodies, reply_body(&reply));
        bool is_end = i == 4 || row->statuses[i + 1] == 0;
        ck_assert_msg(reply.is_last == (is_end && row->is_closed), "%s", head);
    }
    ck_assert_msg(row->bodies == NULL || strcmp(bodies, row->bodies) == 0, "%s", bodies);
    if (row->is_closed) {
        ck_assert_msg(client_read_end(client), "%s", client->fault);
        return;
    }
    /* Nothing of it is left over: the next request is understood. */
    client_send_get(client, "/hello");
    client_expect(client, &reply, 200);
    ck_assert_str_eq(reply_body(&reply), "Hello");
}

START_TEST(wire)
{
    struct row row = rows[_i];
    struct server server;
    struct client client;

    row.request = text_replace(row.request, LONG_TARGET, text_repeat("x", 20000));
    row.request = text_replace(row.request, MANY_FIELDS, text_repeat("A: b\r\n", 101));
    server_start(&server, &(struct server_options){ .config = CONFIG });
    client_open(&client, server.url);
    client_send(&client, row.request);
    check_answers(&client, &row);
    client_close(&client);

    /* In two pieces at every place, then byte by byte. */
    size_t length = strlen(row.request);
    for (size_t at = 1; at < length && length < 300; at++) {
        client_open(&client, server.url);
        ck_assert(client_send_bytes(&client, row.request, at));
        sched_yield();
        client_send_bytes(&client, row.request + at, length - at);
        check_answers(&client, &row);
        client_close(&client);
    }
    client_open(&client, server.url);
    for (size_t at = 0; at < length && length < 300; at++)
        if (!client_send_bytes(&client, row.request + at, 1))
            break;
    if (length < 300)
        check_answers(&client, &row);
    client_close(&client);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("serve");
    TCase *tests = suite_case(suite, "serve");

    tcase_add_loop_test(tests, wire, 0, SUITE_ROWS(rows));
    return suite_run(suite);
}
