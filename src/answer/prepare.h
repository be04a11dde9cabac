/*
 * prepare: what all kinds of answers have in common when a route is prepared.
 *
 * Renders the answers of a route once, at load: its fixed response, 204 for OPTIONS, and 405. The
 * result owns its memory, but points into the route's options too, and so must not outlive them.
 */
#ifndef ANSWER_PREPARE_H
#define ANSWER_PREPARE_H

#include "answer/answer.h"

/* Keys common to all routes that a kind has no use for: to set one is a mistake. */
enum prepare_refuse {
    PREPARE_NO_TYPE = 1,
    PREPARE_NO_STATUS = 2,
    PREPARE_NO_METHODS = 4,
    PREPARE_NO_HEADERS = 8,
};

struct prepare_plan {
    const struct answer_kind *kind;
    unsigned refused;    /* bits of enum prepare_refuse */
    unsigned status;     /* of the fixed response */
    method_set methods;  /* allowed when the route names none; 0: GET */
    const char *type;    /* Content-Type when the route sets none; NULL: none */
    struct slice fields; /* further field lines, behind those of the route */
    struct slice body;   /* outlives the answer */
};

/* Makes route->answer, a struct answer. 0, or -1 with the error. */
int prepare_answer(struct conf_route *route, const struct prepare_plan *plan,
                   struct conf_error *error);

/* The release step of every kind. */
void prepare_release(void *prepared);

/* Says that memory ran out. Always returns -1. */
int prepare_no_memory(const struct conf_route *route, struct conf_error *error);

/* The serve step of the kinds whose answer never changes. */
void prepare_serve_fixed(const struct answer *answer, struct exchange *exchange);

#endif
