#include "worker/late.h"

#include <stdlib.h>
#include <string.h>

#include "base/scoreboard.h"
#include "worker/conn.h"
#include "worker/conns.h"

static struct conns *conns_of(const struct late *late)
{
    return conn_conns(late->serve.conn);
}

/* What the log says of a crash, when nothing is in the parser. */
static void show_oldest(struct conns *conns)
{
    const struct late *oldest = conns->late_first;
    if (oldest)
        scoreboard_request_set(&conns->slot->oldest, &oldest->serve.conn->peer, oldest->head);
    else
        scoreboard_request_clear(&conns->slot->oldest);
}

static void enlist(struct late *late)
{
    struct conns *conns = conns_of(late);
    late->is_waiting = true;
    late->previous = conns->late_last;
    *(late->previous ? &late->previous->next : &conns->late_first) = late;
    conns->late_last = late;
    conns->waiting++;
    if (conns->late_first == late)
        show_oldest(conns);
}

static void delist(struct late *late)
{
    struct conns *conns = conns_of(late);
    if (!late->is_waiting)
        return;
    bool was_oldest = conns->late_first == late;
    *(late->previous ? &late->previous->next : &conns->late_first) = late->next;
    *(late->next ? &late->next->previous : &conns->late_last) = late->previous;
    late->is_waiting = false;
    conns->waiting--;
    ev_timer_stop(conns->loop, &late->timer);
    if (was_oldest)
        show_oldest(conns);
}

/* Frees the late request, then lets the connection go on with the next. */
static void done(struct exchange *exchange)
{
    struct late *late = (struct late *)exchange;
    struct conn *conn = late->serve.conn;
    serve_write(&late->serve);
    late_free(late);
    conn_resume(conn);
}

static void answer(struct late *late)
{
    struct conns *conns = conns_of(late);
    scoreboard_request_set(&conns->slot->answering, &late->serve.conn->peer, late->head);
    serve_now(&late->serve);
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct late *late = timer->data;
    struct conns *conns = conns_of(late);
    delist(late);
    answer(late);
    scoreboard_request_clear(&conns->slot->answering);
}

struct late *late_new(const struct serve *serve, struct slice bytes)
{
    struct conn *conn = serve->conn;
    const struct request *request = serve->exchange.request;
    size_t length = request->head_length;
    struct conn_held *held = conn_hold(conn);
    struct late *late = calloc(1, sizeof *late);
    char *head = malloc(length);
    if (!held || !late || !head || request_move(&late->request, request, bytes.data, head) == -1) {
        free(head);
        free(late);
        conn->is_broken = true;
        return NULL;
    }
    memcpy(head, bytes.data, length);
    late->head = (struct slice){ head, length };
    late->serve = *serve;
    late->serve.line.data = head + (serve->line.data - bytes.data);
    late->serve.exchange.request = &late->request;
    late->serve.exchange.text = (struct buf){ 0 };
    late->serve.exchange.done = done;
    ev_init(&late->timer, on_time);
    late->timer.data = late;
    held->late = late;
    return late;
}

void late_free(struct late *late)
{
    delist(late);
    late->serve.conn->held->late = NULL;
    request_fini(&late->request);
    buf_fini(&late->serve.exchange.text);
    free((char *)late->head.data);
    free(late);
}

void late_begin(struct late *late)
{
    const struct conf_route *route = late->serve.exchange.route;
    const struct answer *prepared = route ? route->answer : NULL;
    if (late->serve.exchange.response || !prepared || prepared->delay == 0) {
        answer(late);
        return;
    }
    struct conns *conns = conns_of(late);
    enlist(late);
    ev_timer_set(&late->timer, (double)prepared->delay / 1e9, 0.);
    ev_timer_start(conns->loop, &late->timer);
}
