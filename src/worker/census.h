/*
 * census: the connections of the whole server, against limits.connections.
 *
 * All workers count in one place of the scoreboard, beside their own slot's, which the master takes
 * back when one has died. When all places are taken, the connection that has been idle longest
 * makes room, whichever worker has it: that one is asked, through its slot, and through the master
 * if it may be asleep. The new connection is let in meanwhile, so for that moment there is one more.
 *
 * An admin child, and tests without a scoreboard, are not counted.
 */
#ifndef WORKER_CENSUS_H
#define WORKER_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

struct conns;
struct phase_entry;

/* Takes a place. False if there is none, unless it is `forced`. */
bool census_enter(struct conns *conns, bool is_forced);

/* Gives it back. */
void census_leave(struct conns *conns);

/* Publishes what the others need to know of the idle ones here, of which `oldest` is the first. */
void census_publish(struct conns *conns, const struct phase_entry *oldest);

/*
 * Asks the worker that has the connection whose idle time ends before `deadline` and before all
 * others' to end it. False if there is none.
 */
bool census_ask(struct conns *conns, int64_t deadline);

/* How many others have asked this worker to end since the last call. */
unsigned census_asked(struct conns *conns);

#endif
