/*
 * answer: the table of kinds of answers, and the exchange that a kind answers.
 *
 * An exchange is one request being answered. The connection makes it, the kind of its route puts
 * a response into it and calls exchange_done. A kind does no input or output of its own, and never
 * waits: `serve` runs on the worker's loop. The exchange of an answer that is_late outlives the
 * call of `serve`, so that such an answer may end later; any other must be done when `serve`
 * returns.
 */
#ifndef ANSWER_ANSWER_H
#define ANSWER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "http/method.h"
#include "http/response.h"

struct request;
struct response_errors;
struct scoreboard;

/* What kinds may know of the process they run in. */
struct answer_context {
    struct scoreboard *scoreboard;        /* may be NULL in tests */
    const struct response_errors *errors; /* for a kind that cannot answer after all */
    bool is_draining;                     /* this worker was told to go */
};

struct exchange {
    const struct request *request;
    const struct conf_route *route; /* NULL for the server's own answers */
    const struct answer_context *context;
    const struct response *response;         /* what the kind chose; must live till it is written */
    struct response own;                     /* room for a response that is made for this request */
    struct buf text;                         /* room for its fields and body; freed by the owner */
    void (*done)(struct exchange *exchange); /* set by the owner */
};

/* The answer is in exchange->response. */
static inline void exchange_done(struct exchange *exchange)
{
    exchange->done(exchange);
}

/* What every prepared route has, whatever its kind: route->answer points to one. */
struct answer {
    const struct answer_kind *kind;
    method_set methods;          /* allowed, GET implies HEAD, OPTIONS always */
    struct response options;     /* 204 with Allow */
    struct response not_allowed; /* 405 with Allow */
    bool is_harmless;      /* fit for a worker's own first request: GET of an exact path, at once,
                              with a status that never changes */
    bool is_late;          /* its exchanges outlive `serve`, and wait for `delay` before it */
    bool is_fixed;         /* every answer is `fixed`, so it is known before the body has come */
    struct response fixed; /* for kinds whose answer never changes */
    /* What the responses above point into. */
    char *fields, *allow, *body;
    int64_t delay; /* ns */
};

struct answer_kind {
    struct conf_kind conf; /* first, so that route->kind leads here */
    void (*serve)(const struct answer *answer, struct exchange *exchange);
};

/* The kinds of this build: text, redirect, health, and fault with --enable-faults. */
const struct conf_kinds *answer_kinds(void);

/* The routes of the admin listener (health), made without a file. NULL: ENOMEM. */
struct conf_route *answer_admin_routes(size_t *count);
void answer_admin_routes_free(struct conf_route *routes, size_t count);

#endif
