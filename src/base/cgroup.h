/*
 * cgroup: where the files of this process's control group are, v1 and v2.
 */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdbool.h>

#include "base/slice.h"

struct buf;

/* Our group in a hierarchy that is mounted. Its files are in root + mount + below. */
struct cgroup {
    const char *root;        /* as of cgroup_each */
    struct slice mount;      /* the mount point */
    struct slice mount_root; /* the group that is mounted there */
    struct slice path;       /* our group */
    struct slice below;      /* what of the path is below the mount: "", or "/a/b" */
    bool is_v2;
};

/*
 * Calls `visit` for each mounted hierarchy of v1 that has this controller, and of v2, whatever
 * that has. `root` is "" for the real file systems, or the top of a fixture tree with
 * proc/self/cgroup, proc/self/mountinfo and sys/fs/cgroup below it. The slices live during the call.
 */
void cgroup_each(const char *root, const char *controller,
                 void (*visit)(void *context, const struct cgroup *place), void *context);

/* Adds what a file holds. -1 with errno. */
int cgroup_read(struct buf *out, const char *path);

#endif
