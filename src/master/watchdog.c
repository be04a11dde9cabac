#include "master/watchdog.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "conf/conf.h"
#include "master/child.h"
#include "master/cover.h"
#include "master/master.h"

/* Of the configuration in force; children of an older one are held to it too. ns; 0: off. */
static int64_t period(const struct master *master)
{
    return master->current ? master->current->conf->timeouts.watchdog : 0;
}

/* A debugger has it: TracerPid in /proc/PID/status is not 0. */
static bool is_traced(pid_t pid)
{
    char path[32], text[2048];
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return false;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    fd_close(&fd);
    text[length > 0 ? length : 0] = '\0';
    const char *tracer = strstr(text, "TracerPid:");
    return tracer && strtol(tracer + strlen("TracerPid:"), NULL, 10) != 0;
}

static bool is_at_work(const struct child *child)
{
    return child->is_stopped || atomic_load(&child->slot->is_busy) != 0;
}

/* Nobody may slip through between the flag and the last look: a child first says that it is busy,
 * then reads the flag; here it is the other way round. */
static void disarm_if_idle(struct master *master)
{
    atomic_store(&master->scoreboard->master.is_watching, 0);
    for (const struct child *child = master->children; child; child = child->next)
        if (is_at_work(child)) {
            atomic_store(&master->scoreboard->master.is_watching, 1);
            return;
        }
    ev_timer_stop(master->loop, &master->watchdog.look);
}

/* It is late, or late no more: a sibling serves its queue meanwhile, and readiness may depend on
 * it. */
static void note_change(struct child *child)
{
    cover_share(child->generation);
    master_update(child->master);
}

static void look_at(struct child *child)
{
    uint64_t turns = atomic_load(&child->slot->turns);
    if (!is_at_work(child) || turns != child->turns || !child->is_ready) {
        bool was_late = child->looks >= WATCHDOG_LOOKS / 2;
        child->turns = turns;
        child->looks = 0;
        if (was_late)
            note_change(child);
        return;
    }
    child->looks++;
    if (child->looks == WATCHDOG_LOOKS / 2)
        note_change(child);
    if (child->looks < WATCHDOG_LOOKS || child->kill_reason)
        return;
    if (is_traced(child->pid)) {
        child->looks = WATCHDOG_LOOKS / 2; /* some time, too, when the debugger lets go of it */
        return;
    }
    child_kill(child, child->is_stopped ? "stopped by a signal for longer than timeouts.watchdog"
                                        : "stuck for longer than timeouts.watchdog");
}

/* Did all stand still since the last look, the master with them: in a frozen container, or because
 * the whole process group was stopped? The monotonic clock goes on then. */
static bool has_slept(struct watchdog *watchdog)
{
    int64_t now = clock_monotonic(), since = now - watchdog->looked;
    watchdog->looked = now;
    return since > watchdog->interval * WATCHDOG_LOOKS;
}

static void on_look(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct master *master = timer->data;
    if (!has_slept(&master->watchdog))
        for (struct child *child = master->children; child; child = child->next)
            look_at(child);
    disarm_if_idle(master);
    /* Each look a whole interval after the one before: libev would make up for those missed, one
     * upon the other, and no child can turn in between. */
    if (ev_is_active(timer))
        ev_timer_again(loop, timer);
}

void watchdog_arm(struct master *master)
{
    int64_t ns = period(master);
    ev_timer *look = &master->watchdog.look;
    if (ns == 0 || ev_is_active(look))
        return;
    atomic_store(&master->scoreboard->master.is_watching, 1);
    for (struct child *child = master->children; child; child = child->next)
        child->looks = 0;
    master->watchdog.interval = ns / WATCHDOG_LOOKS;
    master->watchdog.looked = clock_monotonic();
    double interval = (double)master->watchdog.interval / 1e9;
    ev_now_update(master->loop); /* of before a long load, perhaps */
    ev_timer_set(look, interval, interval);
    ev_timer_start(master->loop, look);
}

void watchdog_renew(struct master *master)
{
    ev_timer_stop(master->loop, &master->watchdog.look);
    /* The flag may be set since a time when nobody looked; the first look clears it. */
    watchdog_arm(master);
}

static void on_armed(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    uint64_t count;
    struct master *master = io->data;
    if (read(master->watchdog.fd, &count, sizeof(count)) == -1)
        return;
    /* Off: the flag stays set, so that nobody writes again until a reload turns it on. */
    if (period(master) == 0)
        return;
    watchdog_arm(master);
}

int watchdog_init(struct master *master)
{
    struct watchdog *watchdog = &master->watchdog;
    if (watchdog->fd == -1)
        watchdog->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (watchdog->fd == -1)
        return -1;
    ev_io_init(&watchdog->armed, on_armed, watchdog->fd, EV_READ);
    ev_init(&watchdog->look, on_look);
    watchdog->armed.data = watchdog->look.data = master;
    ev_io_start(master->loop, &watchdog->armed);
    return 0;
}

void watchdog_fini(struct master *master)
{
    ev_io_stop(master->loop, &master->watchdog.armed);
    ev_timer_stop(master->loop, &master->watchdog.look);
    fd_close(&master->watchdog.fd);
}
