/*
 * body: the framing of a request's body (RFC 9112, 6 and 7.1), so that what follows it is known.
 *
 * The decoder takes bytes as they come and says how many belonged to the body, chunk framing and
 * trailers included. It keeps nothing: the bytes are the caller's to use or drop. It refuses every
 * chunk size, extension, terminator and trailer that is not exactly the grammar. Extensions and
 * zeros before a size are bounded: 4 KiB, and as much again as there was content; so are trailers,
 * by 8 KiB.
 */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "http/request.h"

enum body_result {
    BODY_MORE,
    BODY_DONE,
    BODY_REFUSED, /* status: 400 or 413; reason says why. The connection must be closed */
};

struct body {
    uint64_t left;     /* bytes to come of the body, or of this chunk */
    uint64_t received; /* content bytes so far */
    uint64_t limit;    /* of content bytes; 0: none */
    uint32_t overhead; /* bytes of extensions and zeros before sizes, then of trailers, so far */
    uint16_t status;
    uint8_t state;
    const char *reason;
};

/*
 * Starts the body of a request. A Content-Length above the limit is refused at once: BODY_REFUSED
 * with 413. A request without a body is BODY_DONE.
 */
enum body_result body_start(struct body *body, const struct request *request, uint64_t limit);

/* Feeds bytes; *used tells how many were the body's. After BODY_DONE the rest is the next request. */
enum body_result body_feed(struct body *body, struct slice bytes, size_t *used);

#endif
