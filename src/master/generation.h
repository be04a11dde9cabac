/*
 * generation: one configuration in service, with its sockets, logs and children.
 *
 * preparing -> serving -> draining. A generation is prepared beside the one that serves; when all
 * of it is ready it is committed, or else it is abandoned and leaves no trace. It owns its struct
 * conf, and is freed when its last child has gone.
 */
#ifndef MASTER_GENERATION_H
#define MASTER_GENERATION_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/channel.h"
#include "base/sink.h"
#include "master/listener.h"
#include "master/roster.h"

struct child;
struct conf;
struct master;
struct tally;

enum generation_state {
    GENERATION_PREPARING,
    GENERATION_SERVING,
    GENERATION_DRAINING,
};

/* One place, and the process in it. */
struct member {
    struct roster_member roster;
    struct generation *generation;
    unsigned worker;     /* 1 to workers; 0: admin */
    struct child *child; /* NULL: none */
    ev_timer back_off;
};

struct generation {
    struct generation *next; /* in the master's list of draining ones */
    struct master *master;
    uint64_t number;
    enum generation_state state;
    bool is_committing;
    struct conf *conf;
    unsigned workers;
    int64_t began; /* monotonic ns */
    struct listener_set listeners;
    struct listener_set admin_listeners;
    struct listener_set control; /* one unix socket, or none */
    struct sink log;             /* until the commit, when it becomes the log */
    bool log_is_journal;
    struct sink access;
    struct member *members; /* workers, then admin if there is one */
    unsigned nmembers;
    unsigned nready;
    unsigned nchildren;     /* processes of this generation that live, whatever they do */
    struct child **keepers; /* who serves the queue of each socket slot; NULL: nobody */
    unsigned nkeepers;
    struct tally *tally; /* counters of its children, by route and latency */
    int tally_fd;
    unsigned connections; /* of a worker at most; 0: unlimited */
};

/* Why a generation could not be made, or failed before it was ready. */
struct generation_error {
    int status; /* EXIT_FAILURE, or 78 for the configuration */
    char text[2048];
};

/*
 * Prepares: binds what is new, opens the logs. Takes over `conf` (also on failure). NULL with the
 * error. No process is forked yet.
 */
struct generation *generation_new(struct master *master, struct conf *conf,
                                  struct generation_error *error);

/* Forks all its children. The master hears what becomes of it: master_generation_ready, or
 * master_generation_failed. */
void generation_start(struct generation *generation);

/* The next process of a place starts after this delay, in ns. */
void generation_back_off(struct member *member, int64_t delay);

/* Makes its log the log of the master, unless it is that already. */
void generation_use_log(struct generation *generation);

/* Listens, and lets the children accept. -1 with the error: it must be abandoned. */
int generation_commit(struct generation *generation, struct generation_error *error);

/*
 * Ends it: drops its sockets and tells the children to drain within `deadline` ns. Children that
 * hold the socket of a removed address take what is queued there first. On a stop the admin child
 * and the control socket stay: generation_retire_admin and generation_free end these.
 */
void generation_retire(struct generation *generation, enum channel_drain how, int64_t deadline);
void generation_retire_admin(struct generation *generation, int64_t deadline);

/* Frees it. No child of it may live. */
void generation_free(struct generation *generation);

/* A child of this generation says ready, leaves, or is gone (`reason` for people). */
void generation_child_ready(struct generation *generation, struct child *child);
void generation_child_leaving(struct generation *generation, struct child *child);
void generation_child_gone(struct generation *generation, struct child *child, const char *reason);

/* The workers that accept now; the admin child is none. */
unsigned generation_serving(const struct generation *generation);

#endif
