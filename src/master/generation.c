#include "master/generation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "base/tally.h"
#include "conf/conf.h"
#include "master/child.h"
#include "master/cover.h"
#include "master/master.h"
#include "master/prepare.h"
#include "master/quiesce.h"
#include "worker/worker.h"

/* A child that says nothing for so long does not get ready any more. */
#define READY_DEADLINE (5 * CLOCK_SECOND)

static void act(struct member *member, enum roster_action action, const char *reason);

struct generation *generation_new(struct master *master, struct conf *conf,
                                  struct generation_error *error)
{
    error->status = EXIT_FAILURE;
    struct generation *generation = calloc(1, sizeof(*generation));
    if (!generation) {
        conf_free(conf);
        snprintf(error->text, sizeof(error->text), "out of memory");
        return NULL;
    }
    generation->master = master;
    generation->conf = conf;
    generation->number = ++master->numbers;
    generation->began = clock_monotonic();
    if (prepare_generation(generation, error) == -1)
        goto failed;
    return generation;
failed:
    generation_free(generation);
    master->numbers--; /* a number is given to what was forked */
    return NULL;
}

void generation_free(struct generation *generation)
{
    for (unsigned i = 0; i < generation->nmembers && generation->members; i++)
        ev_timer_stop(generation->master->loop, &generation->members[i].back_off);
    listener_set_free(&generation->listeners);
    listener_set_free(&generation->admin_listeners);
    listener_set_free(&generation->control);
    sink_close(&generation->log);
    sink_close(&generation->access);
    tally_free(generation->tally, generation->conf->nroutes);
    fd_close(&generation->tally_fd);
    free(generation->members);
    free(generation->keepers);
    conf_free(generation->conf);
    free(generation);
}

static void on_due(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct member *member = timer->data;
    act(member, roster_take(&member->roster, ROSTER_DUE, clock_monotonic()), NULL);
}

void generation_back_off(struct member *member, int64_t delay)
{
    struct ev_loop *loop = member->generation->master->loop;
    ev_timer_stop(loop, &member->back_off);
    ev_timer_init(&member->back_off, on_due, (double)delay / 1e9, 0.);
    member->back_off.data = member;
    ev_now_update(loop);
    ev_timer_start(loop, &member->back_off);
}

static void start_child(struct member *member)
{
    struct generation *generation = member->generation;
    member->child = child_fork(generation->master, generation, member);
    if (member->child) {
        char name[CHILD_NAME_SIZE];
        log_info("%s started, generation %" PRIu64, child_name(name, member->child),
                 generation->number);
        child_expect(member->child, READY_DEADLINE);
        return;
    }
    char reason[128];
    snprintf(reason, sizeof(reason), "cannot fork: %s", strerror(errno));
    enum roster_action action = roster_take(&member->roster, ROSTER_EXITED, clock_monotonic());
    if (action == ROSTER_BACK_OFF)
        log_error("%s %u: %s; again in %" PRId64 " ms", member->worker ? "worker" : "admin",
                  member->worker, reason, member->roster.delay / CLOCK_MILLISECOND);
    act(member, action, reason);
}

/* Who left this place by itself has accepted connections until now. It takes what is queued, as in
 * any stop, and what comes after that is for the one that has come. */
static void relieve(const struct member *member)
{
    const struct generation *generation = member->generation;
    for (struct child *child = generation->master->children; child; child = child->next)
        if (child->generation == generation && child->worker == member->worker &&
            child->is_draining && !child->has_closed)
            child_drain(child, CHANNEL_DRAIN_STOP, true, generation->conf->timeouts.drain);
}

static void admit(struct member *member)
{
    struct child *child = member->child;
    struct channel_message go = { .kind = CHANNEL_GO };
    child->is_serving = true;
    child_tell(child, &go);
    relieve(member);
    cover_share(member->generation);
    master_update(member->generation->master);
}

static void act(struct member *member, enum roster_action action, const char *reason)
{
    struct generation *generation = member->generation;
    switch (action) {
    case ROSTER_FORK:
        start_child(member);
        break;
    case ROSTER_ADMIT:
        admit(member);
        break;
    case ROSTER_BACK_OFF:
        generation_back_off(member, member->roster.delay);
        break;
    case ROSTER_FAIL:
        master_generation_failed(generation->master, generation, reason);
        break;
    case ROSTER_DISMISS: /* generation_retire tells every child, those without a place too */
    case ROSTER_NOTHING:
    case ROSTER_ACTIONS:
        break;
    }
}

void generation_start(struct generation *generation)
{
    struct master *master = generation->master;
    for (unsigned i = 0; i < generation->nmembers; i++) {
        struct member *member = &generation->members[i];
        act(member, roster_take(&member->roster, ROSTER_START, clock_monotonic()), NULL);
        if (master->next != generation)
            return; /* it failed */
    }
}

void generation_use_log(struct generation *generation)
{
    if (generation->log.kind == SINK_OFF)
        return;
    log_set_sink(generation->log, generation->log_is_journal);
    generation->log = SINK_INIT; /* the log's now */
}

int generation_commit(struct generation *generation, struct generation_error *error)
{
    struct listener_error why;
    int backlog = (int)generation->conf->limits.backlog;
    error->status = EXIT_FAILURE;
    struct listener_set *sets[] = { &generation->control, &generation->admin_listeners,
                                    &generation->listeners };
    int result = 0;
    /* What can fail goes first, so that a failure leaves nothing half done. */
    for (unsigned i = 0; i < 3 && result == 0; i++)
        result = listener_set_place(sets[i], &why);
    for (unsigned i = 0; i < 3 && result == 0; i++)
        result = listener_set_listen(sets[i], backlog, &why);
    if (result == -1) {
        snprintf(error->text, sizeof(error->text), "%s", why.text);
        return -1;
    }
    for (unsigned i = 0; i < 3; i++)
        listener_set_keep(sets[i]);
    generation->state = GENERATION_SERVING;
    generation->is_committing = true; /* the queues are shared out when all are admitted */
    generation_use_log(generation);
    log_set_format(generation->conf->log_format, generation->conf->log_level);
    for (unsigned i = 0; i < generation->nmembers; i++) {
        struct member *member = &generation->members[i];
        act(member, roster_take(&member->roster, ROSTER_COMMIT, clock_monotonic()), NULL);
    }
    generation->is_committing = false;
    cover_share(generation);
    return 0;
}

static bool removes_address(const struct listener_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i]->references == 1)
            return true;
    return false;
}

static void retire_members(struct generation *generation, bool is_admin)
{
    for (unsigned i = 0; i < generation->nmembers; i++) {
        struct member *member = &generation->members[i];
        if ((member->worker == 0) != is_admin)
            continue;
        ev_timer_stop(generation->master->loop, &member->back_off);
        roster_take(&member->roster, ROSTER_RETIRE, clock_monotonic());
    }
    for (struct child *child = generation->master->children; child; child = child->next)
        if (child->generation == generation && (child->worker == 0) == is_admin)
            child->member = NULL;
    for (unsigned i = 0; i < generation->nmembers; i++)
        if ((generation->members[i].worker == 0) == is_admin)
            generation->members[i].child = NULL;
}

static void drain_children(struct generation *generation, bool is_admin, enum channel_drain how,
                           bool takes_queue, int64_t deadline)
{
    for (struct child *child = generation->master->children; child; child = child->next)
        if (child->generation == generation && (child->worker == 0) == is_admin)
            child_drain(child, how, takes_queue, deadline);
}

void generation_retire(struct generation *generation, enum channel_drain how, int64_t deadline)
{
    bool is_stop = how != CHANNEL_DRAIN_RELOAD;
    bool takes_queue = is_stop || removes_address(&generation->listeners);
    bool admin_takes_queue = removes_address(&generation->admin_listeners);
    generation->state = GENERATION_DRAINING;
    retire_members(generation, false);
    quiesce_set(&generation->listeners);
    /* Ours first: what comes after the children have looked would sit in a queue of nobody. */
    listener_set_free(&generation->listeners);
    drain_children(generation, false, how, takes_queue, deadline);
    if (is_stop)
        return;
    retire_members(generation, true);
    quiesce_set(&generation->admin_listeners);
    listener_set_free(&generation->admin_listeners);
    listener_set_free(&generation->control);
    drain_children(generation, true, how, admin_takes_queue, deadline);
}

void generation_retire_admin(struct generation *generation, int64_t deadline)
{
    retire_members(generation, true);
    quiesce_set(&generation->admin_listeners);
    listener_set_free(&generation->admin_listeners);
    drain_children(generation, true, CHANNEL_DRAIN_STOP, true, deadline);
}

void generation_child_ready(struct generation *generation, struct child *child)
{
    struct member *member = child->member;
    if (child->is_ready)
        return;
    child->is_ready = true;
    char name[CHILD_NAME_SIZE], span[CLOCK_SPAN_SIZE];
    clock_span(span, sizeof(span), clock_monotonic() - child->born);
    log_info("%s ready in %s", child_name(name, child), span);
    if (!member)
        return;
    ev_timer_stop(generation->master->loop, &child->overdue);
    enum roster_action action = roster_take(&member->roster, ROSTER_READY, clock_monotonic());
    if (member->roster.state == ROSTER_PROVEN && ++generation->nready == generation->nmembers)
        master_generation_ready(generation->master, generation);
    else
        act(member, action, NULL);
}

/* What goes while a stop drains, the admin child that serves through it for one, is not replaced;
 * until then it is, for serving goes on. */
static enum roster_event end_event(const struct generation *generation, enum roster_event event)
{
    return generation->master->is_draining ? ROSTER_RETIRE : event;
}

void generation_child_leaving(struct generation *generation, struct child *child)
{
    struct member *member = child->member;
    char name[CHILD_NAME_SIZE];
    child->is_draining = true;
    child->is_serving = false;
    atomic_store(&child->slot->state, SCOREBOARD_DRAINING);
    child_expect(child, generation->conf->timeouts.drain + WORKER_LEAVE_PATIENCE + CLOCK_SECOND);
    if (!member)
        return;
    log_warning("%s was told to stop by a signal: it drains", child_name(name, child));
    child->member = NULL;
    member->child = NULL;
    cover_forget(generation, child);
    cover_share(generation);
    act(member,
        roster_take(&member->roster, end_event(generation, ROSTER_LEAVING), clock_monotonic()),
        "told to stop by a signal before it was ready");
}

void generation_child_gone(struct generation *generation, struct child *child, const char *reason)
{
    struct member *member = child->member;
    generation->nchildren--;
    if (!member)
        return;
    child->member = NULL;
    member->child = NULL;
    child->is_serving = false;
    cover_forget(generation, child);
    act(member,
        roster_take(&member->roster, end_event(generation, ROSTER_EXITED), clock_monotonic()),
        reason);
    cover_share(generation);
}

unsigned generation_serving(const struct generation *generation)
{
    unsigned serving = 0;
    for (unsigned i = 0; i < generation->workers; i++)
        serving += cover_is_fit(generation->members[i].child);
    return serving;
}
