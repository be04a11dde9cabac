#include "support/load.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "support/client.h"
#include "support/suite.h"
#include "support/text.h"

struct load_client {
    struct load *load;
    pthread_t thread;
    bool is_fresh;
    _Atomic unsigned long right;
    unsigned long failed, connections, lasts;
    char failure[160];
};

struct load {
    const char *url, *body, *request;
    size_t request_length;
    atomic_bool is_over;
    unsigned count;
    struct load_client clients[];
};

static void note_failure(struct load_client *client, const char *where, const char *why)
{
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
    if (reply.status != 200 || !slice_equal(reply.body, slice_of(load->body)))
        note_failure(client, "answer", reply.status == 200 ? "another body" : "another status");
    else
        atomic_fetch_add(&client->right, 1);
    client->lasts += reply.is_last;
    return !reply.is_last && !client->is_fresh;
}

static void *load_run(void *argument)
{
    struct load_client *client = argument;

    while (!atomic_load(&client->load->is_over)) {
        struct client connection;
        if (client_try_open(&connection, client->load->url) != 0) {
            note_failure(client, "connect", strerrorname_np(errno));
            continue;
        }
        client->connections++;
        while (ask(client, &connection) && !atomic_load(&client->load->is_over))
            ;
        /* With a reset, so that thousands of them leave no port behind in TIME_WAIT. */
        client_abort(&connection);
    }
    return NULL;
}

struct load *load_start(const char *url, const char *path, const char *body, unsigned persistent,
                        unsigned fresh)
{
    unsigned count = persistent + fresh;
    struct load *load = text_allocate(sizeof *load + count * sizeof load->clients[0]);

    load->url = url;
    load->body = body;
    load->request = text_format("GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    load->request_length = strlen(load->request);
    load->count = count;
    for (unsigned i = 0; i < count; i++) {
        load->clients[i].load = load;
        load->clients[i].is_fresh = i >= persistent;
        ck_assert(pthread_create(&load->clients[i].thread, NULL, load_run, &load->clients[i]) == 0);
    }
    return load;
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
        result->connections += client->connections;
        result->lasts += client->lasts;
        if (result->failure[0] == '\0')
            memcpy(result->failure, client->failure, sizeof result->failure);
    }
}
