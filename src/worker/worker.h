/*
 * worker: the life of a child, from fork to exit.
 *
 * starting -> ready -> draining -> gone. The child takes on its user, makes its own loop, answers
 * one request of its own through its whole path, says ready, and accepts when told to go. It
 * drains when told (CHANNEL_DRAIN), some time after it got TERM, INT or QUIT, or when the channel ends
 * (the master is dead), and leaves with 0 when its last connection has gone or the deadline has cut it.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "base/clock.h"

struct heritage;

/*
 * A worker that somebody else told to stop accepts connections until the master has told it to
 * drain, when another is there in its place or nobody is to be: else those that come in between
 * would wait for nobody. It waits for that word so long, in ns; the admin child, which serves
 * through a stop, for a drain more.
 */
#define WORKER_LEAVE_PATIENCE (5 * CLOCK_SECOND)

/*
 * Never returns. All signals are blocked on entry, dispositions are the default ones. Exits 0
 * after a drain, 1 after CHANNEL_FAILED.
 */
_Noreturn void worker_run(const struct heritage *heritage);

#endif
