#include "base/scoreboard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

_Static_assert(sizeof(struct scoreboard) <= UINT32_MAX, "the size is stored in 32 bits");

const char *const scoreboard_role_names[] = {
    [SCOREBOARD_FREE] = "free",
    [SCOREBOARD_WORKER] = "worker",
    [SCOREBOARD_ADMIN] = "admin",
    [SCOREBOARD_TRIAL] = "trial",
};

static const char *const state_names[] = {
    [SCOREBOARD_STARTING] = "starting",
    [SCOREBOARD_READY] = "ready",
    [SCOREBOARD_DRAINING] = "draining",
    [SCOREBOARD_GONE] = "gone",
};

const char *scoreboard_state_name(uint32_t state)
{
    return state < sizeof(state_names) / sizeof(*state_names) ? state_names[state] : "unknown";
}

struct scoreboard *scoreboard_new(int *fd)
{
    int memory = memfd_create("hayate-scoreboard", MFD_CLOEXEC);
    if (memory == -1)
        return NULL;
    struct scoreboard *scoreboard = MAP_FAILED;
    if (ftruncate(memory, sizeof(*scoreboard)) == 0)
        scoreboard = mmap(NULL, sizeof(*scoreboard), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (scoreboard == MAP_FAILED) {
        fd_close(&memory);
        return NULL;
    }
    scoreboard->magic = SCOREBOARD_MAGIC;
    scoreboard->version = SCOREBOARD_VERSION;
    scoreboard->size = sizeof(*scoreboard);
    scoreboard->slot_size = sizeof(struct scoreboard_slot);
    scoreboard->slots = SCOREBOARD_SLOTS;
    *fd = memory;
    return scoreboard;
}

static bool is_known(const struct scoreboard *scoreboard)
{
    return scoreboard->magic == SCOREBOARD_MAGIC && scoreboard->version == SCOREBOARD_VERSION &&
           scoreboard->size == sizeof(*scoreboard) &&
           scoreboard->slot_size == sizeof(struct scoreboard_slot) &&
           scoreboard->slots == SCOREBOARD_SLOTS;
}

struct scoreboard *scoreboard_open(int fd)
{
    struct stat status;
    if (fstat(fd, &status) == -1)
        return NULL;
    if (status.st_size != (off_t)sizeof(struct scoreboard)) {
        errno = EPROTO;
        return NULL;
    }
    struct scoreboard *scoreboard =
        mmap(NULL, sizeof(*scoreboard), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (scoreboard == MAP_FAILED)
        return NULL;
    if (!is_known(scoreboard)) {
        scoreboard_free(scoreboard);
        errno = EPROTO;
        return NULL;
    }
    return scoreboard;
}

void scoreboard_free(struct scoreboard *scoreboard)
{
    if (scoreboard)
        munmap(scoreboard, sizeof(*scoreboard));
}

struct scoreboard_slot *scoreboard_take(struct scoreboard *scoreboard, enum scoreboard_role role)
{
    for (size_t i = 0; i < SCOREBOARD_SLOTS; i++) {
        struct scoreboard_slot *slot = &scoreboard->slot[i];
        if (i >= atomic_load(&scoreboard->used))
            atomic_store(&scoreboard->used, (uint32_t)i + 1);
        if (atomic_load(&slot->role) == SCOREBOARD_FREE) {
            memset(slot, 0, sizeof(*slot));
            atomic_store(&slot->role, (uint32_t)role);
            return slot;
        }
    }
    errno = ENOSPC;
    return NULL;
}

struct trace *scoreboard_trace(struct scoreboard *scoreboard, const struct scoreboard_slot *slot)
{
    return &scoreboard->trace[slot - scoreboard->slot];
}

/* Both structs are rows of 64-bit counters in the same order. */
#define COUNTERS (sizeof(struct scoreboard_sums) / sizeof(uint64_t))
_Static_assert(sizeof(struct scoreboard_sums) == sizeof(struct scoreboard_counters),
               "sums and counters have the same members");

static void add_counters(const struct scoreboard_counters *from, struct scoreboard_sums *to)
{
    const _Atomic uint64_t *counter = (const _Atomic uint64_t *)from;
    uint64_t *sum = (uint64_t *)to;
    for (size_t i = 0; i < COUNTERS; i++)
        sum[i] += atomic_load_explicit(&counter[i], memory_order_relaxed);
}

void scoreboard_read_counters(const struct scoreboard_counters *from, struct scoreboard_sums *to)
{
    memset(to, 0, sizeof(*to));
    add_counters(from, to);
}

void scoreboard_fold(struct scoreboard *scoreboard, struct scoreboard_slot *slot)
{
    struct scoreboard_sums sums;
    scoreboard_read_counters(&slot->counters, &sums);
    bool is_public = atomic_load(&slot->role) == SCOREBOARD_WORKER;
    atomic_fetch_add(&scoreboard->master.sequence, 1);
    _Atomic uint64_t *total = (_Atomic uint64_t *)&scoreboard->master.totals;
    atomic_fetch_sub(&scoreboard->inside, atomic_load(&slot->inside));
    for (size_t i = 0; is_public && i < COUNTERS; i++)
        scoreboard_add(&total[i], ((const uint64_t *)&sums)[i]);
    atomic_store(&slot->role, SCOREBOARD_FREE);
    atomic_fetch_add(&scoreboard->master.sequence, 1);
}

void scoreboard_sum(struct scoreboard *scoreboard, struct scoreboard_sums *sums)
{
    uint32_t before, after;
    /* Folds are rare and short; a master that died in the middle of one must not hold us up. */
    for (int attempt = 0; attempt < 1000; attempt++) {
        before = atomic_load(&scoreboard->master.sequence);
        scoreboard_read_counters(&scoreboard->master.totals, sums);
        uint32_t used = atomic_load(&scoreboard->used);
        for (size_t i = 0; i < used && i < SCOREBOARD_SLOTS; i++) {
            const struct scoreboard_slot *slot = &scoreboard->slot[i];
            if (atomic_load(&slot->role) == SCOREBOARD_WORKER)
                add_counters(&slot->counters, sums);
        }
        after = atomic_load(&scoreboard->master.sequence);
        if (before == after && before % 2 == 0)
            return;
    }
}

void scoreboard_peer_set(struct scoreboard_peer *peer, const struct sockaddr *address)
{
    memset(peer, 0, sizeof(*peer));
    peer->family = address->sa_family;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        peer->port = ntohs(v4->sin_port);
        memcpy(peer->address, &v4->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        peer->port = ntohs(v6->sin6_port);
        memcpy(peer->address, &v6->sin6_addr, 16);
    }
}

void scoreboard_peer_text(char *text, size_t size, const struct scoreboard_peer *peer)
{
    char host[INET6_ADDRSTRLEN];
    switch (peer->family) {
    case AF_INET:
        snprintf(text, size, "%s:%u", inet_ntop(AF_INET, peer->address, host, sizeof(host)),
                 peer->port);
        break;
    case AF_INET6:
        snprintf(text, size, "[%s]:%u", inet_ntop(AF_INET6, peer->address, host, sizeof(host)),
                 peer->port);
        break;
    case AF_UNIX:
        snprintf(text, size, "unix");
        break;
    default:
        snprintf(text, size, "unknown");
    }
}

void scoreboard_request_text(char *text, size_t size, const struct scoreboard_request *request)
{
    char head[SCOREBOARD_HEAD], quoted[4 * SCOREBOARD_HEAD + 1], peer[SCOREBOARD_PEER_SIZE];
    struct scoreboard_peer from = request->peer;
    uint32_t length = atomic_load_explicit(&request->length, memory_order_acquire);
    text[0] = '\0';
    if (length == 0)
        return;
    if (length > SCOREBOARD_HEAD)
        length = SCOREBOARD_HEAD;
    memcpy(head, request->head, length);
    struct slice line = { head, length };
    while (line.length > 0 && (*line.data == '\r' || *line.data == '\n')) {
        line.data++;
        line.length--;
    }
    const char *end = memchr(line.data, '\r', line.length);
    if (!end)
        end = memchr(line.data, '\n', line.length);
    if (end)
        line.length = (size_t)(end - line.data);
    /* Without the version, as people write a request. */
    if (line.length > 9 && memcmp(line.data + line.length - 9, " HTTP/1.", 8) == 0)
        line.length -= 9;
    scoreboard_peer_text(peer, sizeof(peer), &from);
    snprintf(text, size, "%s from %s", log_quote(quoted, sizeof(quoted), line), peer);
}
