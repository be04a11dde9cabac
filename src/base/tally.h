/*
 * tally: a generation's counters by route and by latency, shared by its children.
 *
 * One memfd mapping: the latencies, then a row for each route and one more for what has no route
 * (404, refused heads). Several processes may count in one tally at once, so every addition is
 * atomic. When the generation ends the master folds it into totals that live as long as it does:
 * counters never go backwards. Like the scoreboard, readers treat it as hostile: it holds nothing
 * but numbers, and its size is known from the configuration, never read from it.
 */
#ifndef BASE_TALLY_H
#define BASE_TALLY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_CLASSES 6  /* status classes; index 0 is unused */
#define TALLY_BUCKETS 17 /* the last has no bound */

/* Upper bounds, inclusive, in ns; the last is INT64_MAX. */
extern const int64_t tally_bounds[TALLY_BUCKETS];

struct tally_route {
    _Atomic uint64_t responses[TALLY_CLASSES];
};

struct tally {
    _Atomic uint64_t latency[TALLY_BUCKETS]; /* answers, by their bucket alone */
    _Atomic uint64_t latency_sum;            /* ns */
    struct tally_route routes[];             /* nroutes + 1 */
};

/* *fd is its memfd (close-on-exec), for a binary upgrade. NULL with errno. */
struct tally *tally_new(size_t nroutes, int *fd);
/* Maps one that another program made; `fd` stays the caller's. NULL with errno; EPROTO: it has
 * another size. */
struct tally *tally_open(size_t nroutes, int fd);
void tally_free(struct tally *tally, size_t nroutes);

/* `answers` more that took `ns` each. */
void tally_latency(struct tally *tally, int64_t ns, unsigned answers);

static inline void tally_response(struct tally *tally, size_t route, unsigned status)
{
    unsigned class = status / 100 < TALLY_CLASSES ? status / 100 : 0;
    atomic_fetch_add_explicit(&tally->routes[route].responses[class], 1, memory_order_relaxed);
}

#endif
