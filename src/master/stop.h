/*
 * stop: the ordered end. For drain_delay nothing changes but readiness; then workers drain, and at
 * last the admin child, so that health answers throughout. A second signal stops at once, from
 * whichever of these. A stop in progress is final.
 */
#ifndef MASTER_STOP_H
#define MASTER_STOP_H

struct master;

/* A child has gone while stopping: perhaps it was the last. */
void stop_child_gone(struct master *master);

/* Nothing serves (the first start failed): stop without draining. */
void stop_now(struct master *master);

#endif
