#include "master/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "conf/conf.h"
#include "master/master.h"
#include "worker/orphan.h"
#include "worker/worker.h"

/* How long after its deadline a draining child may take to leave. */
#define DRAIN_GRACE CLOCK_SECOND
/* A timer that comes later than so many seconds tells of a standstill. */
#define STANDSTILL .1

const char *child_name(char *text, const struct child *child)
{
    if (child->worker == 0)
        snprintf(text, CHILD_NAME_SIZE, "admin (pid %d)", (int)child->pid);
    else
        snprintf(text, CHILD_NAME_SIZE, "worker %u (pid %d)", child->worker, (int)child->pid);
    return text;
}

static size_t add_sockets(struct heritage_socket *sockets, const struct listener_set *set,
                          unsigned workers)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct listener *listener = set->items[i];
        for (unsigned slot = 0; slot < listener->nfds; slot++) {
            if (sockets)
                sockets[count] = (struct heritage_socket){
                    .fd = listener->fds[slot],
                    .slot = slot,
                    .is_shared = listener->is_shared,
                    .is_surplus = slot >= workers,
                };
            count++;
        }
    }
    return count;
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Closes whatever the child was not given: the other children's channels first of all, else the
 * end of file that tells of the master's death would never come. */
static void close_others(const struct heritage *heritage)
{
    size_t count = 0;
    int *kept = malloc((heritage->nsockets + 8) * sizeof(*kept));
    if (!kept)
        log_fatal(EXIT_FAILURE, "out of memory");
    for (int fd = 0; fd <= 2; fd++)
        kept[count++] = fd;
    for (size_t i = 0; i < heritage->nsockets; i++)
        kept[count++] = heritage->sockets[i].fd;
    kept[count++] = heritage->channel;
    kept[count++] = heritage->watchdog;
    kept[count++] = heritage->access.fd;
    kept[count++] = log_descriptor();
    qsort(kept, count, sizeof(*kept), compare_ints);
    int next = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept[i] > next)
            close_range((unsigned)next, (unsigned)kept[i] - 1, 0);
        if (kept[i] >= next)
            next = kept[i] + 1;
    }
    close_range((unsigned)next, ~0U, 0);
    free(kept);
}

/* In the new process, where the record of it is the master's past. */
_Noreturn static void become(struct child *child, int channel)
{
    struct generation *generation = child->generation;
    const struct conf *conf = generation->conf;
    bool is_admin = child->worker == 0;
    const struct listener_set *set =
        is_admin ? &generation->admin_listeners : &generation->listeners;
    unsigned workers = is_admin ? 1 : generation->workers;
    orphan_fault(atomic_load(&child->master->scoreboard->master.pid));
    log_identify(is_admin ? "admin" : "worker");
    if (generation->log.kind != SINK_OFF)
        log_set_sink(generation->log, generation->log_is_journal);
    log_set_format(conf->log_format, conf->log_level);

    struct heritage heritage = {
        .is_admin = is_admin,
        .worker = child->worker,
        .slot = is_admin ? 0 : child->worker - 1,
        .generation = generation->number,
        .workers = generation->workers,
        .connections = generation->connections,
        .conf = conf,
        .scoreboard = child->master->scoreboard,
        .mine = child->slot,
        .nsockets = add_sockets(NULL, set, workers),
        .tally = is_admin ? NULL : generation->tally,
        .channel = channel,
        .watchdog = child->master->watchdog.fd,
        .access = is_admin ? SINK_INIT : generation->access,
        .master = atomic_load(&child->master->scoreboard->master.pid),
        .born = child->born,
        .is_root = geteuid() == 0,
        .uid = conf->uid,
        .gid = conf->gid,
    };
    struct heritage_socket *sockets = calloc(heritage.nsockets + 1, sizeof(*sockets));
    if (!sockets)
        log_fatal(EXIT_FAILURE, "out of memory");
    add_sockets(sockets, set, workers);
    heritage.sockets = sockets;
    free(child);
    close_others(&heritage);
    worker_run(&heritage);
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    master_child_message(io->data);
}

/* When the master stood still, in a frozen container for one, so did the child: it gets the grace
 * once more, to do by itself what its own deadlines tell it. */
static void on_overdue(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct child *child = timer->data;
    if (ev_timer_remaining(loop, timer) < -STANDSTILL) { /* of one that has fired: since when */
        child_expect(child, DRAIN_GRACE);
        return;
    }
    child_kill(child, child->is_draining ? "did not leave in time"
                                         : "said nothing in the time it had to get ready");
}

static void init_slot(const struct child *child)
{
    struct scoreboard_slot *slot = child->slot;
    slot->worker = child->worker;
    slot->generation = child->generation->number;
    slot->since = child->born;
    slot->restarts = child->member->roster.restarts;
    atomic_store(&slot->state, SCOREBOARD_STARTING);
}

void child_watch(struct child *child)
{
    struct master *master = child->master;
    ev_io_init(&child->readable, on_readable, child->channel, EV_READ);
    ev_init(&child->overdue, on_overdue);
    child->readable.data = child->overdue.data = child;
    ev_io_start(master->loop, &child->readable);
    child->next = master->children;
    master->children = child;
    child->generation->nchildren++;
}

struct child *child_fork(struct master *master, struct generation *generation,
                         struct member *member)
{
    int ends[2];
    struct child *child = calloc(1, sizeof(*child));
    if (!child)
        return NULL;
    *child = (struct child){
        .master = master,
        .generation = generation,
        .member = member,
        .worker = member->worker,
        .born = clock_monotonic(),
        .has_reopened = true, /* it inherits the logs in use */
        .slot = scoreboard_take(master->scoreboard,
                                member->worker ? SCOREBOARD_WORKER : SCOREBOARD_ADMIN),
    };
    if (!child->slot)
        goto no_slot;
    init_slot(child);
    if (channel_open(ends) == -1)
        goto no_channel;
    child->pid = fork();
    if (child->pid == -1)
        goto no_fork;
    if (child->pid == 0)
        become(child, ends[1]);
    fd_close(&ends[1]);
    atomic_store(&child->slot->pid, child->pid);
    child->channel = ends[0];
    child_watch(child);
    return child;

no_fork:
    fd_close(&ends[0]);
    fd_close(&ends[1]);
no_channel:
    scoreboard_fold(master->scoreboard, child->slot);
no_slot:
    free(child);
    return NULL;
}

void child_expect(struct child *child, int64_t nanoseconds)
{
    ev_timer_stop(child->master->loop, &child->overdue);
    ev_timer_set(&child->overdue, (double)nanoseconds / 1e9, 0.);
    /* The loop's idea of now may be old after a long load. */
    ev_now_update(child->master->loop);
    ev_timer_start(child->master->loop, &child->overdue);
}

void child_tell(struct child *child, const struct channel_message *message)
{
    if (child->channel == -1 || channel_send(child->channel, message) == 0)
        return;
    if (errno == EAGAIN)
        child_kill(child, "does not read what the master tells it");
    /* Anything else means that it is dead, which SIGCHLD tells next. */
}

/* Until it is killed, ns. */
static int64_t time_left(struct child *child)
{
    if (!ev_is_active(&child->overdue))
        return INT64_MAX;
    ev_now_update(child->master->loop);
    return (int64_t)(ev_timer_remaining(child->master->loop, &child->overdue) * 1e9);
}

void child_drain(struct child *child, enum channel_drain how, bool takes_queue, int64_t deadline)
{
    struct channel_message message = {
        .kind = CHANNEL_DRAIN,
        .argument = (uint32_t)how | (takes_queue ? CHANNEL_DRAIN_TAKE_QUEUE : 0),
        .value = deadline,
    };
    int64_t left = child->is_draining ? time_left(child) : INT64_MAX;
    child->is_draining = true;
    child->is_serving = false;
    atomic_store(&child->slot->state, SCOREBOARD_DRAINING);
    child_tell(child, &message);
    if (deadline + DRAIN_GRACE < left)
        child_expect(child, deadline + DRAIN_GRACE);
}

void child_kill(struct child *child, const char *reason)
{
    if (child->kill_reason)
        return;
    child->kill_reason = reason;
    ev_timer_stop(child->master->loop, &child->overdue);
    if (child->is_draining && child->master->is_draining)
        child->master->has_killed = true;
    kill(child->pid, SIGKILL);
}

static void describe_status(char *text, size_t size, const struct child *child, int status)
{
    char memory[OOM_TEXT_SIZE];
    const char *reason = child->kill_reason  ? child->kill_reason
                         : child->failure[0] ? child->failure
                                             : NULL;
    if (!reason && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
        oom_explain(&child->master->oom, clock_monotonic(), memory)[0])
        reason = memory;
    const char *left = reason ? " (" : "", *right = reason ? ")" : "";
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        char number[16];
        snprintf(number, sizeof(number), "%d", WTERMSIG(status));
        snprintf(text, size, "killed by %s%s%s%s%s%s", name ? "SIG" : "signal ",
                 name ? name : number, WCOREDUMP(status) ? ", core dumped" : "", left,
                 reason ? reason : "", right);
    } else {
        snprintf(text, size, "exited with status %d%s%s%s", WEXITSTATUS(status), left,
                 reason ? reason : "", right);
    }
}

/* What it was at: the request in the parser, else those that wait for a late answer. */
static void describe_work(char *text, size_t size, const struct child *child)
{
    char request[SCOREBOARD_TEXT * 2];
    scoreboard_request_text(request, sizeof(request), &child->slot->answering);
    if (request[0]) {
        snprintf(text, size, ", answering %s", request);
        return;
    }
    unsigned waiting = atomic_load(&child->slot->waiting);
    scoreboard_request_text(request, sizeof(request), &child->slot->oldest);
    if (waiting > 0 && request[0])
        snprintf(text, size, ", with %u request%s waiting, oldest %s", waiting,
                 waiting == 1 ? "" : "s", request);
    else
        text[0] = '\0';
}

void child_end_text(char *text, size_t size, const struct child *child, int status)
{
    char end[CHANNEL_TEXT + 128], work[SCOREBOARD_TEXT * 2 + 64], span[CLOCK_SPAN_SIZE];
    describe_status(end, sizeof(end), child, status);
    describe_work(work, sizeof(work), child);
    clock_span(span, sizeof(span), clock_monotonic() - child->born);
    snprintf(text, size, "%s after %s%s", end, span, work);
}

void child_trace_text(char *text, size_t size, const struct child *child, int status)
{
    char trace[TRACE_TEXT_SIZE] = "";
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    /* Another signal may end a process that is in the middle of writing it. */
    if (number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
        number == SIGABRT)
        trace_text(trace, sizeof(trace), scoreboard_trace(child->master->scoreboard, child->slot),
                   child->pid);
    snprintf(text, size, "%s%s", trace[0] ? "; at " : "", trace);
}

void child_free(struct child *child)
{
    struct master *master = child->master;
    ev_io_stop(master->loop, &child->readable);
    ev_timer_stop(master->loop, &child->overdue);
    fd_close(&child->channel);
    scoreboard_fold(master->scoreboard, child->slot);
    for (struct child **link = &master->children; *link; link = &(*link)->next)
        if (*link == child) {
            *link = child->next;
            break;
        }
    free(child);
}
