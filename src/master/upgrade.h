/*
 * upgrade: another binary in place of this one, under the same pid.
 *
 * The binary that is at the path of the running one by then is opened. It first runs as a child, a
 * trial (tryout.h): it loads the configuration and answers a request. If that goes well, the
 * master writes down what it holds (bequeath.h) and executes it; the new master takes over (adopt.h)
 * and prepares a generation of its own, as a reload does, while the old workers serve. At the
 * commit they drain. Whatever fails before that goes back to the old binary, from a descriptor kept
 * open: it takes its workers over again and goes on with them.
 */
#ifndef MASTER_UPGRADE_H
#define MASTER_UPGRADE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/channel.h"
#include "master/tryout.h"

struct legacy;
struct master;

enum upgrade_state {
    UPGRADE_NONE,
    UPGRADE_TRIAL,   /* the new binary runs as a child */
    UPGRADE_TRIED,   /* that went well: the exec is next, when no reopen of the logs runs */
    UPGRADE_PROVING, /* we are the new binary, and prepare a generation */
    UPGRADE_PROVEN,  /* it serves */
    UPGRADE_LOST,    /* that failed: when its children are gone we go back */
};

struct upgrade {
    enum upgrade_state state;
    bool is_wanted;             /* it begins when the reload or reopen that runs has ended */
    char *path;                 /* of the binary, as it was at the start; NULL: unknown */
    char *from;                 /* the version that was replaced, of the one who proves */
    int64_t began;              /* monotonic ns */
    int old_binary, new_binary; /* descriptors; -1: none */
    uint64_t succeeded, failed; /* since the first start */

    struct tryout tryout;
    int status; /* of a proof that failed: to exit with, for who asked; and why */
    char failure[CHANNEL_TEXT];

    bool has_failed; /* the last one */
    int64_t last_realtime;
    char last[CHANNEL_TEXT + 128]; /* its outcome, for people */
};

/* Notes where the binary is. */
void upgrade_init(struct master *master);
void upgrade_fini(struct master *master);

/* A process that is no child of the master's table has ended: the trial, perhaps. */
void upgrade_reaped(struct master *master, pid_t pid, int status);

/* What waits for the end of a reload, of a reopen or of children goes on, if these have ended. For
 * the turn of the loop alone: deeper down somebody may be at work on what it writes down, and what
 * it frees with the generations that have ended. */
void upgrade_go_on(struct master *master);

/* Is one under way or asked for, so that the next reload must wait? */
bool upgrade_is_running(const struct master *master);

/* The new master has adopted `legacy`: it proves itself; or it is the old one again. */
void upgrade_take_over(struct master *master, const struct legacy *legacy);

/* The reload that runs is the proof: what became of it. After the commit nothing goes back; who
 * waits is answered when the old workers accept no more. */
bool upgrade_is_proving(const struct master *master);
void upgrade_commit(struct master *master, const char *change);
void upgrade_finish(struct master *master);
void upgrade_go_back(struct master *master, int status, const char *reason);

/* What could not be taken over goes back at once. Returns if that is not possible. */
void upgrade_return(const struct master *master, const struct legacy *legacy, const char *reason);

/* Gives up because of a stop. Whoever waits for it is told. */
void upgrade_abandon(struct master *master);

#endif
