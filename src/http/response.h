/*
 * response: a status, fields and a body, and their HTTP/1 bytes.
 *
 * A response that many requests get (a fixed answer) is prepared once: the bytes up to and after
 * the Date are then a cache. response_write puts one response into a buffer, with one framing
 * (Content-Length; none where a status has no body), Date, and Connection as the case needs.
 */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"
#include "http/date.h"

struct response {
    unsigned status;
    struct slice fields; /* whole field lines, each with its CRLF: Content-Type, Location, Allow,
                            ...; never Date, Connection, Content-Length, Transfer-Encoding */
    struct slice body;

    /* The cache: NULL until response_prepare. Owned by the response. */
    char *bytes;        /* a whole persistent HTTP/1.1 response */
    size_t length;      /* of all of it */
    size_t head_length; /* of the head, empty line included */
    size_t date_offset; /* where the DATE_LENGTH bytes of the date go */
};

/* How this one request wants it. */
struct response_form {
    bool is_head;       /* HEAD: the fields of GET, no body (RFC 9110, 9.3.2) */
    bool is_persistent; /* the connection stays open */
    unsigned version;   /* 10 or 11 of the request: 1.0 needs to be told that it stays open */
};

/* Makes the cache. Fields and body must outlive the response. -1: ENOMEM. */
int response_prepare(struct response *response);
void response_fini(struct response *response);

/* Adds the response to `out`; nothing is added when that fails (-1, ENOMEM). */
int response_write(struct buf *out, const struct response *response,
                   const struct response_form *form, const struct date *date);

/* Body bytes that response_write sends for this form: what an access log counts. */
size_t response_body_length(const struct response *response, const struct response_form *form);

/* "100 Continue" (RFC 9110, 15.2.1). */
int response_write_continue(struct buf *out);

/*
 * The responses of errors: text/plain, "404 Not Found\n", prepared, one for each status of 400 to
 * 599 that has a name. The set is made once and belongs to the caller. NULL: ENOMEM.
 */
struct response_errors;
struct response_errors *response_errors_new(void);
void response_errors_free(struct response_errors *errors);

/* Never NULL. A status without a name gets the response of its class: 400 or 500. */
const struct response *response_errors_find(const struct response_errors *errors, unsigned status);

/*
 * Is `name: value` a field line that a configuration may add? NULL when it is, else what is wrong
 * (static text): an invalid name or value (RFC 9110, 5.1, 5.5), or a field that the server makes
 * itself.
 */
const char *response_field_fault(struct slice name, struct slice value);

#endif
