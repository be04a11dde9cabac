/* The master is killed, in whatever state: all its children go, and what it held is free. */

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/client.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

/* Who waits for the drain would wait for ever, and be noticed. */
#define PATIENT "timeouts = { header = \"1h\" drain = \"1h\" watchdog = 0 }\n"
#define BRIEF "timeouts = { header = \"1h\" drain = \"1s\" watchdog = 0 }\n"
#define ADDRESSES               \
    SERVER_CONTROL SERVER_ADMIN \
        "workers = 2\nlisten = [ \"127.0.0.1:0\", \"unix:${DIR}/socket\" ]\n"
#define HELLO \
    "{ path = \"/hello\" text = \"Hello\" }, { path = \"/never\" text = \"\" delay = \"1h\" }"
#define WITH(routes) "routes = ( " HELLO routes " )\n"
#define FAULTY(name) "routes = ( { path = \"/hello\" fault = \"" name "\" } )\n"

/* While this file is there, a process that was just forked does nothing. */
#define HOLD "hold"

struct orphan {
    struct server server;
    struct client client; /* whoever it is that must not hold up the end */
};

struct scene {
    const char *name;
    const char *config;
    void (*enter)(struct orphan *orphan); /* until the master is in the state that is meant */
    bool is_starting, is_held, needs_faults, upgrades;
};

static void open_in_flight(struct orphan *orphan)
{
    struct reply reply;

    client_open(&orphan->client, orphan->server.url);
    client_send(&orphan->client, text_format(GET "%s", "GET /hello HTTP/1.1\r\nHo"));
    client_expect(&orphan->client, &reply, 200);
}

static void await_generation_2(struct orphan *orphan)
{
    server_await(&orphan->server, 0, "worker 1 .* started, generation 2");
}

static void do_nothing(struct orphan *orphan)
{
    (void)orphan;
}

static void starting(struct orphan *orphan)
{
    server_await(&orphan->server, 0, "worker 1 .* started, ");
}

static void forked_for_a_reload(struct orphan *orphan)
{
    scratch_write(HOLD, "");
    server_signal(&orphan->server, SIGHUP);
    await_generation_2(orphan);
}

static void forked_for_a_dead_one(struct orphan *orphan)
{
    scratch_write(HOLD, "");
    server_kill_worker(&orphan->server, 1, SIGKILL);
    server_await(&orphan->server, 0, "restarting in 0 ms");
    WAIT_FOR(server_count(&orphan->server, 0, "worker 1 .* started, ") == 2);
}

static void backing_off(struct orphan *orphan)
{
    pid_t pid = 0;

    for (int i = 0; i < 3; i++) {
        pid = server_await_worker(&orphan->server, 1, pid);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
    }
    server_await(&orphan->server, 0, "restarting in 200 ms");
}

static void reloading(struct orphan *orphan)
{
    server_rewrite(&orphan->server, ADDRESSES PATIENT FAULTY("mute"));
    server_signal(&orphan->server, SIGHUP);
    await_generation_2(orphan);
}

static void draining(struct orphan *orphan)
{
    open_in_flight(orphan);
    server_reload(&orphan->server);
    server_await(&orphan->server, 0, "generation 2 serves");
}

static void upgrading(struct orphan *orphan)
{
    server_rewrite(&orphan->server, ADDRESSES PATIENT FAULTY("mute"));
    server_signal(&orphan->server, SIGUSR2);
    await_generation_2(orphan);
}

static void upgraded(struct orphan *orphan)
{
    open_in_flight(orphan);
    server_expect(&orphan->server, 0, LIST("upgrade"));
}

static void delaying_a_stop(struct orphan *orphan)
{
    server_signal(&orphan->server, SIGTERM);
    server_await(&orphan->server, 0, "serving goes on for ");
}

static void stopping(struct orphan *orphan)
{
    open_in_flight(orphan);
    server_signal(&orphan->server, SIGTERM);
    server_await(&orphan->server, 0, "SIGTERM: stopping");
}

/* Has a worker read the request, and not come back? */
static void hanging(struct orphan *orphan)
{
    client_open(&orphan->client, orphan->server.url);
    client_send_get(&orphan->client, "/crash");
    WAIT_FOR(text_matches(server_expect(&orphan->server, 0, LIST("status")), "  GET /crash "));
}

static void hanging_in_a_stop(struct orphan *orphan)
{
    hanging(orphan);
    server_signal(&orphan->server, SIGTERM);
    server_await(&orphan->server, 0, "SIGTERM: stopping");
}

static void hanging_in_a_reload(struct orphan *orphan)
{
    hanging(orphan);
    server_reload(&orphan->server);
}

#define LOOP ", { path = \"/crash\" fault = \"loop\" }"
#define BLOCK ", { path = \"/crash\" fault = \"block\" }"

static const struct scene scenes[] = {
    { "serving", .config = ADDRESSES PATIENT WITH(""), .enter = do_nothing },
    { "starting", .config = ADDRESSES PATIENT FAULTY("mute"), .enter = starting,
      .is_starting = true, .needs_faults = true },
    { "forked at the start", .config = ADDRESSES PATIENT WITH(""), .enter = starting,
      .is_starting = true, .is_held = true, .needs_faults = true },
    { "forked for a reload", .config = ADDRESSES PATIENT WITH(""), .enter = forked_for_a_reload,
      .needs_faults = true },
    { "forked anew", .config = ADDRESSES PATIENT WITH(""), .enter = forked_for_a_dead_one,
      .needs_faults = true },
    { "backing off", .config = ADDRESSES PATIENT WITH(""), .enter = backing_off },
    { "reloading", .config = ADDRESSES PATIENT WITH(""), .enter = reloading, .needs_faults = true },
    { "draining", .config = ADDRESSES BRIEF WITH(""), .enter = draining },
    { "upgrading", .config = ADDRESSES PATIENT WITH(""), .enter = upgrading, .needs_faults = true,
      .upgrades = true },
    { "upgraded", .config = ADDRESSES BRIEF WITH(""), .enter = upgraded, .upgrades = true },
    { "delaying a stop", .config = ADDRESSES PATIENT WITH("") "drain_delay = \"1h\"\n",
      .enter = delaying_a_stop },
    { "stopping", .config = ADDRESSES BRIEF WITH(""), .enter = stopping },
    { "in a loop", .config = ADDRESSES PATIENT WITH(LOOP), .enter = hanging, .needs_faults = true },
    { "blocked", .config = ADDRESSES PATIENT WITH(BLOCK), .enter = hanging, .needs_faults = true },
    { "stopping in a loop", .config = ADDRESSES PATIENT WITH(LOOP), .enter = hanging_in_a_stop,
      .needs_faults = true },
    { "draining, blocked", .config = ADDRESSES PATIENT WITH(BLOCK), .enter = hanging_in_a_reload,
      .needs_faults = true },
};

/* The addresses, and the control socket that a dead master leaves behind, can be had again. */
static void expect_free(const struct server *dead)
{
    struct server server;

    server_start(&server, &(struct server_options){
                              .config = text_format(SERVER_CONTROL
                                                    "workers = 1\nlisten = [ \"127.0.0.1:%u\", "
                                                    "\"unix:${DIR}/socket\" ]\n",
                                                    dead->port) });
    ck_assert_uint_eq(client_get(server.urls[0], "/hello", NULL), 200);
    ck_assert_uint_eq(client_get(server.urls[1], "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}

START_TEST(children_go)
{
    const struct scene *scene = &scenes[_i];
    struct orphan orphan = { .client = { .fd = -1 } };
    struct server *server = &orphan.server;

    if ((scene->needs_faults && suite_lacks_faults()) ||
        (scene->upgrades && suite_has_valgrind() &&
         suite_skip("the program that runs is that of valgrind")))
        return;
    const char *hold = text_format("HAYATE_FAULT_FORK=%s", scratch_path(HOLD));
    const struct server_options options = { .config = scene->config, .environment = LIST(hold) };
    if (scene->is_held)
        scratch_write(HOLD, "");
    if (scene->is_starting)
        server_spawn(server, &options);
    else
        server_start(server, &options);
    scene->enter(&orphan);
    int status = server_stop(server, SIGKILL); /* and waits for all its children */
    ck_assert_msg(status == -SIGKILL, "%s: %d", scene->name, status);
    if (orphan.client.fd != -1)
        client_close(&orphan.client);
    unlink(scratch_path(HOLD));
    if (!scene->is_starting)
        expect_free(server);
}
END_TEST

/* The trial of a new binary is no member of the process group. */
START_TEST(trial_goes)
{
    struct server server;
    pid_t trial = 0;

    if (suite_lacks_faults() ||
        (suite_has_valgrind() && suite_skip("the program that runs is that of valgrind")))
        return;
    server_start(&server, &(struct server_options){ .config = ADDRESSES PATIENT WITH("") });
    server_rewrite(&server, ADDRESSES PATIENT FAULTY("trial"));
    const char *children = text_format("/proc/%d/task/%d/children", server.pid, server.pid);
    server_signal(&server, SIGUSR2);
    server_await(&server, 0, "SIGUSR2: upgrading");
    while (trial == 0) {
        WAIT_FOR(text_count_lines(text_replace(text_read(children, 0, NULL), " ", "\n"), ".") == 4);
        for (const char *at = text_read(children, 0, NULL); *at != '\0' && trial == 0;) {
            char *end;
            pid_t pid = (pid_t)strtol(at, &end, 10);
            if (pid > 0 && getpgid(pid) == pid)
                trial = pid;
            at = end + (*end == ' ');
        }
    }
    scratch_guard(trial);
    /* In its first request, or still on the way to that. */
    if (_i == 1)
        WAIT_FOR(text_matches(text_read(text_format("/proc/%d/cmdline", trial), 0, NULL),
                              "^hayate: trial") &&
                 text_matches(process_status(trial, "State"), "^S"));
    ck_assert_int_eq(server_stop(&server, SIGKILL), -SIGKILL);
    WAIT_FOR(!process_is_alive(trial));
    scratch_unguard(trial);
    expect_free(&server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("orphan");
    TCase *tests = suite_case(suite, "orphan");

    tcase_add_loop_test(tests, children_go, 0, SUITE_ROWS(scenes));
    tcase_add_loop_test(tests, trial_goes, 0, 2);
    return suite_run(suite);
}
