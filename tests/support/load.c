#include "support/load.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "support/client.h"
#include "support/suite.h"
#include "support/text.h"

#define SECOND INT64_C(1000000000)

struct load_client {
    struct load *load;
    pthread_t thread;
    bool is_fresh;
    unsigned seed;
    _Atomic unsigned long right;
    unsigned long failed, refused, reset, connections, lasts;
    char failure[160];
};

struct load {
    struct load_plan plan;
    const char *request;
    size_t request_length;
    atomic_bool is_over;
    unsigned count;
    struct load_client clients[];
};

static void note_failure(struct load_client *client, const char *where, const char *why)
{
    client->refused += strcmp(why, "ECONNREFUSED") == 0;
    client->reset += strcmp(why, "ECONNRESET") == 0 || strcmp(why, "EPIPE") == 0 ||
                     strcmp(why, "connection reset") == 0;
    if (client->failed++ == 0)
        snprintf(client->failure, sizeof client->failure, "%s %s: %s",
                 client->is_fresh ? "fresh" : "persistent", where, why);
}

/* One request on an open connection; false when that is over. */
static bool ask(struct load_client *client, struct client *connection)
{
    struct load *load = client->load;
    struct reply reply;

    if (!client_send_bytes(connection, load->request, load->request_length)) {
        note_failure(client, "send", strerrorname_np(errno));
        return false;
    }
    if (client_receive(connection, &reply, false) != CLIENT_REPLY) {
        note_failure(client, "receive", connection->fault);
        return false;
    }
    if (reply.status != 200 || !slice_equal(reply.body, slice_of(load->plan.body)))
        note_failure(client, "answer", reply.status == 200 ? "another body" : "another status");
    else
        atomic_fetch_add(&client->right, 1);
    if (reply.is_last && !client_read_end(connection))
        note_failure(client, "end", connection->fault);
    client->lasts += reply.is_last && !client->is_fresh;
    return !reply.is_last && !client->is_fresh;
}

static void sleep_until(int64_t due)
{
    struct timespec time = { .tv_sec = due / SECOND, .tv_nsec = due % SECOND };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        continue;
}

/* Before the next request of an open connection. */
static void pause_for_a_moment(struct load_client *client)
{
    const struct load_plan *plan = &client->load->plan;

    if (plan->pause > 0)
        sleep_until(clock_monotonic() +
                    (int64_t)((unsigned)rand_r(&client->seed) % plan->pause) * (SECOND / 1000));
}

/* Before the next connection. Returns when the one after it is due. */
static int64_t await_turn(const struct load_client *client, int64_t due)
{
    const struct load_plan *plan = &client->load->plan;

    if (!client->is_fresh || plan->rate == 0)
        return due;
    int64_t late = clock_monotonic() - due;
    if (late < 0)
        sleep_until(due);
    else if (late > SECOND)
        due += late - SECOND;
    return due + SECOND * plan->fresh / plan->rate;
}

static void *load_run(void *argument)
{
    struct load_client *client = argument;
    int64_t due = clock_monotonic();

    while (!atomic_load(&client->load->is_over)) {
        struct client connection;
        due = await_turn(client, due);
        if (client_try_open(&connection, client->load->plan.url) != 0) {
            note_failure(client, "connect", strerrorname_np(errno));
            continue;
        }
        client->connections++;
        while (ask(client, &connection) && !atomic_load(&client->load->is_over))
            pause_for_a_moment(client);
        /* With a reset, so that thousands of them leave no port behind in TIME_WAIT. */
        client_abort(&connection);
    }
    return NULL;
}

struct load *load_start_plan(const struct load_plan *plan)
{
    unsigned count = plan->persistent + plan->fresh;
    struct load *load = text_allocate(sizeof *load + count * sizeof load->clients[0]);

    load->plan = *plan;
    load->request = text_format("GET %s HTTP/1.1\r\nHost: a\r\n\r\n", plan->path);
    load->request_length = strlen(load->request);
    load->count = count;
    for (unsigned i = 0; i < count; i++) {
        load->clients[i].load = load;
        load->clients[i].is_fresh = i >= plan->persistent;
        load->clients[i].seed = i;
        ck_assert(pthread_create(&load->clients[i].thread, NULL, load_run, &load->clients[i]) == 0);
    }
    return load;
}

struct load *load_start(const char *url, const char *path, const char *body, unsigned persistent,
                        unsigned fresh)
{
    return load_start_plan(&(struct load_plan){
        .url = url, .path = path, .body = body, .persistent = persistent, .fresh = fresh });
}

unsigned long load_count(struct load *load)
{
    unsigned long count = 0;

    for (unsigned i = 0; i < load->count; i++)
        count += atomic_load(&load->clients[i].right);
    return count;
}

void load_await(struct load *load, unsigned long more)
{
    unsigned long *wanted = text_allocate(load->count * sizeof *wanted);

    for (unsigned i = 0; i < load->count; i++)
        wanted[i] = atomic_load(&load->clients[i].right) + more;
    for (unsigned i = 0; i < load->count; i++)
        WAIT_FOR(atomic_load(&load->clients[i].right) >= wanted[i]);
}

void load_stop(struct load *load, struct load_result *result)
{
    *result = (struct load_result){ .right = 0 };
    atomic_store(&load->is_over, true);
    for (unsigned i = 0; i < load->count; i++) {
        struct load_client *client = &load->clients[i];
        pthread_join(client->thread, NULL);
        result->right += client->right;
        result->failed += client->failed;
        result->refused += client->refused;
        result->reset += client->reset;
        result->connections += client->connections;
        result->lasts += client->lasts;
        if (result->failure[0] == '\0')
            memcpy(result->failure, client->failure, sizeof result->failure);
    }
}
