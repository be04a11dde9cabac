/*
 * Connections of a worker, over real sockets: what is sent, what comes back, and whether the
 * connection goes on. (More than 400 lines, for the tables.)
 */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tally.h"
#include "support/client.h"
#include "support/lone.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

#define ROUTES                                                                               \
    "routes = ("                                                                             \
    " { path = \"/hello\" text = \"Hello\" },"                                               \
    " { path = \"/post\" text = \"posted\" methods = [ \"GET\", \"POST\" ] },"               \
    " { path = \"/late\" text = \"late\" delay = \"5ms\" methods = [ \"GET\", \"POST\" ] }," \
    " { path = \"/never\" text = \"never\" delay = \"1h\" },"                                \
    " { path = \"/empty\" text = \"\" status = 204 },"                                       \
    " { path = \"/old\" redirect = \"/hello#top\" },"                                        \
    " { path = \"/ready\" health = \"ready\" },"                                             \
    " { path = \"/tag\" text = \"tag\" headers = { ETag = \"\\\"a\\\"\" Vary = \"*\" } },"   \
    " { path = \"/tree/*\" text = \"tree\" } )\n"

#define LIMITS "limits = { body = 1000 header = 512 }\n"
#define CONFIG ROUTES LIMITS

#define A "Host: a\r\n\r\n"
#define GET "GET /hello HTTP/1.1\r\n" A
#define HEAD "HEAD /hello HTTP/1.1\r\n" A
#define LATE "GET /late HTTP/1.1\r\n" A
#define NONE "GET /none HTTP/1.1\r\n" A
#define POST "POST /post HTTP/1.1\r\nHost: a\r\n"
#define FIVE "Content-Length: 5\r\n\r\n12345"
#define CHUNKED "Transfer-Encoding: chunked\r\n\r\n"
#define CHUNKS CHUNKED "5;a=b\r\n12345\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n"
#define CONTINUE "Expect: 100-continue\r\n"

/*
 * What comes back: statuses in order, "h" behind one without a body because of HEAD, "=text" behind
 * one with that body; then "open", "close", "wait" for the rest of a request, or "drop": a close
 * that the answer need not have announced, for the fault may have come after it. A 100 may come
 * before any of them when the request is split.
 */
struct row {
    const char *sent;
    const char *outcome;
};

static const struct row rows[] = {
    { GET, "200=Hello open" },
    { HEAD, "200h open" },
    { GET GET, "200=Hello 200=Hello open" },
    { GET HEAD NONE GET, "200 200h 404 200=Hello open" },
    { "\r\n" GET "\r\n" GET, "200 200 open" },
    { GET LATE GET LATE LATE GET, "200=Hello 200=late 200=Hello 200=late 200=late 200=Hello open" },
    { "HEAD /late HTTP/1.1\r\n" A GET, "200h 200=Hello open" },

    /* routes and methods */
    { NONE, "404 open" },
    { "HEAD /none HTTP/1.1\r\n" A GET, "404h 200 open" },
    { "GET /tree/a/b?c HTTP/1.1\r\n" A, "200=tree open" },
    { "GET /tree/../hello HTTP/1.1\r\n" A, "200=Hello open" },
    { "GET http://b/hello HTTP/1.1\r\n" A, "200=Hello open" },
    { "GET /empty HTTP/1.1\r\n" A GET, "204 200=Hello open" },
    { "GET /old HTTP/1.1\r\n" A, "308 open" },
    { "GET /ready HTTP/1.1\r\n" A, "200 open" },
    { "DELETE /hello HTTP/1.1\r\n" A GET, "405 200 open" },
    { "TRACE /hello HTTP/1.1\r\n" A GET, "405 200 open" },
    { "TRACE /none HTTP/1.1\r\n" A GET, "404 200 open" },
    { "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", "405=405 Method Not Allowed\n open" },
    { "POST /old HTTP/1.1\r\nHost: a\r\n" FIVE GET, "308 200=Hello open" },
    { "OPTIONS /hello HTTP/1.1\r\n" A GET, "204 200 open" },
    { "OPTIONS /none HTTP/1.1\r\n" A GET, "404 200 open" },
    { "OPTIONS /never HTTP/1.1\r\n" A GET, "204 200 open" },
    { "OPTIONS * HTTP/1.1\r\n" A GET, "204 200 open" },

    /* persistence */
    { "GET /hello HTTP/1.1\r\nConnection: close\r\n" A GET, "200=Hello close" },
    { "GET /late HTTP/1.1\r\nConnection: close\r\n" A GET, "200=late close" },
    { "GET /hello HTTP/1.0\r\n\r\n", "200=Hello close" },
    { "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" GET, "200=Hello 200 open" },
    { GET "GET /hello HTTP/1.1\r\nConnection: close\r\n" A, "200 200 close" },

    /* bodies */
    { POST FIVE GET, "200=posted 200=Hello open" },
    { POST CHUNKS GET, "200=posted 200=Hello open" },
    { POST FIVE POST CHUNKS POST FIVE, "200 200 200=posted open" },
    { "GET /hello HTTP/1.1\r\nHost: a\r\n" FIVE GET, "200=Hello 200=Hello open" },
    { "POST /late HTTP/1.1\r\nHost: a\r\n" FIVE GET, "200=late 200=Hello open" },
    { "POST /late HTTP/1.1\r\nHost: a\r\n" CHUNKS GET, "200=late 200=Hello open" },
    { "POST /hello HTTP/1.1\r\nHost: a\r\n" FIVE GET, "405 200=Hello open" },
    { "POST /none HTTP/1.1\r\nHost: a\r\n" CHUNKS GET, "404 200=Hello open" },
    { "OPTIONS /post HTTP/1.1\r\nHost: a\r\n" FIVE GET, "204 200=Hello open" },
    { POST "Content-Length: 1000\r\n\r\n", "wait" },
    { POST "Content-Length: 1001\r\n\r\n" GET, "413 close" },
    { POST CHUNKED "3e9\r\n" GET, "413 close" },
    { POST CHUNKED "x\r\n" GET, "400 close" },
    { POST CHUNKED "1\r\nab\r\n" GET, "400 close" },
    { "POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n" GET, "404 close" },
    { "POST /none HTTP/1.1\r\nHost: a\r\n" CHUNKED "x\r\n" GET, "404 drop" },
    { "POST /none HTTP/1.1\r\nHost: a\r\n" CHUNKED "3e9\r\n" GET, "404 drop" },

    /* expectations */
    { POST CONTINUE "Content-Length: 5\r\n\r\n", "100 wait" },
    { GET POST CONTINUE "Content-Length: 5\r\n\r\n", "200 100 wait" },
    { LATE POST CONTINUE "Content-Length: 5\r\n\r\n", "200 100 wait" },
    { POST CONTINUE FIVE GET, "200=posted 200=Hello open" },
    { POST CONTINUE "\r\n" GET, "200=posted 200=Hello open" },
    { POST CONTINUE "Content-Length: 1001\r\n\r\n", "413 close" },
    { POST "Expect: 200-ok\r\n" FIVE GET, "417 close" },
    { POST "Expect: 200-ok\r\n\r\n" GET, "417 200 open" },
    { POST "Expect: 200-ok\r\nContent-Length: 1001\r\n\r\n", "417 close" },
    { "POST /none HTTP/1.1\r\nHost: a\r\n" CONTINUE FIVE GET, "404 close" },
    { "POST /hello HTTP/1.1\r\nHost: a\r\n" CONTINUE FIVE GET, "405 close" },
    { "POST /hello HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n" GET, "405 200 open" },
    { "OPTIONS /post HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n" GET, "417 200 open" },
    { "POST /post HTTP/1.0\r\nConnection: keep-alive\r\n" CONTINUE "Content-Length: 5\r\n\r\n",
      "wait" },

    /* preconditions */
    { "GET /tag HTTP/1.1\r\nIf-None-Match: \"b\"\r\n" A GET, "200=tag 200=Hello open" },
    { "GET /tag HTTP/1.1\r\nIf-None-Match: W/\"a\"\r\n" A GET, "304 200=Hello open" },
    { "HEAD /tag HTTP/1.1\r\nIf-None-Match: \"a\"\r\n" A GET, "304 200=Hello open" },
    { "GET /tag HTTP/1.1\r\nIf-Match: \"b\"\r\n" A GET, "412 200=Hello open" },
    { "HEAD /tag HTTP/1.1\r\nIf-Match: \"b\"\r\n" A GET, "412h 200=Hello open" },
    { "GET /hello HTTP/1.1\r\nIf-None-Match: *\r\n" A GET, "304 200=Hello open" },
    { "GET /late HTTP/1.1\r\nIf-None-Match: *\r\n" A GET, "304 200=Hello open" },
    { POST "If-None-Match: *\r\n" FIVE GET, "412 200=Hello open" },
    { POST "If-Match: \"a\"\r\n" CHUNKS GET, "412 200=Hello open" },
    { "OPTIONS /tag HTTP/1.1\r\nIf-None-Match: *\r\n" A GET, "204 200=Hello open" },
    { "GET /none HTTP/1.1\r\nIf-Match: \"a\"\r\n" A GET, "404 200=Hello open" },
    { "GET /old HTTP/1.1\r\nIf-Match: \"a\"\r\n" A GET, "308 200=Hello open" },
    { "DELETE /hello HTTP/1.1\r\nIf-Match: \"a\"\r\n" A GET, "405 200=Hello open" },

    /* refused by the head */
    { "GET /hello HTTP/1.1\r\n\r\n" GET, "400 close" },
    { "GET /hello HTTP/2.0\r\n" A GET, "505 close" },
    { "BREW /hello HTTP/1.1\r\n" A GET, "501 close" },
    { "HEAD /hello HTTP/1.1\r\n\r\n" GET, "400h close" },
    { GET "\x16\x03\x01\x02" GET, "200 400 close" },
    { "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 close" },
    { POST FIVE "junk\r\n" GET, "200 400 close" },
};

/* Checks what comes back, up to and without the last word of the outcome, which is returned. */
static const char *check_replies(struct client *client, const char *outcome)
{
    struct reply reply;
    const char *word = outcome;
    while (*word >= '0' && *word <= '9') {
        unsigned status = (unsigned)strtoul(word, NULL, 10);
        bool is_head = word[3] == 'h';
        enum client_result result;
        do
            result = client_receive(client, &reply, is_head);
        while (result == CLIENT_REPLY && reply.status == 100 && status != 100);
        ck_assert_msg(result == CLIENT_REPLY, "%s: %s", word, client->fault);
        ck_assert_msg(reply.status == status, "%u instead of %s", reply.status, word);
        if (word[3] == '=') {
            const char *newline = strchr(word, '\n'); /* a text with blanks in it ends so */
            size_t length = newline ? (size_t)(newline + 1 - word - 4) : strcspn(word + 4, " ");
            ck_assert(slice_equal(reply.body, (struct slice){ word + 4, length }));
            word += 4 + length - 1;
        }
        if (status != 100 && !reply.is_last)
            ck_assert(reply_field(&reply, "Date") != NULL);
        if (status == 405)
            ck_assert(reply_field(&reply, "Allow") != NULL);
        word = strchr(word, ' ') + 1;
        if (status != 100 && strcmp(word, "drop") != 0)
            ck_assert_msg(reply.is_last == (strcmp(word, "close") == 0),
                          "Connection: close before %s", word);
    }
    return word;
}

/* Is there a connection that goes on, is closed, or waits for the rest of a request? */
static void check_end(struct client *client, const char *word)
{
    struct reply reply;
    if (strcmp(word, "open") == 0) {
        client_send(client, GET);
        client_expect(client, &reply, 200);
        ck_assert(slice_equal(reply.body, SLICE("Hello")));
    } else if (strcmp(word, "close") == 0 || strcmp(word, "drop") == 0) {
        ck_assert_msg(client_read_end(client), "%s", client->fault);
    } else {
        ck_assert_str_eq(word, "wait");
        ck_assert(client_is_silent(client));
    }
    client_close(client);
}

static void send_split(struct client *client, const char *bytes, size_t at)
{
    ck_assert(client_send_bytes(client, bytes, at));
    usleep(300); /* so that it is mostly received apart */
    client_send_bytes(client, bytes + at, strlen(bytes) - at); /* may be closed by then */
}

START_TEST(test_rows)
{
    struct lone lone;
    const struct row *row = &rows[_i];
    lone_start(&lone, &(struct lone_options){ .config = CONFIG });
    struct client client;
    client_open(&client, lone.url);
    client_send(&client, row->sent);
    check_end(&client, check_replies(&client, row->outcome));

    /* Byte by byte, and in two pieces at every place. */
    size_t length = strlen(row->sent);
    for (size_t at = 1; at < length; at += 1) {
        client_open(&client, lone.url);
        send_split(&client, row->sent, at);
        check_end(&client, check_replies(&client, row->outcome));
    }
    client_open(&client, lone.url);
    for (size_t i = 0; i < length && client_send_bytes(&client, row->sent + i, 1); i++)
        continue;
    check_end(&client, check_replies(&client, row->outcome));
    lone_leave(&lone);
}
END_TEST

/* The body comes after the 100. */
START_TEST(test_continue)
{
    struct lone lone;
    struct client client;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG });
    client_open(&client, lone.url);
    client_send(&client, POST CONTINUE CHUNKED);
    ck_assert_str_eq(check_replies(&client, "100 wait"), "wait");
    client_send(&client, "1\r\na\r\n");
    client_send(&client, "0\r\n\r\n" POST FIVE);
    check_end(&client, check_replies(&client, "200=posted 200=posted open"));
    lone_leave(&lone);
}
END_TEST

/* Many in one write, all kinds mixed; the answers come in order. */
START_TEST(test_pipeline)
{
    struct lone lone;
    struct client client;
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG });
    const char *all = text_repeat(GET HEAD NONE POST FIVE, 2500);
    client_open(&client, lone.url);
    if (fork() == 0) { /* nobody can write all of it before reading */
        client_send_bytes(&client, all, strlen(all));
        _exit(0);
    }
    for (int i = 0; i < 10000; i++) {
        enum client_result result = client_receive(&client, &reply, i % 4 == 1);
        ck_assert_msg(result == CLIENT_REPLY, "%d: %s", i, client.fault);
        ck_assert_uint_eq(reply.status, i % 4 == 2 ? 404 : 200);
        ck_assert_uint_eq(reply.body.length, i % 4 == 3 ? 6 : i % 4 == 2 ? 14 : i % 4 ? 0 : 5);
    }
    wait(NULL);
    check_end(&client, "open");
    struct scoreboard_sums sums = lone_counters(&lone);
    ck_assert_uint_eq(sums.requests, 10001);
    ck_assert_uint_eq(sums.responses[2], 7501);
    ck_assert_uint_eq(sums.responses[4], 2500);
    ck_assert_uint_eq(sums.connections, 1);
    lone_leave(&lone);
}
END_TEST

/* Late answers among many others. */
START_TEST(test_pipeline_late)
{
    struct lone lone;
    struct client client;
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG });
    const char *all = text_repeat(text_format("%s%s", text_repeat(GET, 999), LATE), 10);
    client_open(&client, lone.url);
    client_send(&client, all);
    for (int i = 0; i < 10000; i++) {
        client_expect(&client, &reply, 200);
        ck_assert_uint_eq(reply.body.length, i % 1000 == 999 ? 4 : 5);
    }
    check_end(&client, "open");
    lone_leave(&lone);
}
END_TEST

/* Whoever ends its side after the request gets all answers, and then the end. */
static const struct row half_rows[] = {
    { GET, "200=Hello end" },
    { GET LATE GET, "200=Hello 200=late 200=Hello end" },
    { POST CHUNKS, "200 end" },
    { LATE, "200=late end" },
    { "POST /late HTTP/1.1\r\nHost: a\r\n" FIVE, "200=late end" },
    { "", "end" },
    { "GET /hello HTTP/1.1\r\nHo", "end" },
    { GET POST "Content-Length: 5\r\n\r\n123", "200 end" },
};

START_TEST(test_half_close)
{
    struct lone lone;
    struct client client;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG });
    for (int is_at_once = 0; is_at_once < 2; is_at_once++) {
        client_open(&client, lone.url);
        client_send(&client, half_rows[_i].sent);
        if (!is_at_once)
            usleep(10000);
        client_end(&client);
        ck_assert_str_eq(check_replies(&client, half_rows[_i].outcome), "end");
        ck_assert_msg(client_read_end(&client), "%s", client.fault);
        client_close(&client);
    }
    WAIT_FOR(atomic_load(&lone.slot->open) == 0);
    lone_leave(&lone);
}
END_TEST

/* After an early error the client gets the whole answer, though it is still sending 5 MB. */
START_TEST(test_early_error)
{
    static const char *const heads[] = {
        POST "Content-Length: 5000000\r\n\r\n",
        "POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n",
        "GET /hello HTTP/1.1\r\n\r\n",
    };
    static const unsigned statuses[] = { 413, 404, 400 };
    struct lone lone;
    struct client client;
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG });
    char *body = calloc(1, 5000000);
    client_open(&client, lone.url);
    client_send(&client, heads[_i]);
    ck_assert(client_send_bytes(&client, body, 5000000));
    client_expect(&client, &reply, statuses[_i]);
    ck_assert(reply.is_last);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    free(body);
    WAIT_FOR(atomic_load(&lone.slot->open) == 0);
    lone_leave(&lone);
}
END_TEST

/* Deadlines: what is sent, and what comes when no more does. */
struct slow_row {
    const char *sent;
    const char *drip; /* sent again and again meanwhile, a byte a time */
    const char *outcome;
    unsigned least; /* ms; that it ends at all while it drips shows that nothing is renewed */
};

#define TIMEOUTS \
    "timeouts = { header = \"200ms\" body = \"400ms\" idle = \"600ms\" send = \"300ms\" }\n"

static const struct slow_row slow_rows[] = {
    { "", NULL, "end", 200 },
    { "G", NULL, "408 end", 200 },
    { "G", "E", "408 end", 200 },
    { GET, NULL, "200 end", 600 },
    { GET "G", "E", "200 408 end", 200 },
    { POST "Content-Length: 900\r\n\r\n", "x", "408 end", 400 },
    { POST CHUNKED "1;", "x", "408 end", 400 },
    { "POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n", "x", "404 end", 400 },
    { POST CONTINUE "Content-Length: 900\r\n\r\n", NULL, "100 408 end", 400 },
};

static unsigned milliseconds_since(int64_t start)
{
    return (unsigned)((clock_monotonic() - start) / CLOCK_MILLISECOND);
}

/* Reads what comes, dripping meanwhile, to the end. */
static void check_slow(struct client *client, const struct slow_row *row)
{
    struct reply reply;
    const char *word = row->outcome;
    while (strcmp(word, "end") != 0) {
        if (row->drip && word[0] == '4')
            while (client_is_silent(client)) {
                client_send_bytes(client, row->drip, 1);
                usleep(20000);
            }
        client_expect(client, &reply, (unsigned)strtoul(word, NULL, 10));
        word = strchr(word, ' ') + 1;
    }
    ck_assert_msg(client_read_end(client), "%s", client->fault);
}

START_TEST(test_slow)
{
    struct lone lone;
    struct client client;
    const struct slow_row *row = &slow_rows[_i];
    lone_start(&lone, &(struct lone_options){ .config = CONFIG TIMEOUTS });
    int64_t start = clock_monotonic();
    client_open(&client, lone.url);
    client_send(&client, row->sent);
    check_slow(&client, row);
    unsigned took = milliseconds_since(start);
    ck_assert_msg(took >= row->least, "took %u ms", took);
    client_close(&client);
    WAIT_FOR(lone_counters(&lone).timeouts == 1);
    WAIT_FOR(atomic_load(&lone.slot->open) == 0);
    lone_leave(&lone);
}
END_TEST

/* What a deadline waits for is there when it comes, but the deadline is seen first. */
static const struct {
    const char *sent, *then;
    const char *outcome;
} seen_rows[] = {
    { "", GET, "200=Hello open" },
    { "GET /hello HT", "TP/1.1\r\n" A, "200=Hello open" },
    { GET, GET, "200=Hello open" },
    { GET, GET "GET /hel", "200=Hello wait" },
    { GET, "GET /hel", "wait" },
    { POST "Content-Length: 5\r\n\r\n123", "45", "200=posted open" },
    { POST "Content-Length: 5\r\n\r\n123", "45" GET, "200=posted 200=Hello open" },
    { "POST /late HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n123", "45", "200=late open" },
    { "POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n123", "45" GET,
      "200=Hello open" },
};

START_TEST(test_seen)
{
    struct lone lone;
    struct client client;
    struct reply reply;
    const char *sent = seen_rows[_i].sent;
    struct scoreboard_sums before;
    bool is_frozen;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG TIMEOUTS });
    do {
        before = lone_counters(&lone);
        client_open(&client, lone.url);
        client_send(&client, sent);
        if (strcmp(sent, GET) == 0 || strncmp(sent, "POST /none", 10) == 0)
            client_expect(&client, &reply, sent[0] == 'G' ? 200 : 404);
        usleep(20000); /* so that it is mostly received by then */
        is_frozen = lone_freeze(&lone, &before) && atomic_load(&lone.slot->open) == 1;
        if (!is_frozen) { /* it took too long */
            kill(lone.pid, SIGCONT);
            client_close(&client);
            WAIT_FOR(atomic_load(&lone.slot->open) == 0);
        }
    } while (!is_frozen);
    usleep(700000); /* past every deadline */
    client_send(&client, seen_rows[_i].then);
    usleep(10000);
    kill(lone.pid, SIGCONT);
    const char *end = check_replies(&client, seen_rows[_i].outcome);
    ck_assert_uint_eq(lone_counters(&lone).timeouts, before.timeouts);
    check_end(&client, end);
    lone_leave(&lone);
}
END_TEST

/* An empty line behind an answer is no request: the connection is idle, and stays so long. */
START_TEST(test_blank)
{
    struct lone lone;
    struct client client;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG TIMEOUTS,
                                              .access_log = scratch_path("access") });
    client_open(&client, lone.url);
    client_send(&client, _i == 0 ? POST FIVE "\r\n" : POST FIVE);
    int64_t start = clock_monotonic();
    check_replies(&client, "200=posted open");
    if (_i > 0)
        client_send(&client, "\r\n");
    usleep(100000);
    ck_assert_uint_eq(atomic_load(&lone.slot->idle), 1);
    if (_i == 2) {
        client_send(&client, GET);
        check_end(&client, check_replies(&client, "200=Hello open"));
    } else {
        ck_assert_msg(client_read_end(&client), "%s", client.fault);
        unsigned took = milliseconds_since(start);
        ck_assert_msg(took >= 500, "took %u ms", took);
        client_close(&client);
        WAIT_FOR(text_count_lines(scratch_read("access"), ".*") == 1);
    }
    lone_leave(&lone);
}
END_TEST

/* Each answer is among the latencies, as soon as it is given; one that took long among the long
 * ones. */
START_TEST(test_latency)
{
    struct lone lone;
    struct client client;
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG TIMEOUTS });
    client_open(&client, lone.url);
    client_send(&client, _i == 0 ? "GET /" : _i == 1 ? POST "Content-Length: 5\r\n\r\n" : "GET /");
    if (_i == 2) {
        usleep(100000);
        client_send(&client, "hello HTTP/1.1\r\n" A);
    }
    client_expect(&client, &reply, _i == 2 ? 200 : 408);
    uint64_t count = 0;
    WAIT_FOR(atomic_load(&lone.slot->is_busy) == 0);
    for (int i = 0; i < TALLY_BUCKETS; i++)
        count += atomic_load(&lone.tally->latency[i]);
    ck_assert_uint_eq(count, 1);
    uint64_t took = atomic_load(&lone.tally->latency_sum);
    ck_assert_uint_ge(took, 90 * CLOCK_MILLISECOND);
    client_close(&client);
    lone_leave(&lone);
}
END_TEST

#define LARGE_BYTES 900000
#define LARGE_COUNT 7

static const char *large_config(const char *timeouts)
{
    return text_format("routes = ( { path = \"/hello\" text = \"Hello\" },"
                       " { path = \"/large\" text = \"%s\" } )\n%s",
                       text_repeat("0123456789abcdef", LARGE_BYTES / 16), timeouts);
}

/* Kilobytes of anonymous memory. */
static unsigned memory_of(pid_t pid)
{
    const char *text = text_read(text_format("/proc/%d/smaps_rollup", (int)pid), 0, NULL);
    return (unsigned)strtoul(text_extract(text, "Pss_Anon: *([0-9]+)"), NULL, 10);
}

/* A client that never reads costs a bounded buffer, and is cut. */
START_TEST(test_never_reads)
{
    struct lone lone;
    struct client client;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG TIMEOUTS });
    unsigned before = memory_of(lone.pid);
    client_open(&client, lone.url);
    int64_t start = clock_monotonic();
    const char *some = text_repeat(GET, 1000);
    ssize_t sent = 1;
    while (sent != -1) { /* until it takes no more */
        sent = send(client.fd, some, strlen(some), MSG_NOSIGNAL);
        struct pollfd ready = { .fd = client.fd, .events = POLLOUT };
        if (sent == -1)
            sent = poll(&ready, 1, 200) == 1 && ready.revents == POLLOUT ? 0 : -1;
    }
    ck_assert_uint_eq(atomic_load(&lone.slot->open), 1);
    unsigned after = memory_of(lone.pid);
    unsigned bound = lone_is_instrumented() ? 8192 : 1024; /* freed memory is kept a while there */
    ck_assert_msg(after < before + bound, "%u kB, then %u kB", before, after);
    WAIT_FOR(atomic_load(&lone.slot->open) == 0);
    ck_assert_uint_ge(milliseconds_since(start), 300);
    ck_assert_uint_eq(lone_counters(&lone).timeouts, 1);
    client_close(&client);
    lone_leave(&lone);
}
END_TEST

/* One that asks for a little does not wait for those that ask for much, and came first. */
START_TEST(test_turn)
{
    enum { MANY = 200, REQUESTS = 1500 };
    struct lone lone;
    struct client clients[MANY], other;
    struct reply reply;
    const char *much = text_repeat("HEAD /hello HTTP/1.1\r\nHost:\r\n\r\n", REQUESTS);
    lone_start(&lone, &(struct lone_options){ 0 });
    client_open(&other, lone.url);
    client_send(&other, GET);
    client_expect(&other, &reply, 200);
    for (int i = 0; i < MANY; i++)
        client_open(&clients[i], lone.url);
    WAIT_FOR(atomic_load(&lone.slot->open) == MANY + 1);
    struct scoreboard_sums before = lone_counters(&lone);
    ck_assert(lone_freeze(&lone, &before));
    for (int i = 0; i < MANY; i++)
        ck_assert(client_send_bytes(&clients[i], much, strlen(much)));
    client_send(&other, GET);
    kill(lone.pid, SIGCONT);
    client_expect(&other, &reply, 200);
    uint64_t answered = lone_counters(&lone).requests;
    printf("# answered before: %llu of %d\n", (unsigned long long)answered, MANY * REQUESTS);
    ck_assert_uint_lt(answered, MANY * REQUESTS / 2);
    for (int i = 0; i < MANY; i++)
        client_close(&clients[i]);
    client_close(&other);
    lone_leave(&lone);
}
END_TEST

/* One that reads slowly but steadily is served to the end, however long that takes. */
START_TEST(test_reads_slowly)
{
    struct lone lone;
    struct client client;
    /* 1: it is paused after 1 MB, all of which the kernel took, and has no room for long. */
    int small = _i == 0 ? 65536 : 4096;
    int count = _i == 0 ? LARGE_COUNT : 2;
    size_t most = _i == 0 ? 262144 : 100000;
    lone_start(&lone,
               &(struct lone_options){ .config = large_config("timeouts = { send = \"1s\" }\n") });
    client_open(&client, lone.url);
    setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (int i = 0; i < count; i++)
        client_send_get(&client, "/large");
    client_send_get(&client, "/hello");
    int64_t start = clock_monotonic();
    char piece[262144 + 5] = "";
    /* The last five bytes stay in front of the next piece. */
    while (memcmp(piece, "Hello", 5) != 0) {
        struct pollfd ready = { .fd = client.fd, .events = POLLIN };
        ck_assert_int_eq(poll(&ready, 1, 2000), 1);
        ssize_t got = recv(client.fd, piece + 5, most, 0);
        ck_assert_int_gt(got, 0);
        memmove(piece, piece + got, 5);
        if (milliseconds_since(start) < 2500)
            usleep(_i == 0 ? 100000 : 200000);
        else if (_i == 1)
            break; /* still served; the rest would take a minute with so small a buffer */
    }
    ck_assert_uint_ge(milliseconds_since(start), 2000);
    if (_i == 0)
        check_end(&client, "open");
    else
        client_abort(&client);
    lone_leave(&lone);
}
END_TEST

/* While a late answer is awaited the peer may vanish, or send more than is read ahead. */
START_TEST(test_late)
{
    struct lone lone;
    struct client client;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG });
    client_open(&client, lone.url);
    client_send_get(&client, "/never");
    WAIT_FOR(atomic_load(&lone.slot->waiting) == 1);
    char text[256];
    scoreboard_request_text(text, sizeof text, &lone.slot->oldest);
    ck_assert_str_eq(text, text_format("GET /never from 127.0.0.1:%u", client_port(&client)));
    client_abort(&client);
    WAIT_FOR(atomic_load(&lone.slot->waiting) == 0 && atomic_load(&lone.slot->open) == 0);
    scoreboard_request_text(text, sizeof text, &lone.slot->oldest);
    ck_assert_str_eq(text, "");

    client_open(&client, lone.url);
    const char *some = text_repeat(GET, 1000);
    client_send_get(&client, "/never");
    int sent = 0;
    for (struct pollfd ready = { .fd = client.fd, .events = POLLOUT };
         poll(&ready, 1, 100) == 1 && sent < 2000; sent++)
        if (send(client.fd, some, strlen(some), MSG_NOSIGNAL) == -1)
            continue;
    ck_assert_int_lt(sent, 2000);
    ck_assert_uint_eq(lone_counters(&lone).requests, 0);
    client_abort(&client); /* nothing is read from it, but it is looked at now and then */
    WAIT_FOR(atomic_load(&lone.slot->open) == 0);
    lone_leave(&lone);
}
END_TEST

/* At the limit the oldest idle connection makes room; without one the new one gets 503. */
START_TEST(test_limit_connections)
{
    struct lone lone;
    struct client clients[4], more;
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = ROUTES "limits = { connections = 4 }\n" });
    for (int i = 0; i < 4; i++) {
        client_open(&clients[i], lone.url);
        client_send_get(&clients[i], i < 2 ? "/never" : "/hello");
        if (i >= 2)
            client_expect(&clients[i], &reply, 200);
    }
    /* The third of them is the oldest that is idle. */
    client_open(&more, lone.url);
    client_send_get(&more, "/never");
    ck_assert_msg(client_read_end(&clients[2]), "%s", clients[2].fault);
    check_end(&clients[3], "open"); /* and is closed by the test */
    WAIT_FOR(atomic_load(&lone.slot->open) == 3);
    client_open(&clients[3], lone.url);
    client_send_get(&clients[3], "/never");
    WAIT_FOR(atomic_load(&lone.slot->waiting) == 4);
    struct client refused;
    client_open(&refused, lone.url);
    client_send_get(&refused, "/hello");
    client_expect(&refused, &reply, 503);
    ck_assert(reply.is_last);
    ck_assert_msg(client_read_end(&refused), "%s", refused.fault);
    client_close(&refused);
    ck_assert_uint_eq(lone_counters(&lone).refused, 2);

    /* One more when one has gone. */
    client_abort(&clients[0]);
    WAIT_FOR(atomic_load(&lone.slot->waiting) == 3);
    client_open(&refused, lone.url);
    client_send_get(&refused, "/hello");
    client_expect(&refused, &reply, 200);
    client_close(&refused);
    client_close(&more);
    for (int i = 1; i < 4; i++)
        client_close(&clients[i]);
    lone_leave(&lone);
}
END_TEST

/* Who is to make room has just sent a request: that is answered. */
START_TEST(test_limit_busy)
{
    struct lone lone;
    struct client clients[2], more;
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = ROUTES "limits = { connections = 2 }\n" });
    for (int i = 0; i < 2; i++) {
        client_open(&clients[i], lone.url);
        client_send(&clients[i], GET);
        client_expect(&clients[i], &reply, 200);
    }
    WAIT_FOR(atomic_load(&lone.slot->idle) == 2 && atomic_load(&lone.slot->is_busy) == 0);
    kill(lone.pid, SIGSTOP);
    client_send(&clients[0], _i == 0 ? GET : LATE);
    client_send(&clients[1], GET);
    client_open(&more, lone.url); /* the loop sees this first */
    client_send(&more, GET);
    kill(lone.pid, SIGCONT);
    client_expect(&more, &reply, 200);
    client_expect(&clients[0], &reply, 200);
    client_expect(&clients[1], &reply, 200);
    WAIT_FOR(atomic_load(&lone.slot->is_busy) == 0);
    ck_assert_uint_eq(atomic_load(&lone.slot->answering.length), 0);
    client_close(&more);
    client_close(&clients[0]);
    client_close(&clients[1]);
    lone_leave(&lone);
}
END_TEST

/* Late answers that nobody waits for any more hold no place: 0: of connections, 1: of addresses. */
START_TEST(test_limit_vain)
{
    struct lone lone;
    struct client clients[3], more;
    struct reply reply;
    lone_start(&lone, &(struct lone_options){
                          .config = _i == 0 ? ROUTES "limits = { connections = 3 }\n"
                                            : ROUTES "limits = { per_address = 3 }\n" });
    for (int i = 0; i < 3; i++) {
        client_open(&clients[i], lone.url);
        client_send_get(&clients[i], "/never");
        client_end(&clients[i]);
    }
    WAIT_FOR(atomic_load(&lone.slot->waiting) == 3);
    usleep(50000); /* so that the ends are seen */
    client_open(&more, lone.url);
    client_send(&more, GET);
    client_expect(&more, &reply, 503); /* they do wait */
    client_close(&more);
    client_abort(&clients[0]);
    client_abort(&clients[1]);
    client_open(&more, lone.url);
    check_end(&more, "open");
    WAIT_FOR(atomic_load(&lone.slot->waiting) == 1);
    client_abort(&clients[2]);
    lone_leave(&lone);
}
END_TEST

/* Those that were refused keep their time to read that. */
START_TEST(test_limit_refused)
{
    struct lone lone;
    struct client clients[7];
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = ROUTES "limits = { connections = 2 }\n" });
    for (int i = 0; i < 7; i++) {
        client_open(&clients[i], lone.url);
        client_send_get(&clients[i], "/never");
        if (i >= 2)
            client_expect(&clients[i], &reply, 503);
    }
    WAIT_FOR(atomic_load(&lone.slot->is_busy) == 0);
    ck_assert_uint_eq(atomic_load(&lone.slot->open), 7);
    for (int i = 0; i < 7; i++)
        client_abort(&clients[i]);
    WAIT_FOR(atomic_load(&lone.slot->open) == 0);
    lone_leave(&lone);
}
END_TEST

/* A flood beyond the limit costs no more than a bounded number of descriptors. */
START_TEST(test_limit_flood)
{
    struct lone lone;
    struct client clients[400];
    lone_start(&lone, &(struct lone_options){ .config = ROUTES "limits = { connections = 4 }\n" });
    for (int i = 0; i < 400; i++) {
        client_open(&clients[i], lone.url);
        client_send_get(&clients[i], "/never");
    }
    WAIT_FOR(lone_counters(&lone).connections == 400);
    ck_assert_uint_le(atomic_load(&lone.slot->open), 4 + 64 + 64); /* refused, deferred */
    WAIT_FOR(lone_counters(&lone).refused == 396);
    WAIT_FOR(atomic_load(&lone.slot->open) <= 4 + 64);
    for (int i = 0; i < 400; i++)
        client_abort(&clients[i]);
    WAIT_FOR(atomic_load(&lone.slot->open) == 0);
    lone_leave(&lone);
}
END_TEST

START_TEST(test_limit_per_address)
{
    struct lone lone;
    struct client clients[3];
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = ROUTES "limits = { per_address = 2 }\n" });
    for (int i = 0; i < 3; i++) {
        client_open(&clients[i], lone.url);
        client_send_get(&clients[i], "/hello");
        client_expect(&clients[i], &reply, i < 2 ? 200 : 503);
    }
    ck_assert(client_read_end(&clients[2]));
    client_close(&clients[0]);
    WAIT_FOR(atomic_load(&lone.slot->open) <= 2);
    client_close(&clients[2]);
    WAIT_FOR(atomic_load(&lone.slot->open) == 1);
    client_open(&clients[0], lone.url);
    check_end(&clients[0], "open");
    client_close(&clients[1]);
    lone_leave(&lone);
}
END_TEST

/* One more is accepted after one has gone, however it went, and however soon: 0 to 5 of
 * connections, then of addresses. What is sent, whether an answer is read, whether it is reset. */
static const struct {
    const char *sent;
    bool is_read, is_reset;
} gone_rows[] = {
    { GET, true, false },
    { "GET /hello HTTP/1.1\r\nConnection: close\r\n" A, true, false },
    { "", false, false },
    { "GET /h", false, true },
    { "GET /never HTTP/1.1\r\n" A, false, true },
    { POST "Content-Length: 9\r\n\r\n1", false, true },
};
#define GONE SUITE_ROWS(gone_rows)

START_TEST(test_limit_one_more)
{
    struct lone lone;
    struct client client;
    struct reply reply;
    int row = _i % GONE;
    lone_start(&lone, &(struct lone_options){
                          .config = _i < GONE ? ROUTES "limits = { connections = 1 }\n"
                                              : ROUTES "limits = { per_address = 1 }\n" });
    for (int i = 0; i < 300; i++) {
        client_open(&client, lone.url);
        client_send(&client, gone_rows[row].sent);
        if (gone_rows[row].is_read)
            client_expect(&client, &reply, 200);
        if (gone_rows[row].is_reset)
            client_abort(&client);
        else
            client_close(&client);
        client_open(&client, lone.url);
        client_send(&client, GET);
        client_expect(&client, &reply, 200);
        client_close(&client);
    }
    ck_assert_uint_eq(lone_counters(&lone).refused, 0);
    lone_leave(&lone);
}
END_TEST

/* Who has its last answer takes no place and nothing from its address, though it has not closed. */
START_TEST(test_limit_done)
{
    struct lone lone;
    struct client clients[3];
    struct reply reply;
    lone_start(&lone, &(struct lone_options){
                          .config = _i == 0 ? ROUTES "limits = { connections = 1 }\n"
                                            : ROUTES "limits = { per_address = 1 }\n" });
    for (int i = 0; i < 3; i++) {
        client_open(&clients[i], lone.url);
        client_send(&clients[i], "GET /hello HTTP/1.1\r\nConnection: close\r\n" A);
        client_expect(&clients[i], &reply, 200);
        ck_assert(client_read_end(&clients[i]));
    }
    for (int i = 0; i < 3; i++)
        client_close(&clients[i]);
    lone_leave(&lone);
}
END_TEST

/* One that waits to be let in, when the worker is told to leave. */
START_TEST(test_limit_deferred)
{
    struct lone lone;
    struct client holder, client;
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = ROUTES "limits = { connections = 1 }\n" });
    client_open(&holder, lone.url);
    client_send(&holder, "GET /hello HT");
    WAIT_FOR(atomic_load(&lone.slot->open) == 1);
    struct scoreboard_sums before = lone_counters(&lone);
    ck_assert(lone_freeze(&lone, &before));
    for (int i = 0; i < 3; i++) {
        client_open(&client, lone.url);
        client_send(&client, GET);
        if (i < 2)
            client_close(&client);
    }
    if (_i == 0)
        lone_drain(&lone, CHANNEL_DRAIN_STOP);
    kill(lone.pid, SIGCONT);
    client_expect(&client, &reply, 503);
    client_send(&holder, "TP/1.1\r\n" A);
    client_expect(&holder, &reply, 200);
    client_close(&holder);
    client_close(&client);
    if (_i == 0)
        ck_assert_int_eq(lone_wait(&lone), 0);
    else
        lone_leave(&lone);
}
END_TEST

START_TEST(test_limit_requests)
{
    struct lone lone;
    struct client client;
    lone_start(&lone, &(struct lone_options){ .config = ROUTES "limits = { requests = 3 }\n" });
    client_open(&client, lone.url);
    client_send(&client, GET LATE NONE GET GET);
    check_end(&client, check_replies(&client, "200 200 404 close"));
    lone_leave(&lone);
}
END_TEST

START_TEST(test_redirect)
{
    struct lone lone;
    struct client client;
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG });
    client_open(&client, lone.url);
    client_send_get(&client, "/old");
    client_expect(&client, &reply, 308);
    ck_assert_str_eq(reply_field(&reply, "Location"), "/hello#top");
    client_send_get(&client, "/old?a=b&c");
    client_expect(&client, &reply, 308);
    ck_assert_str_eq(reply_field(&reply, "Location"), "/hello?a=b&c#top");
    client_close(&client);
    lone_leave(&lone);
}
END_TEST

/* Each answer is one well-formed line. */
START_TEST(test_access_log)
{
    struct lone lone;
    struct client client;
    lone_start(&lone,
               &(struct lone_options){ .config = CONFIG, .access_log = scratch_path("access") });
    client_open(&client, lone.url);
    client_send(&client, "GET /hello?\"q\" HTTP/1.1\r\n" A);
    check_end(&client, check_replies(&client, "400 close"));
    client_open(&client, lone.url);
    client_send(&client, "GET /hello HTTP/1.1\r\nReferer: \"\\\xff\r\nUser-Agent: me\r\n" A HEAD
                         "POST /late HTTP/1.1\r\nHost: a\r\nUser-Agent: late\r\n" FIVE);
    check_replies(&client, "200 200h 200 open");
    client_send(&client, "\x1b[31m\n");
    check_end(&client, check_replies(&client, "400 close"));
#define FROM "127\\.0\\.0\\.1 - - \\[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} \\+0000\\] "
    const char *log = "";
    WAIT_FOR(text_count_lines(log = scratch_read("access"), ".*") == 5);
    ck_assert(text_matches(
        log, "^" FROM "\"GET /hello\\?\\\\x22q\\\\x22 HTTP/1.1\" 400 16 \"-\" \"-\"\n" FROM
             "\"GET /hello HTTP/1.1\" 200 5 \"\\\\x22\\\\x5C\\\\xFF\" \"me\"\n" FROM
             "\"HEAD /hello HTTP/1.1\" 200 - \"-\" \"-\"\n" FROM
             "\"POST /late HTTP/1.1\" 200 4 \"-\" \"late\"\n" FROM
             "\"\\\\x1B\\[31m\" 400 16 \"-\" \"-\"\n$"));
    lone_leave(&lone);
}
END_TEST

/* An idle connection costs little memory, and gives it back. */
START_TEST(test_memory)
{
    enum { MANY = 2000 };
    struct lone lone;
    static struct client clients[MANY];
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG });
    client_open(&clients[0], lone.url);
    client_send(&clients[0], GET);
    client_expect(&clients[0], &reply, 200);
    unsigned before = memory_of(lone.pid);
    for (int i = 1; i < MANY; i++) {
        client_open(&clients[i], lone.url);
        client_send(&clients[i], GET);
        client_expect(&clients[i], &reply, 200);
    }
    unsigned after = memory_of(lone.pid);
    for (int i = 0; i < MANY; i++)
        client_close(&clients[i]);
    WAIT_FOR(atomic_load(&lone.slot->open) == 0);
    WAIT_FOR(atomic_load(&lone.slot->is_busy) == 0);
    unsigned each = (after - before) * 1024 / MANY, left = memory_of(lone.pid);
    printf("# %u bytes a connection; %u kB before, %u kB with them, %u kB after\n", each, before,
           after, left);
    if (!lone_is_instrumented()) {
        ck_assert_uint_le(each, 300);
        ck_assert_uint_le(left, before + 96);
    }
    /* It has a new loop now, which does all that the old one did. */
    client_open(&clients[0], lone.url);
    client_send(&clients[0], LATE);
    client_expect(&clients[0], &reply, 200);
    client_close(&clients[0]);
    lone_leave(&lone);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conn");
    TCase *talk = suite_case(suite, "talk");
    tcase_add_loop_test(talk, test_rows, 0, SUITE_ROWS(rows));
    tcase_add_test(talk, test_continue);
    tcase_add_test(talk, test_pipeline);
    tcase_add_test(talk, test_pipeline_late);
    tcase_add_loop_test(talk, test_half_close, 0, SUITE_ROWS(half_rows));
    tcase_add_loop_test(talk, test_early_error, 0, 3);
    tcase_add_test(talk, test_redirect);
    tcase_add_test(talk, test_access_log);
    TCase *slow = suite_case(suite, "slow");
    tcase_add_loop_test(slow, test_slow, 0, SUITE_ROWS(slow_rows));
    tcase_add_loop_test(slow, test_seen, 0, SUITE_ROWS(seen_rows));
    tcase_add_loop_test(slow, test_blank, 0, 3);
    tcase_add_loop_test(slow, test_latency, 0, 3);
    tcase_add_test(slow, test_never_reads);
    tcase_add_test(slow, test_turn);
    tcase_add_loop_test(slow, test_reads_slowly, 0, 2);
    tcase_add_test(slow, test_late);
    TCase *limits = suite_case(suite, "limits");
    tcase_add_test(limits, test_limit_connections);
    tcase_add_loop_test(limits, test_limit_busy, 0, 2);
    tcase_add_loop_test(limits, test_limit_vain, 0, 2);
    tcase_add_test(limits, test_limit_refused);
    tcase_add_test(limits, test_limit_flood);
    tcase_add_test(limits, test_limit_per_address);
    tcase_add_loop_test(limits, test_limit_one_more, 0, 2 * GONE);
    tcase_add_loop_test(limits, test_limit_done, 0, 2);
    tcase_add_loop_test(limits, test_limit_deferred, 0, 2);
    tcase_add_test(limits, test_limit_requests);
    tcase_add_test(limits, test_memory);
    return suite_run(suite);
}
