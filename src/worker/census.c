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
    atomic_store_explicit(&conns->slot->idle, conns->phases.lists[PHASE_IDLE].count,
                          memory_order_relaxed);
    atomic_store_explicit(&conns->slot->oldest_idle, oldest ? oldest->deadline : INT64_MAX,
                          memory_order_relaxed);
}

/* The slot of another worker that has an idle connection nobody has asked for yet. */
static struct scoreboard_slot *find_oldest(const struct conns *conns, int64_t deadline)
{
    struct scoreboard_slot *found = NULL;
    uint32_t used = atomic_load(&conns->scoreboard->used);
    for (uint32_t i = 0; i < used && i < SCOREBOARD_SLOTS; i++) {
        struct scoreboard_slot *slot = &conns->scoreboard->slot[i];
        if (slot == conns->slot || atomic_load(&slot->role) != SCOREBOARD_WORKER ||
            atomic_load(&slot->idle) <= atomic_load(&slot->asked))
            continue;
        int64_t oldest = atomic_load(&slot->oldest_idle);
        if (oldest < deadline || (!found && oldest == deadline)) {
            found = slot;
            deadline = oldest;
        }
    }
    return found;
}

bool census_ask(struct conns *conns, int64_t deadline)
{
    struct scoreboard_slot *slot = conns->is_counted ? find_oldest(conns, deadline) : NULL;
    if (!slot)
        return false;
    if (atomic_fetch_add(&slot->asked, 1) == 0 && conns->ask)
        conns->ask(conns, (unsigned)(slot - conns->scoreboard->slot));
    return true;
}

unsigned census_asked(struct conns *conns)
{
    if (!conns->is_counted || atomic_load_explicit(&conns->slot->asked, memory_order_relaxed) == 0)
        return 0;
    return atomic_exchange(&conns->slot->asked, 0);
}
