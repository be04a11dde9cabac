/*
 * orphan: what becomes of a worker whose master dies.
 *
 * Its channel ends, and a loop that turns sees that: it drains and leaves. One that is too busy to
 * look would live on, so the kernel is asked to send a signal when the master dies; its handler
 * arms a timer that ends the process, and orphan_settle takes that back.
 */
#ifndef WORKER_ORPHAN_H
#define WORKER_ORPHAN_H

#include <sys/types.h>

/*
 * For tests, in builds with faults: a new process does nothing as long as the file exists that
 * HAYATE_FAULT_FORK names, and its master lives. Else nothing.
 */
void orphan_fault(pid_t master);

/*
 * Asks for the signal. Call it after the last change of user, which would clear it. -1 with errno;
 * ESRCH: the master is dead already.
 */
int orphan_watch(pid_t master);

/* The loop has seen that the master is dead: no timer ends this process any more. */
void orphan_settle(void);

#endif
