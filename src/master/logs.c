#include "master/logs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/log.h"
#include "conf/conf.h"
#include "master/child.h"
#include "master/control.h"
#include "master/master.h"
#include "master/prepare.h"

/* How long a reopen waits for a child that does not answer. */
#define REOPEN_DEADLINE 5.

static void end_round(struct master *master, int status, const char *answer)
{
    uint64_t round = master->reopen.running;
    ev_timer_stop(master->loop, &master->reopen_overdue);
    master->reopen.running = 0;
    control_answer(master->control, CONTROL_REOPEN, round, status, answer);
    if (master->reopen.is_wanted) {
        master->reopen.is_wanted = false;
        master_reopen(master);
    }
}

static void end_round_as_found(struct master *master)
{
    if (master->reopen_faults[0])
        end_round(master, EXIT_FAILURE, master->reopen_faults);
    else
        end_round(master, EXIT_SUCCESS, "reopened\n");
}

/* What no longer fits is in the log alone. */
static void add_fault(struct master *master, const char *text)
{
    size_t length = strlen(master->reopen_faults);
    size_t room = sizeof(master->reopen_faults) - length;
    if (snprintf(master->reopen_faults + length, room, "%s\n", text) >= (int)room)
        master->reopen_faults[length] = '\0';
}

static void on_overdue(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    log_warning("the logs are reopened, but not every child has said so");
    add_fault(timer->data, "reopened, but not every child has said so");
    end_round_as_found(timer->data);
}

void logs_init(struct master *master)
{
    ev_timer_init(&master->reopen_overdue, on_overdue, REOPEN_DEADLINE, 0.);
    master->reopen_overdue.data = master;
}

static void end_round_if_all_answered(struct master *master)
{
    if (master->reopen.running == 0)
        return;
    for (const struct child *child = master->children; child; child = child->next)
        if (!child->has_reopened)
            return;
    end_round_as_found(master);
}

void logs_child_gone(struct master *master)
{
    end_round_if_all_answered(master);
}

void logs_child_reopened(struct child *child, const char *failure)
{
    char name[CHILD_NAME_SIZE], text[CHILD_NAME_SIZE + CHANNEL_TEXT + 32];
    child->has_reopened = true;
    if (failure[0]) {
        snprintf(text, sizeof(text), "%s keeps the old log files: %s", child_name(name, child),
                 failure);
        log_error("%s", text);
        add_fault(child->master, text);
    }
    end_round_if_all_answered(child->master);
}

static void tell_children(struct master *master, const struct generation *generation)
{
    const struct sink *access = &generation->access;
    for (struct child *child = master->children; child; child = child->next) {
        if (child->generation != generation)
            continue;
        struct channel_message message = { .kind = CHANNEL_LOGS, .argument = CHANNEL_LOG_MAIN };
        message.fds[message.nfds++] =
            generation->log.kind == SINK_OFF ? log_descriptor() : generation->log.fd;
        if (access->fd != -1 && child->worker != 0) {
            message.argument |= CHANNEL_LOG_ACCESS;
            message.fds[message.nfds++] = access->fd;
        }
        child->has_reopened = false;
        child_tell(child, &message);
    }
}

/* The two logs of a generation, opened anew but not yet used. */
struct fresh {
    struct sink log, access;
};

/* `generation` is the one whose log is the master's, or one that waits for its commit. */
static void use(struct master *master, struct generation *generation, struct fresh *fresh)
{
    if (generation->log.kind == SINK_OFF) {
        log_set_sink(fresh->log, generation->log_is_journal);
    } else {
        sink_close(&generation->log);
        generation->log = fresh->log;
    }
    sink_close(&generation->access);
    generation->access = fresh->access;
    tell_children(master, generation);
}

/* A generation that drains writes to the log of the one that serves, and to its own access log,
 * which may be in a place that is no more: it then goes on with what it has. */
static void reopen_draining(struct master *master, struct generation *generation)
{
    struct fresh fresh;
    struct generation_error error;
    if (prepare_logs(generation->conf, NULL, &fresh.access, &error) == 0) {
        sink_close(&generation->access);
        generation->access = fresh.access;
    } else {
        log_warning("generation %" PRIu64 ", which drains, goes on with its old access log: %s",
                    generation->number, error.text);
    }
    tell_children(master, generation);
}

/* All or nothing, for what serves and what is being prepared. */
static int reopen_all(struct master *master, struct generation_error *error)
{
    struct generation *generations[] = { master->current, master->next };
    struct fresh fresh[2];
    for (int i = 0; i < 2; i++) {
        if (!generations[i] ||
            prepare_logs(generations[i]->conf, &fresh[i].log, &fresh[i].access, error) == 0)
            continue;
        if (i == 1 && generations[0]) {
            sink_close(&fresh[0].log);
            sink_close(&fresh[0].access);
        }
        return -1;
    }
    for (int i = 0; i < 2; i++)
        if (generations[i])
            use(master, generations[i], &fresh[i]);
    for (struct generation *old = master->draining; old; old = old->next)
        reopen_draining(master, old);
    return 0;
}

uint64_t master_reopen(struct master *master)
{
    if (master->reopen.running != 0) {
        master->reopen.is_wanted = true;
        return master->reopen.last + 1;
    }
    struct generation_error error = { 0 };
    uint64_t round = master->reopen.running = ++master->reopen.last;
    master->reopen_faults[0] = '\0';
    if (reopen_all(master, &error) == -1) {
        char answer[sizeof(error.text) + 64];
        log_error("reopen failed, the old files stay: %s", error.text);
        snprintf(answer, sizeof(answer), "reopen failed, the old files stay: %s\n", error.text);
        end_round(master, EXIT_FAILURE, answer);
    } else {
        log_info("logs reopened");
        ev_now_update(master->loop);
        ev_timer_set(&master->reopen_overdue, REOPEN_DEADLINE, 0.);
        ev_timer_start(master->loop, &master->reopen_overdue);
        end_round_if_all_answered(master); /* there may be none to wait for */
    }
    return round;
}
