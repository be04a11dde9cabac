/*
 * The life of a worker, from fork to exit. The test is its master. (More than 400 lines: one life
 * has many ends.)
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer/answer.h"
#include "base/clock.h"
#include "support/client.h"
#include "support/lone.h"
#include "support/process.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"
#include "worker/trial.h"
#include "worker/worker.h"

#define GET "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
#define LAST "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
#define HELLO "{ path = \"/hello\" text = \"Hello\" }"
#define NEVER "{ path = \"/never\" text = \"never\" delay = \"1h\" }"
#define ROUTES \
    "routes = ( " HELLO ", " NEVER ", { path = \"/soon\" text = \"soon\" delay = \"300ms\" } )\n"
#define FAULT(fault) "routes = ( { path = \"/fault\" fault = \"" fault "\" }, " HELLO " )\n"

static unsigned milliseconds_since(int64_t start)
{
    return (unsigned)((clock_monotonic() - start) / CLOCK_MILLISECOND);
}

static void expect_hello(struct client *client)
{
    struct reply reply;
    client_send(client, GET);
    client_expect(client, &reply, 200);
    ck_assert(slice_equal(reply.body, SLICE("Hello")));
}

/* A refused connection, or one that nobody takes from a queue that is gone. */
static bool is_refused(const char *url)
{
    struct client client;
    if (client_try_open(&client, url) == -1)
        return errno == ECONNREFUSED;
    client_close(&client);
    return false;
}

START_TEST(test_ready)
{
    struct lone lone;
    struct channel_message message;
    struct client client;
    lone_spawn(&lone,
               &(struct lone_options){ .config = ROUTES, .access_log = scratch_path("access") });
    lone_expect(&lone, CHANNEL_READY, &message);
    ck_assert_uint_eq(atomic_load(&lone.slot->state), SCOREBOARD_READY);

    /* Its own request left no trace. */
    struct scoreboard_sums sums = lone_counters(&lone), none = { 0 };
    ck_assert_mem_eq(&sums, &none, sizeof none);
    WAIT_FOR(atomic_load(&lone.slot->is_busy) == 0);
    ck_assert_uint_eq(atomic_load(&lone.slot->open), 0);
    ck_assert_uint_eq(atomic_load(&lone.slot->answering.length), 0);
    ck_assert_str_eq(scratch_read("access"), "");

    /* It accepts when it is told to. */
    client_open(&client, lone.url);
    client_send(&client, GET);
    usleep(50000);
    ck_assert(client_is_silent(&client));
    lone_tell(&lone, CHANNEL_GO, 0, 0);
    struct reply reply;
    client_expect(&client, &reply, 200);
    ck_assert_uint_eq(lone_counters(&lone).requests, 1);
    WAIT_FOR(atomic_load(&lone.slot->idle) == 1);
    client_close(&client);
    lone_leave(&lone);
    ck_assert_uint_eq(atomic_load(&lone.slot->state), SCOREBOARD_GONE);
}
END_TEST

START_TEST(test_identity)
{
    if (suite_lacks_root())
        return;
    struct lone lone;
    lone_start(&lone, &(struct lone_options){ .is_root = true });
    const char *status = text_read(text_format("/proc/%d/status", (int)lone.pid), 0, NULL);
    ck_assert(text_matches(status, "Uid:\t65534\t65534\t65534\t65534\n"));
    ck_assert(text_matches(status, "Gid:\t65534\t65534\t65534\t65534\n"));
    ck_assert(text_matches(status, "Groups:\t65534 *\n"));
    if (!lone_is_instrumented()) /* INT, QUIT, TERM */
        ck_assert(text_matches(status, "SigBlk:\t0000000000004006\n"));
    lone_leave(&lone);
}
END_TEST

/* What kinds of routes fit, and what is right as an answer. */
START_TEST(test_trial)
{
    static const struct {
        const char *answer;
        bool is_right;
    } rows[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", true },
        { "HTTP/1.1 200 OK\r\nA: b\r\ncontent-length: 0\r\n\r\n", true },
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", false },
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", false },
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", false },
        { "HTTP/1.1 500 OK\r\nContent-Length: 2\r\n\r\nab", false },
        { "HTTP/1.1 2000 OK\r\n\r\n", false },
        { "", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_msg((trial_fault(slice_of(rows[i].answer), 200) == NULL) == rows[i].is_right,
                      "%s", rows[i].answer);
}
END_TEST

static const char *const trial_configs[] = {
    "routes = ( { path = \"/a/*\" text = \"a\" } )\n", /* OPTIONS then */
    "routes = ( " NEVER " )\n",
    "routes = ( { path = \"/a\" text = \"a\" methods = [ \"POST\" ] } )\n",
    "routes = ( { path = \"/a\" text = \"\" status = 204 } )\n",
    "routes = ( { path = \"/a\" redirect = \"/b\" } )\n",
    "routes = ( { path = \"/a\" health = \"ready\" } )\n",
    "routes = ( { path = \"/a\" text = \"a\" status = 503 headers = { X-A = \"b\" } } )\n",
    "limits = { header = 256 requests = 1 connections = 1 per_address = 1 }\n",
};

START_TEST(test_trial_route)
{
    struct lone lone;
    lone_start(&lone, &(struct lone_options){ .config = trial_configs[_i] });
    lone_leave(&lone);
}
END_TEST

START_TEST(test_admin)
{
    struct lone lone;
    const char *body = NULL;
    lone_start(&lone, &(struct lone_options){ .config = ROUTES, .is_admin = true, .nsockets = 3 });
    ck_assert_uint_eq(client_get(lone.url, "/hello", NULL), 404);
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(client_get(lone.url, "/healthz", NULL), 200);
    ck_assert_uint_eq(client_get(lone.url, "/readyz", &body), 200);
    ck_assert_str_eq(body, "ready\n");
    strcpy(lone.scoreboard->master.reason, "no worker is left");
    atomic_store(&lone.scoreboard->master.is_ready, 0);
    ck_assert_uint_eq(client_get(lone.url, "/readyz", &body), 503);
    ck_assert_str_eq(body, "not ready: no worker is left\n");
    lone_leave(&lone);
}
END_TEST

START_TEST(test_failed_start)
{
    struct lone lone;
    struct channel_message message;
    lone_spawn(&lone, &(struct lone_options){ .is_root = true, .is_powerless = true });
    lone_expect(&lone, CHANNEL_FAILED, &message);
    ck_assert_str_eq(message.text, "cannot take on its user: Operation not permitted");
    ck_assert_int_eq(lone_wait(&lone), 1);
}
END_TEST

#ifdef ENABLE_FAULTS
START_TEST(test_crashing_start)
{
    struct lone lone;
    char text[256];
    lone_spawn(&lone, &(struct lone_options){ .config = FAULT("start") });
    ck_assert_int_eq(lone_wait(&lone), -SIGABRT);
    scoreboard_request_text(text, sizeof text, &lone.slot->answering);
    ck_assert_str_eq(text, "GET /fault from unknown");
}
END_TEST

static const struct {
    const char *config;
    int status;
} fault_rows[] = {
    { FAULT("segv"), -SIGSEGV },  { FAULT("abort"), -SIGABRT }, { FAULT("exit"), 3 },
    { FAULT("loop"), -SIGKILL }, /* by the test, as by the master's watchdog */
    { FAULT("block"), -SIGKILL },
};

/* What it was answering is in the scoreboard, whatever happens. */
START_TEST(test_fault)
{
    struct lone lone;
    struct client client;
    char text[256];
    lone_start(&lone, &(struct lone_options){ .config = fault_rows[_i].config });
    client_open(&client, lone.url);
    client_send(&client, GET "GET /fault HTTP/1.1\r\nHost: a\r\n\r\n" GET);
    WAIT_FOR(atomic_load(&lone.slot->answering.length) > 0);
    const char *from = text_format("GET /fault from 127.0.0.1:%u", client_port(&client));
    WAIT_FOR((scoreboard_request_text(text, sizeof text, &lone.slot->answering),
              strcmp(text, from) == 0));
    ck_assert_uint_eq(atomic_load(&lone.slot->is_busy), 1);
    if (fault_rows[_i].status == -SIGKILL)
        kill(lone.pid, SIGKILL);
    ck_assert_int_eq(lone_wait(&lone), fault_rows[_i].status);
    scoreboard_request_text(text, sizeof text, &lone.slot->answering);
    ck_assert_str_eq(text, from);
    client_close(&client);
}
END_TEST
#endif

#ifdef ENABLE_FAULTS
/* Also when the request did not come in one piece, or not at the beginning. */
START_TEST(test_fault_apart)
{
    struct lone lone;
    struct client client;
    char text[256];
    lone_start(&lone, &(struct lone_options){ .config = FAULT("exit") });
    client_open(&client, lone.url);
    if (_i == 0) {
        client_send(&client, "GET /fault HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12");
        usleep(50000);
        client_send(&client, "345");
    } else {
        client_send(&client, "\r\nGET /fault HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    ck_assert_int_eq(lone_wait(&lone), 3);
    scoreboard_request_text(text, sizeof text, &lone.slot->answering);
    ck_assert_str_eq(text, text_format("GET /fault from 127.0.0.1:%u", client_port(&client)));
    client_close(&client);
}
END_TEST
#endif

/* Signals that mean nothing to a worker. */
START_TEST(test_ignored_signals)
{
    static const int ignored[] = { SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGTTIN, SIGTTOU, SIGPIPE };
    struct lone lone;
    struct client client;
    lone_start_plain(&lone);
    client_open(&client, lone.url);
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        kill(lone.pid, ignored[i]);
        expect_hello(&client);
    }
    client_close(&client);
    lone_leave(&lone);
}
END_TEST

static const int ending[] = { SIGTERM, SIGINT, SIGQUIT };

START_TEST(test_signal)
{
    struct lone lone;
    struct client client;
    struct channel_message message;
    struct reply reply;
    lone_start(&lone, &(struct lone_options){ .config = ROUTES });
    client_open(&client, lone.url);
    client_send_get(&client, "/soon");
    WAIT_FOR(atomic_load(&lone.slot->waiting) == 1);
    kill(lone.pid, ending[_i]);
    lone_expect(&lone, CHANNEL_LEAVING, &message);
    WAIT_FOR(atomic_load(&lone.slot->state) == SCOREBOARD_DRAINING);
    kill(lone.pid, ending[_i]); /* once more changes nothing */
    client_expect(&client, &reply, 200);
    ck_assert(reply.is_last);
    ck_assert(client_read_end(&client));
    client_close(&client);
    /* Others are still served, until the master has somebody else for them. */
    client_open(&client, lone.url);
    client_send(&client, GET);
    client_expect(&client, &reply, 200);
    ck_assert(reply.is_last);
    ck_assert(client_read_end(&client));
    client_close(&client);
    ck_assert(!lone_has_ended(&lone));
    if (_i > 0) /* else it is silent, and not waited for for ever */
        lone_tell(&lone, CHANNEL_DRAIN, CHANNEL_DRAIN_STOP, 60 * CLOCK_SECOND);
    lone_expect(&lone, CHANNEL_DRAINING, &message);
    ck_assert_int_eq(lone_wait(&lone), 0);
}
END_TEST

/* On a busy machine the signal may be seen before the word to go: others are served all the same. */
START_TEST(test_signal_before_go)
{
    struct lone lone;
    struct client client;
    struct channel_message message;
    struct reply reply;
    lone_spawn(&lone, &(struct lone_options){ .config = ROUTES });
    lone_expect(&lone, CHANNEL_READY, &message);
    int64_t since = clock_monotonic();
    ck_assert_int_eq(kill(lone.pid, SIGTERM), 0);
    lone_expect(&lone, CHANNEL_LEAVING, &message);
    lone_tell(&lone, CHANNEL_GO, 0, 0);
    client_open(&client, lone.url);
    client_send(&client, GET);
    bool is_slow = clock_monotonic() - since > WORKER_LEAVE_PATIENCE / 2;
    client_expect(&client, &reply, 200);
    client_close(&client);
    /* It was not the drain that took it from the queue, at the end of the worker's patience. */
    char byte;
    if (!is_slow)
        ck_assert_int_eq(recv(lone.channel, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
    lone_tell(&lone, CHANNEL_DRAIN, CHANNEL_DRAIN_STOP, 60 * CLOCK_SECOND);
    lone_expect(&lone, CHANNEL_DRAINING, &message);
    ck_assert_int_eq(lone_wait(&lone), 0);
}
END_TEST

/* From birth on none is lost. */
START_TEST(test_early_signal)
{
    struct lone lone;
    struct channel_message message;
    lone_spawn(&lone, &(struct lone_options){ 0 });
    kill(lone.pid, ending[_i]);
    ck_assert_int_eq(lone_wait(&lone), 0);
    (void)message;
}
END_TEST

/*
 * What a drain of each kind does to a connection of each sort: "answer": it gets its answer and
 * the end; "end": it is closed before its next request; "next": its next request is answered, and
 * that was the last; "cut": neither.
 */
#define SOON "GET /soon HTTP/1.1\r\nHost: a\r\n\r\n"
#define LATER "GET /never HTTP/1.1\r\nHost: a\r\n\r\n"
#define PART "GET /hello HTTP/1.1\r\n"
#define REST "Host: a\r\n\r\n"
#define LONG 60000

static const struct {
    enum channel_drain how;
    unsigned deadline; /* ms */
    const char *sent;  /* before; then `then` follows */
    const char *then;
    const char *outcome;
    unsigned least; /* ms until the worker leaves */
    unsigned cut;   /* counted */
} drain_rows[] = {
    { CHANNEL_DRAIN_RELOAD, 1500, GET, NULL, "end", 1400, 0 },
    { CHANNEL_DRAIN_RELOAD, LONG, GET, GET, "next", 0, 0 },
    { CHANNEL_DRAIN_RELOAD, LONG, "", GET, "next", 0, 0 },
    { CHANNEL_DRAIN_RELOAD, 1500, "", NULL, "end", 1400, 0 },
    { CHANNEL_DRAIN_RELOAD, LONG, SOON, NULL, "next", 0, 0 },
    { CHANNEL_DRAIN_RELOAD, 1500, LATER, NULL, "cut", 1400, 1 },
    { CHANNEL_DRAIN_RELOAD, LONG, PART, REST, "next", 0, 0 },
    { CHANNEL_DRAIN_STOP, LONG, GET, NULL, "end", 500, 0 },
    { CHANNEL_DRAIN_STOP, LONG, GET, GET, "next", 0, 0 },
    { CHANNEL_DRAIN_STOP, LONG, "", NULL, "end", 500, 0 },
    { CHANNEL_DRAIN_STOP, LONG, "", GET, "next", 0, 0 },
    { CHANNEL_DRAIN_STOP, LONG, SOON, NULL, "next", 0, 0 },
    { CHANNEL_DRAIN_STOP, 1500, LATER, NULL, "cut", 1400, 1 },
    { CHANNEL_DRAIN_STOP, LONG, PART, REST, "next", 0, 0 },
    { CHANNEL_DRAIN_NOW, LONG, GET, NULL, "end", 0, 0 },
    { CHANNEL_DRAIN_NOW, LONG, "", NULL, "end", 0, 0 },
    { CHANNEL_DRAIN_NOW, LONG, LATER, NULL, "cut", 0, 1 },
    { CHANNEL_DRAIN_NOW, LONG, PART, NULL, "cut", 0, 1 },
};

START_TEST(test_drain)
{
    struct lone lone;
    struct client client;
    struct reply reply;
    struct channel_message message;
    lone_start(&lone, &(struct lone_options){ .config = ROUTES });
    client_open(&client, lone.url);
    client_send(&client, drain_rows[_i].sent);
    if (strcmp(drain_rows[_i].sent, GET) == 0)
        client_expect(&client, &reply, 200);
    WAIT_FOR(atomic_load(&lone.slot->open) == 1);
    usleep(10000);
    int64_t start = clock_monotonic();
    lone_tell(&lone, CHANNEL_DRAIN, drain_rows[_i].how,
              drain_rows[_i].deadline * CLOCK_MILLISECOND);
    lone_expect(&lone, CHANNEL_DRAINING, &message);
    for (unsigned i = 0; i < lone.nsockets; i++)
        close(lone.sockets[i]);
    ck_assert(is_refused(lone.url)); /* it holds no listening socket */
    if (drain_rows[_i].then)
        client_send(&client, drain_rows[_i].then);
    if (strcmp(drain_rows[_i].outcome, "next") == 0) {
        client_expect(&client, &reply, 200);
        ck_assert(reply.is_last);
    }
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    ck_assert_int_eq(lone_wait(&lone), 0);
    unsigned took = milliseconds_since(start);
    ck_assert_msg(took >= drain_rows[_i].least, "%u ms", took);
    ck_assert_uint_lt(took, LONG / 2); /* nothing waited for the long deadline */
    ck_assert_uint_eq(lone_counters(&lone).cut, drain_rows[_i].cut);
}
END_TEST

/*
 * What has no request under way, or ends the one it has, after the moment at which a stop closes
 * the idle ones, is not waited for either: 0: a body that was refused, 1: the same, but all of it
 * comes, 2: one that goes on sending after its last answer, 3: a slow reader.
 */
START_TEST(test_idle_later)
{
    static const char *const sent[] = {
        "POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345",
        "POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345",
        "BAD\r\n\r\n",
        "GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
    };
    struct lone lone;
    struct client client;
    struct reply reply;
    int small = 65536;
    const char *large = text_repeat("0123456789abcdef", 60000);
    lone_start(&lone, &(struct lone_options){
                          .config = text_format("routes = ( { path = \"/large\" text = \"%s\" } )\n"
                                                "timeouts = { body = \"60s\" send = \"60s\" }\n",
                                                large) });
    client_open(&client, lone.url);
    setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    unsigned count = 0;
    do { /* the slow reader: until one answer is not sent whole */
        client_send(&client, sent[_i]);
        count++;
        WAIT_FOR(lone_counters(&lone).requests == count && atomic_load(&lone.slot->is_busy) == 0);
    } while (_i == 3 && atomic_load(&lone.slot->idle) == 1);
    if (_i < 3) {
        client_expect(&client, &reply, _i == 2 ? 400 : 404);
        ck_assert_int_eq(reply.is_last, _i == 2);
    }
    ck_assert_uint_eq(atomic_load(&lone.slot->idle), 0);
    int64_t start = clock_monotonic();
    lone_tell(&lone, CHANNEL_DRAIN, CHANNEL_DRAIN_STOP, LONG * CLOCK_MILLISECOND);
    while (_i == 2 && !lone_has_ended(&lone) && milliseconds_since(start) < LONG / 2) {
        client_send_bytes(&client, "x", 1);
        usleep(100000);
    }
    usleep(_i == 1 ? 500000 : 1500000);
    if (_i == 1)
        client_send(&client, "67890");
    for (unsigned i = 0; i < count && _i == 3; i++) {
        client_expect(&client, &reply, 200);
        ck_assert(!reply.is_last);
        ck_assert_uint_eq(reply.body.length, strlen(large));
    }
    if (_i != 2)
        ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    ck_assert_int_eq(lone_wait(&lone), 0);
    ck_assert_uint_lt(milliseconds_since(start), 10000);
    ck_assert_uint_eq(lone_counters(&lone).cut, 0);
}
END_TEST

/* A request is there when the deadline of a reload comes, which is seen first. */
START_TEST(test_late_deadline)
{
    struct lone lone;
    struct client client;
    struct reply reply;
    struct channel_message message;
    struct scoreboard_sums before;
    for (;;) {
        lone_start(&lone, &(struct lone_options){ .config = ROUTES });
        before = lone_counters(&lone);
        client_open(&client, lone.url);
        if (_i == 0)
            expect_hello(&client);
        else
            client_send(&client, PART);
        WAIT_FOR(atomic_load(&lone.slot->open) == 1);
        lone_tell(&lone, CHANNEL_DRAIN, CHANNEL_DRAIN_RELOAD, 300 * CLOCK_MILLISECOND);
        lone_expect(&lone, CHANNEL_DRAINING, &message);
        /* The deadline is set when it rests; or it has come, and the worker is gone. */
        WAIT_FOR(atomic_load(&lone.slot->is_busy) == 0 || lone_has_ended(&lone));
        if (lone_freeze(&lone, &before) && atomic_load(&lone.slot->open) == 1)
            break;
        kill(lone.pid, SIGCONT); /* it took too long, and the deadline has passed */
        client_close(&client);
        ck_assert_int_eq(lone_wait(&lone), 0);
    }
    usleep(400000); /* past the deadline */
    client_send(&client, _i == 0 ? GET : REST);
    kill(lone.pid, SIGCONT);
    client_expect(&client, &reply, 200);
    ck_assert(reply.is_last);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    ck_assert_int_eq(lone_wait(&lone), 0);
    ck_assert_uint_eq(atomic_load(&lone.slot->answering.length), 0);
    ck_assert_uint_eq(lone_counters(&lone).cut, 0);
}
END_TEST

/* A later message tightens an earlier one, and never loosens it. */
START_TEST(test_drain_again)
{
    struct lone lone;
    struct client client;
    lone_start(&lone, &(struct lone_options){ .config = ROUTES });
    client_open(&client, lone.url);
    client_send_get(&client, "/never");
    WAIT_FOR(atomic_load(&lone.slot->waiting) == 1);
    int64_t start = clock_monotonic();
    if (_i == 0) {
        lone_tell(&lone, CHANNEL_DRAIN, CHANNEL_DRAIN_RELOAD, 60 * CLOCK_SECOND);
        lone_tell(&lone, CHANNEL_DRAIN, CHANNEL_DRAIN_STOP, 300 * CLOCK_MILLISECOND);
    } else if (_i == 1) {
        lone_tell(&lone, CHANNEL_DRAIN, CHANNEL_DRAIN_STOP, 300 * CLOCK_MILLISECOND);
        lone_tell(&lone, CHANNEL_DRAIN, CHANNEL_DRAIN_RELOAD, 60 * CLOCK_SECOND);
    } else {
        lone_tell(&lone, CHANNEL_DRAIN, CHANNEL_DRAIN_RELOAD, 60 * CLOCK_SECOND);
        usleep(300000);
        lone_tell(&lone, CHANNEL_DRAIN, CHANNEL_DRAIN_NOW, 0);
    }
    ck_assert_int_eq(lone_wait(&lone), 0);
    ck_assert_uint_ge(milliseconds_since(start), 290);
    ck_assert_uint_lt(milliseconds_since(start), LONG / 2);
    ck_assert_uint_eq(lone_counters(&lone).cut, 1);
    client_close(&client);
}
END_TEST

/* What is queued at the end, on sockets of its own and on others. */
static const struct {
    uint32_t argument;
    bool is_taken;
} queue_rows[] = {
    { CHANNEL_DRAIN_STOP, true },
    { CHANNEL_DRAIN_RELOAD, false },
    { CHANNEL_DRAIN_RELOAD | CHANNEL_DRAIN_TAKE_QUEUE, true },
    { CHANNEL_DRAIN_NOW, false },
};

START_TEST(test_queue)
{
    struct lone lone;
    struct client clients[8];
    struct reply reply;
    struct channel_message message;
    lone_spawn(&lone, &(struct lone_options){ .config = ROUTES, .nsockets = 3 });
    lone_expect(&lone, CHANNEL_READY, &message);
    for (int i = 0; i < 8; i++) {
        client_open(&clients[i], lone.url);
        client_send(&clients[i], GET);
    }
    lone_tell(&lone, CHANNEL_DRAIN, queue_rows[_i].argument, 5 * CLOCK_SECOND);
    unsigned left = 0;
    for (int i = 0; i < 8 && queue_rows[_i].is_taken; i++) {
        client_expect(&clients[i], &reply, 200);
        ck_assert(reply.is_last);
        ck_assert(client_read_end(&clients[i]));
        client_close(&clients[i]);
    }
    WAIT_FOR(lone_has_ended(&lone));
    for (unsigned i = 0; i < 3; i++) {
        int fd;
        while ((fd = accept(lone.sockets[i], NULL, NULL)) != -1) {
            close(fd);
            left++;
        }
    }
    ck_assert_uint_eq(left, queue_rows[_i].is_taken ? 0 : 8);
    ck_assert_int_eq(lone_wait(&lone), 0);
}
END_TEST

/* The first of the queue is gone at once, the others take their time. */
START_TEST(test_queue_order)
{
    struct lone lone;
    struct client clients[3];
    struct reply reply;
    struct channel_message message;
    lone_spawn(&lone, &(struct lone_options){ .config = ROUTES });
    lone_expect(&lone, CHANNEL_READY, &message);
    for (int i = 0; i < 3; i++) {
        client_open(&clients[i], lone.url);
        client_send_get(&clients[i], i == 0 ? "/hello" : "/soon");
    }
    client_abort(&clients[0]);
    lone_drain(&lone, CHANNEL_DRAIN_STOP);
    for (int i = 1; i < 3; i++) {
        client_expect(&clients[i], &reply, 200);
        client_close(&clients[i]);
    }
    ck_assert_int_eq(lone_wait(&lone), 0);
}
END_TEST

/* Spreads 60 connections over all sockets. Returns how many the worker answers; the others are
 * taken from the queues of slots that are not its own, unless it serves `all`. */
static unsigned spread(struct lone *lone, bool all)
{
    struct client clients[60];
    uint64_t before = lone_counters(lone).requests;
    unsigned taken = 0;
    for (int i = 0; i < 60; i++) {
        client_open(&clients[i], lone->url);
        client_send(&clients[i], GET);
    }
    for (unsigned i = 1; i < lone->nsockets && !all; i++) {
        int fd;
        while ((fd = accept(lone->sockets[i], NULL, NULL)) != -1) {
            close(fd);
            taken++;
        }
    }
    WAIT_FOR(lone_counters(lone).requests - before + taken == 60);
    for (int i = 0; i < 60; i++)
        client_abort(&clients[i]);
    return 60 - taken;
}

START_TEST(test_take)
{
    struct lone lone;
    lone_start(&lone, &(struct lone_options){ .nsockets = 4, .surplus = 1, .workers = 3 });
    unsigned own = spread(&lone, false);
    ck_assert_uint_gt(own, 0);
    ck_assert_uint_lt(own, 60);
    for (unsigned slot = 1; slot < 4; slot++) /* the last one is surplus */
        lone_tell(&lone, CHANNEL_TAKE, slot, 1);
    lone_settle(&lone);
    spread(&lone, true);
    for (unsigned slot = 1; slot < 4; slot++)
        lone_tell(&lone, CHANNEL_GIVE, slot, 1);
    lone_settle(&lone);
    ck_assert_uint_lt(spread(&lone, false), 60);
    lone_leave(&lone);
}
END_TEST

START_TEST(test_shared)
{
    struct lone lone;
    struct client client;
    lone_start(&lone, &(struct lone_options){ .unix_path = scratch_path("socket") });
    spread(&lone, true);
    client_open(&client, lone.url);
    expect_hello(&client);
    client_close(&client);
    lone_leave(&lone);
}
END_TEST

START_TEST(test_logs)
{
    struct lone lone;
    struct client client;
    struct channel_message message = { .kind = CHANNEL_LOGS };
    const char *log = scratch_path("log.2"), *access = scratch_path("access.2");
    lone_start(&lone, &(struct lone_options){ .access_log = scratch_path("access.1") });
    client_open(&client, lone.url);
    expect_hello(&client);
    WAIT_FOR(text_count_lines(scratch_read("access.1"), "GET /hello") == 1);

    message.argument = CHANNEL_LOG_MAIN | CHANNEL_LOG_ACCESS;
    message.fds[message.nfds++] = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    message.fds[message.nfds++] = open(access, O_WRONLY | O_CREAT | O_APPEND, 0644);
    ck_assert_int_eq(channel_send(lone.channel, &message), 0);
    lone_expect(&lone, CHANNEL_REOPENED, &message);
    expect_hello(&client);
    expect_hello(&client);
    WAIT_FOR(text_count_lines(scratch_read("access.2"), "GET /hello") == 2);
    ck_assert_uint_eq(text_count_lines(scratch_read("access.1"), "GET /hello"), 1);

    /* Only the access log. */
    message = (struct channel_message){
        .kind = CHANNEL_LOGS,
        .argument = CHANNEL_LOG_ACCESS,
        .nfds = 1,
        .fds = { open(scratch_path("access.3"), O_WRONLY | O_CREAT | O_APPEND, 0644) },
    };
    ck_assert_int_eq(channel_send(lone.channel, &message), 0);
    lone_expect(&lone, CHANNEL_REOPENED, &message);
    expect_hello(&client);
    WAIT_FOR(text_count_lines(scratch_read("access.3"), "GET /hello") == 1);
    client_close(&client);

    /* What it does not understand goes to the log. */
    lone_tell(&lone, (enum channel_kind)77, 0, 0);
    WAIT_FOR(text_count_lines(scratch_read("log.2"), "worker.*not understood: kind 77") == 1);
    lone_leave(&lone);
}
END_TEST

/* The lowest descriptor that a process has free. */
static unsigned lowest_free(pid_t pid)
{
    unsigned fd = 0;
    while (access(text_format("/proc/%d/fd/%u", (int)pid, fd), F_OK) == 0)
        fd++;
    return fd;
}

static void limit_descriptors(pid_t pid, unsigned most)
{
    struct rlimit limit;
    ck_assert_int_eq(prlimit(pid, RLIMIT_NOFILE, NULL, &limit), 0);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    ck_assert_int_eq(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

/* Sends it log.N and access.N. Returns what it says to that: "" when it uses them. */
static const char *send_logs(struct lone *lone, int n)
{
    static struct channel_message answer;
    struct channel_message message = {
        .kind = CHANNEL_LOGS,
        .argument = CHANNEL_LOG_MAIN | CHANNEL_LOG_ACCESS,
        .nfds = 2,
        .fds = { open(scratch_path(text_format("log.%d", n)), O_WRONLY | O_CREAT | O_APPEND, 0644),
                 open(scratch_path(text_format("access.%d", n)), O_WRONLY | O_CREAT | O_APPEND,
                      0644) },
    };
    ck_assert_int_eq(channel_send(lone->channel, &message), 0);
    close(message.fds[0]);
    close(message.fds[1]);
    lone_expect(lone, CHANNEL_REOPENED, &answer);
    return answer.text;
}

/* Descriptors for none, or for one of the two: both logs stay, and the master hears why. */
START_TEST(test_logs_without_room)
{
    struct lone lone;
    struct client client;
    if (suite_has_valgrind() && suite_skip("the limit of descriptors would not be its own"))
        return;
    lone_start(&lone, &(struct lone_options){ .access_log = scratch_path("access.0") });
    client_open(&client, lone.url);
    expect_hello(&client);
    ck_assert_str_eq(send_logs(&lone, 1), "");
    unsigned files = process_count_files(lone.pid);
    limit_descriptors(lone.pid, lowest_free(lone.pid) + (unsigned)_i);
    ck_assert_str_eq(send_logs(&lone, 2), "Too many open files");
    ck_assert_uint_eq(process_count_files(lone.pid), files);
    expect_hello(&client);
    WAIT_FOR(text_count_lines(scratch_read("access.1"), "GET /hello") == 1);
    ck_assert_uint_eq(text_count_lines(scratch_read("log.1"), "the old ones stay: Too many"), 1);

    limit_descriptors(lone.pid, UINT_MAX);
    ck_assert_str_eq(send_logs(&lone, 3), "");
    ck_assert_uint_eq(process_count_files(lone.pid), files);
    expect_hello(&client);
    WAIT_FOR(text_count_lines(scratch_read("access.3"), "GET /hello") == 1);
    ck_assert_str_eq(text_format("%s%s", scratch_read("log.2"), scratch_read("access.2")), "");
    client_close(&client);
    lone_leave(&lone);
}
END_TEST

/* Nobody reads the access log, or the disk is full: no answer waits for that. */
START_TEST(test_blocked_log)
{
    struct lone lone;
    struct client client;
    const char *fifo = scratch_path("fifo");
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    lone_start(&lone, &(struct lone_options){ .access_log = _i == 0 ? fifo : "/dev/full" });
    client_open(&client, lone.url);
    for (int i = 0; i < 3000; i++)
        expect_hello(&client);

    /* What was lost is told when the log is opened anew, and at the end. */
    struct channel_message message = {
        .kind = CHANNEL_LOGS,
        .argument = CHANNEL_LOG_MAIN | CHANNEL_LOG_ACCESS,
        .nfds = 2,
        .fds = { open(scratch_path("log.2"), O_WRONLY | O_CREAT | O_APPEND, 0644),
                 open("/dev/full", O_WRONLY | O_APPEND) },
    };
    ck_assert_int_eq(channel_send(lone.channel, &message), 0);
    lone_expect(&lone, CHANNEL_REOPENED, &message);
    const char *log = scratch_read("log.2");
    ck_assert_msg(text_count_lines(log, "more lines about the access log were swallowed") == 1,
                  "%s", log);
    ck_assert(text_count_lines(log, "access log: [0-9]+ lines were dropped in all") == 1);
    for (int i = 0; i < 7; i++)
        expect_hello(&client);
    client_close(&client);
    lone_leave(&lone);
    log = scratch_read("log.2");
    ck_assert_msg(text_count_lines(log, "access log: 7 lines were dropped in all") == 1, "%s", log);
}
END_TEST

/* Leaving idle, a worker wakes the watchdog unless it watches already. */
START_TEST(test_watchdog)
{
    struct lone lone;
    struct client client;
    uint64_t count;
    _Atomic uint32_t *is_watching;
    lone_start(&lone, &(struct lone_options){ .is_watched = true });
    is_watching = &lone.scoreboard->master.is_watching;
    WAIT_FOR(read(lone.watchdog, &count, sizeof count) == sizeof count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(atomic_load(is_watching), 1);
    client_open(&client, lone.url);
    expect_hello(&client);
    ck_assert_int_eq(read(lone.watchdog, &count, sizeof count), -1);
    WAIT_FOR(atomic_load(&lone.slot->is_busy) == 0);
    uint64_t turns = atomic_load(&lone.slot->turns);
    atomic_store(is_watching, 0);
    expect_hello(&client);
    WAIT_FOR(read(lone.watchdog, &count, sizeof count) == sizeof count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_gt(atomic_load(&lone.slot->turns), turns);
    client_close(&client);
    lone_leave(&lone);
}
END_TEST

/* Clock ticks of processor time. */
static unsigned long ticks(pid_t pid)
{
    const char *stat = text_read(text_format("/proc/%d/stat", (int)pid), 0, NULL);
    const char *rest = strrchr(stat, ')') + 2;
    unsigned long user, system;
    ck_assert_int_eq(
        sscanf(rest, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
    return user + system;
}

/* Out of descriptors: no spinning, and all goes on when there are some again. */
START_TEST(test_descriptors)
{
    struct lone lone;
    static struct client clients[60];
    struct reply reply;
    if (lone_is_instrumented() && suite_skip("the limit of descriptors would not be its own"))
        return;
    lone_start(&lone, &(struct lone_options){ .descriptors = 40 });
    for (int i = 0; i < 60; i++) {
        client_open(&clients[i], lone.url);
        client_send(&clients[i], "GET /hello HTTP/1.1\r\n");
    }
    usleep(200000);
    unsigned open = atomic_load(&lone.slot->open);
    ck_assert_uint_lt(open, 40);
    unsigned long before = ticks(lone.pid);
    sleep(1);
    ck_assert_uint_le(ticks(lone.pid) - before, 2);
    for (int i = 0; i < 60; i++) { /* each that goes makes room for one more */
        client_send(&clients[i], "Host: a\r\n\r\n");
        client_expect(&clients[i], &reply, 200);
        client_close(&clients[i]);
    }
    WAIT_FOR(lone_counters(&lone).requests == 60);
    WAIT_FOR(atomic_load(&lone.slot->open) == 0);
    lone_leave(&lone);
}
END_TEST

/* Who is idle, or has its last answer, makes room. */
START_TEST(test_descriptors_yielded)
{
    struct lone lone;
    static struct client clients[60];
    struct reply reply;
    if (lone_is_instrumented() && suite_skip("the limit of descriptors would not be its own"))
        return;
    lone_start(&lone, &(struct lone_options){ .descriptors = 40 });
    for (int i = 0; i < 60; i++) {
        client_open(&clients[i], lone.url);
        client_send(&clients[i], _i == 0 ? GET : LAST);
        client_expect(&clients[i], &reply, 200);
    }
    for (int i = 0; i < 60; i++)
        client_close(&clients[i]);
    lone_leave(&lone);
}
END_TEST

static unsigned long switches(pid_t pid)
{
    const char *status = text_read(text_format("/proc/%d/status", (int)pid), 0, NULL);
    return strtoul(text_extract(status, "\nvoluntary_ctxt_switches:\t([0-9]+)"), NULL, 10);
}

/* Nothing wakes up when nothing happens; with an idle connection neither, before its deadline. */
START_TEST(test_idle)
{
    struct lone lone;
    struct client client;
    lone_start_plain(&lone);
    client_open(&client, lone.url);
    expect_hello(&client);
    if (_i == 0)
        client_close(&client);
    usleep(100000);
    unsigned long before = switches(lone.pid);
    usleep(1500000);
    ck_assert_uint_eq(switches(lone.pid), before);
    if (_i == 1)
        client_close(&client);
    lone_leave(&lone);
}
END_TEST

/* A master in a process of its own, that is killed. */
static void kill_master(struct lone *lone, const char *config)
{
    int ends[2];
    char url[64] = "";
    pid_t pid;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t master = fork();
    if (master == 0) {
        struct lone own;
        lone_start(&own, &(struct lone_options){ .config = config });
        snprintf(url, sizeof url, "%s", own.url);
        if (write(ends[1], &own.pid, sizeof own.pid) == -1 || write(ends[1], url, sizeof url) == -1)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(ends[0], &pid, sizeof pid), sizeof pid);
    ck_assert_int_eq(read(ends[0], url, sizeof url), sizeof url);
    *lone = (struct lone){ .pid = pid, .url = text_format("%s", url), .channel = master };
}

START_TEST(test_orphan)
{
    struct lone lone;
    struct client client;
    struct reply reply;
    int status;
    kill_master(&lone, ROUTES);
    client_open(&client, lone.url);
    client_send_get(&client, "/soon");
    usleep(50000);
    kill(lone.channel, SIGKILL);
    client_expect(&client, &reply, 200); /* it still gets its answer */
    ck_assert(reply.is_last);
    client_close(&client);
    WAIT_FOR(lone_has_ended(&lone));
    ck_assert_int_eq(waitpid(lone.pid, &status, 0), lone.pid);
    ck_assert_int_eq(status, 0);
    ck_assert(is_refused(lone.url));
}
END_TEST

#ifdef ENABLE_FAULTS
/* One that is too busy to see it. */
START_TEST(test_busy_orphan)
{
    static const char *const configs[] = { FAULT("loop"), FAULT("block") };
    struct lone lone;
    struct client client;
    int status;
    kill_master(&lone, configs[_i]);
    client_open(&client, lone.url);
    client_send_get(&client, "/fault");
    usleep(50000);
    kill(lone.channel, SIGKILL);
    int64_t start = clock_monotonic();
    WAIT_FOR(lone_has_ended(&lone));
    ck_assert_uint_ge(milliseconds_since(start), 900);
    ck_assert_int_eq(waitpid(lone.pid, &status, 0), lone.pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGALRM);
    client_close(&client);
}
END_TEST
#endif

/* The channel ends, and the answer takes longer than the grace of those that do not look. */
START_TEST(test_slow_orphan)
{
    struct lone lone;
    struct client client;
    struct reply reply;
    int status;
    kill_master(&lone, "routes = ( { path = \"/slow\" text = \"slow\" delay = \"4s\" } )\n");
    client_open(&client, lone.url);
    client_send_get(&client, "/slow");
    usleep(50000);
    kill(lone.channel, SIGKILL);
    client_expect(&client, &reply, 200);
    client_close(&client);
    WAIT_FOR(lone_has_ended(&lone));
    ck_assert_int_eq(waitpid(lone.pid, &status, 0), lone.pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker");
    TCase *start = suite_case(suite, "start");
    tcase_add_test(start, test_ready);
    tcase_add_test(start, test_identity);
    tcase_add_test(start, test_trial);
    tcase_add_loop_test(start, test_trial_route, 0, SUITE_ROWS(trial_configs));
    tcase_add_test(start, test_admin);
    tcase_add_test(start, test_failed_start);
#ifdef ENABLE_FAULTS
    tcase_add_test(start, test_crashing_start);
    tcase_add_loop_test(start, test_fault, 0, SUITE_ROWS(fault_rows));
    tcase_add_loop_test(start, test_fault_apart, 0, 2);
#endif
    TCase *work = suite_case(suite, "work");
    tcase_add_test(work, test_take);
    tcase_add_test(work, test_shared);
    tcase_add_test(work, test_logs);
    tcase_add_loop_test(work, test_logs_without_room, 0, 2);
    tcase_add_loop_test(work, test_blocked_log, 0, 2);
    tcase_add_test(work, test_watchdog);
    tcase_add_test(work, test_descriptors);
    tcase_add_loop_test(work, test_descriptors_yielded, 0, 2);
    tcase_add_loop_test(work, test_idle, 0, 2);
    TCase *end = suite_case(suite, "end");
    tcase_add_test(end, test_ignored_signals);
    tcase_add_loop_test(end, test_signal, 0, SUITE_ROWS(ending));
    tcase_add_test(end, test_signal_before_go);
    tcase_add_loop_test(end, test_early_signal, 0, SUITE_ROWS(ending));
    tcase_add_loop_test(end, test_drain, 0, SUITE_ROWS(drain_rows));
    tcase_add_loop_test(end, test_idle_later, 0, 4);
    tcase_add_loop_test(end, test_late_deadline, 0, 2);
    tcase_add_loop_test(end, test_drain_again, 0, 3);
    tcase_add_loop_test(end, test_queue, 0, SUITE_ROWS(queue_rows));
    tcase_add_test(end, test_queue_order);
    tcase_add_test(end, test_orphan);
    tcase_add_test(end, test_slow_orphan);
#ifdef ENABLE_FAULTS
    tcase_add_loop_test(end, test_busy_orphan, 0, 2);
#endif
    return suite_run(suite);
}
