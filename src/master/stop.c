#include "master/stop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "conf/conf.h"
#include "master/child.h"
#include "master/control.h"
#include "master/master.h"
#include "master/notify.h"
#include "master/reload.h"
#include "master/upgrade.h"
#include "master/watch.h"

/* The admin child has answers of a few bytes to finish, no more. */
#define ADMIN_DRAIN CLOCK_SECOND

/* What a stop may take beside drain_delay and timeouts.drain: the graces of those that must be
 * killed, workers and then the admin child, on a busy machine. */
#define MARGIN (5 * CLOCK_SECOND)

static bool has_children(const struct master *master, bool is_admin)
{
    for (const struct child *child = master->children; child; child = child->next)
        if ((child->worker == 0) == is_admin)
            return true;
    return false;
}

/* Since the start, those of workers that were killed too. */
static uint64_t count_cut(const struct master *master)
{
    struct scoreboard_sums sums;
    scoreboard_sum(master->scoreboard, &sums);
    return sums.cut;
}

static void finish(struct master *master)
{
    char span[CLOCK_SPAN_SIZE];
    uint64_t cut = count_cut(master);
    cut = cut > master->cut_before ? cut - master->cut_before : 0;
    clock_span(span, sizeof(span), clock_monotonic() - master->stop_began);
    if (master->has_killed && master->status == EXIT_SUCCESS)
        master->status = EXIT_FAILURE;
    if (master->current)
        log_info("stopped in %s: %" PRIu64 " request%s cut%s", span, cut, cut == 1 ? "" : "s",
                 master->has_killed ? ", a child had to be killed" : "");
    else if (master->status == EXIT_SUCCESS)
        log_info("stopped before it had started");
    /* The names go first: who hears that we have stopped may start us again at once. */
    if (master->current)
        listener_set_free(&master->current->control);
    control_answer(master->control, CONTROL_STOP, UINT64_MAX, master->status,
                   master->has_killed ? "stopped; a child had to be killed\n" : "stopped\n");
    ev_break(master->loop, EVBREAK_ALL);
}

static void retire_admin(struct master *master)
{
    if (master->current && !master->admin_is_retired)
        generation_retire_admin(master->current, ADMIN_DRAIN);
    master->admin_is_retired = true;
}

void stop_child_gone(struct master *master)
{
    if (!master->is_draining || has_children(master, false))
        return;
    if (has_children(master, true) && !master->admin_is_retired) {
        retire_admin(master);
        return;
    }
    if (!has_children(master, true))
        finish(master);
}

/* Accepting ends here, and what is in flight is finished. */
static void drain(struct master *master)
{
    int64_t wait = master->current ? master->current->conf->timeouts.drain : 0;
    ev_timer_stop(master->loop, &master->stop_delay);
    master->is_draining = true;
    if (master->current)
        generation_retire(master->current, CHANNEL_DRAIN_STOP, wait);
    for (struct generation *old = master->draining; old; old = old->next) {
        generation_retire(old, CHANNEL_DRAIN_STOP, wait);
        generation_retire_admin(old, ADMIN_DRAIN);
    }
}

static void on_delayed(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct master *master = timer->data;
    log_info("drain_delay is over: draining");
    notify_stopping(master->notify, "stopping", master->current->conf->timeouts.drain + MARGIN);
    drain(master);
    stop_child_gone(master);
}

/* Readiness is gone, and whoever sends us connections is given the time to see that. */
static void begin_delay(struct master *master, int64_t delay)
{
    char span[CLOCK_SPAN_SIZE];
    clock_span(span, sizeof(span), delay);
    log_info("not ready any more; serving goes on for %s (drain_delay)", span);
    ev_timer_init(&master->stop_delay, on_delayed, (double)delay / 1e9, 0.);
    master->stop_delay.data = master;
    ev_now_update(master->loop);
    ev_timer_start(master->loop, &master->stop_delay);
}

static void begin(struct master *master)
{
    const struct conf *conf = master->current ? master->current->conf : NULL;
    master->is_stopping = true;
    master->stop_began = clock_monotonic();
    master->cut_before = count_cut(master);
    upgrade_abandon(master);
    watch_stop(master->watch);
    reload_abandon(master, "the server is stopping");
    notify_stopping(master->notify,
                    conf && conf->drain_delay > 0 ? "stopping, still serving" : "stopping",
                    (conf ? conf->drain_delay + conf->timeouts.drain : 0) + MARGIN);
    master_update(master);
    if (conf && conf->drain_delay > 0)
        begin_delay(master, conf->drain_delay);
    else
        drain(master);
}

static void hurry(struct master *master)
{
    log_warning("told to stop again: what is in flight is cut");
    if (!master->is_draining)
        drain(master);
    retire_admin(master); /* one that waits for the end of a back-off is not to come either */
    for (struct child *child = master->children; child; child = child->next)
        child_drain(child, CHANNEL_DRAIN_NOW, false, 0);
}

void master_stop(struct master *master)
{
    if (master->is_stopping)
        hurry(master);
    else
        begin(master);
    stop_child_gone(master);
}

void stop_now(struct master *master)
{
    master->is_stopping = master->is_draining = true;
    master->stop_began = clock_monotonic();
    notify_stopping(master->notify, "failed to start", MARGIN);
    stop_child_gone(master);
}
