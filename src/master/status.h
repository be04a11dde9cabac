/*
 * status: what `hayate status` shows, as text for people and as JSON.
 */
#ifndef MASTER_STATUS_H
#define MASTER_STATUS_H

#include "base/buf.h"

struct master;

/* -1: ENOMEM. */
int status_text(struct buf *out, struct master *master);
int status_json(struct buf *out, struct master *master);

#endif
