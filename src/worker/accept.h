/*
 * accept: the listening sockets of a worker, and which of them it watches.
 *
 * A worker watches the sockets of its own slot and the shared ones, and those of slots it was told
 * to take; an admin child watches all. It accepts a bounded number a wake-up. Out of descriptors
 * or memory it stops watching, and tries again when a connection has gone, or after a while.
 */
#ifndef WORKER_ACCEPT_H
#define WORKER_ACCEPT_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

struct accept_socket;
struct conns;
struct heritage;

struct accept {
    struct conns *conns;
    struct accept_socket *sockets;
    size_t nsockets;
    unsigned slot;
    bool is_started;
    bool is_paused; /* out of descriptors or memory: watches nothing */
    bool is_short;  /* the same, until one was accepted again: said in the log */
    ev_timer retry;
    struct log_limit limit;
};

/* Watches nothing yet. conns->loop must be there. -1: ENOMEM. */
int accept_init(struct accept *accept, struct conns *conns, const struct heritage *heritage);
void accept_fini(struct accept *accept);

void accept_start(struct accept *accept);

/* Watches nothing until it is started again. */
void accept_stop(struct accept *accept);

/* Serve the queue of a slot too, or no more. */
void accept_take(struct accept *accept, unsigned slot);
void accept_give(struct accept *accept, unsigned slot);

/* A connection has gone: there may be room again. */
void accept_retry(struct accept *accept);

/* Stops for good and closes all sockets. `takes_queue`: first accepts whatever is queued on any of
 * them. */
void accept_close(struct accept *accept, bool takes_queue);

#endif
