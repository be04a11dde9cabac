#include "master/prepare.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/tally.h"
#include "conf/conf.h"
#include "master/generation.h"
#include "master/master.h"

#define LOG_MODE 0640
#define UNIX_MODE 0666
#define CONTROL_MODE 0600
/* Descriptors of a worker beside connections and listening sockets: those that are refused or not
 * let in yet (64 each), and its own. */
#define SPARE_DESCRIPTORS 192

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

int prepare_logs(const struct conf *conf, struct sink *log, struct sink *access,
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

/* Made when it is needed first, and kept over reloads: connections of before and after go the same
 * way. */
static uint32_t address_key(struct master *master)
{
    while (master->address_key == 0)
        if (getrandom(&master->address_key, sizeof(master->address_key), GRND_NONBLOCK) == -1)
            master->address_key = (uint32_t)clock_monotonic() | 1;
    return master->address_key;
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
    if (conf->limits.per_address > 0)
        generation->listeners.address_key = address_key(generation->master);
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

/* How many connections a worker may have: all of them, as far as its descriptors reach. */
static void limit_connections(struct generation *generation)
{
    int64_t wanted = generation->conf->limits.connections;
    unsigned workers = generation->workers;
    unsigned long sockets = SPARE_DESCRIPTORS;
    for (size_t i = 0; i < generation->listeners.count; i++)
        sockets += generation->listeners.items[i]->nfds;
    unsigned long most = wanted > 0 ? (unsigned long)wanted : 1UL << 20;
    unsigned long limit = fd_raise_limit(most + sockets);
    if (limit >= most + sockets) {
        generation->connections = (unsigned)wanted;
        return;
    }
    generation->connections = (unsigned)(limit > sockets + 1 ? limit - sockets : 1);
    if (wanted == 0)
        log_warning(
            "limits.connections = 0 is unlimited, but the hard limit on descriptors is %lu: "
            "each of %u workers takes at most %u connections",
            limit, workers, generation->connections);
    else if ((int64_t)generation->connections * workers < wanted)
        log_warning("limits.connections = %" PRId64 " needs %lu descriptors a worker and the hard "
                    "limit is %lu: each of %u workers takes at most %u connections",
                    wanted, (most + workers - 1) / workers + sockets, limit, workers,
                    generation->connections);
}

int prepare_members(struct generation *generation)
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

int prepare_generation(struct generation *generation, struct generation_error *error)
{
    const struct conf *conf = generation->conf;
    generation->log = generation->access = SINK_INIT;
    generation->tally_fd = -1;
    generation->workers = count_workers(conf);
    if (prepare_logs(conf, &generation->log, &generation->access, error) == -1)
        return -1;
    generation->log_is_journal = conf->log.kind == CONF_SINK_STDERR && log_is_journal(2);
    if (prepare_listeners(generation, error) == -1)
        return -1;
    limit_connections(generation);
    generation->tally = tally_new(conf->nroutes, &generation->tally_fd);
    if (generation->tally && prepare_members(generation) == 0)
        return 0;
    snprintf(error->text, sizeof(error->text), "out of memory");
    return -1;
}
