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

/* What is counted together: an IPv4 address, also one that came as IPv6 (RFC 4291, 2.5.5.2), or the
 * /64 that one IPv6 client has to itself. */
static struct peers_entry key_of(const struct scoreboard_peer *peer)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    struct peers_entry key = { .family = peer->family };
    bool is_site = peer->family == AF_INET6 && memcmp(peer->address, mapped, sizeof mapped) != 0;
    memcpy(key.address, peer->address, is_site ? 8 : sizeof key.address);
    return key;
}

static bool is_same(const struct peers_entry *entry, const struct peers_entry *key)
{
    return entry->family == key->family &&
           memcmp(entry->address, key->address, sizeof entry->address) == 0;
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
    const struct peers_entry key = key_of(peer);
    struct peers_entry **bucket = &peers->buckets[bucket_of(peers, key.family, key.address)];
    struct peers_entry *entry = *bucket;
    while (entry && !is_same(entry, &key))
        entry = entry->next;
    if (!entry) {
        entry = malloc(sizeof *entry);
        if (!entry)
            return PEERS_FAILED;
        *entry = key;
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
    const struct peers_entry key = key_of(peer);
    struct peers_entry **link = &peers->buckets[bucket_of(peers, key.family, key.address)];
    while (*link && !is_same(*link, &key))
        link = &(*link)->next;
    struct peers_entry *entry = *link;
    if (!entry || --entry->count > 0)
        return;
    *link = entry->next;
    free(entry);
    peers->count--;
}
