#include "master/oom.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cgroup.h"
#include "base/clock.h"

/* A rise that no death has explained for so long was of another process. */
#define PATIENCE (10 * CLOCK_SECOND)

#define SYSTEM "/proc/vmstat"

struct count {
    bool is_found;
    uint64_t value;
    char source[sizeof(((struct oom *)0)->source)];
};

/* The number in the line "oom_kill NUMBER". */
static bool find_count(const char *text, uint64_t *value)
{
    static const char name[] = "oom_kill ";
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, sizeof(name) - 1) != 0)
            continue;
        const char *digits = line + sizeof(name) - 1;
        char *end;
        errno = 0;
        *value = strtoull(digits, &end, 10);
        return *digits >= '0' && *digits <= '9' && errno == 0;
    }
    return false;
}

static void read_count(struct count *count, const char *path)
{
    struct buf text = { 0 };
    if (!count->is_found && cgroup_read(&text, path) == 0 && buf_string(&text) &&
        find_count(text.data, &count->value)) {
        count->is_found = true;
        snprintf(count->source, sizeof(count->source), "%s", path);
    }
    buf_fini(&text);
}

/* Without those of groups below ours, where the kernel tells. */
static void visit(void *context, const struct cgroup *place)
{
    static const char *const files[2][3] = {
        { "memory.oom_control", NULL },
        { "memory.events.local", "memory.events", NULL },
    };
    for (const char *const *file = files[place->is_v2]; *file; file++) {
        struct buf path = { 0 };
        if (buf_add_string(&path, place->root) == 0 && buf_add_slice(&path, place->mount) == 0 &&
            buf_add_slice(&path, place->below) == 0 && buf_printf(&path, "/%s", *file) == 0 &&
            buf_string(&path))
            read_count(context, path.data);
        buf_fini(&path);
    }
}

static bool look(const struct oom *oom, struct count *count)
{
    char path[sizeof(count->source)];
    const char *root = oom->root ? oom->root : "";
    *count = (struct count){ 0 };
    cgroup_each(root, "memory", visit, count);
    if (!count->is_found && (size_t)snprintf(path, sizeof(path), "%s" SYSTEM, root) < sizeof(path))
        read_count(count, path);
    return count->is_found;
}

static void note(struct oom *oom, const struct count *count, int64_t now)
{
    oom->last = count->value;
    oom->looked = now;
    memcpy(oom->source, count->source, sizeof(oom->source));
}

void oom_begin(struct oom *oom)
{
    struct count count;
    if (oom->has_begun)
        return;
    oom->has_begun = true;
    if (look(oom, &count)) {
        oom->explained = count.value;
        note(oom, &count, clock_monotonic());
    }
    malloc_trim(0); /* a list of mounts may be long */
}

const char *oom_explain(struct oom *oom, int64_t now, char *text)
{
    struct count count;
    text[0] = '\0';
    if (!look(oom, &count))
        return text;
    bool is_known = strcmp(oom->source, count.source) == 0;
    bool is_ours = !strstr(count.source, SYSTEM);
    if (!is_known)
        oom->explained = 0; /* the start, or somebody has moved us to another group */
    else if (now - oom->looked > PATIENCE)
        oom->explained = oom->last;
    if (count.value > oom->explained) {
        oom->explained = is_known ? oom->explained + 1 : count.value;
        snprintf(text, OOM_TEXT_SIZE,
                 "%sby the kernel, out of memory: oom_kill of the %s %s %" PRIu64,
                 is_known && is_ours ? "" : "perhaps ", is_ours ? "cgroup" : "system",
                 is_known ? "rose to" : "is", count.value);
    } else {
        oom->explained = count.value;
    }
    note(oom, &count, now);
    return text;
}
