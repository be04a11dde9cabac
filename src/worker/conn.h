/*
 * conn: one connection, a state machine between its bytes and its answers.
 *
 * Requests are read into a buffer of the worker, all that came in one read are answered into
 * another, and sent with one write. Only what is left over is kept with the connection, in a struct
 * conn_held: part of a head, what follows a request whose answer is late, what the kernel did not
 * take. An idle connection holds none. While output is held nothing is read, so that a client
 * which never reads costs a bounded buffer.
 *
 * The phase (phase.h) a connection is in follows from what it holds; conn.c's `settle` is the one
 * place that decides it, and the one place where a connection ends. Every end is: shut down for
 * writing, read to the end or a bound, close; unless the peer has closed already.
 */
#ifndef WORKER_CONN_H
#define WORKER_CONN_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/scoreboard.h"
#include "base/slice.h"
#include "http/body.h"
#include "http/request.h"
#include "worker/phase.h"
#include "worker/stream.h"

struct conns;
struct late;

/* What a connection keeps from one turn of the loop to the next. */
struct conn_held {
    struct buf input;         /* not worked on yet */
    struct buf output;        /* not sent yet */
    struct request_scan scan; /* of the head that `input` begins with */
    int64_t began;            /* when the first byte of that head came */
    struct body body;         /* while is_in_body */
    struct late *late;        /* the request whose body or time has not come; NULL: none */
};

struct conn {
    struct phase_entry entry; /* first */
    ev_io io;                 /* data: the struct conns */
    struct conn_held *held;   /* NULL: nothing */
    struct scoreboard_peer peer;
    struct stream stream;
    uint32_t answered;     /* requests */
    uint32_t unread;       /* PHASE_SEND: what the kernel held when the phase began anew */
    uint32_t linger_left;  /* bytes that may still be read and dropped */
    uint32_t linger_began; /* ms */
    bool is_own : 1;       /* the worker's own request: neither counted nor logged */
    bool is_counted : 1;   /* in peers */
    bool is_inside : 1;    /* has one of the places of limits.connections */
    bool is_deferred : 1;  /* waits to be let in */
    bool is_refused : 1;   /* at a limit: gets 503 and no more */
    bool is_fresh : 1;     /* nothing came from it yet */
    bool is_renewed : 1;   /* a head was completed since it was settled last */
    bool is_moving : 1;    /* the kernel took bytes since it was settled last */
    bool is_in_body : 1;   /* what comes next is the body of a request */
    bool is_working : 1;   /* its input is being worked on, further up the stack */
    bool is_dismissed : 1; /* its next answer is its last */
    bool is_paused : 1;    /* others have their turn before it goes on */
    bool is_closing : 1;   /* to be closed when all is sent */
    bool is_sending : 1;   /* lingers, and the peer goes on sending */
    bool is_ended : 1;     /* the peer sends no more */
    bool is_broken : 1;    /* to be dropped: reset, or no memory */
};

static inline struct conns *conn_conns(const struct conn *conn)
{
    return conn->io.data;
}

/* The connection that is in a phase; NULL for NULL. */
static inline struct conn *conn_of(struct phase_entry *entry)
{
    return (struct conn *)entry;
}

/* Takes over the descriptor. NULL: ENOMEM; the descriptor is closed then. */
struct conn *conn_new(struct conns *conns, int fd);

/* Ends it at once. */
void conn_free(struct conn *conn);

/* Reads and answers what is there; after that the loop drives it. May free it. */
void conn_begin(struct conn *conn);

/* Works on what is held, sends, and settles. For one whose late answer is done, or to which
 * something was added from outside. May free it. */
void conn_resume(struct conn *conn);

/* Its deadline has come. May free it. */
void conn_expire(struct conn *conn);

/* Answers 503 and closes. One that is_patient gives the peer time to read it. May free it. */
void conn_refuse(struct conn *conn, bool is_patient);

/* Ends one that waits for a request, or answers that if it has come just now, and it is the last.
 * Returns whether it was open and nothing had come. May free it. */
bool conn_dismiss(struct conn *conn);

/* Waits for a late answer that nobody will read any more, which the loop does not see. */
bool conn_is_vain(const struct conn *conn);

/* Has the peer left before it asked for anything? */
bool conn_is_deserted(const struct conn *conn);

/* Where answers go. */
struct buf *conn_output(struct conn *conn);

/* What it holds, made if need be. NULL: ENOMEM; is_broken is set then. */
struct conn_held *conn_hold(struct conn *conn);

/* Is a request being answered, or an answer being sent? */
bool conn_is_answering(const struct conn *conn);

#endif
