#include "master/master.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "base/title.h"
#include "base/trace.h"
#include "conf/conf.h"
#include "master/adopt.h"
#include "master/child.h"
#include "master/control.h"
#include "master/cover.h"
#include "master/logs.h"
#include "master/notify.h"
#include "master/rehearse.h"
#include "master/reload.h"
#include "master/stop.h"
#include "master/watch.h"

/* Further away than any uptime: 100 years. */
#define NEVER (100. * 365 * 86400)

const char *master_status_line(const struct master *master, char *text, size_t size)
{
    const struct scoreboard_master *board = &master->scoreboard->master;
    const struct generation *current = master->current;
    int length = snprintf(text, size, "generation %" PRIu64 ", %u of %u workers",
                          current ? current->number : 0, current ? generation_serving(current) : 0,
                          current ? current->workers : 0);
    if (board->last_reload_failed && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, ", last reload failed: %s",
                 board->last_reload);
    return text;
}

void master_update(struct master *master)
{
    struct scoreboard_master *board = &master->scoreboard->master;
    unsigned serving = master->current ? generation_serving(master->current) : 0;
    bool is_ready = serving > 0 && !master->is_stopping;
    const char *reason = master->is_stopping ? "stopping"
                         : !master->current  ? "starting"
                         : serving == 0      ? "no worker"
                                             : "";
    snprintf(board->reason, sizeof(board->reason), "%s", reason);
    atomic_store(&board->is_draining, master->is_stopping);
    atomic_store(&board->is_ready, is_ready);
    if (master->current && !master->is_stopping && master->reload.running == 0) {
        char line[SCOREBOARD_TEXT + 64];
        notify_status(master->notify, master_status_line(master, line, sizeof(line)));
    }
}

void master_crash(struct master *master, const char *text)
{
    struct scoreboard_master *board = &master->scoreboard->master;
    board->crashes++;
    board->last_crash_realtime = clock_realtime();
    snprintf(board->last_crash, sizeof(board->last_crash), "%.*s", SCOREBOARD_TEXT - 1, text);
}

/* A worker asks another for room. One that does not read its channel looks by itself, or is killed
 * for other reasons. */
static void pass_on(const struct master *master, uint32_t slot)
{
    const struct channel_message message = { .kind = CHANNEL_ASKED };
    for (const struct child *child = master->children; child; child = child->next)
        if (slot < SCOREBOARD_SLOTS && child->slot == &master->scoreboard->slot[slot] &&
            child->channel != -1)
            channel_send(child->channel, &message);
}

void master_child_message(struct child *child)
{
    struct channel_message message;
    for (;;) {
        switch (channel_receive(child->channel, &message)) {
        case CHANNEL_EMPTY:
            return;
        case CHANNEL_CLOSED:
        case CHANNEL_ERROR:
            /* It is dying, or mad. */
            ev_io_stop(child->master->loop, &child->readable);
            child_expect(child, CLOCK_SECOND);
            return;
        case CHANNEL_MESSAGE:
            break;
        }
        while (message.nfds > 0)
            close(message.fds[--message.nfds]); /* a child has nothing to pass */
        switch (message.kind) {
        case CHANNEL_READY:
            generation_child_ready(child->generation, child);
            break;
        case CHANNEL_FAILED:
            snprintf(child->failure, sizeof(child->failure), "%s", message.text);
            break;
        case CHANNEL_ASK:
            pass_on(child->master, message.argument);
            break;
        case CHANNEL_LEAVING:
            if (!child->is_draining)
                generation_child_leaving(child->generation, child);
            break;
        case CHANNEL_DRAINING:
            child->has_closed = true;
            reload_child_closed(child->master);
            break;
        case CHANNEL_REOPENED:
            logs_child_reopened(child, message.text);
            break;
        default:
            break;
        }
    }
}

/* Its name, with the generation if that is an older one: another binary may have crashed there. */
#define END_NAME_SIZE (CHILD_NAME_SIZE + 48)
static const char *end_name(char *text, const struct child *child)
{
    const struct generation *current = child->master->current;
    uint64_t number = child->generation->number;
    size_t length = strlen(child_name(text, child));
    if (current && number < current->number)
        snprintf(text + length, END_NAME_SIZE - length, " of generation %" PRIu64, number);
    return text;
}

/* What is logged of an end, and how loud: leaving when told is no news. */
static void report_end(const struct child *child, int status, const char *end)
{
    char name[END_NAME_SIZE], trace[CHILD_TRACE_SIZE];
    bool is_orderly = WIFEXITED(status) && WEXITSTATUS(status) == 0 && child->is_draining;
    enum log_level level = is_orderly ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR;
    const struct member *member = child->member;
    end_name(name, child);
    child_trace_text(trace, sizeof(trace), child, status);
    if (member && member->roster.state == ROSTER_WAITING)
        log_write(level, "%s %s; restarting in %" PRId64 " ms%s", name, end,
                  member->roster.delay / CLOCK_MILLISECOND, trace);
    else if (is_orderly)
        log_info("%s of generation %" PRIu64 " left: %s", child_name(name, child),
                 child->generation->number, end);
    else
        log_write(level, "%s %s%s", name, end, trace);
}

static void reap(struct master *master, struct child *child, int status)
{
    char end[SCOREBOARD_TEXT * 4], name[END_NAME_SIZE], reason[sizeof(end) + sizeof(name) + 1];
    if (child->channel != -1 && ev_is_active(&child->readable))
        master_child_message(child); /* what it said last */
    child_end_text(end, sizeof(end), child, status);
    snprintf(reason, sizeof(reason), "%s %s", end_name(name, child), end);
    bool is_orderly = WIFEXITED(status) && WEXITSTATUS(status) == 0 && child->is_draining;
    struct generation *generation = child->generation;
    /* The roster decides first, so that the line can say when the next one starts. */
    struct member *member = child->member;
    generation_child_gone(generation, child, reason);
    child->member = member;
    report_end(child, status, end);
    if (!is_orderly) {
        /* What it was answering went with it; before it was ready, that was a request of its own. */
        if (child->is_ready)
            scoreboard_add(&child->slot->counters.cut,
                           atomic_load(&child->slot->waiting) +
                               (atomic_load(&child->slot->answering.length) > 0));
        master_crash(master, reason);
    }
    child->member = NULL;
    child_free(child);
    logs_child_gone(master);
    reload_child_closed(master);
    master_update(master);
    if (master->is_stopping)
        stop_child_gone(master);
}

static struct child *find_child(const struct master *master, pid_t pid)
{
    for (struct child *child = master->children; child; child = child->next)
        if (child->pid == pid)
            return child;
    return NULL; /* as PID 1 we are handed strangers */
}

void master_reap(struct master *master)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        struct child *child = find_child(master, pid);
        bool has_ended = !WIFSTOPPED(status) && !WIFCONTINUED(status);
        if (!child && has_ended)
            upgrade_reaped(master, pid, status);
        if (!child)
            continue;
        if (!has_ended) {
            child->is_stopped = WIFSTOPPED(status);
            if (child->is_stopped) {
                char name[CHILD_NAME_SIZE];
                log_warning("%s was stopped by a signal", child_name(name, child));
                watchdog_arm(master);
            }
            cover_share(child->generation);
            master_update(master);
            continue;
        }
        reap(master, child, status);
    }
}

static void take_upgrade(struct master *master)
{
    log_info("SIGUSR2: upgrading");
    const char *refusal = master_upgrade(master);
    if (refusal)
        log_warning("upgrade refused: %s", refusal);
}

static void take_signal(struct master *master, int number)
{
    switch (number) {
    case SIGCHLD:
        master_reap(master);
        break;
    case SIGHUP:
        log_info("SIGHUP: reloading");
        master_reload(master);
        break;
    case SIGTERM:
    case SIGINT:
    case SIGQUIT:
        log_info("SIG%s: stopping", sigabbrev_np(number));
        master_stop(master);
        break;
    case SIGUSR1:
        log_info("SIGUSR1: reopening the logs");
        master_reopen(master);
        break;
    case SIGUSR2:
        take_upgrade(master);
        break;
    default:
        break;
    }
}

static void on_signalled(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct master *master = io->data;
    struct signalfd_siginfo info;
    while (read(master->signals, &info, sizeof(info)) == sizeof(info))
        take_signal(master, (int)info.ssi_signo);
}

/* Everything but what a fault of our own raises is blocked for good, here and in children until
 * they choose; a launcher may have blocked or ignored what we need. */
static int open_signals(void)
{
    static const int ours[] = { SIGHUP, SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD };
    static const int unblocked[] = { SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,    SIGTRAP, SIGABRT,
                                     SIGSYS,  SIGTSTP, SIGXCPU, SIGVTALRM, SIGPROF };
    sigset_t mask, wanted;
    sigfillset(&mask);
    for (size_t i = 0; i < sizeof(unblocked) / sizeof(*unblocked); i++)
        sigdelset(&mask, unblocked[i]);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&wanted);
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        sigaddset(&wanted, ours[i]);
    return signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void on_never(struct ev_loop *loop, ev_periodic *periodic, int events)
{
    (void)loop;
    (void)periodic;
    (void)events;
}

void master_sweep(struct master *master)
{
    for (struct generation **link = &master->draining; *link;) {
        struct generation *generation = *link;
        if (generation->nchildren > 0) {
            link = &generation->next;
            continue;
        }
        *link = generation->next;
        log_debug("generation %" PRIu64 " has ended", generation->number);
        totals_add(&master->totals, generation);
        generation_free(generation);
    }
}

static void on_sweep(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    (void)loop;
    (void)events;
    master_sweep(prepare->data);
    upgrade_go_on(prepare->data);
}

static int init_loop(struct master *master)
{
    master->loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    if (!master->loop)
        return -1;
    ev_io_init(&master->signalled, on_signalled, master->signals, EV_READ);
    ev_periodic_init(&master->never, on_never, ev_time() + NEVER, 0., NULL);
    ev_prepare_init(&master->sweep, on_sweep);
    master->signalled.data = master->sweep.data = master;
    ev_io_start(master->loop, &master->signalled);
    ev_periodic_start(master->loop, &master->never);
    ev_prepare_start(master->loop, &master->sweep);
    return watchdog_init(master);
}

static int init_scoreboard(struct master *master)
{
    if (master->scoreboard)
        return 0; /* adopted */
    master->scoreboard = scoreboard_new(&master->scoreboard_fd);
    if (!master->scoreboard)
        return -1;
    struct scoreboard_master *board = &master->scoreboard->master;
    atomic_store(&board->pid, getpid());
    board->started = clock_process_start();
    board->started_realtime = clock_realtime() - (clock_monotonic() - board->started);
    return 0;
}

static void fini(struct master *master)
{
    master_sweep(master);
    upgrade_fini(master);
    if (master->current)
        generation_free(master->current);
    totals_fini(&master->totals);
    watch_free(master->watch);
    control_free(master->control);
    notify_free(master->notify);
    watchdog_fini(master);
    ev_timer_stop(master->loop, &master->reopen_overdue);
    ev_timer_stop(master->loop, &master->retiring_overdue);
    ev_loop_destroy(master->loop);
    fd_close(&master->signals);
    fd_close(&master->scoreboard_fd);
    scoreboard_free(master->scoreboard);
}

/* Until the configuration says otherwise; a reader of stderr that has stopped must not stop us. */
static void open_first_log(void)
{
    struct sink sink;
    if (sink_open_inherited(&sink, 2) == 0)
        log_set_sink(sink, log_is_journal(2));
}

_Noreturn static void give_up(const struct master *master, const struct legacy *legacy,
                              const char *reason)
{
    if (legacy)
        adopt_give_up(master, legacy, reason);
    log_fatal(EXIT_FAILURE, "cannot start: %s", reason);
}

int master_run(const struct master_options *options)
{
    struct master master = { .options = options, .scoreboard_fd = -1, .watchdog.fd = -1 };
    struct legacy *legacy = NULL;
    master.signals = open_signals();
    trace_tell(__builtin_frame_address(0));
    log_identify("master");
    open_first_log();
    if (rehearse_is_asked())
        rehearse(options);
    title_set("hayate: master");
    if (adopt_is_asked())
        legacy = adopt_begin(&master);
    if (master.signals == -1 || init_scoreboard(&master) == -1 || init_loop(&master) == -1)
        give_up(&master, legacy, strerror(errno));
    master.notify = notify_new();
    master.control = control_new(&master);
    master.watch = watch_new(&master);
    logs_init(&master);
    reload_init(&master);
    if (!master.control || !master.watch)
        give_up(&master, legacy, "out of memory");
    upgrade_init(&master);
    bool is_up = true;
    if (legacy)
        adopt_end(&master, legacy);
    else
        is_up = reload_first(&master);
    if (is_up)
        ev_run(master.loop, 0);
    fini(&master);
    return master.status;
}
