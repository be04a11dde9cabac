/*
 * tryout: the trial of a new binary, as the old master sees it: a child that is not in its table.
 *
 * It runs the new binary (rehearse.h is its side of it) in a process group of its own, which is
 * killed when it takes too long, when it has ended, and when the master dies.
 */
#ifndef MASTER_TRYOUT_H
#define MASTER_TRYOUT_H

#include <ev.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/channel.h"

struct master;

struct tryout {
    pid_t pid;   /* 0: none */
    int channel; /* -1: none */
    ev_io told;
    ev_timer overdue;
    bool has_answered;          /* a request of its own */
    int status;                 /* of a failure: to exit with, for who asked */
    char failure[CHANNEL_TEXT]; /* what it said, or why it was killed; "": nothing */
};

void tryout_init(struct master *master);

/* Forks and executes `binary`, a descriptor. -1 with errno. */
int tryout_start(struct master *master, int binary);

/* Kills it, and thinks of it no more. */
void tryout_stop(struct master *master);

/* A process that is in no table has ended. True if it is this one: *reason says what it failed by,
 * NULL that all is well. Lives as long as the master. */
bool tryout_reaped(struct master *master, pid_t pid, int status, const char **reason);

#endif
