/*
 * totals: the sums of all tallies, by the path of the route, for as long as the master lives.
 */
#ifndef MASTER_TOTALS_H
#define MASTER_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "base/tally.h"

struct generation;
struct master;

struct totals_route {
    char *path; /* NULL: what has no route */
    uint64_t responses[TALLY_CLASSES];
};

struct totals {
    struct totals_route *routes;
    size_t nroutes;
    uint64_t latency[TALLY_BUCKETS];
    uint64_t latency_sum; /* ns */
};

void totals_fini(struct totals *totals);

/* Adds to one route. -1: ENOMEM. */
int totals_add_route(struct totals *totals, const char *path, const uint64_t *responses);

/* Adds a generation's tally. -1: ENOMEM; what found no memory is not counted. */
int totals_add(struct totals *totals, const struct generation *generation);

/* The sums of the gone and the living generations. -1: ENOMEM. totals_fini is the caller's. */
int totals_read(struct totals *totals, const struct master *master);

#endif
