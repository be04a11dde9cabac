#include "master/adopt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "base/tally.h"
#include "conf/conf.h"
#include "master/child.h"
#include "master/control.h"
#include "master/legacy.h"
#include "master/master.h"
#include "master/prepare.h"
#include "master/upgrade.h"

/* What the steps hand on to each other. */
struct adoption {
    struct master *master;
    const struct legacy *legacy;
    char reason[CHANNEL_TEXT];
};

__attribute__((format(printf, 2, 3))) static int fail(struct adoption *adoption, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(adoption->reason, sizeof(adoption->reason), format, args);
    va_end(args);
    return -1;
}

static uint32_t count_of(const struct adoption *adoption, enum legacy_list_kind kind)
{
    return adoption->legacy->lists[kind].count;
}

static const char *text_of(const struct adoption *adoption, uint32_t offset)
{
    return legacy_text(adoption->legacy, offset);
}

_Noreturn void adopt_give_up(const struct master *master, const struct legacy *legacy,
                             const char *reason)
{
    upgrade_return(master, legacy, reason);
    log_fatal(EXIT_FAILURE, "cannot take over from the old binary, nor go back to it: %s", reason);
}

_Noreturn static void give_up(const struct adoption *adoption)
{
    adopt_give_up(adoption->master, adoption->legacy, adoption->reason);
}

bool adopt_is_asked(void)
{
    return getenv(LEGACY_VARIABLE) != NULL;
}

static struct legacy *read_legacy(void)
{
    struct legacy_error error;
    const char *number = getenv(LEGACY_VARIABLE);
    int fd = number ? (int)strtol(number, NULL, 10) : -1;
    struct legacy *legacy = legacy_read(fd, &error);
    unsetenv(LEGACY_VARIABLE);
    if (!legacy)
        log_fatal(EXIT_FAILURE, "cannot take over: the legacy that " LEGACY_VARIABLE " names: %s",
                  error.text);
    if (legacy->pid != getpid())
        log_fatal(EXIT_FAILURE,
                  "cannot take over: the legacy that " LEGACY_VARIABLE " names is of process %d",
                  (int)legacy->pid);
    close(fd);
    return legacy;
}

struct legacy *adopt_begin(struct master *master)
{
    struct sink log;
    struct legacy *legacy = read_legacy();
    struct adoption adoption = { .master = master, .legacy = legacy };
    if (legacy_set_cloexec(legacy, true) == -1) {
        fail(&adoption, "a descriptor of the legacy: %s", strerror(errno));
        give_up(&adoption);
    }
    if (legacy->log_fd != -1 && sink_adopt(&log, legacy->log_fd) == 0)
        log_set_sink(log, log_is_journal(log.fd));
    master->scoreboard_fd = legacy->scoreboard_fd;
    master->watchdog.fd = legacy->watchdog_fd;
    master->scoreboard = scoreboard_open(legacy->scoreboard_fd);
    if (!master->scoreboard) {
        fail(&adoption, "the scoreboard: %s",
             errno == EPROTO ? "another version" : strerror(errno));
        give_up(&adoption);
    }
    return legacy;
}

struct conf *adopt_conf(const struct master_options *options, const struct legacy *legacy,
                        const struct legacy_generation *from, struct conf_error *error)
{
    const struct conf_request request = { options->file, options->overrides, options->kinds };
    const struct legacy_source *records = legacy_list(legacy, LEGACY_SOURCES);
    struct files files = { .nsources = from->nsources };
    files.sources = calloc(files.nsources + 1, sizeof(*files.sources));
    if (!files.sources) {
        snprintf(error->text, sizeof(error->text), "out of memory");
        return NULL;
    }
    for (uint32_t i = 0; i < from->nsources; i++) {
        const struct legacy_source *record = &records[from->source + i];
        files.sources[i] = (struct files_source){
            .path = (char *)legacy_text(legacy, record->path),
            .bytes = (char *)legacy_text(legacy, record->bytes),
            .length = record->length,
        };
    }
    const struct conf_record record = { &files, from->uid, from->gid };
    struct conf *conf = conf_load_recorded(&request, &record, error);
    free(files.sources);
    return conf;
}

static int adopt_generation(struct adoption *adoption, const struct legacy_generation *from)
{
    struct conf_error error;
    struct master *master = adoption->master;
    struct conf *conf = adopt_conf(master->options, adoption->legacy, from, &error);
    if (!conf)
        return fail(adoption, "the configuration that is being served: %s", error.text);
    struct generation *generation = calloc(1, sizeof(*generation));
    if (!generation) {
        conf_free(conf);
        return fail(adoption, "out of memory");
    }
    *generation = (struct generation){
        .master = master,
        .number = from->number,
        .state = from->is_current ? GENERATION_SERVING : GENERATION_DRAINING,
        .conf = conf,
        .workers = from->workers,
        .began = clock_monotonic(),
        .log = SINK_INIT,
        .log_is_journal = conf->log.kind == CONF_SINK_STDERR && log_is_journal(2),
        .access = SINK_INIT,
        .tally = tally_open(conf->nroutes, from->tally_fd),
        .tally_fd = from->tally_fd,
        .connections = from->connections,
        .next = from->is_current ? NULL : master->draining,
    };
    if (from->is_current)
        master->current = generation;
    else
        master->draining = generation;
    if (!generation->tally ||
        (from->access_fd != -1 && sink_adopt(&generation->access, from->access_fd) == -1))
        return fail(adoption, "the counters or the access log of generation %llu: %s",
                    (unsigned long long)from->number, strerror(errno));
    return 0;
}

static int adopt_generations(struct adoption *adoption)
{
    const struct legacy_generation *records = legacy_list(adoption->legacy, LEGACY_GENERATIONS);
    for (uint32_t i = 0; i < count_of(adoption, LEGACY_GENERATIONS); i++)
        if (adopt_generation(adoption, &records[i]) == -1)
            return -1;
    return 0;
}

/* The address as it was bound: for a unix socket that is not what the kernel says, since it was
 * renamed. */
static int find_address(struct address *address, const struct legacy_socket *from, const char *text)
{
    struct address addresses[2];
    const char *fault;
    if (address_parse(addresses, text, &fault) <= from->part)
        return -1;
    *address = addresses[from->part];
    socklen_t length = sizeof(address->v6);
    if (address->any.sa_family == AF_UNIX)
        return 0;
    return getsockname(from->fd, &address->any, &length);
}

static struct listener_set *set_of(struct generation *generation, uint32_t role)
{
    return role == LEGACY_PUBLIC  ? &generation->listeners
           : role == LEGACY_ADMIN ? &generation->admin_listeners
                                  : &generation->control;
}

static struct listener *adopt_listener(struct adoption *adoption, const struct legacy_socket *from)
{
    const char *text = text_of(adoption, from->entry);
    struct listener_set *set = set_of(adoption->master->current, from->role);
    struct listener *listener = calloc(1, sizeof(*listener));
    if (!listener || !(listener->text = strdup(text)) || listener_set_add(set, listener) == -1) {
        if (listener)
            free(listener->text);
        free(listener);
        fail(adoption, "out of memory");
        return NULL;
    }
    listener->part = from->part;
    listener->mode = listener->new_mode = from->mode;
    listener->device = from->device;
    listener->inode = from->inode;
    if (find_address(&listener->address, from, text) == -1) {
        fail(adoption, "the socket of %s is not what it was", text);
        return NULL;
    }
    listener->is_shared = listener->address.any.sa_family == AF_UNIX;
    return listener;
}

static int adopt_sockets(struct adoption *adoption)
{
    struct generation *current = adoption->master->current;
    const struct legacy_socket *records = legacy_list(adoption->legacy, LEGACY_SOCKETS);
    struct listener *listener = NULL;
    current->listeners.slots = current->workers;
    if (current->conf->limits.per_address > 0)
        current->listeners.address_key = adoption->master->address_key;
    current->admin_listeners.slots = 1;
    current->admin_listeners.beside = &current->listeners;
    for (uint32_t i = 0; i < count_of(adoption, LEGACY_SOCKETS); i++) {
        if (records[i].slot == 0)
            listener = adopt_listener(adoption, &records[i]);
        if (!listener)
            return -1;
        if (listener_add_fd(listener, records[i].fd) == -1)
            return fail(adoption, "out of memory");
        listener->ncommitted = listener->nfds;
    }
    return 0;
}

static struct generation *find_generation(const struct master *master, uint64_t number)
{
    struct generation *generation = master->draining;
    if (master->current->number == number)
        return master->current;
    while (generation && generation->number != number)
        generation = generation->next;
    return generation;
}

/* The member that a record is about. */
static struct member *place_of(const struct generation *generation, uint32_t worker)
{
    unsigned index = worker > 0 ? worker - 1 : generation->workers;
    return index < generation->nmembers ? &generation->members[index] : NULL;
}

static void settle(struct member *member, const struct legacy_child *from, struct child *child)
{
    int64_t left = from->deadline - clock_monotonic();
    member->child = child;
    member->roster = (struct roster_member){
        .state = !child                               ? ROSTER_WAITING
                 : (from->flags & LEGACY_CHILD_READY) ? ROSTER_SERVING
                                                      : ROSTER_STARTING,
        .failures = from->failures,
        .restarts = from->restarts,
        .ready_since = from->ready_since,
    };
    if (child)
        return;
    member->roster.delay = left > 0 && left < ROSTER_BACK_OFF_MOST ? left : 0;
    generation_back_off(member, member->roster.delay);
}

static struct child *adopt_child(struct adoption *adoption, const struct legacy_child *from)
{
    struct master *master = adoption->master;
    struct scoreboard_slot *slot = &master->scoreboard->slot[from->slot];
    struct child *child = calloc(1, sizeof(*child));
    if (!child || atomic_load(&slot->role) == SCOREBOARD_FREE) {
        fail(adoption, child ? "a child has no place in the scoreboard" : "out of memory");
        free(child);
        return NULL;
    }
    *child = (struct child){
        .master = master,
        .generation = find_generation(master, from->generation),
        .pid = from->pid,
        .worker = from->worker,
        .slot = slot,
        .channel = from->channel,
        .born = from->born,
        .is_ready = from->flags & LEGACY_CHILD_READY,
        .is_serving = from->flags & LEGACY_CHILD_SERVING,
        .is_draining = from->flags & LEGACY_CHILD_DRAINING,
        .has_closed = from->flags & LEGACY_CHILD_CLOSED,
        .is_stopped = from->flags & LEGACY_CHILD_STOPPED,
        .has_reopened = true,
    };
    child_watch(child);
    int64_t left = from->deadline - clock_monotonic();
    if (from->deadline != 0)
        child_expect(child, left > 0 ? left : 0);
    return child;
}

static int adopt_children(struct adoption *adoption)
{
    struct generation *current = adoption->master->current;
    const struct legacy_child *records = legacy_list(adoption->legacy, LEGACY_CHILDREN);
    if (prepare_members(current) == -1)
        return fail(adoption, "out of memory");
    current->nready = current->nmembers;
    for (uint32_t i = 0; i < count_of(adoption, LEGACY_CHILDREN); i++) {
        struct child *child = NULL;
        if (records[i].pid > 0 && !(child = adopt_child(adoption, &records[i])))
            return -1;
        if (!(records[i].flags & LEGACY_CHILD_PLACED))
            continue;
        struct member *member = place_of(current, records[i].worker);
        if (!member || member->roster.state != ROSTER_VACANT)
            return fail(adoption, "two children have one place, or one has none");
        settle(member, &records[i], child);
        if (child)
            child->member = member;
    }
    return 0;
}

static int adopt_keepers(struct adoption *adoption)
{
    const struct generation *current = adoption->master->current;
    const struct legacy_keeper *records = legacy_list(adoption->legacy, LEGACY_KEEPERS);
    for (uint32_t i = 0; i < count_of(adoption, LEGACY_KEEPERS) && i < current->nkeepers; i++)
        if (records[i].worker > 0)
            current->keepers[i] = current->members[records[i].worker - 1].child;
    return 0;
}

static int adopt_totals(struct adoption *adoption)
{
    struct totals *totals = &adoption->master->totals;
    const struct legacy_total *records = legacy_list(adoption->legacy, LEGACY_TOTALS);
    for (uint32_t i = 0; i < count_of(adoption, LEGACY_TOTALS); i++)
        if (totals_add_route(totals, text_of(adoption, records[i].path), records[i].responses) ==
            -1)
            return fail(adoption, "out of memory");
    memcpy(totals->latency, adoption->legacy->latency, sizeof(totals->latency));
    totals->latency_sum = adoption->legacy->latency_sum;
    return 0;
}

/* For tests: of an upgrade nothing comes, so that it must be given back. */
static int adopt_fault(struct adoption *adoption)
{
#ifdef ENABLE_FAULTS
    if (getenv("HAYATE_FAULT_ADOPT") && !(adoption->legacy->flags & LEGACY_FAILED))
        return fail(adoption, "a fault");
#endif
    (void)adoption;
    return 0;
}

/* Nothing goes back after this: it may close descriptors. */
static void adopt_clients(struct adoption *adoption)
{
    const struct legacy *legacy = adoption->legacy;
    const struct legacy_client *records = legacy_list(legacy, LEGACY_CLIENTS);
    for (uint32_t i = 0; i < count_of(adoption, LEGACY_CLIENTS); i++) {
        const struct control_client client = {
            .fd = records[i].fd,
            .wait = (enum control_wait)records[i].wait,
            .is_answered = records[i].answer,
            .text = { (const char *)legacy + records[i].bytes, records[i].length },
        };
        control_adopt(adoption->master->control, &client);
    }
}

void adopt_end(struct master *master, struct legacy *legacy)
{
    static int (*const steps[])(struct adoption * adoption) = {
        adopt_generations, adopt_sockets, adopt_children, adopt_keepers, adopt_totals, adopt_fault,
    };
    struct adoption adoption = { .master = master, .legacy = legacy };
    master->address_key = legacy->address_key;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        if (steps[i](&adoption) == -1)
            give_up(&adoption);
    const struct conf *conf = master->current->conf;
    log_set_format(conf->log_format, conf->log_level);
    master->numbers = legacy->generation;
    master->reload.is_wanted = legacy->flags & LEGACY_RELOAD_WANTED;
    if (!(legacy->flags & LEGACY_FAILED))
        master->reload.running = ++master->reload.last; /* the proof */
    adopt_clients(&adoption);
    control_listen(master->control, &master->current->control);
    watchdog_renew(master);
    master_reap(master); /* who has ended meanwhile */
    master_update(master);
    oom_begin(&master->oom);
    upgrade_take_over(master, legacy);
    free(legacy);
}
