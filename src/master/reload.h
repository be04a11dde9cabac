/*
 * reload: from a configuration on disk to a generation that serves, or back.
 *
 * Prepare: load, bind what is new, open the logs, fork the new generation, wait until all of it is
 * ready. Commit: listen, tell the new ones go and the old ones drain. The first start is a reload
 * from nothing. At most one runs; one that is asked for meanwhile runs after it, once.
 */
#ifndef MASTER_RELOAD_H
#define MASTER_RELOAD_H

#include <stdbool.h>

struct master;

void reload_init(struct master *master);

/* A child has closed its listening sockets, or is gone: the reload may be over. */
void reload_child_closed(struct master *master);

/* The first start. False when it failed at once: master->status says how, and it was logged. */
bool reload_first(struct master *master);

/* The first reload of a master that has taken over in an upgrade: it proves itself by it. */
void reload_prove(struct master *master);

/* An upgrade has ended: the reload that was asked for meanwhile. */
void reload_resume(struct master *master);

/* Gives up the reload that runs, because of a stop. Whoever waits for it is told. */
void reload_abandon(struct master *master, const char *reason);

#endif
