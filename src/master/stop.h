/*
 * stop: the ordered end. Workers first, then the admin child, so that health answers through the
 * drain; a second request stops at once. A stop in progress is final.
 */
#ifndef MASTER_STOP_H
#define MASTER_STOP_H

struct master;

/* A child has gone while stopping: perhaps it was the last. */
void stop_child_gone(struct master *master);

/* Nothing serves (the first start failed): stop without draining. */
void stop_now(struct master *master);

#endif
