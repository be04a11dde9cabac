/*
 * watch: `watch = true`: a changed configuration is reloaded by itself.
 *
 * What is watched: the files that serve and, after a load that failed, those it had read; the
 * places where fragments may appear; without a file, the place of the default one (trail.h says
 * how paths are watched). When something has happened there, and then nothing for a second, the
 * bytes are compared with those that serve. Only if they differ does a reload begin, the same as
 * any other. What was refused once is not tried again until it changes; that counts for every
 * reload, whoever asked for it. There is no descriptor while it is off, and no timer while nothing
 * happens.
 *
 * Where inotify's limits are reached, a warning says so and the server goes on without, until the
 * next reload.
 */
#ifndef MASTER_WATCH_H
#define MASTER_WATCH_H

#include <stdbool.h>

struct files;
struct master;
struct watch;

struct watch *watch_new(struct master *master); /* NULL: out of memory */
void watch_free(struct watch *watch);

/* The current generation serves from now on: watches its files, or stops where that is off. */
void watch_follow(struct watch *watch);

/* A load has read these, whatever comes of it. */
void watch_tried(struct watch *watch, const struct files *files);

/* For good, as in a stop: nothing that was seen leads to a reload any more. */
void watch_stop(struct watch *watch);

bool watch_is_on(const struct watch *watch);

#endif
