/*
 * cpus: how many processors this process may use.
 */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include <stddef.h>

/*
 * The lesser of the CPU affinity and the cgroup quota (v1 and v2: ceil(quota / period), the least
 * over the own group and all its ancestors), at least 1. `why` says what decided, for the log:
 * "2 CPUs by affinity", "1 by the cgroup quota of 50000/100000 us in /a/b". `root` is "" for the
 * real file systems, or the top of a fixture tree with proc/self/cgroup, proc/self/mountinfo and
 * sys/fs/cgroup below it. `affinity` 0: ask the kernel.
 */
unsigned cpus_count(const char *root, unsigned affinity, char *why, size_t size);

#endif
