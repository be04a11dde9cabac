/*
 * watchdog: finds children whose loop does not turn.
 *
 * A child that leaves idle while nobody watches writes to an eventfd; the master then looks at all
 * children a few times a period, and stops looking when all of them wait for events again: on an
 * idle server nothing wakes up. The period is counted in looks, not by a clock, so that a machine
 * that was suspended or a container that was frozen kills nobody; a look that is a whole period late
 * does not count. A stopped child counts as one that does not turn; one that is being traced is
 * spared.
 */
#ifndef MASTER_WATCHDOG_H
#define MASTER_WATCHDOG_H

#include <ev.h>
#include <stdint.h>

struct child;
struct master;

/* Looks a period; a child is killed at the first look after so many without a turn. */
#define WATCHDOG_LOOKS 4

struct watchdog {
    int fd; /* the eventfd; children inherit it */
    ev_io armed;
    ev_timer look;
    int64_t interval; /* ns from look to look */
    int64_t looked;   /* monotonic ns; when it last did, or began to */
};

/* Makes the eventfd unless there is one already, which children have. */
int watchdog_init(struct master *master);
void watchdog_fini(struct master *master);

/* Begins to look, if it does not: a child was stopped. */
void watchdog_arm(struct master *master);

/* The period may have changed: a generation was committed. */
void watchdog_renew(struct master *master);

#endif
