/*
 * condition: the preconditions of a request, against the representation it would get (RFC 9110, 13).
 *
 * The caller judges after all its own checks, and only when the answer without preconditions would
 * be a 2xx (13.2.1). The validators are those the answer carries itself, in its ETag and
 * Last-Modified. Ranges are not served, so If-Range is for nobody.
 */
#ifndef HTTP_CONDITION_H
#define HTTP_CONDITION_H

#include <time.h>

#include "base/buf.h"
#include "base/slice.h"

struct request;

enum condition {
    CONDITION_MET,          /* answer as if there were none */
    CONDITION_NOT_MODIFIED, /* 304 */
    CONDITION_FAILED,       /* 412 */
};

/*
 * `fields` are the field lines of the answer. `exists`: the target has a representation now, which
 * "*" stands for. `now` places the two digits of an old date's year (5.6.7).
 */
enum condition condition_judge(const struct request *request, struct slice fields, bool exists,
                               time_t now);

/* Adds those of the field lines that a 304 carries too (15.4.5). -1: ENOMEM. */
int condition_keep(struct buf *to, struct slice fields);

#endif
