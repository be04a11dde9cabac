#include "worker/phase.h"

#include <assert.h>
#include <stddef.h>

#include "base/clock.h"

const char *const phase_names[PHASE_COUNT] = {
    [PHASE_HEADER] = "header", [PHASE_BODY] = "body", [PHASE_WAIT] = "wait",
    [PHASE_SEND] = "send",     [PHASE_IDLE] = "idle", [PHASE_LINGER] = "linger",
};

static void arm(struct phases *phases, int64_t deadline, int64_t now)
{
    phases->armed = deadline;
    ev_timer_stop(phases->loop, &phases->timer);
    if (deadline == INT64_MAX)
        return;
    /* The loop's own time is that of its last turn, so the timer may be a little early. */
    int64_t wait = deadline - now;
    if (wait < CLOCK_MILLISECOND)
        wait = CLOCK_MILLISECOND;
    ev_timer_set(&phases->timer, (double)wait / 1e9, 0.);
    ev_timer_start(phases->loop, &phases->timer);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct phases *phases = timer->data;
    int64_t now = clock_monotonic();
    arm(phases, phase_run(phases, now), now);
}

void phase_init(struct phases *phases, struct ev_loop *loop,
                void (*expired)(struct phases *phases, struct phase_entry *entry))
{
    phases->loop = loop;
    phases->armed = INT64_MAX;
    phases->expired = expired;
    ev_init(&phases->timer, on_timer);
    phases->timer.data = phases;
    for (int i = 0; i < PHASE_COUNT; i++) {
        struct phase_list *list = &phases->lists[i];
        list->ends.next = list->ends.previous = &list->ends;
        list->span = 0;
        list->count = 0;
    }
}

void phase_fini(struct phases *phases)
{
    arm(phases, INT64_MAX, 0);
}

void phase_set_span(struct phases *phases, enum phase phase, int64_t span)
{
    phases->lists[phase].span = span;
}

static void take_out(struct phases *phases, struct phase_entry *entry)
{
    entry->previous->next = entry->next;
    entry->next->previous = entry->previous;
    phases->lists[entry->phase].count--;
}

void phase_enter(struct phases *phases, struct phase_entry *entry, enum phase phase, int64_t now)
{
    struct phase_list *list = &phases->lists[phase];
    if (entry->next)
        take_out(phases, entry);
    entry->phase = phase;
    entry->entered = now;
    entry->deadline = list->span > 0 ? now + list->span : INT64_MAX;
    entry->previous = list->ends.previous;
    entry->next = &list->ends;
    entry->previous->next = entry;
    list->ends.previous = entry;
    list->count++;
    if (entry->deadline < phases->armed)
        arm(phases, entry->deadline, now);
}

void phase_leave(struct phases *phases, struct phase_entry *entry)
{
    if (!entry->next)
        return;
    take_out(phases, entry);
    entry->next = entry->previous = NULL;
    for (int i = 0; i < PHASE_COUNT; i++)
        if (phases->lists[i].count > 0)
            return;
    arm(phases, INT64_MAX, 0);
}

struct phase_entry *phase_first(struct phases *phases, enum phase phase)
{
    struct phase_entry *ends = &phases->lists[phase].ends;
    return ends->next == ends ? NULL : ends->next;
}

struct phase_entry *phase_next(struct phases *phases, const struct phase_entry *entry)
{
    const struct phase_entry *ends = &phases->lists[entry->phase].ends;
    return entry->next == ends ? NULL : entry->next;
}

int64_t phase_run(struct phases *phases, int64_t now)
{
    int64_t earliest = INT64_MAX;
    for (int i = 0; i < PHASE_COUNT; i++) {
        struct phase_entry *first;
        while ((first = phase_first(phases, (enum phase)i)) && first->deadline <= now)
            phases->expired(phases, first);
    }
    for (int i = 0; i < PHASE_COUNT; i++) {
        const struct phase_entry *first = phase_first(phases, (enum phase)i);
        if (first && first->deadline < earliest)
            earliest = first->deadline;
    }
    return earliest;
}
