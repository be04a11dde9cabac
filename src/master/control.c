#include "master/control.h"

#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "conf/conf.h"
#include "conf/print.h"
#include "master/listener.h"
#include "master/master.h"
#include "master/status.h"

#define COMMAND_MAX 64  /* bytes of a command line */
#define SILENCE_MAX 10. /* seconds a client may take to say it, or to read the answer */
#define CLIENTS_MAX 64
#define ACCEPT_PAUSE 0.5 /* seconds, when there are no descriptors */

struct client {
    struct client *next;
    struct control *control;
    int fd;
    ev_io io;
    ev_timer overdue;
    char command[COMMAND_MAX];
    size_t length;
    enum control_wait wait;
    uint64_t round;
    struct buf answer;
    size_t sent;
    bool is_answered;
};

struct control {
    struct master *master;
    int fd; /* the listening socket: the generation's */
    ev_io acceptable;
    ev_timer pause;
    struct client *clients; /* newest first */
    unsigned nclients;
};

static void client_free(struct client *client)
{
    struct control *control = client->control;
    for (struct client **link = &control->clients; *link; link = &(*link)->next)
        if (*link == client) {
            *link = client->next;
            break;
        }
    control->nclients--;
    ev_io_stop(control->master->loop, &client->io);
    ev_timer_stop(control->master->loop, &client->overdue);
    fd_close(&client->fd);
    buf_fini(&client->answer);
    free(client);
}

/* Sends what it takes; the rest when it reads. */
static void client_send(struct client *client)
{
    struct ev_loop *loop = client->control->master->loop;
    while (client->sent < client->answer.length) {
        ssize_t sent = send(client->fd, client->answer.data + client->sent,
                            client->answer.length - client->sent, MSG_NOSIGNAL);
        if (sent == -1 && errno == EAGAIN) {
            ev_io_stop(loop, &client->io);
            ev_io_set(&client->io, client->fd, EV_WRITE);
            ev_io_start(loop, &client->io);
            ev_timer_again(loop, &client->overdue);
            return;
        }
        if (sent == -1)
            break;
        client->sent += (size_t)sent;
    }
    client_free(client);
}

static void client_answer(struct client *client, int status, struct slice text)
{
    client->is_answered = true;
    client->wait = CONTROL_NOTHING;
    if (buf_printf(&client->answer, "%d\n", status) == -1 ||
        buf_add_slice(&client->answer, text) == -1) {
        client_free(client);
        return;
    }
    client_send(client);
}

/* An answer may come before the call that causes it returns, hence the round of the next one. */
static void client_wait(struct client *client, enum control_wait wait, uint64_t round)
{
    client->wait = wait;
    client->round = round;
    ev_timer_stop(client->control->master->loop, &client->overdue);
}

static void answer_text(struct client *client, int (*write)(struct buf *, struct master *))
{
    struct buf text = { 0 };
    if (write(&text, client->control->master) == 0)
        client_answer(client, EXIT_SUCCESS, buf_slice(&text));
    else
        client_answer(client, EXIT_FAILURE, SLICE("out of memory\n"));
    buf_fini(&text);
}

static int print_running(struct buf *out, struct master *master)
{
    return master->current ? conf_print(out, master->current->conf) : 0;
}

static void command_reload(struct client *client)
{
    struct master *master = client->control->master;
    if (master->is_stopping) {
        client_answer(client, EXIT_FAILURE, SLICE("refused: a stop is in progress\n"));
        return;
    }
    client_wait(client, CONTROL_RELOAD, master->reload.last + 1);
    log_info("control: reloading");
    master_reload(master);
}

static void command_reopen(struct client *client)
{
    struct master *master = client->control->master;
    client_wait(client, CONTROL_REOPEN, master->reopen.last + 1);
    master_reopen(master);
}

static void command_stop(struct client *client)
{
    struct master *master = client->control->master;
    client_wait(client, CONTROL_STOP, 0);
    log_info("control: stopping");
    if (!master->is_stopping)
        master_stop(master);
}

static void command_upgrade(struct client *client)
{
    char answer[64];
    client_wait(client, CONTROL_UPGRADE, 0);
    log_info("control: upgrading");
    const char *refusal = master_upgrade(client->control->master);
    if (!refusal)
        return;
    snprintf(answer, sizeof(answer), "refused: %s\n", refusal);
    client_answer(client, EXIT_FAILURE, slice_of(answer));
}

static void command_status(struct client *client)
{
    answer_text(client, status_text);
}

static void command_status_json(struct client *client)
{
    answer_text(client, status_json);
}

static void command_config(struct client *client)
{
    answer_text(client, print_running);
}

static const struct {
    const char *name;
    void (*run)(struct client *client);
} commands[] = {
    { "reload", command_reload }, { "reopen", command_reopen },
    { "stop", command_stop },     { "upgrade", command_upgrade },
    { "status", command_status }, { "status json", command_status_json },
    { "config", command_config },
};

static void client_run(struct client *client)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (strcmp(client->command, commands[i].name) == 0) {
            commands[i].run(client);
            return;
        }
    client_answer(client, 2,
                  SLICE("unknown command; the commands are reload, reopen, stop, "
                        "upgrade, status, status json, config\n"));
}

static void client_read(struct client *client)
{
    char *end = client->command + client->length;
    ssize_t got = recv(client->fd, end, sizeof(client->command) - client->length, 0);
    if (got == -1 && errno == EAGAIN)
        return;
    if (got == 0 && client->wait != CONTROL_NOTHING) {
        /* It has said all it wants to say, and waits. */
        ev_io_stop(client->control->master->loop, &client->io);
        return;
    }
    if (got <= 0) {
        client_free(client);
        return;
    }
    if (client->wait != CONTROL_NOTHING)
        return; /* it has had its say */
    char *newline = memchr(end, '\n', (size_t)got);
    client->length += (size_t)got;
    if (newline) {
        *newline = '\0';
        client_run(client);
    } else if (client->length == sizeof(client->command)) {
        client_answer(client, 2, SLICE("a command is one short line\n"));
    }
}

static void on_client(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    struct client *client = io->data;
    if (events & EV_WRITE)
        client_send(client);
    else if (client->length == sizeof(client->command))
        client_free(client);
    else
        client_read(client);
}

static void on_overdue(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    client_free(timer->data);
}

/* Too many at once: the oldest that has asked for nothing makes room. */
static void make_room(struct control *control)
{
    struct client *oldest = NULL;
    for (struct client *client = control->clients; client; client = client->next)
        if (client->wait == CONTROL_NOTHING && !client->is_answered)
            oldest = client;
    if (oldest)
        client_free(oldest);
}

/* Takes over the descriptor. NULL: ENOMEM. */
static struct client *client_new(struct control *control, int fd)
{
    struct client *client = calloc(1, sizeof(*client));
    if (!client) {
        fd_close(&fd);
        return NULL;
    }
    if (control->nclients >= CLIENTS_MAX)
        make_room(control);
    struct ev_loop *loop = control->master->loop;
    client->control = control;
    client->fd = fd;
    ev_io_init(&client->io, on_client, fd, EV_READ);
    ev_timer_init(&client->overdue, on_overdue, SILENCE_MAX, SILENCE_MAX);
    client->io.data = client->overdue.data = client;
    ev_io_start(loop, &client->io);
    ev_timer_start(loop, &client->overdue);
    client->next = control->clients;
    control->clients = client;
    control->nclients++;
    return client;
}

static void on_acceptable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)events;
    struct control *control = io->data;
    int fd = accept4(control->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd != -1) {
        client_new(control, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        ev_io_stop(loop, io);
        ev_timer_set(&control->pause, ACCEPT_PAUSE, 0.);
        ev_timer_start(loop, &control->pause);
    }
}

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct control *control = timer->data;
    if (control->fd != -1)
        ev_io_start(loop, &control->acceptable);
}

struct control *control_new(struct master *master)
{
    struct control *control = calloc(1, sizeof(*control));
    if (!control)
        return NULL;
    control->master = master;
    control->fd = -1;
    ev_init(&control->acceptable, on_acceptable);
    ev_init(&control->pause, on_pause);
    control->acceptable.data = control->pause.data = control;
    return control;
}

void control_free(struct control *control)
{
    if (!control)
        return;
    control_listen(control, NULL);
    while (control->clients)
        client_free(control->clients);
    free(control);
}

void control_listen(struct control *control, const struct listener_set *set)
{
    struct ev_loop *loop = control->master->loop;
    ev_io_stop(loop, &control->acceptable);
    ev_timer_stop(loop, &control->pause);
    control->fd = set && set->count > 0 ? set->items[0]->fds[0] : -1;
    if (control->fd == -1)
        return;
    ev_io_set(&control->acceptable, control->fd, EV_READ);
    ev_io_start(loop, &control->acceptable);
}

void control_answer(struct control *control, enum control_wait wait, uint64_t round, int status,
                    const char *text)
{
    /* An answer frees its client, and none of the others. */
    for (struct client *client = control->clients, *next; client; client = next) {
        next = client->next;
        if (client->wait == wait && client->round <= round)
            client_answer(client, status, slice_of(text));
    }
}

void control_each(const struct control *control,
                  void (*visit)(const struct control_client *client, void *context), void *context)
{
    for (const struct client *client = control->clients; client; client = client->next) {
        struct control_client as_it_is = {
            .fd = client->fd,
            .wait = client->wait,
            .is_answered = client->is_answered,
            .text = { client->command, client->length },
        };
        if (client->is_answered)
            as_it_is.text = (struct slice){ client->answer.data + client->sent,
                                            client->answer.length - client->sent };
        visit(&as_it_is, context);
    }
}

int control_adopt(struct control *control, const struct control_client *from)
{
    struct client *client = client_new(control, from->fd);
    if (!client)
        return -1;
    if (from->is_answered) {
        client->is_answered = true;
        if (buf_add_slice(&client->answer, from->text) == -1)
            return -1;
        client_send(client);
        return 0;
    }
    client->length =
        from->text.length < sizeof(client->command) ? from->text.length : sizeof(client->command);
    if (client->length > 0)
        memcpy(client->command, from->text.data, client->length);
    if (from->wait != CONTROL_NOTHING)
        client_wait(client, from->wait, control->master->reload.last + 1);
    return 0;
}
