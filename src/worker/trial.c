#include "worker/trial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer/answer.h"
#include "base/fd.h"
#include "worker/conns.h"

/* Fields and the request line besides the path. */
#define REST " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

/* The request, and the status it must get. -1: ENOMEM. */
static int compose(struct trial *trial, struct buf *request)
{
    const struct conns *conns = trial->conns;
    size_t room = (size_t)conns->conf->limits.header;
    for (size_t i = 0; i < conns->nroutes; i++) {
        const struct conf_route *route = &conns->routes[i];
        const struct answer *answer = route->answer;
        if (answer->is_harmless && strlen(route->path) + strlen("GET " REST) <= room) {
            trial->status = answer->fixed.status;
            return buf_printf(request, "GET %s" REST, route->path);
        }
    }
    trial->status = conns->options.status;
    return buf_add_string(request, "OPTIONS *" REST);
}

const char *trial_fault(struct slice answer, unsigned status)
{
    char line[32];
    snprintf(line, sizeof line, "HTTP/1.1 %03u ", status);
    if (answer.length < strlen(line) || memcmp(answer.data, line, strlen(line)) != 0)
        return "its own first request got the wrong status";
    const char *end = memmem(answer.data, answer.length, "\r\n\r\n", 4);
    if (!end)
        return "the answer to its own first request had no end";
    size_t body = answer.length - (size_t)(end + 4 - answer.data), length = 0;
    const char *field = answer.data;
    while (field < end && (field = memmem(field, (size_t)(end - field), "\r\n", 2))) {
        static const char name[] = "Content-Length: ";
        field += 2;
        if (strncasecmp(field, name, sizeof name - 1) == 0)
            length = strtoul(field + sizeof name - 1, NULL, 10);
    }
    return body == length ? NULL : "the answer to its own first request had the wrong length";
}

static void finish(struct trial *trial, const char *fault)
{
    ev_io_stop(trial->conns->loop, &trial->io);
    fd_close(&trial->fd);
    trial->done(trial, fault);
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    struct trial *trial = io->data;
    struct buf *answer = &trial->answer;
    if (buf_reserve(answer, 4096) == -1) {
        finish(trial, "out of memory");
        return;
    }
    ssize_t length = recv(trial->fd, answer->data + answer->length, 4096, 0);
    if (length > 0)
        answer->length += (size_t)length;
    else if (length == 0)
        finish(trial, trial_fault(buf_slice(answer), trial->status));
    else if (errno != EAGAIN && errno != EINTR)
        finish(trial, strerror(errno));
}

int trial_start(struct trial *trial, struct conns *conns,
                void (*done)(struct trial *trial, const char *fault))
{
    int ends[2];
    struct buf request = { 0 };
    *trial = (struct trial){ .conns = conns, .fd = -1, .done = done };
    if (compose(trial, &request) == -1 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == -1) {
        buf_fini(&request);
        return -1;
    }
    trial->fd = ends[0];
    ev_io_init(&trial->io, on_readable, ends[0], EV_READ);
    trial->io.data = trial;
    ev_io_start(conns->loop, &trial->io);
    /* First open, then write: so that the loop is part of what is tried. */
    conns_open(conns, ends[1], NULL);
    ssize_t written = send(ends[0], request.data, request.length, MSG_NOSIGNAL);
    bool is_whole = written == (ssize_t)request.length;
    buf_fini(&request);
    return is_whole ? 0 : -1;
}

void trial_stop(struct trial *trial)
{
    if (trial->fd != -1) {
        ev_io_stop(trial->conns->loop, &trial->io);
        fd_close(&trial->fd);
    }
    buf_fini(&trial->answer);
}
