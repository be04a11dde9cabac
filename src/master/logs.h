/*
 * logs: reopens the log files, for a rotation, and knows when every child uses the new ones.
 */
#ifndef MASTER_LOGS_H
#define MASTER_LOGS_H

struct child;
struct master;

void logs_init(struct master *master);

/* A child uses the new logs; or it says why it keeps the old ones, which fails the round. */
void logs_child_reopened(struct child *child, const char *failure);

/* A child is gone: the round may be over. */
void logs_child_gone(struct master *master);

#endif
