#include "worker/peers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/scoreboard.h"

#define BUCKETS_FIRST 16

struct peers_entry {
    struct peers_entry *next;
    unsigned count;
    uint16_t family;
    uint8_t address[16];
};

void peers_fini(struct peers *peers)
{
    for (size_t i = 0; i < peers->nbuckets; i++) {
        struct peers_entry *entry = peers->buckets[i];
        while (entry) {
            struct peers_entry *next = entry->next;
            free(entry);
            entry = next;
        }
    }
    free(peers->buckets);
    *peers = (struct peers){ 0 };
}

/* Multiply and fold, twice: the key goes in before each, so that none of it shows. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static size_t bucket_of(const struct peers *peers, uint16_t family, const uint8_t address[16])
{
    uint64_t high, low;
    memcpy(&high, address, sizeof high);
    memcpy(&low, address + sizeof high, sizeof low);
    uint64_t hash = mix(high ^ peers->key, UINT64_C(0x9e3779b97f4a7c15) ^ family);
    hash = mix(hash ^ low, peers->key ^ UINT64_C(0xd1b54a32d192ed03));
    return (size_t)(hash & (peers->nbuckets - 1));
}

static bool is_of(const struct peers_entry *entry, const struct scoreboard_peer *peer)
{
    return entry->family == peer->family &&
           memcmp(entry->address, peer->address, sizeof entry->address) == 0;
}

/* As many buckets as addresses. A table that cannot grow is slower, no more. */
static int grow(struct peers *peers)
{
    if (peers->count < peers->nbuckets)
        return 0;
    struct peers old = *peers;
    size_t nbuckets = old.nbuckets ? old.nbuckets * 2 : BUCKETS_FIRST;
    struct peers_entry **buckets = calloc(nbuckets, sizeof(struct peers_entry *));
    if (!buckets)
        return old.nbuckets ? 0 : -1;
    if (!old.nbuckets && getrandom(&peers->key, sizeof peers->key, GRND_NONBLOCK) == -1)
        peers->key = (uintptr_t)buckets;
    peers->buckets = buckets;
    peers->nbuckets = nbuckets;
    for (size_t i = 0; i < old.nbuckets; i++) {
        struct peers_entry *entry = old.buckets[i];
        while (entry) {
            struct peers_entry *next = entry->next;
            size_t bucket = bucket_of(peers, entry->family, entry->address);
            entry->next = buckets[bucket];
            buckets[bucket] = entry;
            entry = next;
        }
    }
    free(old.buckets);
    return 0;
}

enum peers_result peers_add(struct peers *peers, const struct scoreboard_peer *peer, unsigned limit)
{
    if (peer->family != AF_INET && peer->family != AF_INET6)
        return PEERS_EXEMPT;
    if (grow(peers) == -1)
        return PEERS_FAILED;
    struct peers_entry **bucket = &peers->buckets[bucket_of(peers, peer->family, peer->address)];
    struct peers_entry *entry = *bucket;
    while (entry && !is_of(entry, peer))
        entry = entry->next;
    if (!entry) {
        entry = calloc(1, sizeof *entry);
        if (!entry)
            return PEERS_FAILED;
        entry->family = peer->family;
        memcpy(entry->address, peer->address, sizeof entry->address);
        entry->next = *bucket;
        *bucket = entry;
        peers->count++;
    }
    if (entry->count >= limit)
        return PEERS_LIMIT;
    entry->count++;
    return PEERS_COUNTED;
}

void peers_remove(struct peers *peers, const struct scoreboard_peer *peer)
{
    if (!peers->nbuckets)
        return;
    struct peers_entry **link = &peers->buckets[bucket_of(peers, peer->family, peer->address)];
    while (*link && !is_of(*link, peer))
        link = &(*link)->next;
    struct peers_entry *entry = *link;
    if (!entry || --entry->count > 0)
        return;
    *link = entry->next;
    free(entry);
    peers->count--;
}
