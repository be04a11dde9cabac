/*
 * serve: from the bytes of a request to the bytes of its answer.
 *
 * The order of refusals is that of request.h, then scheme 421, route 404, method 405, Expect 417,
 * size 413 (RFC 9110, 15.5), preconditions 412 (where the answer never changes: else they are
 * judged with it, after the body). A request that is refused by its head gets its final status,
 * never 100. A body is read to its end and dropped before the answer; after a refusal it is
 * skipped, if that is allowed and nobody waits for a 100, else the connection is closed.
 */
#ifndef WORKER_SERVE_H
#define WORKER_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answer/answer.h"
#include "base/slice.h"

struct conn;

/* One request on a connection. */
struct serve {
    struct exchange exchange; /* first; its response is set if that is decided already */
    struct conn *conn;
    struct slice line; /* the request line, for the log */
    int64_t began;     /* when its first byte came */
    bool closes;       /* the connection cannot go on after the answer */
};

/*
 * Works on the beginning of `bytes`, which is a head, and the body of the request as far as it is
 * there. Returns the bytes used; 0: more are needed, or the connection is closing.
 */
size_t serve_head(struct conn *conn, struct slice bytes);

/* The same for the rest of a body. */
size_t serve_body(struct conn *conn, struct slice bytes);

/* Answers a request that came whole: calls the kind of its route, unless a response is set. */
void serve_now(struct serve *serve);

/* Writes exchange->response; for the `done` of exchanges. */
void serve_write(struct serve *serve);

/* Answers an error outside of any request, or for one whose head is not whole, and closes. */
void serve_error(struct conn *conn, unsigned status);

#endif
