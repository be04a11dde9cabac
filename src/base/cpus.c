#include "base/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cgroup.h"

#define CPUS_MAX (1 << 20)

/* The tightest quota seen so far. */
struct quota {
    uint64_t cpus; /* 0: none */
    uint64_t quota, period;
    char group[128]; /* cut to fit */
};

static uint64_t quota_cpus(uint64_t quota, uint64_t period)
{
    return quota / period + (quota % period != 0);
}

static void take_quota(struct quota *least, uint64_t quota, uint64_t period, struct slice group)
{
    if (quota == 0 || period == 0)
        return;
    uint64_t cpus = quota_cpus(quota, period);
    if (least->cpus != 0 && cpus >= least->cpus)
        return;
    least->cpus = cpus;
    least->quota = quota;
    least->period = period;
    snprintf(least->group, sizeof(least->group), "%.*s", (int)group.length, group.data);
}

/* Up to two whole numbers in a file of a group: how many there were. */
static int read_numbers(const char *directory, const char *name, uint64_t numbers[2])
{
    struct buf path = { 0 }, text = { 0 };
    int count = 0;

    if (buf_printf(&path, "%s/%s", directory, name) == 0 && buf_string(&path) &&
        cgroup_read(&text, path.data) == 0 && buf_string(&text)) {
        const char *at = text.data;
        for (; count < 2; count++) {
            char *end;
            while (*at == ' ')
                at++;
            if (*at < '0' || *at > '9') /* "max", and -1 for none */
                break;
            errno = 0;
            numbers[count] = strtoull(at, &end, 10);
            if (errno != 0)
                break;
            at = end;
        }
    }
    buf_fini(&path);
    buf_fini(&text);
    return count;
}

static void read_quota(struct quota *least, const char *directory, bool is_v2, struct slice group)
{
    uint64_t numbers[2];
    if (is_v2) {
        if (read_numbers(directory, "cpu.max", numbers) == 2)
            take_quota(least, numbers[0], numbers[1], group);
        return;
    }
    uint64_t period[2];
    if (read_numbers(directory, "cpu.cfs_quota_us", numbers) > 0 &&
        read_numbers(directory, "cpu.cfs_period_us", period) > 0)
        take_quota(least, numbers[0], period[0], group);
}

/* The quotas of our group and of all its ancestors, as far as they are mounted. */
static void read_quotas(void *context, const struct cgroup *place)
{
    struct quota *least = context;
    struct buf directory = { 0 };
    size_t hidden = place->path.length - place->below.length;

    if (buf_add_string(&directory, place->root) == -1 ||
        buf_add_slice(&directory, place->mount) == -1)
        goto out;
    size_t top = directory.length;
    if (buf_add_slice(&directory, place->below) == -1)
        goto out;
    for (;;) {
        size_t depth = directory.length - top;
        struct slice group =
            depth > 0 ? (struct slice){ place->path.data, hidden + depth } : place->mount_root;
        if (!buf_string(&directory))
            break;
        read_quota(least, directory.data, place->is_v2, group);
        if (directory.length == top)
            break;
        do
            directory.length--;
        while (directory.length > top && directory.data[directory.length] != '/');
    }
out:
    buf_fini(&directory);
}

static unsigned find_affinity(void)
{
    /* The kernel refuses a set that is smaller than its own. */
    for (int size = 1024; size <= CPUS_MAX; size *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)size);
        if (!set)
            break;
        int result = sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)size), set);
        bool is_too_small = result == -1 && errno == EINVAL;
        int count = result == 0 ? CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)size), set) : 0;
        CPU_FREE(set);
        if (result == 0)
            return count > 0 ? (unsigned)count : 1;
        if (!is_too_small)
            break;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned cpus_count(const char *root, unsigned affinity, char *why, size_t size)
{
    struct quota least = { 0 };

    if (affinity == 0)
        affinity = find_affinity();
    cgroup_each(root, "cpu", read_quotas, &least);
    if (least.cpus != 0 && least.cpus < affinity) {
        snprintf(why, size, "%llu by the cgroup quota of %llu/%llu us in %s",
                 (unsigned long long)least.cpus, (unsigned long long)least.quota,
                 (unsigned long long)least.period, least.group);
        return (unsigned)least.cpus;
    }
    snprintf(why, size, "%u CPU%s by affinity", affinity, affinity == 1 ? "" : "s");
    return affinity;
}
