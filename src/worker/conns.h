/*
 * conns: all connections of one worker, and what they share: the loop, the buffers, the routes,
 * the deadlines, the limits.
 *
 * The owner fills in the first part, then calls conns_init; it calls conns_wake after each wait of
 * the loop and conns_rest before the next. Connections are opened with conns_open and end by
 * themselves; `gone` is called after each, `deserted` by conns_rest.
 */
#ifndef WORKER_CONNS_H
#define WORKER_CONNS_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "answer/answer.h"
#include "http/date.h"
#include "http/request.h"
#include "worker/access.h"
#include "worker/admit.h"
#include "worker/peers.h"
#include "worker/phase.h"
#include "worker/serve.h"

struct late;
struct response_errors;
struct routes;
struct scoreboard_slot;
struct tally;

/* Bytes read at once. */
#define CONNS_INPUT (64 * 1024)

struct conns {
    /* The owner's. */
    struct ev_loop *loop;
    const struct conf *conf;         /* its timeouts and limits */
    const struct conf_route *routes; /* prepared */
    size_t nroutes;
    struct scoreboard *scoreboard; /* may be NULL */
    struct scoreboard_slot *slot;
    struct tally *tally; /* may be NULL */
    struct access access;
    bool is_counted;           /* its connections are among those of the whole server */
    unsigned most;             /* connections at most, whoever has room; 0: unlimited */
    unsigned most_per_address; /* of them from one address; 0: unlimited */
    void (*gone)(struct conns *conns);
    void (*ask)(struct conns *conns, unsigned slot); /* wake that worker; may be NULL */
    void (*deserted)(struct conns *conns); /* of many connections none is left; may be NULL */
    void *owner;

    /* For connections and those that answer on them. */
    struct answer_context context;
    int64_t now;      /* monotonic, of this turn of the loop */
    size_t read_left; /* bytes, of what a turn of the loop may read at full speed */
    struct date date;
    struct routes *index;
    struct response_errors *errors;
    struct response options;     /* OPTIONS of the server as a whole */
    struct response not_allowed; /* 405 likewise */
    char allow[160];             /* what these two point into */
    struct request_limits head_limits;
    struct request request; /* the one that is being answered */
    struct serve serve;     /* its exchange */
    char *input;            /* CONNS_INPUT bytes */
    struct buf output;      /* answers of the connection that is being worked on */
    struct phases phases;
    struct peers peers;
    struct admit admit;
    struct late *late_first, *late_last; /* answers that wait for their time */

    unsigned open;
    unsigned peak;    /* of open, since memory was given back last */
    unsigned waiting; /* late answers */
    unsigned answers; /* given in this batch, whose latency is not yet counted */
    bool closes_idle; /* who has no request under way does not stay */
    bool is_spread;   /* there were many since none was left */
    struct log_limit limit;
};

/* 0, or -1 with ENOMEM. Call conns_fini in both cases. */
int conns_init(struct conns *conns);

/* Drops all connections. */
void conns_fini(struct conns *conns);

/*
 * Takes over an accepted descriptor, and answers at once what is there. `address` NULL: the
 * worker's own, which is neither counted nor logged, and to which no limit applies.
 */
void conns_open(struct conns *conns, int fd, const struct sockaddr *address);

/* Goes over to another loop. There must be no connection. */
void conns_move(struct conns *conns, struct ev_loop *loop);

void conns_wake(struct conns *conns);
void conns_rest(struct conns *conns);

/* From now on each answer is the last of its connection. */
void conns_drain(struct conns *conns);

/* Ends as many idle connections as other workers have asked for. */
void conns_make_room(struct conns *conns);

/* Closes what waits for a request and has sent nothing of it, now and from now on. What has come
 * is answered. */
void conns_close_idle(struct conns *conns);

/* Drops all connections; a request of which something has come, or whose answer is not all sent, is
 * counted as cut. */
void conns_cut(struct conns *conns);

#endif
