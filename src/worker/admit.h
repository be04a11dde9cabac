/*
 * admit: who comes in, and who makes room (limits.connections, limits.per_address).
 *
 * A client that ends one connection and opens another does so in that order, but the loop may
 * accept the second before it has read the end of the first. So one for which there is no room is
 * deferred: nothing is read from it until the loop has nothing else to do, or a few turns have gone
 * by. Only then do others make room for it, or is it refused with 503; and if other workers have
 * connections, not before these had a moment to see the end of one.
 */
#ifndef WORKER_ADMIT_H
#define WORKER_ADMIT_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

struct conn;
struct conns;

/* So many are deferred at most; beyond, all is decided at once. */
#define ADMIT_MOST 64

struct admit {
    ev_idle idle;
    ev_timer retry;
    unsigned inside; /* connections that have a place: not deferred, nor refused, nor done */
    unsigned refused;
    unsigned deferred;
    struct {
        struct conn *conn;
        unsigned turns; /* of the loop, since it came or another was let in */
        int64_t since;  /* when it came */
    } waiting[ADMIT_MOST];
};

void admit_init(struct conns *conns);
void admit_fini(struct conns *conns);

/* Lets a new connection begin, now or later, or refuses it. May free it. */
void admit_conn(struct conn *conn);

/* A connection ends, or goes on without having been let in. */
void admit_forget(struct conn *conn);

/* It has its last answer, and only its end is waited for: its place is free. May free another. */
void admit_done(struct conn *conn);

/* Ends an idle one to make room, and counts that, unless its client has left or asks just now. May
 * free it. */
void admit_evict(struct conn *conn);

/* A deferred one cannot wait any longer. May free it. */
void admit_refuse(struct conn *conn);

/* Out of descriptors: ends one that is owed nothing, who has its last answer or is idle. False if
 * there is none. */
bool admit_yield(struct conns *conns);

/* A turn of the loop is over. */
void admit_turn(struct conns *conns);

#endif
