/*
 * heritage: exactly what a child gets at fork.
 *
 * The master fills it in, the child reads it; everything in it is the child's own copy (memory by
 * fork, descriptors by inheritance). What is not named here the child closes or never looks at.
 */
#ifndef WORKER_HERITAGE_H
#define WORKER_HERITAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sink.h"

struct conf;
struct scoreboard;
struct scoreboard_slot;
struct tally;

/* One listening socket, non-blocking; one of TCP has TCP_NODELAY, which its connections take over:
 * answers are written in whole batches. `slot` tells whose queue it is: a worker watches those of its own slot,
 * the shared ones, and those it was told to take (CHANNEL_TAKE). */
struct heritage_socket {
    int fd;
    unsigned slot;   /* 0 to workers - 1 */
    bool is_shared;  /* one description that every worker watches (unix, service manager) */
    bool is_surplus; /* its slot has no worker any more: nobody watches it unless told */
};

struct heritage {
    bool is_trial;   /* of a new binary: it leaves when it has answered its own request */
    bool is_admin;   /* serves the admin listener, not the routes */
    unsigned worker; /* 1 to workers; 0 for admin */
    unsigned slot;   /* socket slot: worker - 1; 0 for admin */
    uint64_t generation;
    unsigned workers;     /* in this generation */
    unsigned connections; /* at most here, as its descriptors allow; 0: unlimited */
    const struct conf *conf;

    struct scoreboard *scoreboard;
    struct scoreboard_slot *mine;

    const struct heritage_socket *sockets; /* those of this role only */
    size_t nsockets;

    struct tally *tally; /* counters by route and latency; NULL: none (admin) */

    int channel;        /* to the master */
    int watchdog;       /* eventfd: written when this child leaves idle unwatched; -1: none */
    struct sink access; /* off, or the access log */
    pid_t master;       /* to tell an orphan */
    int64_t born;       /* monotonic ns, just before fork */

    bool is_root; /* the ids below must be taken on */
    uid_t uid;
    gid_t gid;
};

#endif
