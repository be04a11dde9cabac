/*
 * legacy: what crosses exec in a binary upgrade, laid out so that two versions agree on it.
 *
 * A memfd holds one struct legacy, then its sockets, children and generations. Descriptors are numbers, which
 * exec keeps when close-on-exec is cleared: cleared just before, set again just after. The new
 * binary reads the version before anything else; a version it does not know fails the upgrade, and
 * the old binary goes on. Fields are only ever added, at the ends and in the padding, each with a
 * new version; none changes its meaning.
 *
 * The children stay children of the same pid. Their channels, and the scoreboard with its own
 * version (base/scoreboard.h), go on as they are: a child cannot tell that its master was replaced.
 *
 * This is the layout alone: SIGUSR2 and `hayate upgrade` do not use it yet.
 */
#ifndef MASTER_LEGACY_H
#define MASTER_LEGACY_H

#include <stddef.h>
#include <stdint.h>

#define LEGACY_MAGIC UINT64_C(0x6861796174650001)
#define LEGACY_VERSION 1

/* The environment variable that names the memfd's descriptor to the new binary. */
#define LEGACY_VARIABLE "HAYATE_LEGACY_FD"

/* One socket of an address: master/listener.h says what the fields mean. */
struct legacy_socket {
    int32_t fd;
    uint32_t
        entry; /* offset in bytes, from the memfd's start, of the entry's text, NUL-terminated */
    uint32_t part;
    uint32_t slot;
    uint32_t role;          /* 0: public, 1: admin, 2: control */
    uint32_t flags;         /* bit 0: shared, bit 1: committed */
    uint64_t device, inode; /* of a unix socket's file */
};

/* One child: master/child.h. */
struct legacy_child {
    int32_t pid;
    int32_t channel;
    uint32_t worker; /* 0: admin */
    uint32_t slot;   /* index in the scoreboard */
    uint64_t generation;
    int64_t born;     /* monotonic ns */
    int64_t deadline; /* of a draining one, monotonic ns; 0: it serves */
    uint32_t restarts, failures;
    uint32_t flags; /* bit 0: ready, bit 1: serving, bit 2: draining, bit 3: stopped */
    uint32_t reserved;
};

/* The sums of generations that have ended, by route: master/totals.h. */
struct legacy_total {
    uint32_t path; /* offset, NUL-terminated; 0: what has no route */
    uint32_t reserved;
    uint64_t responses[6];
};

/* One generation that has children still: its counters must not be lost. */
struct legacy_generation {
    uint64_t number;
    int32_t tally_fd;
    uint32_t nroutes;
    uint32_t routes; /* offset of their paths, each NUL-terminated */
    uint32_t reserved;
};

struct legacy {
    uint64_t magic;
    uint32_t version;
    uint32_t size; /* bytes of the whole memfd */
    int32_t pid;   /* the master's: it must be our own */
    int32_t scoreboard_fd;
    int32_t watchdog_fd;
    int32_t signal_fd; /* made anew; named so that it is closed */
    int32_t log_fd, access_fd;
    int32_t old_binary_fd; /* to go back to */
    uint32_t reserved;
    uint64_t generation;        /* the last number given */
    int64_t started;            /* of the first binary, monotonic ns */
    uint32_t nsockets, sockets; /* count, and offset of the first */
    uint32_t nchildren, children;
    uint32_t ngenerations, generations;
    uint32_t ntotals, totals;
    uint64_t latency[17]; /* base/tally.h */
    uint64_t latency_sum;
};

_Static_assert(sizeof(struct legacy_socket) == 40, "the layout is shared with other versions");
_Static_assert(sizeof(struct legacy_child) == 56, "the layout is shared with other versions");
_Static_assert(offsetof(struct legacy, generation) == 48 && sizeof(struct legacy) == 240,
               "the layout is shared with other versions");

#endif
