#include "worker/census.h"

#include "base/scoreboard.h"
#include "conf/conf.h"
#include "worker/conns.h"
#include "worker/phase.h"

/* The order of both additions: a worker that is killed between them leaves a place too many, which
 * does no harm, never one too few. */
bool census_enter(struct conns *conns, bool is_forced)
{
    int64_t limit = conns->conf->limits.connections;
    if (!conns->is_counted)
        return true;
    atomic_fetch_add(&conns->slot->inside, 1);
    if (atomic_fetch_add(&conns->scoreboard->inside, 1) < limit || limit == 0 || is_forced)
        return true;
    census_leave(conns);
    return false;
}

void census_leave(struct conns *conns)
{
    if (!conns->is_counted)
        return;
    atomic_fetch_sub(&conns->scoreboard->inside, 1);
    atomic_fetch_sub(&conns->slot->inside, 1);
}

void census_publish(struct conns *conns, const struct phase_entry *oldest)
{
    atomic_store_explicit(&conns->slot->oldest_idle, oldest ? oldest->entered : INT64_MAX,
                          memory_order_relaxed);
    atomic_store_explicit(&conns->slot->idle, conns->phases.lists[PHASE_IDLE].count,
                          memory_order_release);
}

struct scoreboard_slot *census_find_older(const struct conns *conns, int64_t since)
{
    struct scoreboard_slot *found = NULL;
    uint32_t used = conns->is_counted ? atomic_load(&conns->scoreboard->used) : 0;
    for (uint32_t i = 0; i < used && i < SCOREBOARD_SLOTS; i++) {
        struct scoreboard_slot *slot = &conns->scoreboard->slot[i];
        if (slot == conns->slot || atomic_load(&slot->role) != SCOREBOARD_WORKER ||
            atomic_load(&slot->idle) <= atomic_load(&slot->asked))
            continue;
        int64_t oldest = atomic_load(&slot->oldest_idle);
        if (oldest < since) {
            found = slot;
            since = oldest;
        }
    }
    return found;
}

void census_ask(struct conns *conns, struct scoreboard_slot *slot)
{
    if (atomic_fetch_add(&slot->asked, 1) == 0 && conns->ask)
        conns->ask(conns, (unsigned)(slot - conns->scoreboard->slot));
}

bool census_is_asked(struct conns *conns)
{
    if (!conns->is_counted || atomic_load_explicit(&conns->slot->asked, memory_order_relaxed) == 0)
        return false;
    if (atomic_load(&conns->scoreboard->inside) > conns->conf->limits.connections)
        return true;
    atomic_store(&conns->slot->asked, 0); /* others have left meanwhile */
    return false;
}

void census_comply(struct conns *conns)
{
    atomic_fetch_sub(&conns->slot->asked, 1);
}
