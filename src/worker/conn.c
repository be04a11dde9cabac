/* Longer than most: one state machine, whose parts make sense only side by side. */

#include "worker/conn.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/tally.h"
#include "worker/conns.h"
#include "worker/late.h"
#include "worker/serve.h"

/* Output is sent when there is so much of it, and always when a batch of requests is answered. */
#define BATCH (64 * 1024)

/* So much is sent for one connection, then others have their turn. */
#define SEND_MOST (1024 * 1024)

/* What is read ahead while a late answer is awaited. */
#define AHEAD (16 * 1024)

/* What is read at least, however much was read in this turn. */
#define READ_LEAST 1024

#define LINGER_BYTES (10U * 1024 * 1024)
#define LINGER_MS 30000U

static void on_io(struct ev_loop *loop, ev_io *io, int events);

static uint32_t milliseconds(const struct conns *conns)
{
    return (uint32_t)(conns->now / CLOCK_MILLISECOND);
}

struct conn *conn_new(struct conns *conns, int fd)
{
    struct stream stream = { fd };
    struct conn *conn = calloc(1, sizeof *conn);
    if (!conn) {
        stream_close(&stream);
        return NULL;
    }
    conn->stream = stream;
    conn->is_fresh = true;
    ev_io_init(&conn->io, on_io, fd, EV_READ);
    conn->io.data = conns;
    conns->open++;
    phase_enter(&conns->phases, &conn->entry, PHASE_HEADER, conns->now);
    return conn;
}

static void free_held(struct conn *conn)
{
    struct conn_held *held = conn->held;
    if (!held)
        return;
    if (held->late)
        late_free(held->late);
    buf_fini(&held->input);
    buf_fini(&held->output);
    free(held);
    conn->held = NULL;
}

/* It takes nothing more from the share of its address. */
static void uncount(struct conn *conn)
{
    if (conn->is_counted)
        peers_remove(&conn_conns(conn)->peers, &conn->peer);
    conn->is_counted = false;
}

void conn_free(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    free_held(conn);
    phase_leave(&conns->phases, &conn->entry);
    ev_io_stop(conns->loop, &conn->io);
    uncount(conn);
    admit_forget(conn); /* first: who sees the end and comes again is to find its place free */
    stream_close(&conn->stream);
    conns->open--;
    free(conn);
    if (conns->gone)
        conns->gone(conns);
}

struct conn_held *conn_hold(struct conn *conn)
{
    if (!conn->held) {
        conn->held = calloc(1, sizeof *conn->held);
        if (!conn->held)
            conn->is_broken = true;
    }
    return conn->held;
}

static bool has_output(const struct conn *conn)
{
    return conn->held && conn->held->output.length > 0;
}

struct buf *conn_output(struct conn *conn)
{
    return has_output(conn) ? &conn->held->output : &conn_conns(conn)->output;
}

bool conn_is_answering(const struct conn *conn)
{
    return conn->is_paused || (conn->held && (conn->held->late || conn->held->output.length > 0));
}

/* Sends what `output` holds. What the kernel does not take stays in it. */
static void send_output(struct conn *conn, struct buf *output)
{
    size_t length = output->length;
    enum stream_state state = stream_send(&conn->stream, output->data, &length);
    if (state == STREAM_BROKEN)
        conn->is_broken = true;
    if (length == 0)
        return;
    conn->is_moving = true;
    if (!conn->is_own)
        scoreboard_add(&conn_conns(conn)->slot->counters.bytes_sent, length);
    buf_consume(output, length);
}

/* Sends; what the kernel does not take is held by the connection. */
static void flush(struct conn *conn)
{
    struct buf *output = conn_output(conn);
    if (output->length == 0 || conn->is_broken) {
        output->length = 0;
        return;
    }
    send_output(conn, output);
    if (output->length == 0 || has_output(conn))
        return;
    struct conn_held *held = conn_hold(conn);
    if (held && buf_add_slice(&held->output, buf_slice(output)) == -1)
        conn->is_broken = true;
    output->length = 0;
}

/* Has its request come whole, but not the time of its answer? */
static bool is_waiting(const struct conn *conn)
{
    return conn->held && conn->held->late && !conn->is_in_body;
}

/* May the next bytes be worked on? */
static bool is_able(const struct conn *conn)
{
    return !conn->is_closing && !conn->is_broken && !conn->is_paused && !has_output(conn) &&
           !is_waiting(conn);
}

/* Answers all requests that are there. Returns the bytes that were used. */
static size_t work(struct conn *conn, struct slice bytes)
{
    size_t used = 0, sent = 0;
    conn->is_working = true;
    conn->is_paused = false;
    while (used < bytes.length && is_able(conn)) {
        struct slice rest = { bytes.data + used, bytes.length - used };
        size_t more = conn->is_in_body ? serve_body(conn, rest) : serve_head(conn, rest);
        if (more == 0)
            break;
        used += more;
        if (conn_output(conn)->length >= BATCH) {
            sent += conn_output(conn)->length;
            flush(conn);
            conn->is_paused = sent >= SEND_MOST && used < bytes.length;
        }
    }
    conn->is_working = false;
    return used;
}

/* Keeps what was not worked on, in no more memory than that takes. */
static void keep(struct conn *conn, struct slice rest)
{
    struct conn_held *held = rest.length > 0 ? conn_hold(conn) : conn->held;
    if (!held || (held->input.length == rest.length && rest.length > 0))
        return;
    struct buf input = { 0 };
    if (buf_add_slice(&input, rest) == -1)
        conn->is_broken = true;
    buf_fini(&held->input);
    held->input = input;
}

/* The batch is written: its answers took as long as this turn of the loop has till now. */
static void count_batch(struct conns *conns)
{
    if (conns->answers > 0)
        tally_latency(conns->tally, clock_monotonic() - conns->now, conns->answers);
    conns->answers = 0;
}

/* Works on `fresh` behind what is held, and sends the answers. If the kernel does not take all of
 * them, what is left of the input waits too, and the loop says when to go on. */
static void advance(struct conn *conn, struct slice fresh)
{
    struct slice bytes = fresh;
    if (conn->held && conn->held->input.length > 0) {
        if (buf_add_slice(&conn->held->input, fresh) == -1)
            conn->is_broken = true;
        bytes = buf_slice(&conn->held->input);
    }
    size_t used = bytes.length > 0 ? work(conn, bytes) : 0;
    if (!conn->is_closing && !conn->is_broken)
        keep(conn, (struct slice){ bytes.data + used, bytes.length - used });
    if (!has_output(conn))
        flush(conn);
    count_batch(conn_conns(conn));
}

static void watch(struct conn *conn, int events)
{
    struct ev_loop *loop = conn_conns(conn)->loop;
    int now = ev_is_active(&conn->io) ? conn->io.events & (EV_READ | EV_WRITE) : 0;
    if (now == events)
        return;
    ev_io_stop(loop, &conn->io);
    if (events == 0)
        return;
    ev_io_set(&conn->io, conn->stream.fd, events);
    ev_io_start(loop, &conn->io);
}

static void enter(struct conn *conn, enum phase phase, bool is_new)
{
    struct conns *conns = conn_conns(conn);
    if (is_new || conn->entry.phase != phase)
        phase_enter(&conns->phases, &conn->entry, phase, conns->now);
}

/* Awaits that the kernel takes more. */
static void await_room(struct conn *conn, bool is_moving)
{
    if (is_moving || conn->entry.phase != PHASE_SEND)
        conn->unread = (uint32_t)stream_unread(&conn->stream);
    enter(conn, PHASE_SEND, is_moving);
    watch(conn, EV_WRITE);
}

/* Is it between requests? An empty line behind an answer begins none (RFC 9112, 2.2). */
static bool is_idle(const struct conn *conn)
{
    const struct conn_held *held = conn->held;
    return !conn->is_in_body &&
           (!held || (!held->late && held->output.length == 0 && conn->answered > 0 &&
                      slice_equal(buf_slice(&held->input), SLICE("\r\n"))));
}

/* Is there nothing of a request in it that has no answer yet? */
static bool is_unasked(const struct conn *conn)
{
    return is_idle(conn) || (conn->is_in_body && !conn->held->late);
}

/* All is sent, and no more will be. A client that is still sending must not be reset before it
 * has read the answer (RFC 9112, 9.6); one that has never sent anything is owed none. */
static void linger(struct conn *conn)
{
    if (conn->is_fresh && !conn->is_refused) {
        conn_free(conn);
        return;
    }
    free_held(conn);
    uncount(conn);
    conn->is_closing = true;
    conn->linger_left = LINGER_BYTES;
    conn->linger_began = milliseconds(conn_conns(conn));
    enter(conn, PHASE_LINGER, true);
    watch(conn, EV_READ);
    admit_done(conn);
    /* Last: who sees it and comes again is to find its place free. */
    stream_shutdown(&conn->stream);
}

/* Nothing in it is needed any more. */
static void release_held(struct conn *conn)
{
    const struct conn_held *held = conn->held;
    if (held && held->input.length == 0 && held->output.length == 0 && !held->late &&
        !conn->is_in_body)
        free_held(conn);
}

/* Can nothing more become of it? The peer has ended it after all answers, or within a request. */
static bool is_over(const struct conn *conn)
{
    return conn->is_broken ||
           (conn->is_ended && !has_output(conn) && !is_waiting(conn) && !conn->is_paused);
}

/* Decides in which phase the connection is, and what it waits for; or ends it. */
static void settle(struct conn *conn)
{
    bool is_renewed = conn->is_renewed, is_moving = conn->is_moving;
    conn->is_renewed = conn->is_moving = false;
    release_held(conn);
    const struct conn_held *held = conn->held;

    if (is_over(conn)) {
        conn_free(conn);
    } else if (has_output(conn)) {
        await_room(conn, is_moving);
    } else if (conn->is_closing || (conn_conns(conn)->closes_idle && is_unasked(conn))) {
        linger(conn);
    } else if (is_waiting(conn)) {
        enter(conn, PHASE_WAIT, is_renewed);
        watch(conn, conn->is_ended || held->input.length >= AHEAD ? 0 : EV_READ);
    } else if (conn->is_paused) {
        await_room(conn, is_moving); /* as a rule there is some, and it goes on in the next turn */
    } else if (conn->is_in_body) {
        enter(conn, PHASE_BODY, is_renewed);
        watch(conn, EV_READ);
    } else {
        if (!is_idle(conn))
            enter(conn, PHASE_HEADER, is_renewed);
        else if (!conn->is_fresh)
            enter(conn, PHASE_IDLE, is_renewed);
        watch(conn, EV_READ);
    }
}

void conn_resume(struct conn *conn)
{
    if (conn->is_working)
        return;
    flush(conn);
    if (!has_output(conn))
        advance(conn, SLICE(""));
    settle(conn);
}

/* Reads and drops what comes after the end. */
static void on_lingering(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    size_t length = CONNS_INPUT;
    enum stream_state state = stream_receive(&conn->stream, conns->input, &length);
    if (state == STREAM_AGAIN)
        return;
    if (state != STREAM_OPEN || length > conn->linger_left ||
        milliseconds(conns) - conn->linger_began > LINGER_MS) {
        conn_free(conn);
        return;
    }
    conn->linger_left -= (uint32_t)length;
    conn->is_sending = true;
    enter(conn, PHASE_LINGER, !conns->closes_idle); /* nobody is waited for twice then */
}

/* How much to read. The more was read in this turn of the loop, the less: thousands of connections
 * full of requests must not hold up the one that asks for a little. */
static size_t read_size(const struct conn *conn)
{
    size_t size = conn_conns(conn)->read_left / 8;
    if (size > CONNS_INPUT)
        size = CONNS_INPUT;
    if (size < READ_LEAST)
        size = READ_LEAST;
    if (is_waiting(conn) && size > AHEAD - conn->held->input.length)
        size = AHEAD - conn->held->input.length;
    return size;
}

/* Works on what has come. Whoever calls it settles the connection. */
static enum stream_state receive(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    size_t length = read_size(conn);
    scoreboard_add(&conns->slot->turns, 1); /* the watchdog sees that it is not stuck */
    enum stream_state state = stream_receive(&conn->stream, conns->input, &length);
    switch (state) {
    case STREAM_OPEN:
        conn->is_fresh = false;
        conns->read_left -= length < conns->read_left ? length : conns->read_left;
        advance(conn, (struct slice){ conns->input, length });
        scoreboard_request_clear(&conns->slot->answering);
        break;
    case STREAM_AGAIN:
        break;
    case STREAM_ENDED:
        conn->is_ended = true;
        break;
    case STREAM_BROKEN:
        conn->is_broken = true;
        break;
    }
    return state;
}

static void on_readable(struct conn *conn)
{
    do
        receive(conn);
    while (stream_has_pending(&conn->stream) && is_able(conn) && !conn->is_ended);
    settle(conn);
}

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    struct conn *conn = (struct conn *)((char *)io - offsetof(struct conn, io));
    const struct conns *conns = conn_conns(conn);
    if (conn->entry.phase == PHASE_LINGER)
        on_lingering(conn);
    else if (events & EV_WRITE)
        conn_resume(conn);
    else
        on_readable(conn);
    scoreboard_request_clear(&conns->slot->answering);
}

void conn_begin(struct conn *conn)
{
    on_readable(conn);
}

/* Answers an error on top of the loop, and closes. */
static void end_with(struct conn *conn, unsigned status)
{
    conn->is_working = true; /* so that the answer does not settle it */
    serve_error(conn, status);
    conn->is_working = false;
    conn->is_closing = true;
    flush(conn);
    count_batch(conn_conns(conn));
}

void conn_refuse(struct conn *conn, bool is_patient)
{
    end_with(conn, 503);
    if (is_patient)
        settle(conn);
    else
        conn_free(conn);
}

bool conn_dismiss(struct conn *conn)
{
    if (conn->is_deferred)
        admit_forget(conn);
    conn->is_dismissed = true;
    enum stream_state state = receive(conn);
    if (state != STREAM_OPEN && is_idle(conn))
        conn_free(conn);
    else
        settle(conn);
    return state == STREAM_AGAIN;
}

bool conn_is_vain(const struct conn *conn)
{
    return !ev_is_active(&conn->io) && stream_is_dead(&conn->stream);
}

bool conn_is_deserted(const struct conn *conn)
{
    return conn->is_fresh && (stream_is_dead(&conn->stream) || stream_is_ended(&conn->stream));
}

/* The kernel says that there is room only when there is much of it; a slow client may read on
 * meanwhile. Is it so? */
static bool is_reading(const struct conn *conn)
{
    return stream_unread(&conn->stream) < conn->unread;
}

/* A deadline may be seen before that which it waits for. Has that come? */
static bool has_come(struct conn *conn)
{
    enum phase phase = conn->entry.phase;
    if (phase != PHASE_HEADER && phase != PHASE_BODY && phase != PHASE_IDLE)
        return false;
    receive(conn);
    return conn->is_renewed || conn->is_closing || is_over(conn) ||
           (phase == PHASE_BODY && !conn->is_in_body) || (phase == PHASE_IDLE && !is_idle(conn));
}

void conn_expire(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    enum phase phase = conn->entry.phase;
    if (phase == PHASE_LINGER) {
        conn_free(conn);
        return;
    }
    if (conn->is_deferred) {
        admit_refuse(conn);
        return;
    }
    if (phase == PHASE_WAIT) { /* no deadline, but one who has gone may be unseen so far */
        if (conn_is_vain(conn))
            conn_free(conn);
        else
            enter(conn, PHASE_WAIT, true);
        return;
    }
    if (phase == PHASE_SEND && stream_has_room(&conn->stream)) {
        conn_resume(conn);
        return;
    }
    if (phase == PHASE_SEND && is_reading(conn)) {
        await_room(conn, true);
        return;
    }
    if (has_come(conn)) {
        settle(conn);
        return;
    }
    scoreboard_add(&conns->slot->counters.timeouts, 1);
    conn->is_closing = true;
    if (phase == PHASE_SEND) {
        stream_abort(&conn->stream); /* the kernel need not keep what nobody reads */
        conn->is_broken = true;
    } else if (phase == PHASE_HEADER ? !conn->is_fresh : phase == PHASE_BODY && conn->held->late)
        end_with(conn, 408);
    settle(conn);
}
