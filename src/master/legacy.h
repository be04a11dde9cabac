/*
 * legacy: what crosses exec in a binary upgrade, laid out so that two versions agree on it.
 *
 * A memfd holds one struct legacy, then its lists, texts and the bytes of the configurations.
 * Descriptors are numbers, which exec keeps when close-on-exec is cleared: cleared just before, set
 * again just after. The new binary reads the version before anything else; a version it does not
 * know fails the upgrade, and the old binary goes on. Fields are only ever added, at the ends and in
 * the padding, each with a new version; none changes its meaning. A new binary that gives up goes
 * back with the version it was given.
 *
 * The children stay children of the same pid. Their channels, and the scoreboard with its own
 * version (base/scoreboard.h), go on as they are: a child cannot tell that its master was replaced.
 *
 * Here is the layout, and the reading with all its checks: sizes, offsets, counts, numbers that
 * point elsewhere. The master writes one in bequeath.h, and takes one over in adopt.h.
 */
#ifndef MASTER_LEGACY_H
#define MASTER_LEGACY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEGACY_MAGIC UINT64_C(0x6861796174650001)
#define LEGACY_VERSION 1

/* The environment variable that names the memfd's descriptor to the new binary. */
#define LEGACY_VARIABLE "HAYATE_LEGACY_FD"

/* The same for the channel of a trial: the new binary is only to show that it could take over. */
#define LEGACY_TRIAL_VARIABLE "HAYATE_TRIAL_FD"

/* Elements of a list. An offset is in bytes, from the start of the memfd; a text ends with a NUL. */

/* A generation that has children still; its counters must not be lost. */
struct legacy_generation {
    uint64_t number;
    uint32_t is_current; /* the first one: it serves; the others drain */
    uint32_t workers;
    uint32_t connections; /* of a worker at most; 0: unlimited */
    int32_t tally_fd;
    int32_t access_fd;         /* -1: none */
    uint32_t source, nsources; /* in the list of sources */
    uint32_t uid, gid;         /* of its workers, of a master that is root */
    uint32_t reserved;
};

/* A file of a generation's configuration, as it was read. */
struct legacy_source {
    uint32_t path;
    uint32_t bytes, length;
    uint32_t reserved;
};

/* One socket of an address, of the generation that serves: master/listener.h says what the fields
 * mean. Those of one address follow one another, slot 0 first. */
struct legacy_socket {
    int32_t fd;
    uint32_t entry; /* text */
    uint32_t part;
    uint32_t slot;
    uint32_t role; /* enum legacy_role */
    uint32_t mode;
    uint64_t device, inode; /* of a unix socket's file */
};

enum legacy_role {
    LEGACY_PUBLIC,
    LEGACY_ADMIN,
    LEGACY_CONTROL,
    LEGACY_ROLES,
};

/* One child, or a place that has none now: master/child.h. */
struct legacy_child {
    int32_t pid; /* 0: none */
    int32_t channel;
    uint32_t worker; /* 0: admin */
    uint32_t slot;   /* index in the scoreboard */
    uint64_t generation;
    int64_t born;        /* monotonic ns */
    int64_t deadline;    /* of one that drains; when the next process of a place is due */
    int64_t ready_since; /* of its place */
    uint32_t restarts, failures;
    uint32_t flags; /* of enum legacy_child_flag */
    uint32_t reserved;
};

enum legacy_child_flag {
    LEGACY_CHILD_PLACED = 1, /* it has its place still */
    LEGACY_CHILD_READY = 2,
    LEGACY_CHILD_SERVING = 4,
    LEGACY_CHILD_DRAINING = 8,
    LEGACY_CHILD_CLOSED = 16,
    LEGACY_CHILD_STOPPED = 32,
};

/* Who serves the queue of each socket slot: a worker of the generation that serves; 0: nobody. */
struct legacy_keeper {
    uint32_t worker;
    uint32_t reserved;
};

/* The sums of generations that have ended, by route: master/totals.h. */
struct legacy_total {
    uint32_t path; /* text; 0: what has no route */
    uint32_t reserved;
    uint64_t responses[6];
};

/* A connection to the control socket: master/control.h. */
struct legacy_client {
    int32_t fd;
    uint32_t wait;   /* enum control_wait */
    uint32_t answer; /* 1: what follows is the rest of its answer, else what it has said */
    uint32_t bytes, length;
    uint32_t reserved;
};

enum legacy_list_kind {
    LEGACY_GENERATIONS,
    LEGACY_SOURCES,
    LEGACY_SOCKETS,
    LEGACY_CHILDREN,
    LEGACY_KEEPERS,
    LEGACY_TOTALS,
    LEGACY_CLIENTS,
    LEGACY_LISTS,
};

struct legacy_list {
    uint32_t count, offset;
};

enum legacy_flag {
    LEGACY_FAILED = 1,        /* it comes back: `reason` and `status` say why */
    LEGACY_RELOAD_WANTED = 2, /* somebody asked for a reload meanwhile */
};

struct legacy {
    uint64_t magic;
    uint32_t version;
    uint32_t size;         /* bytes of the whole memfd */
    int32_t pid;           /* the master's: it must be our own */
    int32_t old_binary_fd; /* to go back to */
    int32_t new_binary_fd; /* named so that it is closed */
    int32_t scoreboard_fd;
    int32_t watchdog_fd;
    int32_t log_fd;
    uint32_t flags;
    uint32_t status;      /* to exit with, for who asked for an upgrade that failed */
    uint32_t reason;      /* text; 0: none */
    uint32_t path;        /* text: of the binary, as it was at the start of the first one */
    uint32_t program;     /* text: the version that serves */
    uint32_t address_key; /* master/listener.h; 0: none yet */
    uint64_t generation;  /* the last number given */
    int64_t began;        /* the upgrade, monotonic ns */
    uint64_t upgrades, failures;
    struct legacy_list lists[LEGACY_LISTS];
    uint64_t latency[17]; /* base/tally.h */
    uint64_t latency_sum;
};

_Static_assert(sizeof(struct legacy_generation) == 48 && sizeof(struct legacy_source) == 16 &&
                   sizeof(struct legacy_socket) == 40 && sizeof(struct legacy_child) == 64 &&
                   sizeof(struct legacy_keeper) == 8 && sizeof(struct legacy_total) == 56 &&
                   sizeof(struct legacy_client) == 24,
               "the layout is shared with other versions");
_Static_assert(offsetof(struct legacy, generation) == 64 && offsetof(struct legacy, lists) == 96 &&
                   sizeof(struct legacy) == 296,
               "the layout is shared with other versions");

struct legacy_error {
    char text[256];
};

/*
 * Reads the memfd, which stays the caller's, and checks it: whatever the functions below and the
 * lists' own offsets lead to is inside. A malloced copy; NULL with the error.
 */
struct legacy *legacy_read(int fd, struct legacy_error *error);

/* The size of an element. */
size_t legacy_element_size(enum legacy_list_kind kind);

/* The first element of a list. */
const void *legacy_list(const struct legacy *legacy, enum legacy_list_kind kind);

/* NULL for 0. */
const char *legacy_text(const struct legacy *legacy, uint32_t offset);

/* Sets or clears close-on-exec of every descriptor in it. -1 with errno; EBADF: one is not open. */
int legacy_set_cloexec(const struct legacy *legacy, bool is_on);

#endif
