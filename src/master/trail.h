/*
 * trail: the names that paths lead over, watched with inotify.
 *
 * For each path, every directory on the way from the root, over every symbolic link, is watched:
 * for its own end, where it leads to a link, a pattern or the end of the path for that name in it,
 * and what stands at the end for writing. So whatever makes the path lead elsewhere, or its end
 * hold something else, is an event; what happens to other names is none. While a path leads
 * nowhere, all names on the way are watched. What a mount hides, or another machine does to a
 * network file system, is not seen.
 *
 * The paths are given anew each time that they may lead elsewhere: begin, follow each, end. Between
 * calls nothing is lost. A failure that leaves the trail useless returns -1 with errno: ENOSPC or
 * EMFILE for the limits of inotify(7), ENOMEM.
 */
#ifndef MASTER_TRAIL_H
#define MASTER_TRAIL_H

#include <limits.h>
#include <stddef.h>

struct trail_name;

struct trail {
    int fd; /* -1: closed */
    struct trail_name *names;
    size_t count;
    char denied[PATH_MAX]; /* a directory that may not be read, so that it is not watched; or "" */
};

/* In the order of their weight. */
enum trail_change {
    TRAIL_NOTHING,
    TRAIL_WRITTEN, /* what stands at an end */
    TRAIL_MOVED,   /* paths may lead elsewhere: follow them anew */
};

#define TRAIL_INIT ((struct trail){ .fd = -1 })

int trail_open(struct trail *trail);
void trail_close(struct trail *trail);

void trail_begin(struct trail *trail);
/* `path` is absolute; so is the pattern of glob(7), of which all matches are followed too. */
int trail_follow_path(struct trail *trail, const char *path);
int trail_follow_pattern(struct trail *trail, const char *pattern);
/* What was not followed since the beginning is watched no more. */
void trail_end(struct trail *trail);

/* Takes some of the events that wait. The descriptor is readable while there are more. */
enum trail_change trail_read(struct trail *trail);

#endif
