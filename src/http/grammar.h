/*
 * grammar: what the bytes of a message may be (RFC 9110, 5; RFC 9112, 2 to 7; RFC 3986).
 *
 * One table gives the classes of each byte; the functions judge whole pieces. Nothing here keeps
 * state or allocates.
 */
#ifndef HTTP_GRAMMAR_H
#define HTTP_GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum grammar_class {
    GRAMMAR_TOKEN = 1,       /* tchar (RFC 9110, 5.6.2) */
    GRAMMAR_VALUE = 2,       /* field-vchar, SP, HTAB (RFC 9110, 5.5) */
    GRAMMAR_PATH = 4,        /* pchar except "%", and "/" (RFC 3986, 3.3) */
    GRAMMAR_TARGET = 8,      /* the same and "?": what follows the authority, "%" aside */
    GRAMMAR_HOST = 16,       /* reg-name except "%": unreserved, sub-delims (RFC 3986, 3.2.2) */
    GRAMMAR_UNRESERVED = 32, /* RFC 3986, 2.3 */
    GRAMMAR_DIGIT = 64,
    GRAMMAR_HEX = 128, /* HEXDIG, in both cases */
};

extern const uint8_t grammar_classes[256];

static inline bool grammar_is(char c, enum grammar_class class)
{
    return (grammar_classes[(unsigned char)c] & class) != 0;
}

/* The value of a HEXDIG. */
static inline unsigned grammar_hex(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

/* The first byte that is not of the class, or `end`. */
static inline const char *grammar_skip(const char *at, const char *end, enum grammar_class class)
{
    while (at < end && grammar_is(*at, class))
        at++;
    return at;
}

/* The same for GRAMMAR_VALUE, eight bytes at a time: values are the bulk of a head. */
const char *grammar_skip_value(const char *at, const char *end);

bool grammar_is_token(struct slice s);

/* Only characters of a URI (RFC 3986, 2), percent signs with two digits? No more is judged. */
bool grammar_is_uri(struct slice s);

/*
 * What is wrong with a uri-host [ ":" port ] (RFC 9110, 7.2; RFC 3986, 3.2), or NULL. An empty
 * host is (RFC 9110, 4.2.1), also before a port; so is a port above 65535. `needs_port` is for the
 * authority-form (RFC 9110, 9.3.6).
 */
const char *grammar_authority_fault(struct slice authority, bool needs_port);

#endif
