/*
 * census: the connections of the whole server, against limits.connections.
 *
 * All workers count in one place of the scoreboard, beside their own slot's, which the master takes
 * back when one has died. When all places are taken, the connection that has been idle longest makes
 * room, whichever worker has it: that one is asked, through its slot, and through the master if it
 * may be asleep. The new connection is let in meanwhile, so there is one more for that moment; or,
 * if a request came just then on the one that was to go, until the next that becomes idle goes.
 *
 * An admin child, and tests without a scoreboard, are not counted.
 */
#ifndef WORKER_CENSUS_H
#define WORKER_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

struct conns;
struct phase_entry;
struct scoreboard_slot;

/* Takes a place. False if there is none, unless it is `forced`. */
bool census_enter(struct conns *conns, bool is_forced);

/* Gives it back. */
void census_leave(struct conns *conns);

/* Publishes what the others need to know of the idle ones here, of which `oldest` is the first. */
void census_publish(struct conns *conns, const struct phase_entry *oldest);

/* The other worker that has the connection which has been idle longest, and since before `since`
 * (ns), and is not asked to end it yet. NULL if there is none. */
struct scoreboard_slot *census_find_older(const struct conns *conns, int64_t since);

/* Asks it to, once there is one more than the limit. */
void census_ask(struct conns *conns, struct scoreboard_slot *slot);

/* Is this worker to end an idle one? */
bool census_is_asked(struct conns *conns);

/* It has ended one. */
void census_comply(struct conns *conns);

#endif
