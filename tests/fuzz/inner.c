#include "inner.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "answer/answer.h"
#include "base/clock.h"
#include "base/scoreboard.h"
#include "base/tally.h"
#include "conf/load.h"
#include "worker/conns.h"

static struct conns conns;
static int64_t now = CLOCK_SECOND;

/* In the place of the library's, also for libev. */
int clock_gettime(clockid_t id, struct timespec *time)
{
    int64_t value = id == CLOCK_REALTIME ? 0 : now;
    *time = (struct timespec){ value / CLOCK_SECOND, value % CLOCK_SECOND };
    return 0;
}

time_t time(time_t *copy)
{
    if (copy)
        *copy = 0;
    return 0;
}

static void need(bool is_met, const char *what)
{
    if (is_met)
        return;
    fprintf(stderr, "inner: %s\n", what);
    abort();
}

/* Some turns: what one has freed the next may use. */
static void turn(void)
{
    for (int i = 0; i < 3; i++) {
        conns_wake(&conns);
        ev_run(conns.loop, EVRUN_NOWAIT);
        conns_rest(&conns);
    }
}

void inner_start(const char *config)
{
    struct conf_error error = { 0 };
    const struct conf_request request = { .file = "inner.conf", .kinds = answer_kinds() };
    const struct conf *conf = load_bytes(&request, slice_of(config), &error);
    need(conf, error.text);
    int fd;
    struct scoreboard *scoreboard = scoreboard_new(&fd);
    need(scoreboard, "no scoreboard");
    struct tally *tally = tally_new(conf->nroutes, &fd);
    need(tally, "no tally");
    conns = (struct conns){
        .loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV),
        .conf = conf,
        .routes = conf->routes,
        .nroutes = conf->nroutes,
        .scoreboard = scoreboard,
        .slot = scoreboard_take(scoreboard, SCOREBOARD_WORKER),
        .tally = tally,
        .is_counted = true,
    };
    need(conns.loop && conns_init(&conns) == 0, "no memory");
}

int inner_open(void)
{
    int ends[2];
    const struct sockaddr_in address = { .sin_family = AF_INET };
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0, "no pair");
    /* Soon full: an answer or two, then the rest must wait. */
    need(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &(int){ 0 }, sizeof(int)) == 0, "no option");
    conns_wake(&conns);
    conns_open(&conns, ends[0], (const struct sockaddr *)&address);
    return ends[1];
}

bool inner_receive(int client, struct buf *answers)
{
    for (;;) {
        need(buf_reserve(answers, 4096) == 0, "no memory");
        ssize_t length = recv(client, answers->data + answers->length, 4096, 0);
        if (length <= 0)
            return length == 0 || errno != EAGAIN;
        answers->length += (size_t)length;
    }
}

void inner_leave_out(struct buf *answers, const char *text)
{
    size_t length = strlen(text);
    char *found = answers->data;
    while (found && (found = memmem(found, answers->length - (size_t)(found - answers->data), text,
                                    length))) {
        const char *after = found + length;
        memmove(found, after, (size_t)(answers->data + answers->length - after));
        answers->length -= length;
    }
}

void inner_pass(int64_t ns)
{
    now += ns;
    turn();
}

void inner_send(int client, struct slice bytes, size_t step, struct buf *answers)
{
    int tries = 0;
    while (bytes.length > 0) {
        size_t piece = bytes.length < step ? bytes.length : step;
        if (send(client, bytes.data, piece, MSG_NOSIGNAL) == (ssize_t)piece) {
            bytes = (struct slice){ bytes.data + piece, bytes.length - piece };
            tries = 0;
            turn();
        } else if (errno == EAGAIN && tries++ < 100) {
            inner_receive(client, answers); /* nothing is read before that is gone */
            inner_pass(10 * CLOCK_MILLISECOND);
        } else {
            need(errno == EPIPE, "not sent");
            return;
        }
    }
}

void inner_end(int client)
{
    for (int i = 0; i < 3 && conns.open > 0; i++)
        inner_pass(60 * CLOCK_SECOND);
    need(conns.open == 0, "a connection has no end");
    close(client);
}
