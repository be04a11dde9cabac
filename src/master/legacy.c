#include "master/legacy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/scoreboard.h"
#include "base/tally.h"
#include "master/control.h"

/* More than any configuration comes to. */
#define SIZE_MOST (UINT32_C(1) << 30)

_Static_assert(sizeof(((struct legacy *)0)->latency) == TALLY_BUCKETS * sizeof(uint64_t) &&
                   sizeof(((struct legacy_total *)0)->responses) ==
                       TALLY_CLASSES * sizeof(uint64_t),
               "a new shape of the tally is a new version of the legacy");

static const size_t element_sizes[LEGACY_LISTS] = {
    [LEGACY_GENERATIONS] = sizeof(struct legacy_generation),
    [LEGACY_SOURCES] = sizeof(struct legacy_source),
    [LEGACY_SOCKETS] = sizeof(struct legacy_socket),
    [LEGACY_CHILDREN] = sizeof(struct legacy_child),
    [LEGACY_KEEPERS] = sizeof(struct legacy_keeper),
    [LEGACY_TOTALS] = sizeof(struct legacy_total),
    [LEGACY_CLIENTS] = sizeof(struct legacy_client),
};

size_t legacy_element_size(enum legacy_list_kind kind)
{
    return element_sizes[kind];
}

const void *legacy_list(const struct legacy *legacy, enum legacy_list_kind kind)
{
    return (const char *)legacy + legacy->lists[kind].offset;
}

const char *legacy_text(const struct legacy *legacy, uint32_t offset)
{
    return offset ? (const char *)legacy + offset : NULL;
}

static bool has_bytes(const struct legacy *legacy, uint32_t offset, uint64_t length)
{
    return offset >= sizeof(*legacy) && offset <= legacy->size && length <= legacy->size - offset;
}

static bool has_text(const struct legacy *legacy, uint32_t offset)
{
    return has_bytes(legacy, offset, 1) &&
           memchr((const char *)legacy + offset, '\0', legacy->size - offset);
}

static bool has_text_or_none(const struct legacy *legacy, uint32_t offset)
{
    return offset == 0 || has_text(legacy, offset);
}

static bool has_list(const struct legacy *legacy, enum legacy_list_kind kind)
{
    const struct legacy_list *list = &legacy->lists[kind];
    return list->offset % sizeof(uint64_t) == 0 &&
           has_bytes(legacy, list->offset, (uint64_t)list->count * element_sizes[kind]);
}

static bool is_workers(uint32_t workers)
{
    return workers >= 1 && workers < SCOREBOARD_SLOTS;
}

static const struct legacy_generation *find_generation(const struct legacy *legacy, uint64_t number)
{
    const struct legacy_generation *generations = legacy_list(legacy, LEGACY_GENERATIONS);
    for (uint32_t i = 0; i < legacy->lists[LEGACY_GENERATIONS].count; i++)
        if (generations[i].number == number)
            return &generations[i];
    return NULL;
}

/* One check a kind, of element i. */

static bool is_generation(const struct legacy *legacy, uint32_t i)
{
    const struct legacy_generation *generation = legacy_list(legacy, LEGACY_GENERATIONS);
    generation += i;
    uint32_t sources = legacy->lists[LEGACY_SOURCES].count;
    return generation->is_current == (i == 0) && generation->number <= legacy->generation &&
           find_generation(legacy, generation->number) == generation &&
           is_workers(generation->workers) && generation->source <= sources &&
           generation->nsources <= sources - generation->source;
}

static bool is_source(const struct legacy *legacy, uint32_t i)
{
    const struct legacy_source *source = legacy_list(legacy, LEGACY_SOURCES);
    source += i;
    return has_text(legacy, source->path) && has_bytes(legacy, source->bytes, source->length);
}

/* The first of its address, or behind the one before. */
static bool is_socket(const struct legacy *legacy, uint32_t i)
{
    const struct legacy_socket *socket = legacy_list(legacy, LEGACY_SOCKETS);
    socket += i;
    if (socket->role >= LEGACY_ROLES || socket->part > 1 || !has_text(legacy, socket->entry))
        return false;
    if (socket->slot == 0)
        return true;
    const struct legacy_socket *before = socket - 1;
    return i > 0 && before->role == socket->role && before->part == socket->part &&
           before->entry == socket->entry && before->slot == socket->slot - 1;
}

static bool is_child(const struct legacy *legacy, uint32_t i)
{
    const struct legacy_child *child = legacy_list(legacy, LEGACY_CHILDREN);
    child += i;
    const struct legacy_generation *generation = find_generation(legacy, child->generation);
    bool is_placed = child->flags & LEGACY_CHILD_PLACED;
    return generation && child->pid >= 0 && child->slot < SCOREBOARD_SLOTS &&
           child->worker <= generation->workers && (child->pid > 0 || is_placed) &&
           (!is_placed || generation->is_current);
}

static bool is_keeper(const struct legacy *legacy, uint32_t i)
{
    const struct legacy_keeper *keeper = legacy_list(legacy, LEGACY_KEEPERS);
    const struct legacy_generation *current = legacy_list(legacy, LEGACY_GENERATIONS);
    return keeper[i].worker <= current->workers;
}

static bool is_total(const struct legacy *legacy, uint32_t i)
{
    const struct legacy_total *total = legacy_list(legacy, LEGACY_TOTALS);
    return has_text_or_none(legacy, total[i].path);
}

static bool is_client(const struct legacy *legacy, uint32_t i)
{
    const struct legacy_client *client = legacy_list(legacy, LEGACY_CLIENTS);
    client += i;
    return client->wait < CONTROL_WAITS && client->answer <= 1 &&
           has_bytes(legacy, client->bytes, client->length);
}

static bool (*const checks[LEGACY_LISTS])(const struct legacy *legacy, uint32_t i) = {
    [LEGACY_GENERATIONS] = is_generation, [LEGACY_SOURCES] = is_source,
    [LEGACY_SOCKETS] = is_socket,         [LEGACY_CHILDREN] = is_child,
    [LEGACY_KEEPERS] = is_keeper,         [LEGACY_TOTALS] = is_total,
    [LEGACY_CLIENTS] = is_client,
};

static bool is_sound(const struct legacy *legacy)
{
    if (!has_text(legacy, legacy->path) || !has_text(legacy, legacy->program) ||
        !has_text_or_none(legacy, legacy->reason))
        return false;
    for (enum legacy_list_kind kind = 0; kind < LEGACY_LISTS; kind++)
        if (!has_list(legacy, kind))
            return false;
    if (legacy->lists[LEGACY_GENERATIONS].count == 0)
        return false;
    for (enum legacy_list_kind kind = 0; kind < LEGACY_LISTS; kind++)
        for (uint32_t i = 0; i < legacy->lists[kind].count; i++)
            if (!checks[kind](legacy, i))
                return false;
    return true;
}

__attribute__((format(printf, 2, 3))) static int fail(struct legacy_error *error,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return -1;
}

/* What the versions have in common comes first. */
static int check(const struct legacy *legacy, size_t size, struct legacy_error *error)
{
    if (size < offsetof(struct legacy, pid) || legacy->magic != LEGACY_MAGIC)
        return fail(error, "it is none");
    if (legacy->version != LEGACY_VERSION)
        return fail(error, "its version is %" PRIu32 ", and only %d is understood", legacy->version,
                    LEGACY_VERSION);
    if (size < sizeof(*legacy) || legacy->size != size)
        return fail(error, "its size is wrong");
    if (!is_sound(legacy))
        return fail(error, "it is damaged");
    return 0;
}

struct legacy *legacy_read(int fd, struct legacy_error *error)
{
    struct stat status;
    if (fstat(fd, &status) == -1 || !S_ISREG(status.st_mode) || status.st_size > SIZE_MOST) {
        fail(error, "descriptor %d holds none", fd);
        return NULL;
    }
    size_t size = (size_t)status.st_size, read = 0;
    struct legacy *legacy = calloc(1, size > sizeof(*legacy) ? size : sizeof(*legacy));
    if (!legacy) {
        fail(error, "out of memory");
        return NULL;
    }
    while (read < size) {
        ssize_t got = pread(fd, (char *)legacy + read, size - read, (off_t)read);
        if (got <= 0)
            break;
        read += (size_t)got;
    }
    if (check(legacy, read, error) == -1) {
        free(legacy);
        return NULL;
    }
    return legacy;
}

static int set_cloexec(int fd, bool is_on)
{
    return fd == -1 ? 0 : fd_set_cloexec(fd, is_on);
}

int legacy_set_cloexec(const struct legacy *legacy, bool is_on)
{
    const struct legacy_generation *generation = legacy_list(legacy, LEGACY_GENERATIONS);
    const struct legacy_socket *socket = legacy_list(legacy, LEGACY_SOCKETS);
    const struct legacy_child *child = legacy_list(legacy, LEGACY_CHILDREN);
    const struct legacy_client *client = legacy_list(legacy, LEGACY_CLIENTS);
    const int fds[] = { legacy->old_binary_fd, legacy->new_binary_fd, legacy->scoreboard_fd,
                        legacy->watchdog_fd, legacy->log_fd };
    int result = 0;
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        result |= set_cloexec(fds[i], is_on);
    for (uint32_t i = 0; i < legacy->lists[LEGACY_GENERATIONS].count; i++)
        result |= set_cloexec(generation[i].tally_fd, is_on) |
                  set_cloexec(generation[i].access_fd, is_on);
    for (uint32_t i = 0; i < legacy->lists[LEGACY_SOCKETS].count; i++)
        result |= set_cloexec(socket[i].fd, is_on);
    for (uint32_t i = 0; i < legacy->lists[LEGACY_CHILDREN].count; i++)
        result |= set_cloexec(child[i].channel, is_on);
    for (uint32_t i = 0; i < legacy->lists[LEGACY_CLIENTS].count; i++)
        result |= set_cloexec(client[i].fd, is_on);
    return result;
}
