#include "master/generation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/cpus.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "base/tally.h"
#include "conf/conf.h"
#include "master/child.h"
#include "master/master.h"

/* A child that says nothing for so long does not get ready any more. */
#define READY_DEADLINE (5 * CLOCK_SECOND)
#define LOG_MODE 0640
#define UNIX_MODE 0666
#define CONTROL_MODE 0600
/* Descriptors of a worker beside connections and listening sockets. */
#define SPARE_DESCRIPTORS 64

static void act(struct member *member, enum roster_action action, const char *reason);

static int open_sink(struct sink *sink, const struct conf_sink *conf, const char *what,
                     struct generation_error *error)
{
    *sink = SINK_INIT;
    int result = conf->kind == CONF_SINK_PATH     ? sink_open_path(sink, conf->path, LOG_MODE)
                 : conf->kind == CONF_SINK_STDERR ? sink_open_inherited(sink, 2)
                 : conf->kind == CONF_SINK_STDOUT ? sink_open_inherited(sink, 1)
                                                  : 0;
    if (result == -1) {
        const char *name = conf->path                       ? conf->path
                           : conf->kind == CONF_SINK_STDOUT ? "stdout"
                                                            : "stderr";
        snprintf(error->text, sizeof(error->text), "cannot open %s %s: %s", what, name,
                 strerror(errno));
    }
    return result;
}

int generation_open_logs(const struct conf *conf, struct sink *log, struct sink *access,
                         struct generation_error *error)
{
    if (log && open_sink(log, &conf->log, "log", error) == -1)
        return -1;
    if (open_sink(access, &conf->access_log, "access_log", error) == -1) {
        if (log)
            sink_close(log);
        return -1;
    }
    return 0;
}

static unsigned count_workers(const struct conf *conf)
{
    char why[256];
    if (conf->workers > 0)
        return conf->workers;
    unsigned workers = cpus_count("", 0, why, sizeof(why));
    log_info("workers = auto: %u (%s)", workers, why);
    return workers;
}

/* The default's folder is ours to make: /run/hayate, or one in the user's runtime directory. */
static void make_control_folder(const char *path)
{
    char folder[sizeof(((struct address *)0)->local.sun_path)];
    mode_t mode = geteuid() == 0 ? 0755 : 0700;
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
    if (mkdir(folder, mode) == 0)
        chmod(folder, mode); /* whatever the umask took away */
}

static int prepare_control(struct generation *generation, const struct listener_set *const *held,
                           struct generation_error *error)
{
    const struct conf *conf = generation->conf;
    if (!conf->control)
        return 0;
    struct listener_error why;
    unsigned skipped = 0;
    char text[sizeof(((struct address *)0)->local.sun_path) + 8];
    struct conf_listen entry = { .text = text, .naddresses = 1 };
    snprintf(text, sizeof(text), "unix:%s", conf->control);
    if (conf->control_is_default)
        make_control_folder(conf->control);
    const char *fault = NULL;
    if (address_parse(entry.addresses, text, &fault) == 0)
        snprintf(why.text, sizeof(why.text), "%s", fault);
    else if (listener_set_prepare(&generation->control, &entry, 1, held, &skipped, &why) == 0)
        return 0;
    if (conf->control_is_default) {
        log_warning("control is off: %s; reload, status and stop work by signal only", why.text);
        return 0;
    }
    snprintf(error->text, sizeof(error->text), "control: %s", why.text);
    return -1;
}

/* Before anything is bound: the master holds every socket, and a channel to each child. */
static void raise_limit(const struct generation *generation)
{
    unsigned long addresses = 0;
    for (size_t i = 0; i < generation->conf->nlisten; i++)
        addresses += generation->conf->listen[i].naddresses;
    fd_raise_limit((addresses + 2) * generation->workers + SPARE_DESCRIPTORS * 4);
}

static int prepare_listeners(struct generation *generation, struct generation_error *error)
{
    const struct generation *current = generation->master->current;
    const struct conf *conf = generation->conf;
    /* An address goes on in its own role, if it is in both. */
    const struct listener_set *held[4] = { NULL }, *held_admin[4] = { NULL };
    struct listener_error why;
    unsigned skipped = 0;
    if (current) {
        held[0] = held_admin[1] = &current->listeners;
        held[1] = held_admin[0] = &current->admin_listeners;
        held[2] = held_admin[2] = &current->control;
    }
    raise_limit(generation);
    generation->listeners.slots = generation->workers;
    generation->admin_listeners.slots = 1;
    generation->listeners.unix_mode = generation->admin_listeners.unix_mode = UNIX_MODE;
    generation->control.unix_mode = CONTROL_MODE;
    if (listener_set_prepare(&generation->listeners, conf->listen, conf->nlisten, held, &skipped,
                             &why) == -1)
        goto failed;
    generation->admin_listeners.beside = &generation->listeners;
    if (listener_set_prepare(&generation->admin_listeners, conf->admin_listen, conf->nadmin_listen,
                             held_admin, &skipped, &why) == -1)
        goto failed;
    if (skipped > 0)
        log_warning("this kernel has no IPv6: \"*\" listens on IPv4 only");
    return prepare_control(generation, held, error);
failed:
    snprintf(error->text, sizeof(error->text), "%s", why.text);
    return -1;
}

/* A worker's share of the connections, as far as the limit on descriptors reaches. */
static void share_connections(struct generation *generation)
{
    int64_t wanted = generation->conf->limits.connections;
    unsigned long sockets = SPARE_DESCRIPTORS;
    for (size_t i = 0; i < generation->listeners.count; i++)
        sockets += generation->listeners.items[i]->nfds;
    unsigned long share =
        wanted > 0 ? (unsigned long)((wanted + generation->workers - 1) / generation->workers)
                   : 1UL << 20;
    unsigned long limit = fd_raise_limit(share + sockets);
    if (limit >= share + sockets) {
        generation->connections = wanted > 0 ? (unsigned)share : 0;
        return;
    }
    generation->connections = (unsigned)(limit > sockets + 1 ? limit - sockets : 1);
    if (wanted == 0)
        log_warning(
            "limits.connections = 0 is unlimited, but the hard limit on descriptors is %lu: "
            "each of %u workers takes at most %u connections",
            limit, generation->workers, generation->connections);
    else
        log_warning("limits.connections = %" PRId64 " needs %lu descriptors a worker and the hard "
                    "limit is %lu: each of %u workers takes at most %u connections",
                    wanted, share + sockets, limit, generation->workers, generation->connections);
}

static int make_members(struct generation *generation)
{
    bool has_admin = generation->admin_listeners.count > 0;
    generation->nmembers = generation->workers + has_admin;
    generation->members = calloc(generation->nmembers, sizeof(*generation->members));
    if (!generation->members)
        return -1;
    for (unsigned i = 0; i < generation->nmembers; i++) {
        struct member *member = &generation->members[i];
        member->generation = generation;
        member->worker = i < generation->workers ? i + 1 : 0;
    }
    for (size_t i = 0; i < generation->listeners.count; i++)
        if (generation->listeners.items[i]->nfds > generation->nkeepers)
            generation->nkeepers = generation->listeners.items[i]->nfds;
    generation->keepers = calloc(generation->nkeepers + 1, sizeof(struct child *));
    return generation->keepers ? 0 : -1;
}

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
    generation->log = generation->access = SINK_INIT;
    generation->tally_fd = -1;
    generation->workers = count_workers(conf);
    if (generation_open_logs(conf, &generation->log, &generation->access, error) == -1)
        goto failed;
    generation->log_is_journal = conf->log.kind == CONF_SINK_STDERR && log_is_journal(2);
    if (prepare_listeners(generation, error) == -1)
        goto failed;
    share_connections(generation);
    if (make_members(generation) == -1 ||
        !(generation->tally = tally_new(conf->nroutes, &generation->tally_fd))) {
        snprintf(error->text, sizeof(error->text), "out of memory");
        goto failed;
    }
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

static void admit(struct member *member)
{
    struct child *child = member->child;
    struct channel_message go = { .kind = CHANNEL_GO };
    child->is_serving = true;
    child_tell(child, &go);
    generation_cover(member->generation);
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
        ev_timer_stop(generation->master->loop, &member->back_off);
        ev_timer_init(&member->back_off, on_due, (double)member->roster.delay / 1e9, 0.);
        member->back_off.data = member;
        ev_now_update(generation->master->loop);
        ev_timer_start(generation->master->loop, &member->back_off);
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
    generation_cover(generation);
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
    /* Ours first: what comes after the children have looked would sit in a queue of nobody. */
    listener_set_free(&generation->listeners);
    drain_children(generation, false, how, takes_queue, deadline);
    if (is_stop)
        return;
    retire_members(generation, true);
    listener_set_free(&generation->admin_listeners);
    listener_set_free(&generation->control);
    drain_children(generation, true, how, admin_takes_queue, deadline);
}

void generation_retire_admin(struct generation *generation, int64_t deadline)
{
    retire_members(generation, true);
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

/* It serves nobody's queue any more. */
static void forget_keeper(struct generation *generation, const struct child *child)
{
    for (unsigned slot = 0; slot < generation->nkeepers; slot++)
        if (generation->keepers[slot] == child)
            generation->keepers[slot] = NULL;
}

/* A stop is final: what goes from then on, the admin child that serves through it for one, is not
 * replaced. */
static enum roster_event end_event(const struct generation *generation, enum roster_event event)
{
    return generation->master->is_stopping ? ROSTER_RETIRE : event;
}

void generation_child_leaving(struct generation *generation, struct child *child)
{
    struct member *member = child->member;
    char name[CHILD_NAME_SIZE];
    child->is_draining = true;
    child->is_serving = false;
    atomic_store(&child->slot->state, SCOREBOARD_DRAINING);
    child_expect(child, generation->conf->timeouts.drain + CLOCK_SECOND);
    if (!member)
        return;
    log_warning("%s was told to stop by a signal: it drains, and another takes its place",
                child_name(name, child));
    child->member = NULL;
    member->child = NULL;
    forget_keeper(generation, child);
    generation_cover(generation);
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
    forget_keeper(generation, child);
    act(member,
        roster_take(&member->roster, end_event(generation, ROSTER_EXITED), clock_monotonic()),
        reason);
    generation_cover(generation);
}

static bool can_keep(const struct child *child)
{
    return child && child->is_serving && child->looks < WATCHDOG_LOOKS / 2 && !child->is_stopped;
}

static struct child *choose_keeper(const struct generation *generation, unsigned slot)
{
    if (slot < generation->workers && can_keep(generation->members[slot].child))
        return generation->members[slot].child;
    for (unsigned i = 0; i < generation->workers; i++) {
        struct child *child = generation->members[(slot + i) % generation->workers].child;
        if (can_keep(child))
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
void generation_cover(struct generation *generation)
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

unsigned generation_serving(const struct generation *generation)
{
    unsigned serving = 0;
    for (unsigned i = 0; i < generation->workers; i++)
        serving += can_keep(generation->members[i].child);
    return serving;
}
