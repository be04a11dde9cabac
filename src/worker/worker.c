/* Longer than most: one life from fork to exit, told in order. */

#include "worker/worker.h"

#include <errno.h>
#include <ev.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "answer/answer.h"
#include "base/channel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "base/title.h"
#include "base/trace.h"
#include "conf/conf.h"
#include "worker/accept.h"
#include "worker/conns.h"
#include "worker/heritage.h"
#include "worker/identity.h"
#include "worker/orphan.h"
#include "worker/trial.h"

/* How long an idle connection may stay when the server stops. */
#define IDLE_GRACE (1 * CLOCK_SECOND)

/* Blocks of memory from which on each goes back to the system when it is freed. */
#define LARGE_BLOCK (64 * 1024)

struct worker {
    const struct heritage *heritage;
    struct ev_loop *loop;
    struct conns conns;
    struct accept accept;
    struct trial trial;
    struct conf_route *admin_routes; /* of an admin child */
    size_t nadmin_routes;
    int signals;
    ev_io signalled;
    ev_io told;
    ev_prepare rest;
    ev_check wake;
    ev_periodic never;
    ev_timer deadline;   /* of the drain */
    ev_timer idle_grace; /* of idle connections, when it stops */
    ev_timer patience;   /* with a master that says nothing, when it leaves */
    int64_t deadline_at; /* monotonic ns; 0: none yet */
    enum scoreboard_state state;
    bool is_leaving;   /* by itself: it accepts until the master has told it to drain */
    bool has_closed;   /* its listening sockets */
    bool is_tried;     /* its own request was answered */
    bool wants_a_loop; /* a new one */
};

static void set_state(struct worker *worker, enum scoreboard_state state)
{
    worker->state = state;
    atomic_store(&worker->heritage->mine->state, (uint32_t)state);
}

static int tell(const struct worker *worker, enum channel_kind kind)
{
    const struct channel_message message = { .kind = kind };
    return channel_send(worker->heritage->channel, &message);
}

/* A start that failed: the master hears why, and logs it. */
__attribute__((format(printf, 2, 3))) _Noreturn static void fail(const struct worker *worker,
                                                                 const char *format, ...)
{
    struct channel_message message = { .kind = CHANNEL_FAILED };
    va_list args;
    va_start(args, format);
    vsnprintf(message.text, sizeof message.text, format, args);
    va_end(args);
    channel_send(worker->heritage->channel, &message);
    exit(EXIT_FAILURE);
}

/* Nothing is left to do once all connections have gone. */
static void leave_if_empty(struct worker *worker)
{
    if (worker->has_closed && worker->conns.open == 0)
        ev_break(worker->loop, EVBREAK_ALL);
}

static void stop_accepting(struct worker *worker, bool takes_queue)
{
    if (worker->has_closed)
        return;
    ev_timer_stop(worker->loop, &worker->patience);
    accept_close(&worker->accept, takes_queue);
    trial_stop(&worker->trial);
    tell(worker, CHANNEL_DRAINING);
    /* Not before the queue is taken: the first that goes must not end the worker. */
    worker->has_closed = true;
}

static void cut(struct worker *worker)
{
    conns_close_idle(&worker->conns);
    conns_cut(&worker->conns);
    leave_if_empty(worker);
}

static void set_deadline(struct worker *worker, int64_t wait)
{
    int64_t at = clock_monotonic() + (wait > 0 ? wait : 0);
    if (worker->deadline_at != 0 && worker->deadline_at <= at)
        return;
    worker->deadline_at = at;
    ev_timer_stop(worker->loop, &worker->deadline);
    ev_timer_set(&worker->deadline, wait > 0 ? (double)wait / 1e9 : 0., 0.);
    ev_now_update(worker->loop);
    ev_timer_start(worker->loop, &worker->deadline);
}

/* Each call may tighten what an earlier one has begun. */
static void drain(struct worker *worker, enum channel_drain how, bool takes_queue, int64_t wait)
{
    bool was_serving = worker->state == SCOREBOARD_READY || worker->is_leaving;
    worker->is_leaving = false;
    conns_drain(&worker->conns);
    stop_accepting(worker, was_serving && takes_queue && how != CHANNEL_DRAIN_NOW);
    set_state(worker, SCOREBOARD_DRAINING);
    if (how == CHANNEL_DRAIN_NOW) {
        cut(worker);
        return;
    }
    set_deadline(worker, wait);
    if (how == CHANNEL_DRAIN_STOP && !ev_is_active(&worker->idle_grace)) {
        ev_timer_set(&worker->idle_grace, (double)IDLE_GRACE / 1e9, 0.);
        ev_timer_start(worker->loop, &worker->idle_grace);
    }
    leave_if_empty(worker);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    cut(timer->data);
}

static void on_idle_grace(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct worker *worker = timer->data;
    conns_close_idle(&worker->conns);
    leave_if_empty(worker);
}

/* Connections that come from now on get one answer. */
static void leave(struct worker *worker)
{
    int64_t wait = WORKER_LEAVE_PATIENCE;
    if (worker->heritage->is_admin)
        wait += worker->heritage->conf->timeouts.drain;
    worker->is_leaving = true;
    conns_drain(&worker->conns);
    set_state(worker, SCOREBOARD_DRAINING);
    ev_now_update(worker->loop);
    ev_timer_set(&worker->patience, (double)wait / 1e9, 0.);
    ev_timer_start(worker->loop, &worker->patience);
}

static void on_patience(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct worker *worker = timer->data;
    drain(worker, CHANNEL_DRAIN_STOP, true, worker->heritage->conf->timeouts.drain);
}

static void on_signal(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct worker *worker = io->data;
    struct signalfd_siginfo info;
    bool is_told = false;
    while (read(worker->signals, &info, sizeof info) == sizeof info)
        is_told = true;
    if (!is_told || worker->state == SCOREBOARD_DRAINING)
        return;
    tell(worker, CHANNEL_LEAVING);
    if (worker->state == SCOREBOARD_READY)
        leave(worker);
    else
        drain(worker, CHANNEL_DRAIN_STOP, true, worker->heritage->conf->timeouts.drain);
}

/* -1 with errno: what is not `used` yet stays the caller's, and the old log goes on. */
static int use_logs(struct worker *worker, const struct channel_message *message, unsigned *used)
{
    bool has_log = message->argument & CHANNEL_LOG_MAIN;
    bool has_access = message->argument & CHANNEL_LOG_ACCESS;
    struct sink log, access;
    if (message->nfds < (unsigned)has_log + has_access) {
        errno = EMFILE; /* the kernel dropped those there was no room for */
        return -1;
    }
    if ((has_log && sink_adopt(&log, message->fds[0]) == -1) ||
        (has_access && sink_adopt(&access, message->fds[has_log]) == -1))
        return -1;
    /* The log first: what the access log lost is told in the new one. */
    if (has_log) {
        log_set_sink(log, log_is_journal(log.fd));
        ++*used;
    }
    if (has_access) {
        if (access_set_sink(&worker->conns.access, access) == -1)
            return -1;
        ++*used;
    }
    return 0;
}

static void take_logs(struct worker *worker, const struct channel_message *message)
{
    struct channel_message answer = { .kind = CHANNEL_REOPENED };
    unsigned used = 0;
    if (use_logs(worker, message, &used) == -1) {
        snprintf(answer.text, sizeof answer.text, "%s", strerror(errno));
        log_error("cannot use the new log files, the old ones stay: %s", answer.text);
    }
    while (used < message->nfds)
        fd_close(&(int){ message->fds[used++] });
    channel_send(worker->heritage->channel, &answer);
}

static void take_message(struct worker *worker, const struct channel_message *message)
{
    switch (message->kind) {
    case CHANNEL_GO:
        if (worker->state == SCOREBOARD_READY || worker->is_leaving)
            accept_start(&worker->accept);
        break;
    case CHANNEL_DRAIN: {
        enum channel_drain how = (enum channel_drain)(message->argument & 0xff);
        bool takes_queue =
            how == CHANNEL_DRAIN_STOP || message->argument & CHANNEL_DRAIN_TAKE_QUEUE;
        drain(worker, how, takes_queue, message->value);
        break;
    }
    case CHANNEL_LOGS:
        take_logs(worker, message);
        break;
    case CHANNEL_TAKE:
        for (int64_t i = 0; i < message->value; i++)
            accept_take(&worker->accept, message->argument + (unsigned)i);
        break;
    case CHANNEL_ASKED:
        conns_make_room(&worker->conns);
        break;
    case CHANNEL_GIVE:
        for (int64_t i = 0; i < message->value; i++)
            accept_give(&worker->accept, message->argument + (unsigned)i);
        break;
    default:
        log_error("a message of the master is not understood: kind %d", (int)message->kind);
        for (unsigned i = 0; i < message->nfds; i++)
            fd_close(&(int){ message->fds[i] });
    }
}

/* The master is dead. Whoever is being answered still gets the answer. */
static void on_orphaned(struct worker *worker)
{
    ev_io_stop(worker->loop, &worker->told);
    orphan_settle();
    drain(worker, CHANNEL_DRAIN_STOP, true, worker->heritage->conf->timeouts.drain);
}

static void on_told(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct worker *worker = io->data;
    struct channel_message message;
    for (;;) {
        switch (channel_receive(worker->heritage->channel, &message)) {
        case CHANNEL_MESSAGE:
            take_message(worker, &message);
            break;
        case CHANNEL_EMPTY:
            return;
        case CHANNEL_ERROR:
            log_error("the channel to the master: %s", strerror(errno));
            if (errno == EBADMSG)
                break;
            on_orphaned(worker);
            return;
        case CHANNEL_CLOSED:
            on_orphaned(worker);
            return;
        }
    }
}

/* Waiting begins. */
static void on_rest(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    (void)loop;
    (void)events;
    struct worker *worker = prepare->data;
    conns_rest(&worker->conns);
    atomic_store(&worker->heritage->mine->is_busy, 0);
}

/* Waiting is over. Who leaves idle while nobody watches says so: the order, first busy, then the
 * flag, is the other way round in the master, so that nobody slips through. */
static void on_wake(struct ev_loop *loop, ev_check *check, int events)
{
    (void)loop;
    (void)events;
    struct worker *worker = check->data;
    const struct heritage *heritage = worker->heritage;
    struct scoreboard_slot *mine = heritage->mine;
    atomic_store(&mine->is_busy, 1);
    scoreboard_add(&mine->turns, 1);
    conns_wake(&worker->conns);
    _Atomic uint32_t *is_watching = &heritage->scoreboard->master.is_watching;
    if (heritage->watchdog != -1 && atomic_load(is_watching) == 0 &&
        atomic_exchange(is_watching, 1) == 0) {
        uint64_t one = 1;
        if (write(heritage->watchdog, &one, sizeof one) == -1)
            atomic_store(is_watching, 0);
    }
}

/* An event that never comes: with a periodic watcher libev need not look at the clock. */
static void on_never(struct ev_loop *loop, ev_periodic *periodic, int events)
{
    (void)loop;
    (void)periodic;
    (void)events;
}

static void on_gone(struct conns *conns)
{
    struct worker *worker = conns->owner;
    accept_retry(&worker->accept);
    if (worker->state == SCOREBOARD_STARTING && worker->is_tried && conns->open == 0) {
        set_state(worker, SCOREBOARD_READY);
        if (tell(worker, CHANNEL_READY) == -1)
            fail(worker, "cannot say ready: %s", strerror(errno));
    }
    leave_if_empty(worker);
}

static void on_tried(struct trial *trial, const char *fault)
{
    struct worker *worker = trial->conns->owner;
    if (fault)
        fail(worker, "%s", fault);
    worker->is_tried = true;
    if (worker->conns.open == 0)
        on_gone(&worker->conns);
}

static void on_deserted(struct conns *conns)
{
    struct worker *worker = conns->owner;
    worker->wants_a_loop = worker->state == SCOREBOARD_READY;
    if (worker->wants_a_loop)
        ev_break(worker->loop, EVBREAK_ALL);
}

static void start_watchers(struct worker *worker)
{
    struct ev_loop *loop = worker->loop;
    ev_io_init(&worker->signalled, on_signal, worker->signals, EV_READ);
    ev_io_init(&worker->told, on_told, worker->heritage->channel, EV_READ);
    ev_prepare_init(&worker->rest, on_rest);
    ev_check_init(&worker->wake, on_wake);
    ev_periodic_init(&worker->never, on_never, 1e12, 0., NULL);
    ev_init(&worker->deadline, on_deadline);
    ev_init(&worker->idle_grace, on_idle_grace);
    ev_init(&worker->patience, on_patience);
    worker->signalled.data = worker->told.data = worker->rest.data = worker->wake.data = worker;
    worker->deadline.data = worker->idle_grace.data = worker->patience.data = worker;
    /* Before all others: the rest of the turn needs its time. */
    ev_set_priority(&worker->wake, EV_MAXPRI);
    ev_io_start(loop, &worker->signalled);
    ev_io_start(loop, &worker->told);
    ev_prepare_start(loop, &worker->rest);
    ev_check_start(loop, &worker->wake);
    ev_periodic_start(loop, &worker->never);
}

/* Another worker is asked for room: the master wakes it. */
static void on_ask(struct conns *conns, unsigned slot)
{
    const struct worker *worker = conns->owner;
    const struct channel_message message = { .kind = CHANNEL_ASK, .argument = slot };
    channel_send(worker->heritage->channel, &message);
}

static int init_conns(struct worker *worker)
{
    const struct heritage *heritage = worker->heritage;
    const struct conf *conf = heritage->conf;
    if (heritage->is_admin) {
        worker->admin_routes = answer_admin_routes(&worker->nadmin_routes);
        if (!worker->admin_routes)
            return -1;
    }
    struct conns *conns = &worker->conns;
    *conns = (struct conns){
        .loop = worker->loop,
        .conf = conf,
        .routes = heritage->is_admin ? worker->admin_routes : conf->routes,
        .nroutes = heritage->is_admin ? worker->nadmin_routes : conf->nroutes,
        .scoreboard = heritage->scoreboard,
        .tally = heritage->tally,
        .slot = heritage->mine,
        .is_counted = !heritage->is_admin,
        .most = heritage->connections,
        .most_per_address = heritage->is_admin ? 0 : (unsigned)conf->limits.per_address,
        .gone = on_gone,
        .ask = on_ask,
        .deserted = on_deserted,
        .owner = worker,
    };
    if (access_init(&conns->access, heritage->access, conf->access_log_format, heritage->worker,
                    heritage->generation) == -1)
        return -1;
    return conns_init(conns);
}

static struct ev_loop *new_loop(void)
{
    return ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV | EVFLAG_NOSIGMASK);
}

/* libev's table of descriptors grows with the largest and never shrinks: some 25 bytes for each of
 * the many connections that have gone. A new loop begins with a small one. */
static bool renew_loop(struct worker *worker)
{
    if (!worker->wants_a_loop || worker->state != SCOREBOARD_READY)
        return false;
    worker->wants_a_loop = false;
    struct ev_loop *loop = new_loop(), *old = worker->loop;
    if (!loop)
        return true;
    accept_stop(&worker->accept);
    conns_move(&worker->conns, loop);
    worker->loop = loop;
    start_watchers(worker);
    accept_start(&worker->accept);
    ev_loop_destroy(old);
    malloc_trim(0);
    return true;
}

static void init(struct worker *worker)
{
    const struct heritage *heritage = worker->heritage;
    log_identify(heritage->is_admin ? "admin" : "worker");
    if (heritage->is_trial)
        title_set("hayate: trial");
    else if (heritage->is_admin)
        title_set("hayate: admin, generation %llu", (unsigned long long)heritage->generation);
    else
        title_set("hayate: worker %u, generation %llu", heritage->worker,
                  (unsigned long long)heritage->generation);
    const char *what;
    if (identity_take(heritage, &what) == -1) {
        if (errno == ESRCH)
            exit(EXIT_SUCCESS);
        fail(worker, "%s: %s", what, strerror(errno));
    }
    worker->signals = identity_signals();
    if (worker->signals == -1)
        fail(worker, "cannot watch signals: %s", strerror(errno));
    /* Fixed, or else glibc raises it with the first large block that is freed, and keeps the next. */
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
    mallopt(M_TRIM_THRESHOLD, 2 * LARGE_BLOCK);
    worker->loop = new_loop();
    if (!worker->loop)
        fail(worker, "cannot make an event loop: %s", strerror(errno));
    start_watchers(worker);
    set_state(worker, SCOREBOARD_STARTING);
    if (init_conns(worker) == -1 || accept_init(&worker->accept, &worker->conns, heritage) == -1)
        fail(worker, "out of memory");
    if (trial_start(&worker->trial, &worker->conns, on_tried) == -1)
        fail(worker, "cannot send its own first request: %s", strerror(errno));
}

static void fini(struct worker *worker)
{
    log_limit_end(&worker->conns.limit, LOG_LEVEL_WARNING, "connections");
    log_limit_end(&worker->accept.limit, LOG_LEVEL_ERROR, "accepting connections");
    trial_stop(&worker->trial);
    accept_fini(&worker->accept);
    conns_fini(&worker->conns);
    access_fini(&worker->conns.access);
    answer_admin_routes_free(worker->admin_routes, worker->nadmin_routes);
    fd_close(&worker->signals);
    ev_loop_destroy(worker->loop);
    set_state(worker, SCOREBOARD_GONE);
}

void worker_run(const struct heritage *heritage)
{
    struct worker worker = { .heritage = heritage, .signals = -1 };
    trace_start(scoreboard_trace(heritage->scoreboard, heritage->mine), __builtin_frame_address(0));
    init(&worker);
    do
        ev_run(worker.loop, 0);
    while (renew_loop(&worker));
    fini(&worker);
    exit(EXIT_SUCCESS);
}
