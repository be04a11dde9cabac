/*
 * scoreboard: the memory that master and children share, in one memfd.
 *
 * It holds a header (version and sizes), the master's block, and a slot for each process. A slot
 * has one writer for each field, named below; nobody waits for anybody. Readers treat all of it as
 * hostile: a child that has gone mad may have written anything, so lengths are clamped and states
 * looked up, never trusted as an index. The mapping survives exec (a binary upgrade), hence the
 * version and the fixed sizes: an upgrade to a program with another version is refused by its trial.
 * Untouched pages cost nothing; so the backtraces, which only who crashes writes, are apart from the
 * slots.
 *
 * Times are CLOCK_MONOTONIC nanoseconds unless a name says otherwise.
 */
#ifndef BASE_SCOREBOARD_H
#define BASE_SCOREBOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/slice.h"
#include "base/trace.h"

#define SCOREBOARD_MAGIC UINT32_C(0x68617961)
#define SCOREBOARD_VERSION 2
#define SCOREBOARD_SLOTS 4096
#define SCOREBOARD_HEAD 168 /* bytes kept of a request's head */
#define SCOREBOARD_TEXT 512
#define SCOREBOARD_CLASSES 6 /* status classes; index 0 is unused */

enum scoreboard_role {
    SCOREBOARD_FREE,
    SCOREBOARD_WORKER,
    SCOREBOARD_ADMIN,
    SCOREBOARD_TRIAL,
};

enum scoreboard_state {
    SCOREBOARD_STARTING,
    SCOREBOARD_READY,
    SCOREBOARD_DRAINING,
    SCOREBOARD_GONE,
};

/* Indexed by the enums; a hostile index must be checked first (scoreboard_state_name does). */
extern const char *const scoreboard_role_names[];
const char *scoreboard_state_name(uint32_t state);

/* An address in a shape that is the same in every process and version. */
struct scoreboard_peer {
    uint16_t family; /* AF_INET, AF_INET6, AF_UNIX; 0: none */
    uint16_t port;   /* host order */
    uint8_t address[16];
};

/* A request that is being answered. Written by the child, read by the master after a crash. */
struct scoreboard_request {
    _Atomic uint32_t length; /* of head; 0: no request */
    struct scoreboard_peer peer;
    char head[SCOREBOARD_HEAD]; /* the first bytes as they came, not yet parsed */
};

/* Counters of one child, or the sums of those that are gone. */
struct scoreboard_counters {
    _Atomic uint64_t connections; /* accepted */
    _Atomic uint64_t requests;    /* answered */
    _Atomic uint64_t responses[SCOREBOARD_CLASSES];
    _Atomic uint64_t bytes_sent;
    _Atomic uint64_t refused;  /* connections answered 503 or closed at a limit */
    _Atomic uint64_t timeouts; /* connections closed by a deadline */
    _Atomic uint64_t cut;      /* requests cut by a drain's end */
};

struct scoreboard_slot {
    /* Written by the master. */
    _Alignas(64) _Atomic uint32_t role;
    _Atomic uint32_t state;
    _Atomic int32_t pid;
    uint32_t worker; /* 1 to the number of workers; 0 for admin */
    uint64_t generation;
    int64_t since; /* start of the process */
    uint32_t restarts;

    /* Written by the child. */
    _Alignas(64) _Atomic uint64_t turns; /* of its loop */
    _Atomic uint32_t is_busy;            /* 0 while it waits for events */
    _Atomic uint32_t open;               /* connections now */
    _Atomic uint32_t idle;               /* of them, between requests */
    _Atomic uint32_t waiting;            /* requests whose answer is late (delay) */
    _Atomic uint32_t inside;             /* of open, those that limits.connections counts */
    _Atomic int64_t oldest_idle;         /* since when the oldest of them is; INT64_MAX: none */
    _Atomic uint32_t asked;              /* idle ones that others have asked it to end */
    struct scoreboard_counters counters;
    _Alignas(64) struct scoreboard_request answering;
    struct scoreboard_request oldest; /* of those waiting */
};

/* The master's block: written by the master alone, except is_watching (any child sets it). */
struct scoreboard_master {
    _Atomic uint32_t sequence; /* odd while totals are being folded */
    _Atomic int32_t pid;
    _Atomic uint64_t generation;
    _Atomic uint32_t is_ready; /* what /readyz tells */
    _Atomic uint32_t is_draining;
    _Atomic uint32_t is_watching; /* the watchdog is armed */
    char reason[SCOREBOARD_TEXT]; /* why not ready; NUL-terminated */
    int64_t started;
    int64_t started_realtime;
    uint64_t reloads;
    uint64_t reload_failures;
    int64_t last_reload_realtime; /* 0: none */
    uint32_t last_reload_failed;
    char last_reload[SCOREBOARD_TEXT];
    uint64_t crashes;
    int64_t last_crash_realtime; /* 0: none */
    char last_crash[SCOREBOARD_TEXT];
    struct scoreboard_counters totals; /* of children that are gone */
};

struct scoreboard {
    uint32_t magic;
    uint32_t version;
    uint32_t size;      /* bytes of the whole mapping */
    uint32_t slot_size; /* bytes */
    uint32_t slots;
    _Atomic uint32_t used; /* slots ever taken: a look at those beyond would cost their memory */
    _Alignas(64) _Atomic int64_t inside; /* connections, of all workers */
    _Alignas(64) struct scoreboard_master master;
    _Alignas(64) struct scoreboard_slot slot[SCOREBOARD_SLOTS];
    struct trace trace[SCOREBOARD_SLOTS]; /* of the slot with the same index */
};

/* Makes one; *fd is its memfd (close-on-exec). NULL with errno. */
struct scoreboard *scoreboard_new(int *fd);

/* Maps one that another program made; `fd` stays the caller's. NULL with errno; EPROTO: its version
 * or layout is another. */
struct scoreboard *scoreboard_open(int fd);
void scoreboard_free(struct scoreboard *scoreboard);

/* A free slot, marked as taken; NULL when there is none (ENOSPC). For the master. */
struct scoreboard_slot *scoreboard_take(struct scoreboard *scoreboard, enum scoreboard_role role);

/* Adds the slot's counters to the totals and frees it. For the master, after the child has gone. */
void scoreboard_fold(struct scoreboard *scoreboard, struct scoreboard_slot *slot);

/* Where the child of that slot leaves its backtrace. */
struct trace *scoreboard_trace(struct scoreboard *scoreboard, const struct scoreboard_slot *slot);

/* A plain copy of counters. */
struct scoreboard_sums {
    uint64_t connections, requests, responses[SCOREBOARD_CLASSES], bytes_sent, refused, timeouts,
        cut;
};
/* Sums of the workers, gone and living, consistent across a fold; what health checks ask of the
 * admin child does not count. For any process. */
void scoreboard_sum(struct scoreboard *scoreboard, struct scoreboard_sums *sums);
void scoreboard_read_counters(const struct scoreboard_counters *from, struct scoreboard_sums *to);

/* A counter has one writer, so a plain add is enough. */
static inline void scoreboard_add(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* For the child: what it is about to parse; and that it is done with it. */
static inline void scoreboard_request_set(struct scoreboard_request *request,
                                          const struct scoreboard_peer *peer, struct slice head)
{
    uint32_t length = head.length < SCOREBOARD_HEAD ? (uint32_t)head.length : SCOREBOARD_HEAD;
    request->peer = *peer;
    memcpy(request->head, head.data, length);
    atomic_store_explicit(&request->length, length, memory_order_release);
}

static inline void scoreboard_request_clear(struct scoreboard_request *request)
{
    atomic_store_explicit(&request->length, 0, memory_order_relaxed);
}

void scoreboard_peer_set(struct scoreboard_peer *peer, const struct sockaddr *address);

/* "127.0.0.1:53112", "[::1]:53112", "unix"; always NUL-terminated. Room: SCOREBOARD_PEER_SIZE. */
#define SCOREBOARD_PEER_SIZE 64
void scoreboard_peer_text(char *text, size_t size, const struct scoreboard_peer *peer);

/*
 * "GET /crash from 127.0.0.1:53112", escaped for a log; the empty string when there is none.
 * Reads memory that a crashed child wrote: trusts nothing in it.
 */
void scoreboard_request_text(char *text, size_t size, const struct scoreboard_request *request);

#endif
