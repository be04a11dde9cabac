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

static bool has_children(const struct master *master, bool is_admin)
{
    for (const struct child *child = master->children; child; child = child->next)
        if ((child->worker == 0) == is_admin)
            return true;
    return false;
}

static void finish(struct master *master)
{
    struct scoreboard_sums sums;
    char span[CLOCK_SPAN_SIZE];
    scoreboard_sum(master->scoreboard, &sums);
    clock_span(span, sizeof(span), clock_monotonic() - master->stop_began);
    if (master->has_killed && master->status == EXIT_SUCCESS)
        master->status = EXIT_FAILURE;
    if (master->current)
        log_info("stopped in %s: %" PRIu64 " requests cut%s", span, sums.cut,
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

void stop_child_gone(struct master *master)
{
    if (has_children(master, false))
        return;
    if (has_children(master, true) && !master->admin_is_retired) {
        master->admin_is_retired = true;
        if (master->current)
            generation_retire_admin(master->current, ADMIN_DRAIN);
        return;
    }
    if (!has_children(master, true))
        finish(master);
}

static void begin(struct master *master)
{
    master->is_stopping = true;
    master->stop_began = clock_monotonic();
    upgrade_abandon(master);
    watch_stop(master->watch);
    reload_abandon(master, "the server is stopping");
    notify_stopping(master->notify, "stopping");
    master_update(master);
    int64_t drain = master->current ? master->current->conf->timeouts.drain : 0;
    if (master->current)
        generation_retire(master->current, CHANNEL_DRAIN_STOP, drain);
    for (struct generation *old = master->draining; old; old = old->next) {
        generation_retire(old, CHANNEL_DRAIN_STOP, drain);
        generation_retire_admin(old, ADMIN_DRAIN);
    }
}

static void hurry(struct master *master)
{
    log_warning("told to stop again: what is in flight is cut");
    master->admin_is_retired = true;
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
    master->is_stopping = true;
    master->stop_began = clock_monotonic();
    notify_stopping(master->notify, "failed to start");
    stop_child_gone(master);
}
