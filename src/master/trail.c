#include "master/trail.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "conf/source.h"

/* Of a directory no writing: a log in it would wake us with each line. */
#define SELF_EVENTS (IN_DELETE_SELF | IN_MOVE_SELF)
#define NAME_EVENTS (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB)
#define END_EVENTS (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB)
#define LINKS_MAX 40 /* as the kernel has it */

struct trail_name {
    int watch;
    uint32_t events;  /* of the watch, where this is what is watched itself */
    bool is_followed; /* since trail_begin */
    char *name;       /* in the directory, as fnmatch takes it; NULL: what is watched itself */
};

enum outcome {
    FAILED = -1,
    MISSING, /* the path leads nowhere */
    COMPLETE,
};

/* Where a path has come to. */
struct walk {
    struct trail *trail;
    char at[PATH_MAX];   /* no link in it; "": the root */
    char rest[PATH_MAX]; /* as glob takes it */
    unsigned links;
    bool is_wary; /* each name is watched, whatever it is */
};

int trail_open(struct trail *trail)
{
    trail->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return trail->fd == -1 ? -1 : 0;
}

void trail_close(struct trail *trail)
{
    for (size_t i = 0; i < trail->count; i++)
        free(trail->names[i].name);
    free(trail->names);
    fd_close(&trail->fd);
    *trail = TRAIL_INIT;
}

void trail_begin(struct trail *trail)
{
    trail->denied[0] = '\0';
    for (size_t i = 0; i < trail->count; i++)
        trail->names[i].is_followed = false;
}

static struct trail_name *find_name(const struct trail *trail, int watch, const char *name)
{
    for (size_t i = 0; i < trail->count; i++) {
        struct trail_name *known = &trail->names[i];
        if (known->watch == watch && !known->name == !name &&
            (!name || strcmp(known->name, name) == 0))
            return known;
    }
    return NULL;
}

/* The name, followed. NULL: out of memory. */
static struct trail_name *add_name(struct trail *trail, int watch, const char *name)
{
    struct trail_name *known = find_name(trail, watch, name);
    if (known) {
        known->is_followed = true;
        return known;
    }
    char *kept = name ? strdup(name) : NULL;
    struct trail_name *grown = realloc(trail->names, (trail->count + 1) * sizeof(*grown));
    if (grown)
        trail->names = grown;
    if (!grown || (name && !kept)) {
        free(kept);
        errno = ENOMEM;
        return NULL;
    }
    grown[trail->count] = (struct trail_name){ .watch = watch, .is_followed = true, .name = kept };
    return &grown[trail->count++];
}

/* Watches a path for these events too, of `name` unless NULL. MISSING: it is not there, or may not
 * be read; errno tells. */
static enum outcome add_watch(struct trail *trail, const char *path, uint32_t events,
                              const char *name)
{
    uint32_t flags = IN_DONT_FOLLOW | (events & SELF_EVENTS ? IN_ONLYDIR : 0);
    int watch = inotify_add_watch(trail->fd, path, events | flags | IN_MASK_ADD);
    if (watch == -1)
        return errno == ENOSPC || errno == ENOMEM ? FAILED : MISSING;
    struct trail_name *self = find_name(trail, watch, NULL);
    if (self && !self->is_followed && (self->events & ~events)) {
        /* The last time more was wanted. */
        inotify_add_watch(trail->fd, path, events | flags);
        self->events = 0;
    }
    self = add_name(trail, watch, NULL);
    if (!self)
        return FAILED;
    self->events |= events;
    return !name || add_name(trail, watch, name) ? COMPLETE : FAILED;
}

static bool is_wild(const char *name)
{
    for (; *name != '\0'; name++)
        if (*name == '\\' && name[1] != '\0')
            name++;
        else if (strchr("*?[", *name))
            return true;
    return false;
}

static void unescape(char *name)
{
    char *to = name;
    for (; *name != '\0'; *to++ = *name++)
        if (*name == '\\' && name[1] != '\0')
            name++;
    *to = '\0';
}

/* The next name of the rest, which goes on behind it. False at its end. */
static bool take_name(struct walk *walk, char name[PATH_MAX])
{
    size_t skipped = strspn(walk->rest, "/");
    size_t length = strcspn(walk->rest + skipped, "/");
    memcpy(name, walk->rest + skipped, length);
    name[length] = '\0';
    memmove(walk->rest, walk->rest + skipped + length, strlen(walk->rest + skipped + length) + 1);
    return length > 0;
}

static void leave(struct walk *walk)
{
    char *slash = strrchr(walk->at, '/');
    if (slash)
        *slash = '\0';
}

static bool enter(struct walk *walk, const char *name)
{
    size_t length = strlen(walk->at), room = sizeof(walk->at) - length;
    return snprintf(walk->at + length, room, "/%s", name) < (int)room;
}

/* Puts what a link says, or a name that a pattern matches, before the rest. */
static bool prepend(struct walk *walk, const char *text)
{
    char rest[PATH_MAX];
    char *escaped = source_escape(text);
    int length = escaped ? snprintf(rest, sizeof(rest), "%s/%s", escaped, walk->rest) : -1;
    free(escaped);
    if (length < 0 || length >= (int)sizeof(rest))
        return false;
    strcpy(walk->rest, rest);
    return true;
}

static enum outcome walk_warily(struct walk *walk);

static enum outcome walk_matches(const struct walk *walk, const char *name)
{
    struct source_matches matches = { 0 };
    char *directory = source_escape(walk->at);
    char *pattern = NULL;
    enum outcome outcome = COMPLETE; /* there may be none */
    if (!directory || asprintf(&pattern, "%s/%s", directory, name) == -1) {
        pattern = NULL;
        outcome = FAILED;
    } else if (source_match(&matches, pattern) == 0) {
        for (size_t i = 0; i < matches.count && outcome != FAILED; i++) {
            struct walk branch = *walk;
            if (prepend(&branch, strrchr(matches.paths[i], '/') + 1))
                outcome = walk_warily(&branch);
        }
        source_matches_free(&matches);
    }
    free(directory);
    free(pattern);
    return outcome == FAILED ? FAILED : COMPLETE;
}

/* The name that was entered is a link: turns where it says. */
static bool turn(struct walk *walk, const char *target)
{
    if (++walk->links > LINKS_MAX || !prepend(walk, target))
        return false;
    if (target[0] == '/')
        walk->at[0] = '\0';
    else
        leave(walk);
    return true;
}

/* A directory on the way to others: that it goes is an event of its own. So nothing else in the one
 * above is watched for it: that may be /tmp, where much happens. */
static bool pass_directory(struct walk *walk, const char *name)
{
    struct stat status;
    size_t length = strlen(walk->at);
    if (walk->rest[0] == '\0' || !enter(walk, name))
        return false;
    if (lstat(walk->at, &status) == 0 && S_ISDIR(status.st_mode))
        return true;
    walk->at[length] = '\0';
    return false;
}

/* The name is watched before it is looked at, so that no change falls between. */
static enum outcome enter_watched(struct walk *walk, const char *pattern, const char *name)
{
    char target[PATH_MAX];
    const char *directory = walk->at[0] ? walk->at : "/";
    enum outcome outcome = add_watch(walk->trail, directory, SELF_EVENTS | NAME_EVENTS, pattern);
    if (outcome == FAILED)
        return FAILED;
    if (outcome == MISSING && errno == EACCES)
        snprintf(walk->trail->denied, sizeof(walk->trail->denied), "%s", directory);
    if (is_wild(pattern))
        return COMPLETE;
    if (!enter(walk, name))
        return MISSING;
    ssize_t got = readlink(walk->at, target, sizeof(target) - 1);
    if (got == -1)
        return errno == EINVAL ? COMPLETE : MISSING;
    target[got] = '\0';
    return turn(walk, target) ? COMPLETE : MISSING;
}

static enum outcome walk_on(struct walk *walk)
{
    char pattern[PATH_MAX], name[PATH_MAX];
    while (take_name(walk, pattern)) {
        if (strcmp(pattern, ".") == 0)
            continue;
        if (strcmp(pattern, "..") == 0) {
            leave(walk);
            continue;
        }
        const char *directory = walk->at[0] ? walk->at : "/";
        if (add_watch(walk->trail, directory, SELF_EVENTS, NULL) == FAILED)
            return FAILED;
        strcpy(name, pattern);
        unescape(name);
        if (!walk->is_wary && !is_wild(pattern) && pass_directory(walk, name))
            continue;
        enum outcome outcome = enter_watched(walk, pattern, name);
        if (outcome != COMPLETE)
            return outcome;
        if (is_wild(pattern))
            return walk_matches(walk, pattern);
    }
    return add_watch(walk->trail, walk->at[0] ? walk->at : "/", END_EVENTS, NULL) == FAILED
               ? FAILED
               : COMPLETE;
}

/* Where a path leads nowhere, any name on the way may be about to change, and the end of a directory
 * that somebody has open is no event before that one closes it. */
static enum outcome walk_warily(struct walk *walk)
{
    struct walk again = *walk;
    enum outcome outcome = walk_on(walk);
    again.is_wary = true;
    return outcome == MISSING && !walk->is_wary ? walk_on(&again) : outcome;
}

int trail_follow_pattern(struct trail *trail, const char *pattern)
{
    struct walk walk = { .trail = trail };
    if (strlen(pattern) >= sizeof(walk.rest))
        return 0; /* nothing can be there */
    strcpy(walk.rest, pattern);
    return walk_warily(&walk) == FAILED ? -1 : 0;
}

int trail_follow_path(struct trail *trail, const char *path)
{
    char *pattern = source_escape(path);
    int result = pattern ? trail_follow_pattern(trail, pattern) : -1;
    free(pattern);
    return result;
}

static bool is_watch_followed(const struct trail *trail, int watch)
{
    for (size_t i = 0; i < trail->count; i++)
        if (trail->names[i].watch == watch && trail->names[i].is_followed)
            return true;
    return false;
}

void trail_end(struct trail *trail)
{
    size_t kept = 0;
    for (size_t i = 0; i < trail->count; i++) {
        struct trail_name *name = &trail->names[i];
        if (name->is_followed) {
            trail->names[kept++] = *name;
            continue;
        }
        /* What was moved forward stands here twice by now, which changes no answer. */
        if (!is_watch_followed(trail, name->watch))
            inotify_rm_watch(trail->fd, name->watch);
        free(name->name);
        name->name = NULL;
    }
    trail->count = kept;
}

/* An event without a name is about what is watched itself. */
static bool concerns(const struct trail_name *name, const struct inotify_event *event)
{
    return name->watch == event->wd &&
           (event->len == 0 || (name->name && fnmatch(name->name, event->name, FNM_PERIOD) == 0));
}

static enum trail_change judge(const struct trail *trail, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW)
        return TRAIL_MOVED;
    for (size_t i = 0; i < trail->count; i++)
        if (concerns(&trail->names[i], event))
            return event->mask & END_EVENTS ? TRAIL_WRITTEN : TRAIL_MOVED;
    return TRAIL_NOTHING;
}

enum trail_change trail_read(struct trail *trail)
{
    alignas(struct inotify_event) char events[4096];
    enum trail_change change = TRAIL_NOTHING;
    ssize_t got = read(trail->fd, events, sizeof(events));
    for (const char *at = events; got > 0 && at < events + got;) {
        const struct inotify_event *event = (const void *)at;
        enum trail_change one = judge(trail, event);
        change = one > change ? one : change;
        at += sizeof(*event) + event->len;
    }
    return change;
}
