/*
 * slice: a view of bytes that somebody else owns.
 *
 * A slice is a pointer and a length in bytes; it is never NUL-terminated by contract and owns
 * nothing. It stays valid for as long as the memory it points into.
 */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *data;
    size_t length; /* bytes */
};

/* A slice of a string literal. */
#define SLICE(literal) ((struct slice){ (literal), sizeof(literal) - 1 })

static inline struct slice slice_of(const char *string)
{
    return (struct slice){ string, strlen(string) };
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

/* ASCII only, as field names and tokens are compared (RFC 9110, 5.1). */
bool slice_equal_nocase(struct slice a, struct slice b);

/* Without leading and trailing SP and HTAB (OWS, RFC 9110, 5.6.3). */
struct slice slice_trim(struct slice s);

/*
 * Takes the next member of a comma-separated list off the front of *rest, trimmed; empty members
 * are skipped (RFC 9110, 5.6.1.2). False when none is left.
 */
bool slice_next_member(struct slice *rest, struct slice *member);

#endif
