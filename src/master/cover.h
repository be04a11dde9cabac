/*
 * cover: which worker serves the queue of which socket slot.
 *
 * Each its own, while it can; else a sibling, so that a crash, a hang or a back-off leaves no queue
 * unserved. Surplus slots, whose worker a reload took away, always have a sibling.
 */
#ifndef MASTER_COVER_H
#define MASTER_COVER_H

#include <stdbool.h>

struct child;
struct generation;

/* Shares the queues out anew, and tells the workers what changed for them. */
void cover_share(struct generation *generation);

/* This child serves nobody's queue any more. */
void cover_forget(struct generation *generation, const struct child *child);

/* Does it accept and answer now: neither stopped nor stuck? NULL does not. */
bool cover_is_fit(const struct child *child);

#endif
