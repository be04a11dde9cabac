/*
 * child: one process of ours, from fork to wait.
 *
 * The struct is the master's record of it. It owns the master's end of the channel and the slot of
 * the scoreboard, and is freed when the process was reaped.
 */
#ifndef MASTER_CHILD_H
#define MASTER_CHILD_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/channel.h"
#include "base/trace.h"
#include "worker/heritage.h"

struct generation;
struct master;
struct member;
struct scoreboard_slot;

struct child {
    struct child *next; /* in the master's list of all children */
    struct master *master;
    struct generation *generation;
    struct member *member; /* its place; NULL once the place is for another */
    pid_t pid;
    unsigned worker; /* 1 to the number of workers; 0: admin */
    struct scoreboard_slot *slot;
    int channel;
    ev_io readable; /* the channel */
    ev_timer overdue;
    int64_t born; /* monotonic ns */
    bool is_ready;
    bool is_serving; /* told to go, and not told to drain */
    bool is_draining;
    bool has_closed;            /* its listening sockets, since it drains */
    bool is_stopped;            /* by a signal such as SIGSTOP */
    bool has_reopened;          /* since the last CHANNEL_LOGS */
    const char *kill_reason;    /* why the master killed it; NULL: it did not */
    char failure[CHANNEL_TEXT]; /* what it said with CHANNEL_FAILED */

    uint64_t turns; /* at the watchdog's last look */
    unsigned looks; /* in a row, without a turn */
};

/*
 * Forks a child for a place of a generation; in the child this never returns. All signals are
 * blocked across the fork and stay blocked in the child. NULL with errno: nothing happened.
 */
struct child *child_fork(struct master *master, struct generation *generation,
                         struct member *member);

/* Begins to listen to a child: it is in the master's and its generation's books from then on. */
void child_watch(struct child *child);

/* The child must be ready within that time, or gone when it drains: else it is killed. */
void child_expect(struct child *child, int64_t nanoseconds);

/* Tells it something. A full channel means that it hangs: it is killed. */
void child_tell(struct child *child, const struct channel_message *message);

/* Tells it to drain within `deadline` ns, and kills it when it is not gone 1 s after that. A drain
 * that has begun may be made shorter so, not longer. */
void child_drain(struct child *child, enum channel_drain how, bool takes_queue, int64_t deadline);

void child_kill(struct child *child, const char *reason);

/*
 * What became of it, for people: "exited with status 3 after 0.2 s", "killed by SIGSEGV after 9.4
 * s, answering GET /crash from 127.0.0.1:53112". `status` as wait(2) gives it.
 */
void child_end_text(char *text, size_t size, const struct child *child, int status);

/* The backtrace of one that died of a fault: "; at hayate+0x1234 hayate+0x2345", as trace.h has it;
 * else the empty string. Room: CHILD_TRACE_SIZE. */
#define CHILD_TRACE_SIZE (TRACE_TEXT_SIZE + 8)
void child_trace_text(char *text, size_t size, const struct child *child, int status);

/* "worker 1 (pid 101)", "admin (pid 103)". Room: CHILD_NAME_SIZE. */
#define CHILD_NAME_SIZE 48
const char *child_name(char *text, const struct child *child);

/* Frees the record of a child that was reaped; its counters go to the totals. */
void child_free(struct child *child);

#endif
