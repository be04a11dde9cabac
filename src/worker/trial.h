/*
 * trial: the worker's own first request, by which it knows that it can answer.
 *
 * It goes over a socket pair into the path of every accepted connection, to a route that does no
 * harm, or "OPTIONS *" if there is none. The whole answer is checked.
 */
#ifndef WORKER_TRIAL_H
#define WORKER_TRIAL_H

#include <ev.h>

#include "base/buf.h"

struct conns;

struct trial {
    struct conns *conns;
    ev_io io;
    int fd;            /* -1: none, or over */
    struct buf answer; /* as far as it came */
    unsigned status;   /* the one that is right */
    /* `fault` is NULL when the answer was right; the connection is still open for a moment. */
    void (*done)(struct trial *trial, const char *fault);
};

/* Sends the request; the loop does the rest. -1 with errno. */
int trial_start(struct trial *trial, struct conns *conns,
                void (*done)(struct trial *trial, const char *fault));
void trial_stop(struct trial *trial);

/* NULL if `answer` is one whole HTTP/1.1 response with that status, else what is wrong with it. */
const char *trial_fault(struct slice answer, unsigned status);

#endif
