/*
 * master: the supervisor. It owns the sockets, the configuration, the log and the table of
 * children, and never parses a byte from the network.
 *
 * One loop, one thread; nothing in it waits. Signals come through a signalfd, so that none is lost
 * from birth on. Everything it does is caused by an event: a signal, a child's message or end, a
 * control client, a timer that such an event has set. An idle master does not wake up.
 */
#ifndef MASTER_MASTER_H
#define MASTER_MASTER_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "master/generation.h"
#include "master/oom.h"
#include "master/totals.h"
#include "master/upgrade.h"
#include "master/watchdog.h"

struct child;
struct conf_kinds;
struct control;
struct notify;
struct scoreboard;
struct watch;

struct master_options {
    const char *file;             /* -c FILE; NULL: the default */
    const char *const *overrides; /* -o; ends with NULL; may be NULL */
    const struct conf_kinds *kinds;
    char *const *arguments; /* of main: an upgrade executes the new binary with them */
};

/* How a reload or reopen came about is counted in rounds: a caller waits for the end of one. */
struct master_round {
    uint64_t running; /* the round that runs; 0: none */
    uint64_t last;    /* the last one that began */
    bool is_wanted;   /* another one is to follow */
};

struct master {
    const struct master_options *options;
    struct ev_loop *loop;
    int signals;
    ev_io signalled;
    ev_periodic never; /* keeps libev from waking up each minute */
    ev_prepare sweep;  /* frees what the last event ended, and goes on with an upgrade */
    struct scoreboard *scoreboard;
    int scoreboard_fd;
    uint32_t address_key; /* of steering by address (listener.h); 0: none yet */
    struct notify *notify;
    struct control *control;
    struct watch *watch;
    struct watchdog watchdog;
    struct oom oom;
    struct generation *current;  /* serves; NULL before the first commit */
    struct generation *next;     /* is being prepared */
    struct generation *draining; /* list of those that end */
    uint64_t numbers;            /* generations made so far */
    struct totals totals;        /* of those that have ended */
    struct child *children;      /* list of all that live */
    struct master_round reload;
    struct generation *retiring; /* whose children may still accept; the reload is not over */
    ev_timer retiring_overdue;
    struct master_round reopen;
    ev_timer reopen_overdue;
    char reopen_faults[1024]; /* of the round that runs: lines that say who keeps the old files */
    struct upgrade upgrade;
    bool is_stopping; /* told to: not ready, and nothing else begins */
    bool is_draining; /* and accepting has ended: no child is replaced */
    bool admin_is_retired;
    bool has_killed; /* a child had to be killed to stop */
    int64_t stop_began;
    uint64_t cut_before; /* requests, when the stop began */
    ev_timer stop_delay; /* runs for drain_delay */
    int status;          /* to exit with */
};

/* Runs until an ordered stop. Returns the exit status: 0, 1, or 78. */
int master_run(const struct master_options *options);

/* What a generation reports; see generation.h. */
void master_generation_ready(struct master *master, struct generation *generation);
void master_generation_failed(struct master *master, struct generation *generation,
                              const char *reason);
/* Something changed that readiness or the status line depends on. */
void master_update(struct master *master);
void master_crash(struct master *master, const char *text);

/* A child wrote to its channel, or closed it. */
void master_child_message(struct child *child);

/* One line for the service manager: generation, workers, a reload that failed. Returns `text`. */
const char *master_status_line(const struct master *master, char *text, size_t size);

/*
 * What signals and control clients ask for. Each returns the round whose end answers the caller,
 * or 0 when it is refused: a stop is in progress.
 */
uint64_t master_reload(struct master *master);
uint64_t master_reopen(struct master *master);
void master_stop(struct master *master);

/* NULL, and CONTROL_UPGRADE is answered at its end; or why it is refused. */
const char *master_upgrade(struct master *master);

/* Waits for the children that have ended. */
void master_reap(struct master *master);

/* Frees the generations that have ended. Not while a child of one is being reaped. */
void master_sweep(struct master *master);

#endif
