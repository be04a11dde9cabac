/*
 * late: a request whose answer does not come at once, because its body is not there yet or its
 * route has a delay.
 *
 * It keeps its own copy of the head, so that the buffers of the worker are free. A connection has
 * at most one. It frees itself when its exchange is done.
 */
#ifndef WORKER_LATE_H
#define WORKER_LATE_H

#include <ev.h>
#include <stdbool.h>

#include "http/request.h"
#include "worker/serve.h"

struct late {
    struct serve serve; /* first */
    struct request request;
    ev_timer timer;
    struct late *next, *previous; /* of those that wait for their time */
    bool is_waiting;
    struct slice head;
};

/* Makes one from a request whose head is the beginning of `bytes`, and lets the connection hold
 * it. NULL: ENOMEM; the connection is broken then. */
struct late *late_new(const struct serve *serve, struct slice bytes);

/* Drops it, and the answer with it. */
void late_free(struct late *late);

/* All of the request is there: answers it when its time has come, which may be now. */
void late_begin(struct late *late);

#endif
