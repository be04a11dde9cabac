#include "master/cover.h"

#include <stddef.h>

#include "base/channel.h"
#include "master/child.h"
#include "master/generation.h"
#include "master/watchdog.h"

bool cover_is_fit(const struct child *child)
{
    return child && child->is_serving && child->looks < WATCHDOG_LOOKS / 2 && !child->is_stopped;
}

static struct child *choose_keeper(const struct generation *generation, unsigned slot)
{
    if (slot < generation->workers && cover_is_fit(generation->members[slot].child))
        return generation->members[slot].child;
    for (unsigned i = 0; i < generation->workers; i++) {
        struct child *child = generation->members[(slot + i) % generation->workers].child;
        if (cover_is_fit(child))
            return child;
    }
    return NULL;
}

/* Its own queue a worker serves untold. */
static void tell_keeper(struct child *child, enum channel_kind kind, unsigned slot, unsigned count)
{
    if (!child || count == 0)
        return;
    unsigned own = child->worker - 1;
    if (slot <= own && own < slot + count) {
        tell_keeper(child, kind, slot, own - slot);
        tell_keeper(child, kind, own + 1, slot + count - own - 1);
        return;
    }
    struct channel_message message = { .kind = kind, .argument = slot, .value = count };
    child_tell(child, &message);
}

/* A run of slots that go from one keeper to another is one message: a channel holds few. */
void cover_share(struct generation *generation)
{
    if (generation->state != GENERATION_SERVING || generation->is_committing)
        return;
    for (unsigned slot = 0, count; slot < generation->nkeepers; slot += count) {
        struct child *keeper = choose_keeper(generation, slot);
        struct child *before = generation->keepers[slot];
        for (count = 0; slot + count < generation->nkeepers; count++) {
            if (generation->keepers[slot + count] != before ||
                choose_keeper(generation, slot + count) != keeper)
                break;
            generation->keepers[slot + count] = keeper;
        }
        if (keeper == before)
            continue;
        tell_keeper(keeper, CHANNEL_TAKE, slot, count);
        tell_keeper(before, CHANNEL_GIVE, slot, count);
    }
}

void cover_forget(struct generation *generation, const struct child *child)
{
    for (unsigned slot = 0; slot < generation->nkeepers; slot++)
        if (generation->keepers[slot] == child)
            generation->keepers[slot] = NULL;
}
