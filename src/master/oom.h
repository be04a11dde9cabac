/*
 * oom: was it the kernel that killed a child, because memory ran out?
 *
 * It does so with SIGKILL, and tells nobody; but it counts: oom_kill in memory.events(.local) of the
 * control group (v2) or in its memory.oom_control (v1), both of our own group; where there is
 * neither, in /proc/vmstat, for the whole system. A child whose death by SIGKILL nobody here has
 * caused is explained when that has risen. Nothing is read at other times but once, for what it
 * was at the start.
 */
#ifndef MASTER_OOM_H
#define MASTER_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oom {
    const char *root; /* "": the real file systems; else a fixture tree, see base/cgroup.h */
    bool has_begun;
    char source[512];   /* the file that was read last; "": none yet */
    uint64_t explained; /* of the count, by deaths, and by what came before us */
    uint64_t last;      /* the count at the last look */
    int64_t looked;     /* monotonic ns */
};

/* What has been counted until now is not about our children. Not at the start, which is not to wait
 * for it. Later calls change nothing. */
void oom_begin(struct oom *oom);

/*
 * For a child killed by a SIGKILL of others, at `now` (monotonic ns): "by the kernel, out of memory:
 * oom_kill of the cgroup rose to 1"; with "perhaps" where the count may be of other processes;
 * the empty string when nothing says so. Returns `text`. Room: OOM_TEXT_SIZE.
 */
#define OOM_TEXT_SIZE 128
const char *oom_explain(struct oom *oom, int64_t now, char *text);

#endif
