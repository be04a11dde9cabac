/*
 * The time of day jumps: nothing that waits ends earlier or later, and what is dated follows.
 *
 * This program has clock_gettime and time of its own, which libev and all of a worker use too.
 */

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/date.h"
#include "support/client.h"
#include "support/lone.h"
#include "support/suite.h"
#include "support/text.h"

/* Seconds by which the time of day is ahead, also in the worker. */
static _Atomic int64_t *ahead;

int clock_gettime(clockid_t id, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, id, now);
    if (ahead && id == CLOCK_REALTIME)
        now->tv_sec += *ahead;
    return result;
}

time_t time(time_t *copy)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (copy)
        *copy = now.tv_sec;
    return now.tv_sec;
}

static void start(void)
{
    ahead = mmap(NULL, sizeof *ahead, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(ahead, MAP_FAILED);
}

#define HOST "Host: a\r\n\r\n"
#define GET "GET /hello HTTP/1.1\r\n" HOST

#define CONFIG(span)                                                                     \
    "timeouts = { header = \"" span "\" body = \"" span "\" idle = \"" span "\" }\n"     \
    "routes = ( { path = \"/hello\" text = \"Hello\" methods = [ \"GET\", \"POST\" ] }," \
    " { path = \"/late\" text = \"late\" delay = \"" span "\" } )\n"

static const int64_t jumps[] = { 86400, -86400, 0, 400 * 86400, -3600 };

/* Is the answer's date one of those that the shifted clock shows around now? */
static bool is_dated(const struct reply *reply)
{
    const char *value = reply_field(reply, "Date");
    for (time_t second = time(NULL) - 60; second <= time(NULL); second++) {
        char text[DATE_LENGTH + 1];
        date_format(text, second);
        if (value && strcmp(value, text) == 0)
            return true;
    }
    return false;
}

/* One connection in each phase, with an hour to go. */
static const struct {
    const char *sent, *rest;
    bool is_answered; /* once, before the rest */
} waiting_rows[] = {
    { "", GET, false },
    { "GET /hello HTTP/1.1\r\n", HOST, false },
    { "POST /hello HTTP/1.1\r\nContent-Length: 2\r\n" HOST "a", "b", false },
    { GET, GET, true },
    { GET "\r\n", GET, true },
    { GET "GE", "T /hello HTTP/1.1\r\n" HOST, true },
};
#define WAITING SUITE_ROWS(waiting_rows)

START_TEST(no_deadline_comes_earlier)
{
    struct lone lone;
    struct client clients[WAITING], late, other;
    struct reply reply;

    start();
    lone_start(&lone, &(struct lone_options){ .config = CONFIG("1h") });
    for (int i = 0; i < WAITING; i++) {
        client_open(&clients[i], lone.url);
        client_send(&clients[i], waiting_rows[i].sent);
        if (waiting_rows[i].is_answered)
            client_expect(&clients[i], &reply, 200);
    }
    client_open(&late, lone.url);
    client_send(&late, "GET /late HTTP/1.1\r\n" HOST);
    WAIT_FOR(atomic_load(&lone.slot->waiting) == 1);

    client_open(&other, lone.url);
    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        *ahead = jumps[i];
        /* Turns of the loop, in each of which libev sees the clock. */
        for (int turn = 0; turn < 5; turn++) {
            client_send(&other, GET);
            client_expect(&other, &reply, 200);
            ck_assert_msg(is_dated(&reply), "jump %zu: %s", i, reply_field(&reply, "Date"));
        }
        lone_settle(&lone);
        ck_assert_uint_eq(lone_counters(&lone).timeouts, 0);
        ck_assert(client_is_silent(&late));
    }
    for (int i = 0; i < WAITING; i++) {
        ck_assert(client_is_silent(&clients[i]));
        client_send(&clients[i], waiting_rows[i].rest);
        client_expect(&clients[i], &reply, 200);
        client_close(&clients[i]);
    }
    client_close(&late);
    client_close(&other);
    lone_leave(&lone);
}
END_TEST

/* With a moment to go: the clock goes back by a day, and all the same it passes. */
START_TEST(no_deadline_comes_later)
{
    struct lone lone;
    struct client waiting, late, idle;
    struct reply reply;

    start();
    *ahead = 86400;
    lone_start(&lone, &(struct lone_options){ .config = CONFIG("300ms") });
    client_open(&waiting, lone.url);
    client_send(&waiting, "GET /hello HTTP/1.1\r\n");
    client_open(&late, lone.url);
    client_send(&late, "GET /late HTTP/1.1\r\n" HOST);
    client_open(&idle, lone.url);
    client_send(&idle, GET);
    client_expect(&idle, &reply, 200);
    *ahead = _i == 0 ? 0 : -400 * 86400;
    client_expect(&waiting, &reply, 408);
    ck_assert(is_dated(&reply));
    client_expect(&late, &reply, 200);
    ck_assert(client_read_end(&idle));
    client_close(&waiting);
    client_close(&late);
    client_close(&idle);
    lone_leave(&lone);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clock");
    TCase *tests = suite_case(suite, "clock");

    tcase_add_test(tests, no_deadline_comes_earlier);
    tcase_add_loop_test(tests, no_deadline_comes_later, 0, 2);
    return suite_run(suite);
}
