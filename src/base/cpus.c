#include "base/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#define CPUS_MAX (1 << 20)

/* The tightest quota seen so far. */
struct quota {
    uint64_t cpus; /* 0: none */
    uint64_t quota, period;
    char group[128]; /* cut to fit */
};

static int read_file(struct buf *out, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    if (fd == -1)
        return -1;
    while (buf_reserve(out, 4096) == 0) {
        got = read(fd, out->data + out->length, 4096);
        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        out->length += (size_t)got;
    }
    fd_close(&fd);
    return got == 0 ? 0 : -1;
}

/* Takes what stands before the next `end` off the front of *rest. */
static bool next_part(struct slice *rest, char end, struct slice *part)
{
    if (rest->length == 0)
        return false;
    const char *found = memchr(rest->data, end, rest->length);
    size_t length = found ? (size_t)(found - rest->data) : rest->length;
    *part = (struct slice){ rest->data, length };
    length += found != NULL;
    *rest = (struct slice){ rest->data + length, rest->length - length };
    return true;
}

static bool has_controller(struct slice list, struct slice controller)
{
    struct slice member;
    while (next_part(&list, ',', &member))
        if (slice_equal(member, controller))
            return true;
    return false;
}

/*
 * Our path in one hierarchy, from /proc/self/cgroup ("4:cpu,cpuacct:/a/b", "0::/a/b"). False: the
 * hierarchy is not there.
 */
static bool find_group(struct slice groups, bool is_v2, struct slice *path)
{
    struct slice line, number, controllers;
    while (next_part(&groups, '\n', &line)) {
        if (!next_part(&line, ':', &number) || !next_part(&line, ':', &controllers))
            continue;
        bool is_it = is_v2 ? controllers.length == 0 && slice_equal(number, SLICE("0"))
                           : has_controller(controllers, SLICE("cpu"));
        if (is_it && line.length > 0 && line.data[0] == '/') {
            *path = line;
            return true;
        }
    }
    return false;
}

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
        read_file(&text, path.data) == 0 && buf_string(&text)) {
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

/* `path` below `root`, when it lies there: "/a/b" below "/a" is "/b". */
static struct slice below(struct slice path, struct slice root)
{
    if (root.length == 1)
        root.length = 0;
    bool is_below = path.length >= root.length && memcmp(path.data, root.data, root.length) == 0 &&
                    (path.length == root.length || path.data[root.length] == '/');
    /* In a container the mount may be of our own group, whatever the path is called outside. */
    if (!is_below || memmem(path.data, path.length, "/..", 3))
        return (struct slice){ "", 0 };
    struct slice rest = { path.data + root.length, path.length - root.length };
    if (rest.length == 1)
        rest.length = 0;
    return rest;
}

/* The quotas of our group and of all its ancestors, as far as they are mounted. */
static void read_mount(struct quota *least, const char *root, struct slice mount,
                       struct slice mount_root, struct slice path, bool is_v2)
{
    struct buf directory = { 0 };
    struct slice rest = below(path, mount_root);
    size_t hidden = path.length - rest.length;

    if (buf_add_string(&directory, root) == -1 || buf_add_slice(&directory, mount) == -1)
        goto out;
    size_t top = directory.length;
    if (buf_add_slice(&directory, rest) == -1)
        goto out;
    for (;;) {
        size_t depth = directory.length - top;
        struct slice group = depth > 0 ? (struct slice){ path.data, hidden + depth } : mount_root;
        if (!buf_string(&directory))
            break;
        read_quota(least, directory.data, is_v2, group);
        if (directory.length == top)
            break;
        do
            directory.length--;
        while (directory.length > top && directory.data[directory.length] != '/');
    }
out:
    buf_fini(&directory);
}

/* Undoes the octal escapes of mountinfo ("\040" is a space), in place. */
static struct slice unescape(char *data, size_t length)
{
    size_t to = 0;
    for (size_t i = 0; i < length; i++, to++) {
        data[to] = data[i];
        if (data[i] == '\\' && i + 3 < length) {
            data[to] =
                (char)((data[i + 1] - '0') * 64 + (data[i + 2] - '0') * 8 + (data[i + 3] - '0'));
            i += 3;
        }
    }
    return (struct slice){ data, to };
}

/*
 * A line of /proc/self/mountinfo: "36 35 98:0 /root /mount options... - type source options".
 * See proc(5).
 */
static void take_mount(struct quota *least, const char *root, struct slice line,
                       struct slice groups)
{
    struct slice part, mount_root = { 0 }, mount = { 0 }, type, source, path;

    for (int i = 0; i < 5; i++) {
        if (!next_part(&line, ' ', &part))
            return;
        if (i == 3)
            mount_root = part;
        mount = part;
    }
    do
        if (!next_part(&line, ' ', &part))
            return;
    while (!slice_equal(part, SLICE("-")));
    if (!next_part(&line, ' ', &type) || !next_part(&line, ' ', &source))
        return;
    bool is_v2 = slice_equal(type, SLICE("cgroup2"));
    bool is_v1 = slice_equal(type, SLICE("cgroup")) && has_controller(line, SLICE("cpu"));
    if ((!is_v1 && !is_v2) || !find_group(groups, is_v2, &path))
        return;
    mount_root = unescape((char *)mount_root.data, mount_root.length);
    mount = unescape((char *)mount.data, mount.length);
    read_mount(least, root, mount, mount_root, path, is_v2);
}

static void find_quota(struct quota *least, const char *root)
{
    struct buf path = { 0 }, groups = { 0 }, mounts = { 0 };
    struct slice line;

    if (buf_printf(&path, "%s/proc/self/cgroup", root) == -1 || !buf_string(&path) ||
        read_file(&groups, path.data) == -1)
        goto out;
    path.length = 0;
    if (buf_printf(&path, "%s/proc/self/mountinfo", root) == -1 || !buf_string(&path) ||
        read_file(&mounts, path.data) == -1)
        goto out;
    struct slice rest = buf_slice(&mounts);
    while (next_part(&rest, '\n', &line))
        take_mount(least, root, line, buf_slice(&groups));
out:
    buf_fini(&path);
    buf_fini(&groups);
    buf_fini(&mounts);
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
    find_quota(&least, root);
    if (least.cpus != 0 && least.cpus < affinity) {
        snprintf(why, size, "%llu by the cgroup quota of %llu/%llu us in %s",
                 (unsigned long long)least.cpus, (unsigned long long)least.quota,
                 (unsigned long long)least.period, least.group);
        return (unsigned)least.cpus;
    }
    snprintf(why, size, "%u CPU%s by affinity", affinity, affinity == 1 ? "" : "s");
    return affinity;
}
