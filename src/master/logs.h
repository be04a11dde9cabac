/*
 * logs: reopens the log files, for a rotation, and knows when every child uses the new ones.
 */
#ifndef MASTER_LOGS_H
#define MASTER_LOGS_H

struct master;

void logs_init(struct master *master);

/* A child uses the new logs, or is gone: the round may be over. */
void logs_child_reopened(struct master *master);

#endif
