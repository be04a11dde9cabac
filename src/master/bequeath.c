#include "master/bequeath.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "conf/conf.h"
#include "master/child.h"
#include "master/control.h"
#include "master/legacy.h"
#include "master/master.h"

/* The lists grow beside the body, and follow it in the end. */
struct writer {
    const struct master *master;
    struct buf body; /* the header first */
    struct buf lists[LEGACY_LISTS];
    bool is_short; /* of memory */
};

/* Returns the offset. */
static uint32_t add_bytes(struct writer *writer, const void *data, size_t length)
{
    size_t offset = writer->body.length;
    if (length > UINT32_MAX / 2 || offset > UINT32_MAX / 2 ||
        (length > 0 && buf_add(&writer->body, data, length) == -1))
        writer->is_short = true;
    return (uint32_t)offset;
}

static uint32_t add_text(struct writer *writer, const char *text)
{
    return text ? add_bytes(writer, text, strlen(text) + 1) : 0;
}

static void add_element(struct writer *writer, enum legacy_list_kind kind, const void *element)
{
    if (buf_add(&writer->lists[kind], element, legacy_element_size(kind)) == -1)
        writer->is_short = true;
}

static uint32_t count_elements(const struct writer *writer, enum legacy_list_kind kind)
{
    return (uint32_t)(writer->lists[kind].length / legacy_element_size(kind));
}

/* When a timer ends, on the monotonic clock; 0: it does not run. */
static int64_t end_of(const struct master *master, const ev_timer *timer)
{
    if (!ev_is_active(timer))
        return 0;
    ev_tstamp left = ev_timer_remaining(master->loop, (ev_timer *)timer);
    return clock_monotonic() + (left > 0 ? (int64_t)(left * 1e9) : 0);
}

static void add_generation(struct writer *writer, const struct generation *generation)
{
    const struct files *files = &generation->conf->files;
    struct legacy_generation record = {
        .number = generation->number,
        .is_current = generation == writer->master->current,
        .workers = generation->workers,
        .connections = generation->connections,
        .tally_fd = generation->tally_fd,
        .access_fd = generation->access.fd,
        .source = count_elements(writer, LEGACY_SOURCES),
        .nsources = (uint32_t)files->nsources,
        .uid = generation->conf->uid,
        .gid = generation->conf->gid,
    };
    for (size_t i = 0; i < files->nsources; i++) {
        const struct files_source *source = &files->sources[i];
        struct legacy_source file = { .path = add_text(writer, source->path),
                                      .bytes = add_bytes(writer, source->bytes, source->length),
                                      .length = (uint32_t)source->length };
        add_element(writer, LEGACY_SOURCES, &file);
    }
    add_element(writer, LEGACY_GENERATIONS, &record);
}

static void add_sockets(struct writer *writer, const struct listener_set *set,
                        enum legacy_role role)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct listener *listener = set->items[i];
        struct legacy_socket record = {
            .entry = add_text(writer, listener->text),
            .part = listener->part,
            .role = role,
            .mode = listener->mode,
            .device = listener->device,
            .inode = listener->inode,
        };
        for (record.slot = 0; record.slot < listener->nfds; record.slot++) {
            record.fd = listener->fds[record.slot];
            add_element(writer, LEGACY_SOCKETS, &record);
        }
    }
}

static void add_place(struct legacy_child *record, const struct member *member)
{
    record->flags |= LEGACY_CHILD_PLACED;
    record->ready_since = member->roster.ready_since;
    record->restarts = member->roster.restarts;
    record->failures = member->roster.failures;
}

static void add_child(struct writer *writer, const struct child *child)
{
    const struct master *master = writer->master;
    struct legacy_child record = {
        .pid = child->pid,
        .channel = child->channel,
        .worker = child->worker,
        .slot = (uint32_t)(child->slot - master->scoreboard->slot),
        .generation = child->generation->number,
        .born = child->born,
        .deadline = end_of(master, &child->overdue),
        .flags = (child->is_ready ? LEGACY_CHILD_READY : 0U) |
                 (child->is_serving ? LEGACY_CHILD_SERVING : 0U) |
                 (child->is_draining ? LEGACY_CHILD_DRAINING : 0U) |
                 (child->has_closed ? LEGACY_CHILD_CLOSED : 0U) |
                 (child->is_stopped ? LEGACY_CHILD_STOPPED : 0U),
    };
    if (child->member)
        add_place(&record, child->member);
    add_element(writer, LEGACY_CHILDREN, &record);
}

/* Places whose next process waits for the end of a back-off. */
static void add_vacancies(struct writer *writer, const struct generation *current)
{
    for (unsigned i = 0; i < current->nmembers; i++) {
        const struct member *member = &current->members[i];
        struct legacy_child record = {
            .channel = -1,
            .worker = member->worker,
            .generation = current->number,
            .deadline = end_of(writer->master, &member->back_off),
        };
        if (member->child)
            continue;
        add_place(&record, member);
        add_element(writer, LEGACY_CHILDREN, &record);
    }
}

static void add_keepers(struct writer *writer, const struct generation *current)
{
    for (unsigned i = 0; i < current->nkeepers; i++) {
        const struct child *keeper = current->keepers[i];
        struct legacy_keeper record = { .worker = keeper ? keeper->worker : 0 };
        add_element(writer, LEGACY_KEEPERS, &record);
    }
}

static void add_totals(struct writer *writer, struct legacy *header)
{
    const struct totals *totals = &writer->master->totals;
    for (size_t i = 0; i < totals->nroutes; i++) {
        struct legacy_total record = { .path = add_text(writer, totals->routes[i].path) };
        memcpy(record.responses, totals->routes[i].responses, sizeof(record.responses));
        add_element(writer, LEGACY_TOTALS, &record);
    }
    memcpy(header->latency, totals->latency, sizeof(header->latency));
    header->latency_sum = totals->latency_sum;
}

static void add_client(const struct control_client *client, void *context)
{
    struct writer *writer = context;
    struct legacy_client record = {
        .fd = client->fd,
        .wait = client->wait,
        .answer = client->is_answered,
        .bytes = add_bytes(writer, client->text.data, client->text.length),
        .length = (uint32_t)client->text.length,
    };
    add_element(writer, LEGACY_CLIENTS, &record);
}

static void add_all(struct writer *writer, struct legacy *header)
{
    const struct master *master = writer->master;
    const struct generation *current = master->current;
    add_generation(writer, current);
    for (const struct generation *old = master->draining; old; old = old->next)
        add_generation(writer, old);
    add_sockets(writer, &current->listeners, LEGACY_PUBLIC);
    add_sockets(writer, &current->admin_listeners, LEGACY_ADMIN);
    add_sockets(writer, &current->control, LEGACY_CONTROL);
    for (const struct child *child = master->children; child; child = child->next)
        add_child(writer, child);
    add_vacancies(writer, current);
    add_keepers(writer, current);
    add_totals(writer, header);
    control_each(master->control, add_client, writer);
}

/* Puts the lists behind the body, and the header in its place. */
static void finish(struct writer *writer, struct legacy *header)
{
    static const char padding[sizeof(uint64_t)];
    add_bytes(writer, padding, sizeof(padding) - writer->body.length % sizeof(padding));
    for (enum legacy_list_kind kind = 0; kind < LEGACY_LISTS; kind++) {
        const struct buf *list = &writer->lists[kind];
        header->lists[kind].count = count_elements(writer, kind);
        header->lists[kind].offset = add_bytes(writer, list->data, list->length);
    }
    header->size = (uint32_t)writer->body.length;
    if (!writer->is_short)
        memcpy(writer->body.data, header, sizeof(*header));
}

static int store(const void *data, size_t size)
{
    int fd = memfd_create("hayate-legacy", MFD_CLOEXEC);
    size_t written = 0;
    while (fd != -1 && written < size) {
        ssize_t more = write(fd, (const char *)data + written, size - written);
        if (more > 0)
            written += (size_t)more;
        else if (more == 0 || errno != EINTR)
            fd_close(&fd);
    }
    return fd;
}

int bequeath(const struct master *master, const struct bequest_failure *failure,
             struct legacy **copy)
{
    const struct upgrade *upgrade = &master->upgrade;
    struct writer writer = { .master = master };
    struct legacy header = {
        .magic = LEGACY_MAGIC,
        .version = LEGACY_VERSION,
        .pid = getpid(),
        .old_binary_fd = upgrade->old_binary,
        .new_binary_fd = upgrade->new_binary,
        .scoreboard_fd = master->scoreboard_fd,
        .watchdog_fd = master->watchdog.fd,
        .log_fd = log_descriptor() > 2 ? log_descriptor() : -1,
        .flags =
            (failure ? LEGACY_FAILED : 0U) | (master->reload.is_wanted ? LEGACY_RELOAD_WANTED : 0U),
        .status = failure ? (uint32_t)failure->status : 0,
        .address_key = master->address_key,
        .generation = master->numbers,
        .began = upgrade->began,
        .upgrades = upgrade->succeeded,
        .failures = upgrade->failed,
    };
    add_bytes(&writer, &header, sizeof(header));
    header.path = add_text(&writer, upgrade->path);
    header.program = add_text(&writer, PACKAGE_VERSION);
    header.reason = add_text(&writer, failure ? failure->reason : NULL);
    add_all(&writer, &header);
    finish(&writer, &header);
    for (enum legacy_list_kind kind = 0; kind < LEGACY_LISTS; kind++)
        buf_fini(&writer.lists[kind]);
    errno = ENOMEM;
    int fd = writer.is_short ? -1 : store(writer.body.data, writer.body.length);
    if (fd == -1) {
        buf_fini(&writer.body);
        return -1;
    }
    *copy = (struct legacy *)(void *)writer.body.data;
    return fd;
}

int bequeath_again(const struct legacy *legacy, const struct bequest_failure *failure)
{
    struct buf copy = { 0 };
    struct legacy header = *legacy;
    size_t length = strlen(failure->reason) + 1;
    header.flags |= LEGACY_FAILED;
    header.status = (uint32_t)failure->status;
    header.reason = legacy->size;
    header.size += (uint32_t)length;
    int fd = -1;
    if (buf_add(&copy, legacy, legacy->size) == 0 && buf_add(&copy, failure->reason, length) == 0) {
        memcpy(copy.data, &header, sizeof(header));
        fd = store(copy.data, copy.length);
    }
    buf_fini(&copy);
    return fd;
}
