/*
 * request: the head of one HTTP/1 request, from bytes to meaning, or to the status that refuses it.
 *
 * This is the only user of http_parser.h, and the one place that refuses what that parser lets
 * through. The caller collects the bytes of a head in one piece of memory and calls request_feed
 * each time there are more; the outcome is the same however the bytes were split. An error shows
 * at the byte that makes it, as far as the order of refusals allows: grammar 400 (also 414, 431
 * where a limit is hit), version 505, method 501, framing and Host 400 (RFC 9112, 2 to 6;
 * RFC 9110, 7.2). So the latter three wait for the end of the head. Routes, allowed methods,
 * Expect and sizes of bodies are the caller's.
 *
 * Where the RFCs leave a choice, or a sender breaks them:
 * - A form of the target that the method does not have is a 400: "*" is for OPTIONS, the
 *   authority-form for CONNECT, which has no other. So an HTTP/2 preface is refused at its "*".
 * - A version is 400 unless it is HTTP/DIGIT.DIGIT with a major of 1 or more, 505 above 1.
 * - The scheme of an absolute-form is http or https; its authority wins over Host, which must be
 *   there and valid all the same. An empty Host is valid; ":80" is not, nor is a port above 65535.
 * - Framing: a Content-Length is digits, once; even a second of the same value, or a list of
 *   equal ones, is a 400. Transfer-Encoding is "chunked", once, alone, in 1.1: other codings
 *   before a single final chunked are a 501, all else a 400, also empty members of its list
 *   (stricter than RFC 9110, 5.6.1.2: the next server may read them otherwise).
 * - 1.2 to 1.9 are served as 1.1. In 1.0 Expect: 100-continue is ignored, Host optional.
 *
 * Nothing here allocates, except the path when it must be normalised. Slices point into the bytes
 * the caller gave, and are valid as long as these stay where they are.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "http/method.h"

#define REQUEST_FIELDS_MAX 100

struct request_limits {
    size_t header; /* bytes: of the request line, and of the whole head */
};

enum request_result {
    REQUEST_MORE,    /* the head is not complete */
    REQUEST_DONE,    /* head_length bytes were the head; everything below is filled in */
    REQUEST_REFUSED, /* status and reason say why, method and target are there if they had been
                        read whole; answer with `Connection: close` and close */
};

enum request_framing {
    REQUEST_NO_BODY,
    REQUEST_LENGTH, /* content_length bytes follow, more than 0 */
    REQUEST_CHUNKED,
};

struct request_field {
    struct slice name;
    struct slice value; /* without OWS around it */
};

/* Where the incremental scan of a head stands; all a caller must keep between reads. */
struct request_scan {
    uint32_t position; /* bytes seen */
    uint32_t line;     /* start of the request line */
    uint32_t mark;     /* start of the part of it that is being read */
    uint16_t fields;   /* field lines seen */
    uint16_t status;   /* refusal, 0: none */
    uint8_t state;
    uint8_t minor; /* of the version, valid once seen */
    uint8_t major;
    uint8_t flags;
    const char *reason;
};

struct request {
    enum method method;
    struct slice method_text;
    struct slice target; /* as sent */
    struct slice path;   /* unreserved octets decoded, dot segments removed (RFC 3986, 6.2.2);
                            "*" for the asterisk-form, empty for the authority-form */
    struct slice query;  /* without "?", as sent; data is NULL when there is none */
    struct slice host;   /* authority of the target, else Host; may be empty */
    struct slice referer, user_agent; /* empty when absent */
    unsigned version;                 /* 10 or 11: the version it is served as */
    bool is_persistent;    /* the client lets the connection stay open after the answer */
    bool is_absolute;      /* absolute-form */
    bool is_https;         /* and its scheme is https */
    bool expects_continue; /* a body follows, and the client waits for 100 */
    bool expects_other;    /* an expectation we do not know: 417 */
    bool is_conditional;   /* has a field that condition.h judges */
    enum request_framing framing;
    uint64_t content_length;
    size_t head_length; /* bytes, including the empty line and any leading CRLF */
    unsigned nfields;
    struct request_field fields[REQUEST_FIELDS_MAX];

    unsigned status;    /* after REQUEST_REFUSED */
    const char *reason; /* static text, for the log and the error body */

    struct buf normal; /* holds path when it had to be rewritten */
};

/* A zeroed struct request is valid to start from; request_fini releases what it holds. */
void request_fini(struct request *request);

/*
 * `bytes` is all that has come of the head and may hold more. A zeroed struct request_scan starts
 * a new head; after REQUEST_DONE it is zeroed. After REQUEST_REFUSED it refuses for good. `request`
 * is written when the result is not REQUEST_MORE.
 */
enum request_result request_feed(struct request *request, struct request_scan *scan,
                                 struct slice bytes, const struct request_limits *limits);

/* The value of the first field line of that name (any case); data is NULL when absent. */
struct slice request_field(const struct request *request, struct slice name);

/*
 * Makes `to` the same request as `from`, whose bytes have been copied from `old` to `new` (both
 * hold the whole head). For an answer that outlives the buffer the head was read into. -1: ENOMEM.
 */
int request_move(struct request *to, const struct request *from, const char *old, const char *new);

/* The version of the http-parser library that runs: "2.9.4". */
void request_parser_version(char *text, size_t size);

#endif
