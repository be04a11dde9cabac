#include "worker/accept.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "worker/conns.h"
#include "worker/heritage.h"

/* Connections taken a wake-up: of a socket that others watch too, few, so that all get some. */
#define BURST 64
#define BURST_SHARED 8

/* Bound of what is taken of one queue at the end; it may fill faster than it is emptied. */
#define QUEUE_MOST 65536

#define RETRY_SECONDS .5

struct accept_socket {
    ev_io io;
    int fd; /* -1: closed */
    unsigned slot;
    bool is_shared;
    bool is_surplus;
    bool is_taken; /* CHANNEL_TAKE */
    struct accept *accept;
};

union accept_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

static bool is_wanted(const struct accept_socket *socket)
{
    const struct accept *accept = socket->accept;
    if (!accept->is_started || accept->is_paused || socket->fd == -1)
        return false;
    return socket->is_shared || socket->is_taken ||
           (socket->slot == accept->slot && !socket->is_surplus);
}

/* Starts and stops watchers, so that those run which are wanted now. */
static void watch(struct accept *accept)
{
    struct ev_loop *loop = accept->conns->loop;
    for (size_t i = 0; i < accept->nsockets; i++) {
        struct accept_socket *socket = &accept->sockets[i];
        if (is_wanted(socket))
            ev_io_start(loop, &socket->io);
        else
            ev_io_stop(loop, &socket->io);
    }
}

static void pause_accept(struct accept *accept, int error)
{
    if (!accept->is_short)
        log_limited(&accept->limit, LOG_LEVEL_ERROR, "cannot accept connections for now: %s",
                    strerror(error));
    accept->is_paused = accept->is_short = true;
    watch(accept);
    ev_timer_again(accept->conns->loop, &accept->retry);
}

/* Does accepting go on after this error? Those of the connection that is gone say nothing of the
 * next (accept(2)). */
static bool is_passing(int error)
{
    switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENONET:
    case EOPNOTSUPP:
        return true;
    default:
        return false;
    }
}

/* Accepts up to `most` connections. Returns 0, or the error that ended it: EAGAIN when no more are
 * queued. */
static int accept_some(struct accept_socket *socket, unsigned most)
{
    struct conns *conns = socket->accept->conns;
    for (unsigned i = 0; i < most; i++) {
        union accept_address address;
        socklen_t length = sizeof address;
        int fd = accept4(socket->fd, &address.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd != -1) {
            socket->accept->is_short = false;
            conns_open(conns, fd, &address.any);
        } else if (!is_passing(errno)) {
            int error = errno;
            if ((error != EMFILE && error != ENFILE) || !admit_yield(conns))
                return error;
        }
    }
    return 0;
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct accept_socket *socket = io->data;
    int error = accept_some(socket, socket->is_shared ? BURST_SHARED : BURST);
    if (error != 0 && error != EAGAIN && error != EWOULDBLOCK)
        pause_accept(socket->accept, error);
}

void accept_retry(struct accept *accept)
{
    if (!accept->is_paused)
        return;
    accept->is_paused = false;
    ev_timer_stop(accept->conns->loop, &accept->retry);
    watch(accept);
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    accept_retry(timer->data);
}

int accept_init(struct accept *accept, struct conns *conns, const struct heritage *heritage)
{
    *accept = (struct accept){
        .conns = conns,
        .slot = heritage->slot,
        .sockets = calloc(heritage->nsockets + 1, sizeof *accept->sockets),
    };
    ev_init(&accept->retry, on_retry);
    accept->retry.repeat = RETRY_SECONDS;
    accept->retry.data = accept;
    if (!accept->sockets)
        return -1;
    accept->nsockets = heritage->nsockets;
    for (size_t i = 0; i < heritage->nsockets; i++) {
        const struct heritage_socket *from = &heritage->sockets[i];
        struct accept_socket *socket = &accept->sockets[i];
        *socket = (struct accept_socket){
            .fd = from->fd,
            .slot = from->slot,
            .is_shared = from->is_shared || heritage->is_admin,
            .is_surplus = from->is_surplus,
            .accept = accept,
        };
        ev_io_init(&socket->io, on_readable, socket->fd, EV_READ);
        socket->io.data = socket;
    }
    return 0;
}

void accept_fini(struct accept *accept)
{
    accept_close(accept, false);
    free(accept->sockets);
    accept->sockets = NULL;
    accept->nsockets = 0;
}

void accept_start(struct accept *accept)
{
    accept->is_started = true;
    watch(accept);
}

void accept_stop(struct accept *accept)
{
    accept->is_started = accept->is_paused = false;
    ev_timer_stop(accept->conns->loop, &accept->retry);
    watch(accept);
}

static void set_taken(struct accept *accept, unsigned slot, bool is_taken)
{
    for (size_t i = 0; i < accept->nsockets; i++)
        if (accept->sockets[i].slot == slot)
            accept->sockets[i].is_taken = is_taken;
    watch(accept);
}

void accept_take(struct accept *accept, unsigned slot)
{
    set_taken(accept, slot, true);
}

void accept_give(struct accept *accept, unsigned slot)
{
    set_taken(accept, slot, false);
}

void accept_close(struct accept *accept, bool takes_queue)
{
    accept_stop(accept);
    for (size_t i = 0; i < accept->nsockets; i++) {
        if (takes_queue && accept->sockets[i].fd != -1)
            accept_some(&accept->sockets[i], QUEUE_MOST);
        fd_close(&accept->sockets[i].fd);
    }
}
