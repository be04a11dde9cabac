/*
 * peers: how many connections each address has, for limits.per_address. Of IPv6 that is a /64: a
 * client has all of it.
 *
 * Connections over unix sockets have no address and are not counted. The hash is keyed, so that
 * nobody can choose addresses that collide.
 */
#ifndef WORKER_PEERS_H
#define WORKER_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peers_entry;
struct scoreboard_peer;

struct peers {
    struct peers_entry **buckets; /* NULL until the first is added */
    size_t nbuckets;              /* a power of two */
    size_t count;                 /* of addresses */
    uint64_t key;
};

enum peers_result {
    PEERS_COUNTED,
    PEERS_EXEMPT, /* it has no address: nothing to remove later */
    PEERS_LIMIT,  /* it has so many already */
    PEERS_FAILED, /* ENOMEM */
};

/* A zeroed struct is empty. */
void peers_fini(struct peers *peers);

/* Counts one more connection of the peer's address, unless it has `limit` (at least 1). */
enum peers_result peers_add(struct peers *peers, const struct scoreboard_peer *peer,
                            unsigned limit);

/* One that was PEERS_COUNTED is gone. */
void peers_remove(struct peers *peers, const struct scoreboard_peer *peer);

#endif
