#include "master/reload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "conf/conf.h"
#include "conf/print.h"
#include "master/child.h"
#include "master/control.h"
#include "master/cover.h"
#include "master/master.h"
#include "master/notify.h"
#include "master/stop.h"
#include "master/upgrade.h"
#include "master/watch.h"

/* How long a reload waits for old children to close their listening sockets. */
#define CLOSE_DEADLINE 1.
#define EXEC_AT_MOST (10 * CLOCK_MILLISECOND)

static void note_outcome(struct master *master, bool has_failed, const char *text)
{
    struct scoreboard_master *board = &master->scoreboard->master;
    if (has_failed)
        board->reload_failures++;
    else
        board->reloads++;
    board->last_reload_realtime = clock_realtime();
    board->last_reload_failed = has_failed;
    snprintf(board->last_reload, sizeof(board->last_reload), "%s", text);
}

/* The end of a round, whatever came of it: the service manager hears first, since its reload
 * command ends when the control client is answered. */
static void end_round(struct master *master, int status, const char *answer)
{
    char line[SCOREBOARD_TEXT + 64];
    uint64_t round = master->reload.running;
    master->reload.running = 0;
    if (!master->is_stopping)
        notify_ready(master->notify, master_status_line(master, line, sizeof(line)));
    control_answer(master->control, CONTROL_RELOAD, round, status, answer);
    upgrade_finish(master);
    reload_resume(master);
}

/* An upgrade that is asked for comes first: reloads without end must not put it off. */
void reload_resume(struct master *master)
{
    if (!master->reload.is_wanted || master->is_stopping || upgrade_is_running(master))
        return;
    master->reload.is_wanted = false;
    master_reload(master);
}

static void fail(struct master *master, int status, const char *reason)
{
    if (!master->current) {
        log_error("cannot start: %s", reason);
        master->status = status;
        master->reload.running = 0;
        stop_now(master);
        return;
    }
    if (upgrade_is_proving(master)) {
        upgrade_go_back(master, status, reason);
        return;
    }
    char answer[sizeof(struct generation_error) + 128];
    log_error("reload failed, generation %" PRIu64 " stays: %s", master->current->number, reason);
    note_outcome(master, true, reason);
    snprintf(answer, sizeof(answer), "reload failed, generation %" PRIu64 " stays: %s\n",
             master->current->number, reason);
    end_round(master, status, answer);
}

/* Prepares the next generation. False when that failed at once. */
static bool begin(struct master *master)
{
    struct conf_request request = {
        .file = master->options->file,
        .overrides = master->options->overrides,
        .kinds = master->options->kinds,
    };
    struct conf_error why;
    struct generation_error error;
    struct files tried;
    struct conf *conf = conf_load_tried(&request, &why, &tried);
    watch_tried(master->watch, conf ? &conf->files : &tried);
    files_fini(&tried);
    if (!conf) {
        fail(master, EX_CONFIG, why.text);
        return false;
    }
    if (!master->current)
        log_set_format(conf->log_format, conf->log_level);
    for (size_t i = 0; i < conf->nwarnings; i++)
        log_warning("%s", conf->warnings[i]);
    master->next = generation_new(master, conf, &error);
    if (!master->next) {
        fail(master, error.status, error.text);
        return false;
    }
    if (!master->current)
        generation_use_log(master->next); /* there is no other that it could disturb */
    generation_start(master->next);
    return true;
}

bool reload_first(struct master *master)
{
    master->reload.running = ++master->reload.last;
    begin(master);
    return master->next != NULL || master->children != NULL;
}

void reload_prove(struct master *master)
{
    begin(master);
}

uint64_t master_reload(struct master *master)
{
    if (master->is_stopping) {
        log_warning("reload refused: a stop is in progress");
        return 0;
    }
    if (master->reload.running != 0 || upgrade_is_running(master)) {
        master->reload.is_wanted = true;
        return master->reload.last + 1;
    }
    uint64_t round = master->reload.running = ++master->reload.last;
    notify_reloading(master->notify);
    begin(master);
    return round;
}

/* A generation that never served: its children have no connection to lose. */
static void discard(struct master *master, struct generation *generation)
{
    generation_retire(generation, CHANNEL_DRAIN_NOW, 0);
    generation_retire_admin(generation, 0);
    generation->next = master->draining;
    master->draining = generation;
}

void master_generation_failed(struct master *master, struct generation *generation,
                              const char *reason)
{
    if (generation != master->next)
        return;
    char text[sizeof(((struct generation_error *)0)->text)];
    snprintf(text, sizeof(text), "%s", reason ? reason : "a worker failed to start");
    master->next = NULL;
    discard(master, generation);
    fail(master, EXIT_FAILURE, text);
}

/* The new configuration is in force when nobody accepts under the old one any more: only then is
 * whoever asked told. */
static void finish(struct master *master)
{
    char text[SCOREBOARD_TEXT + 1];
    ev_timer_stop(master->loop, &master->retiring_overdue);
    master->retiring = NULL;
    snprintf(text, sizeof(text), "%s\n", master->scoreboard->master.last_reload);
    end_round(master, EXIT_SUCCESS, text);
}

static void on_overdue(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    finish(timer->data);
}

void reload_init(struct master *master)
{
    ev_timer_init(&master->retiring_overdue, on_overdue, CLOSE_DEADLINE, 0.);
    master->retiring_overdue.data = master;
}

void reload_child_closed(struct master *master)
{
    if (!master->retiring)
        return;
    for (const struct child *child = master->children; child; child = child->next)
        if (child->generation == master->retiring && !child->has_closed)
            return;
    finish(master);
}

static void retire(struct master *master, struct generation *generation)
{
    generation_retire(generation, CHANNEL_DRAIN_RELOAD, generation->conf->timeouts.drain);
    generation->next = master->draining;
    master->draining = generation;
    master->retiring = generation;
    ev_now_update(master->loop);
    ev_timer_set(&master->retiring_overdue, CLOSE_DEADLINE, 0.);
    ev_timer_start(master->loop, &master->retiring_overdue);
}

void reload_abandon(struct master *master, const char *reason)
{
    struct generation *generation = master->next;
    master->reload.is_wanted = false;
    if (master->retiring)
        finish(master); /* it was committed: that it is not quite over matters to nobody now */
    if (generation) {
        master->next = NULL;
        discard(master, generation);
    }
    if (generation && master->current)
        fail(master, EXIT_FAILURE, reason);
    master->reload.running = 0;
    /* Those that were to have a round of their own. */
    control_answer(master->control, CONTROL_RELOAD, UINT64_MAX, EXIT_FAILURE,
                   "refused: a stop is in progress\n");
}

static void add_urls(struct buf *line, const struct listener_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        char url[ADDRESS_TEXT_SIZE + 16];
        address_url(url, sizeof(url), &set->items[i]->address);
        buf_printf(line, " %s", url);
    }
}

/* "1.3 ms"; where exec alone cannot have taken what was accounted before our first instruction,
 * because a shell or a service manager ran in this process, also the time since that. */
static void add_start_time(struct buf *line)
{
    char span[CLOCK_SPAN_SIZE];
    int64_t now = clock_monotonic();
    clock_span(span, sizeof(span), now - clock_process_start());
    buf_add_string(line, span);
    if (clock_first_instruction() - clock_process_start() < EXEC_AT_MOST)
        return;
    clock_span(span, sizeof(span), now - clock_first_instruction());
    buf_printf(line, " (%s of it since its first instruction)", span);
}

static void announce_start(const struct generation *generation)
{
    struct buf line = { 0 };
    buf_add_string(&line, "hayate " PACKAGE_VERSION " started in ");
    add_start_time(&line);
    buf_printf(&line, ": %u worker%s, generation %" PRIu64 ",", generation->workers,
               generation->workers == 1 ? "" : "s", generation->number);
    add_urls(&line, &generation->listeners);
    const char *text = buf_string(&line);
    log_info("%s", text ? text : "started");
    line.length = 0;
    add_urls(&line, &generation->admin_listeners);
    if (line.length > 0 && (text = buf_string(&line)))
        log_info("admin on%s", text);
    buf_fini(&line);
}

/* "workers 2 -> 4; ..." or that nothing differs. */
static void describe_change(const struct generation *before, const struct generation *after,
                            char *text, size_t size)
{
    struct buf changes = { 0 };
    if (conf_diff(&changes, before->conf, after->conf) == -1 || changes.length == 0)
        snprintf(text, size, "generation %" PRIu64 " serves; the configuration has not changed",
                 after->number);
    else
        snprintf(text, size, "generation %" PRIu64 " serves; changed: %s", after->number,
                 buf_string(&changes));
    buf_fini(&changes);
}

static void announce_change(struct master *master, const struct generation *before)
{
    char text[SCOREBOARD_TEXT];
    const struct generation *after = master->current;
    describe_change(before, after, text, sizeof(text));
    if (upgrade_is_proving(master)) {
        upgrade_commit(master, text);
        return;
    }
    log_info("reloaded in %.1f ms: %s", (double)(clock_monotonic() - after->began) / 1e6, text);
    note_outcome(master, false, text);
}

void master_generation_ready(struct master *master, struct generation *generation)
{
    struct generation_error error;
    struct generation *before = master->current;
    if (generation_commit(generation, &error) == -1) {
        master->next = NULL;
        discard(master, generation);
        fail(master, error.status, error.text);
        return;
    }
    master->next = NULL;
    master->current = generation;
    atomic_store(&master->scoreboard->master.generation, generation->number);
    control_listen(master->control, &generation->control);
    cover_share(generation);
    watchdog_renew(master);
    watch_follow(master->watch);
    if (before) {
        announce_change(master, before);
        retire(master, before);
    } else {
        announce_start(generation);
    }
    master_update(master);
    if (before)
        reload_child_closed(master);
    else
        end_round(master, EXIT_SUCCESS, "");
    oom_begin(&master->oom); /* the start is over, and has been told */
}
