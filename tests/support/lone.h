/*
 * lone: one worker in a process of its own, with a hand-made heritage. The test is its master and
 * holds the other end of its channel.
 *
 * The worker dies with the test. What is started is to be ended with lone_leave or lone_wait, so
 * that its exit status is seen.
 */
#ifndef SUPPORT_LONE_H
#define SUPPORT_LONE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/channel.h"
#include "base/scoreboard.h"
#include "worker/heritage.h"

#define LONE_SOCKETS 4

struct lone_options {
    const char *config; /* text of the file; routes as by default unless it has some */
    bool is_admin;
    bool is_shared;         /* the sockets have no slots */
    unsigned nsockets;      /* one a slot, on one port; 0: 1 */
    const char *unix_path;  /* one socket there instead */
    unsigned surplus;       /* of the sockets, so many at the end */
    unsigned workers;       /* told to the worker; 0: 1 */
    bool is_watched;        /* it gets an eventfd for the watchdog */
    bool is_root;           /* it changes to uid and gid 65534 */
    bool is_powerless;      /* it may not */
    const char *access_log; /* a path */
    unsigned descriptors;   /* RLIMIT_NOFILE; 0: as it is */
};

struct lone {
    pid_t pid;
    int channel;
    struct conf *conf;
    struct scoreboard *scoreboard;
    struct scoreboard_slot *slot;
    struct tally *tally;
    int watchdog;
    int sockets[LONE_SOCKETS]; /* the master's copies */
    unsigned nsockets;
    const char *url;
};

/* Forks it. Nothing is waited for. */
void lone_spawn(struct lone *lone, const struct lone_options *options);

/* Forks it, waits until it is ready, and lets it go. */
void lone_start(struct lone *lone, const struct lone_options *options);
void lone_start_plain(struct lone *lone);

/* Waits for the next message from it, which must be of that kind. */
void lone_expect(struct lone *lone, enum channel_kind kind, struct channel_message *message);
void lone_tell(struct lone *lone, enum channel_kind kind, uint32_t argument, int64_t value);

/* Waits until it has done all that it was told. */
void lone_settle(struct lone *lone);

/* Tells it to drain within 10 s. */
void lone_drain(struct lone *lone, enum channel_drain how);

/* Waits until it is gone. The exit status, or -N when signal N killed it. */
int lone_wait(struct lone *lone);

/* Has it ended? */
bool lone_has_ended(struct lone *lone);

/* Ends it with CHANNEL_DRAIN_NOW, and it must exit with 0. */
void lone_leave(struct lone *lone);

/* Does it run under valgrind or the sanitizers? Memory and the like then tell nothing. */
bool lone_is_instrumented(void);

/*
 * Stops it with SIGSTOP, and returns when it has stopped. False, and it runs again, when it has
 * counted more timeouts or cuts than `before`, or has ended: on a slow machine a deadline of the
 * test may have passed, and the test sets it up anew.
 */
bool lone_freeze(struct lone *lone, const struct scoreboard_sums *before);

/* Its counters now. */
struct scoreboard_sums lone_counters(const struct lone *lone);

#endif
