#include "master/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/scoreboard.h"
#include "base/tally.h"
#include "conf/conf.h"
#include "master/child.h"
#include "master/master.h"
#include "master/watch.h"

/* What both forms show of one child, read once. */
struct row {
    const char *role, *state;
    unsigned worker, open, idle, restarts;
    int pid;
    uint64_t generation;
    int64_t since; /* ns it has lived */
    struct scoreboard_sums sums;
    char request[SCOREBOARD_TEXT * 2];
};

static const char *role_of(unsigned worker)
{
    return scoreboard_role_names[worker ? SCOREBOARD_WORKER : SCOREBOARD_ADMIN];
}

static const char *state_of(const struct child *child)
{
    return child->is_stopped                      ? "stopped"
           : child->is_draining                   ? "draining"
           : child->looks > WATCHDOG_LOOKS / 2    ? "stuck"
           : child->is_serving || child->is_ready ? "ready"
                                                  : "starting";
}

static void read_row(struct row *row, const struct child *child)
{
    const struct scoreboard_slot *slot = child->slot;
    *row = (struct row){
        .role = role_of(child->worker),
        .state = state_of(child),
        .worker = child->worker,
        .pid = (int)child->pid,
        .generation = child->generation->number,
        .since = clock_monotonic() - child->born,
        .open = atomic_load(&slot->open),
        .idle = atomic_load(&slot->idle),
        .restarts = slot->restarts,
    };
    scoreboard_read_counters(&slot->counters, &row->sums);
    scoreboard_request_text(row->request, sizeof(row->request), &slot->answering);
}

/* The list of children is newest first; people want worker 1 on top, old generations last. */
static const struct child *next_in_order(const struct master *master, const struct child *after)
{
    const struct child *best = NULL;
    for (const struct child *c = master->children; c; c = c->next) {
#define KEY(x) ((x)->generation->number * 10000 - ((x)->worker ? (x)->worker : 9999))
        if ((!after || KEY(c) < KEY(after) || (KEY(c) == KEY(after) && c->pid > after->pid)) &&
            c != after &&
            (!best || KEY(c) > KEY(best) || (KEY(c) == KEY(best) && c->pid < best->pid)))
            best = c;
#undef KEY
    }
    return best;
}

static const char *outcome(const struct scoreboard_master *board)
{
    return board->last_reload_realtime == 0 ? "none"
           : board->last_reload_failed      ? "failed"
                                            : "succeeded";
}

static void text_config(struct buf *out, const struct master *master)
{
    const struct conf *conf = master->current->conf;
    const char *changed = NULL;
    bool has_drifted = conf_has_drifted(conf, &changed);
    buf_printf(out, "config: %s%s%s%s%s\n", conf->file ? conf->file : "built-in defaults",
               watch_is_on(master->watch) ? ", watched" : "",
               has_drifted ? ", differs on disk: " : ", as on disk",
               has_drifted && changed ? changed : "", has_drifted ? " (reload to use it)" : "");
}

static void text_sums(struct buf *out, struct master *master)
{
    struct scoreboard_sums sums;
    scoreboard_sum(master->scoreboard, &sums);
    buf_printf(out,
               "requests: %" PRIu64 ", connections: %" PRIu64 ", refused: %" PRIu64
               ", timeouts: %" PRIu64 ", cut: %" PRIu64 "\n",
               sums.requests, sums.connections, sums.refused, sums.timeouts, sums.cut);
}

static void text_listening(struct buf *out, const char *what, const struct listener_set *set)
{
    char url[ADDRESS_TEXT_SIZE + 16];
    if (set->count > 0)
        buf_printf(out, "%s:", what);
    for (size_t i = 0; i < set->count; i++) {
        address_url(url, sizeof(url), &set->items[i]->address);
        buf_printf(out, " %s", url);
    }
    if (set->count > 0)
        buf_add_string(out, "\n");
}

static void text_last(struct buf *out, const struct master *master)
{
    const struct scoreboard_master *board = &master->scoreboard->master;
    const struct upgrade *upgrade = &master->upgrade;
    char stamp[CLOCK_STAMP_SIZE];
    if (board->last_reload_realtime) {
        clock_stamp(stamp, sizeof(stamp), board->last_reload_realtime);
        buf_printf(out, "last reload: %s at %s: %s\n", outcome(board), stamp, board->last_reload);
    }
    if (upgrade->last_realtime) {
        clock_stamp(stamp, sizeof(stamp), upgrade->last_realtime);
        buf_printf(out, "last upgrade: %s at %s: %s\n",
                   upgrade->has_failed ? "failed" : "succeeded", stamp, upgrade->last);
    }
    if (board->last_crash_realtime) {
        clock_stamp(stamp, sizeof(stamp), board->last_crash_realtime);
        buf_printf(out, "last crash: at %s: %s\n", stamp, board->last_crash);
    }
}

/* "1", or "admin". */
static void child_place(char name[24], unsigned worker)
{
    if (worker)
        snprintf(name, 24, "%u", worker);
    else
        strcpy(name, "admin");
}

static void text_children(struct buf *out, const struct master *master)
{
    buf_printf(out, "%-8s %8s %10s %-9s %8s %11s %10s %8s\n", "CHILD", "PID", "GENERATION", "STATE",
               "AGE", "CONNECTIONS", "REQUESTS", "RESTARTS");
    for (const struct child *c = next_in_order(master, NULL); c; c = next_in_order(master, c)) {
        struct row row;
        char name[24], age[CLOCK_SPAN_SIZE];
        read_row(&row, c);
        child_place(name, row.worker);
        clock_span(age, sizeof(age), row.since);
        buf_printf(out, "%-8s %8d %10" PRIu64 " %-9s %8s %11u %10" PRIu64 " %8u%s%s\n", name,
                   row.pid, row.generation, row.state, age, row.open, row.sums.requests,
                   row.restarts, row.request[0] ? "  " : "", row.request);
    }
    const struct generation *current = master->current;
    for (unsigned i = 0; current && i < current->nmembers; i++) {
        char name[24];
        child_place(name, current->members[i].worker);
        if (!current->members[i].child && !master->is_draining)
            buf_printf(out,
                       "%-8s %8s %10" PRIu64 " %-9s restarts after a back-off of %" PRId64 " ms\n",
                       name, "-", current->number, "waiting",
                       current->members[i].roster.delay / CLOCK_MILLISECOND);
    }
}

int status_text(struct buf *out, struct master *master)
{
    const struct scoreboard_master *board = &master->scoreboard->master;
    const struct generation *current = master->current;
    char up[CLOCK_SPAN_SIZE];
    if (!current)
        return buf_add_string(out, "starting\n");
    clock_span(up, sizeof(up), clock_monotonic() - board->started);
    bool is_ready = atomic_load(&board->is_ready);
    buf_printf(out,
               "hayate " PACKAGE_VERSION ", pid %d, up %s: generation %" PRIu64
               ", %u of %u workers, %s%s\n",
               atomic_load(&board->pid), up, current->number, generation_serving(current),
               current->workers, is_ready ? "ready" : "not ready: ", is_ready ? "" : board->reason);
    text_listening(out, "listening", &current->listeners);
    text_listening(out, "admin", &current->admin_listeners);
    text_config(out, master);
    text_last(out, master);
    text_sums(out, master);
    text_children(out, master);
    return buf_reserve(out, 1); /* memory that ran out on the way shows here too */
}

static void json_string(struct buf *out, const char *key, const char *value)
{
    buf_printf(out, "\"%s\":", key);
    if (!value) {
        buf_add_string(out, "null");
        return;
    }
    buf_add_string(out, "\"");
    buf_add_json(out, slice_of(value));
    buf_add_string(out, "\"");
}

static void json_time(struct buf *out, const char *key, int64_t realtime)
{
    char stamp[CLOCK_STAMP_SIZE];
    if (realtime)
        clock_stamp(stamp, sizeof(stamp), realtime);
    json_string(out, key, realtime ? stamp : NULL);
}

static void json_urls(struct buf *out, const char *key, const struct listener_set *set)
{
    buf_printf(out, "\"%s\":[", key);
    for (size_t i = 0; i < set->count; i++) {
        char url[ADDRESS_TEXT_SIZE + 16];
        address_url(url, sizeof(url), &set->items[i]->address);
        buf_printf(out, "%s\"", i ? "," : "");
        buf_add_json(out, slice_of(url));
        buf_add_string(out, "\"");
    }
    buf_add_string(out, "]");
}

static void json_responses(struct buf *out, const uint64_t responses[TALLY_CLASSES])
{
    buf_add_string(out, "{");
    for (unsigned i = 1; i < TALLY_CLASSES; i++)
        buf_printf(out, "%s\"%uxx\":%" PRIu64, i > 1 ? "," : "", i, responses[i]);
    buf_add_string(out, "}");
}

static void json_sums(struct buf *out, const struct scoreboard_sums *sums)
{
    buf_printf(out,
               "\"requests\":%" PRIu64 ",\"connections_accepted\":%" PRIu64
               ",\"bytes_sent\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"timeouts\":%" PRIu64
               ",\"cut\":%" PRIu64 ",\"responses\":",
               sums->requests, sums->connections, sums->bytes_sent, sums->refused, sums->timeouts,
               sums->cut);
    json_responses(out, sums->responses);
}

static void json_children(struct buf *out, const struct master *master)
{
    bool is_first = true;
    buf_add_string(out, "\"children\":[");
    for (const struct child *c = next_in_order(master, NULL); c; c = next_in_order(master, c)) {
        struct row row;
        read_row(&row, c);
        buf_printf(out,
                   "%s{\"role\":\"%s\",\"worker\":%u,\"pid\":%d,\"generation\":%" PRIu64
                   ",\"state\":\"%s\",\"age_seconds\":%.3f,\"connections\":%u,\"idle\":%u"
                   ",\"restarts\":%u,",
                   is_first ? "" : ",", row.role, row.worker, row.pid, row.generation, row.state,
                   (double)row.since / 1e9, row.open, row.idle, row.restarts);
        json_string(out, "answering", row.request[0] ? row.request : NULL);
        buf_add_string(out, ",");
        json_sums(out, &row.sums);
        buf_add_string(out, "}");
        is_first = false;
    }
    /* Places whose next process waits for the end of a back-off. */
    for (unsigned i = 0; master->current && i < master->current->nmembers; i++) {
        const struct member *member = &master->current->members[i];
        if (member->child || master->is_draining)
            continue;
        buf_printf(out,
                   "%s{\"role\":\"%s\",\"worker\":%u,\"pid\":null,\"generation\":%" PRIu64
                   ",\"state\":\"waiting\",\"restarts\":%u,\"delay_seconds\":%.3f}",
                   is_first ? "" : ",", role_of(member->worker), member->worker,
                   master->current->number, member->roster.restarts,
                   (double)member->roster.delay / 1e9);
        is_first = false;
    }
    buf_add_string(out, "]");
}

static void json_upgrades(struct buf *out, const struct upgrade *upgrade)
{
    buf_printf(out, "\"upgrades\":%" PRIu64 ",\"upgrade_failures\":%" PRIu64 ",\"last_upgrade\":{",
               upgrade->succeeded, upgrade->failed);
    json_string(out, "outcome",
                upgrade->last_realtime == 0 ? "none"
                : upgrade->has_failed       ? "failed"
                                            : "succeeded");
    buf_add_string(out, ",");
    json_time(out, "time", upgrade->last_realtime);
    buf_add_string(out, ",");
    json_string(out, "text", upgrade->last_realtime ? upgrade->last : NULL);
    buf_add_string(out, "},");
}

static void json_events(struct buf *out, const struct scoreboard_master *board)
{
    buf_printf(out, "\"reloads\":%" PRIu64 ",\"reload_failures\":%" PRIu64 ",\"last_reload\":{",
               board->reloads, board->reload_failures);
    json_string(out, "outcome", outcome(board));
    buf_add_string(out, ",");
    json_time(out, "time", board->last_reload_realtime);
    buf_add_string(out, ",");
    json_string(out, "text", board->last_reload_realtime ? board->last_reload : NULL);
    buf_printf(out, "},\"crashes\":%" PRIu64 ",\"last_crash\":{", board->crashes);
    json_time(out, "time", board->last_crash_realtime);
    buf_add_string(out, ",");
    json_string(out, "text", board->last_crash_realtime ? board->last_crash : NULL);
    buf_add_string(out, "},");
}

/* The buckets are cumulative, as Prometheus has them. */
static void json_totals(struct buf *out, const struct master *master)
{
    struct totals totals;
    uint64_t count = 0;
    totals_read(&totals, master);
    buf_add_string(out, "\"routes\":[");
    for (size_t i = 0; i < totals.nroutes; i++) {
        buf_printf(out, "%s{", i ? "," : "");
        json_string(out, "path", totals.routes[i].path);
        buf_add_string(out, ",\"responses\":");
        json_responses(out, totals.routes[i].responses);
        buf_add_string(out, "}");
    }
    buf_add_string(out, "],\"latency\":{\"buckets\":[");
    for (unsigned i = 0; i < TALLY_BUCKETS; i++) {
        count += totals.latency[i];
        if (tally_bounds[i] == INT64_MAX)
            buf_printf(out, ",{\"le\":null,\"count\":%" PRIu64 "}", count);
        else
            buf_printf(out, "%s{\"le\":%g,\"count\":%" PRIu64 "}", i ? "," : "",
                       (double)tally_bounds[i] / 1e9, count);
    }
    buf_printf(out, "],\"sum_seconds\":%.6f,\"count\":%" PRIu64 "},",
               (double)totals.latency_sum / 1e9, count);
    totals_fini(&totals);
}

int status_json(struct buf *out, struct master *master)
{
    const struct scoreboard_master *board = &master->scoreboard->master;
    const struct generation *current = master->current;
    struct scoreboard_sums sums;
    const char *changed = NULL;
    scoreboard_sum(master->scoreboard, &sums);
    buf_printf(out,
               "{\"version\":\"" PACKAGE_VERSION "\",\"pid\":%d,\"generation\":%" PRIu64
               ",\"uptime_seconds\":%.3f,",
               atomic_load(&board->pid), current ? current->number : 0,
               (double)(clock_monotonic() - board->started) / 1e9);
    json_time(out, "started", board->started_realtime);
    buf_printf(out, ",\"ready\":%s,", atomic_load(&board->is_ready) ? "true" : "false");
    json_string(out, "reason", board->reason[0] ? board->reason : NULL);
    buf_printf(out, ",\"workers\":%u,\"serving\":%u,", current ? current->workers : 0,
               current ? generation_serving(current) : 0);
    if (current) {
        json_urls(out, "listening", &current->listeners);
        buf_add_string(out, ",");
        json_urls(out, "admin", &current->admin_listeners);
        buf_add_string(out, ",");
        json_string(out, "config", current->conf->file);
        buf_printf(out, ",\"drift\":%s,\"watching\":%s,",
                   conf_has_drifted(current->conf, &changed) ? "true" : "false",
                   watch_is_on(master->watch) ? "true" : "false");
    }
    json_events(out, board);
    json_upgrades(out, &master->upgrade);
    json_sums(out, &sums);
    buf_add_string(out, ",");
    json_totals(out, master);
    json_children(out, master);
    return buf_add_string(out, "}\n");
}
