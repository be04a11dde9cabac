#include "master/watch.h"

#include <errno.h>
#include <ev.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "conf/conf.h"
#include "master/master.h"
#include "master/trail.h"

#define QUIET CLOCK_SECOND
#define QUIET_AT_MOST (10 * CLOCK_SECOND)
/* Paths are followed anew no more often, in seconds: with thousands of fragments that is work. */
#define FOLLOW_PAUSE .1

struct watch {
    struct master *master;
    struct trail trail;
    ev_io readable;
    ev_timer stale;     /* runs from when paths may lead elsewhere, until they are followed anew */
    ev_timer quiet;     /* runs from the first event on, until nothing has happened for a while */
    int64_t first;      /* when that was, monotonic; 0: nothing has happened */
    struct files tried; /* that a load has read, and that do not serve */
};

void watch_stop(struct watch *watch)
{
    struct ev_loop *loop = watch->master->loop;
    ev_io_stop(loop, &watch->readable);
    ev_timer_stop(loop, &watch->quiet);
    ev_timer_stop(loop, &watch->stale);
    watch->first = 0;
    trail_close(&watch->trail);
    files_fini(&watch->tried);
}

static void give_up(struct watch *watch)
{
    log_warning("watch is off until the next reload: %s",
                errno == ENOSPC   ? "raise the limit of inotify, sysctl fs.inotify.max_user_watches"
                : errno == EMFILE ? "raise the limit of inotify, sysctl "
                                    "fs.inotify.max_user_instances, or that on descriptors"
                                  : strerror(errno));
    watch_stop(watch);
}

static int follow_files(struct trail *trail, const struct files *files)
{
    int result = 0;
    for (size_t i = 0; i < files->nsources && result == 0; i++)
        result = trail_follow_path(trail, files->sources[i].path);
    for (size_t i = 0; i < files->npatterns && result == 0; i++)
        result = trail_follow_pattern(trail, files->patterns[i]);
    return result;
}

/* Paths may lead elsewhere now. False: it is off. */
static bool arm(struct watch *watch)
{
    const struct conf *conf = watch->master->current->conf;
    struct trail *trail = &watch->trail;
    ev_timer_stop(watch->master->loop, &watch->stale);
    trail_begin(trail);
    if ((!conf->file && trail_follow_path(trail, conf_default_file()) == -1) ||
        follow_files(trail, &conf->files) == -1 || follow_files(trail, &watch->tried) == -1) {
        give_up(watch);
        return false;
    }
    trail_end(trail);
    return true;
}

/* Each event starts the wait again, but not for ever. */
static void wait_for_quiet(struct watch *watch)
{
    struct ev_loop *loop = watch->master->loop;
    int64_t now = clock_monotonic();
    if (watch->first == 0)
        watch->first = now;
    int64_t left = watch->first + QUIET_AT_MOST - now;
    left = left < 0 ? 0 : left > QUIET ? QUIET : left;
    ev_now_update(loop);
    ev_timer_stop(loop, &watch->quiet);
    ev_timer_set(&watch->quiet, (double)left / 1e9, 0.);
    ev_timer_start(loop, &watch->quiet);
}

static void on_stale(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct watch *watch = timer->data;
    if (arm(watch))
        wait_for_quiet(watch); /* what happened there meanwhile was no event */
}

/* True when something has happened: the wait has begun again. */
static bool take_events(struct watch *watch)
{
    enum trail_change change = trail_read(&watch->trail);
    if (change != TRAIL_NOTHING)
        wait_for_quiet(watch);
    if (change == TRAIL_MOVED && !ev_is_active(&watch->stale)) {
        ev_timer_set(&watch->stale, FOLLOW_PAUSE, 0.);
        ev_timer_start(watch->master->loop, &watch->stale);
    }
    return change != TRAIL_NOTHING;
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    take_events(io->data);
}

/*
 * What nobody wants who writes a file in two steps: the file is empty, or the default one has gone.
 * Both are valid, and would put built-in defaults on other addresses, without a watch.
 */
static bool is_between_steps(struct watch *watch)
{
    const struct master *master = watch->master;
    const char *served = master->current->conf->file;
    const char *file = served ? served : conf_default_file();
    struct stat status;
    struct buf nothing = { 0 };
    struct files files = { 0 };
    bool is_there = stat(file, &status) == 0;
    if (is_there ? !S_ISREG(status.st_mode) || status.st_size > 0
                 : !served || master->options->file || (errno != ENOENT && errno != ENOTDIR))
        return false;
    log_warning("watch: %s %s, generation %" PRIu64 " stays; hayate reload would use the defaults",
                file, is_there ? "is empty" : "has gone", master->current->number);
    if (files_add(&files, file, is_there ? &nothing : NULL) == 0)
        watch_tried(watch, &files);
    files_fini(&files);
    return true;
}

/* The bytes decide. */
static void compare(struct watch *watch)
{
    const char *changed, *again;
    if (!conf_has_drifted(watch->master->current->conf, &changed)) {
        if (watch->tried.nsources > 0)
            log_info("watch: the files are again as they are served");
        else
            log_debug("watch: the files are as they are served");
        files_fini(&watch->tried);
        return;
    }
    if (watch->tried.nsources > 0 && !files_have_drifted(&watch->tried, &again)) {
        log_debug("watch: the files are still as they were refused");
        return;
    }
    if (is_between_steps(watch))
        return;
    log_info("watch: %s has changed: reloading", changed);
    master_reload(watch->master);
}

/* A loop that was held up may find the wait over and events at once: it is not over then. And a
 * reload or an upgrade that runs may have read what was there before: it is waited for. */
static void on_quiet(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct watch *watch = timer->data;
    if (clock_monotonic() < watch->first + QUIET_AT_MOST && take_events(watch))
        return;
    watch->first = 0;
    if (watch->master->reload.running != 0 || upgrade_is_running(watch->master))
        wait_for_quiet(watch);
    else if (arm(watch))
        compare(watch);
}

void watch_tried(struct watch *watch, const struct files *files)
{
    if (!watch_is_on(watch))
        return;
    files_fini(&watch->tried);
    if (files_copy(&watch->tried, files) == -1)
        log_warning("watch: out of memory: what is refused now may be told again");
    if (arm(watch))
        wait_for_quiet(watch);
}

void watch_follow(struct watch *watch)
{
    files_fini(&watch->tried);
    if (!watch->master->current->conf->watch) {
        watch_stop(watch);
        return;
    }
    if (!watch_is_on(watch)) {
        if (trail_open(&watch->trail) == -1) {
            give_up(watch);
            return;
        }
        ev_io_set(&watch->readable, watch->trail.fd, EV_READ);
        ev_io_start(watch->master->loop, &watch->readable);
    }
    if (!arm(watch))
        return;
    if (watch->trail.denied[0])
        log_warning("watch: %s may not be read, so what happens in it is not seen",
                    watch->trail.denied);
    wait_for_quiet(watch); /* what changed between the load and now */
}

struct watch *watch_new(struct master *master)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return NULL;
    watch->master = master;
    watch->trail = TRAIL_INIT;
    ev_init(&watch->readable, on_readable);
    ev_init(&watch->quiet, on_quiet);
    ev_init(&watch->stale, on_stale);
    watch->readable.data = watch->quiet.data = watch->stale.data = watch;
    return watch;
}

void watch_free(struct watch *watch)
{
    if (!watch)
        return;
    watch_stop(watch);
    free(watch);
}

bool watch_is_on(const struct watch *watch)
{
    return watch->trail.fd != -1;
}
