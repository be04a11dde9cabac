/*
 * buf: a growing array of bytes on the heap.
 *
 * A zeroed struct is an empty buffer that holds no memory. The owner calls buf_fini. Growing can
 * fail: every call that adds returns -1 with ENOMEM, and leaves the buffer as it was.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

#include "base/slice.h"

struct buf {
    char *data;
    size_t length;   /* bytes used */
    size_t capacity; /* bytes allocated */
};

void buf_fini(struct buf *buf);

/* Room for at least `more` bytes behind the used ones. */
int buf_reserve(struct buf *buf, size_t more);
int buf_add(struct buf *buf, const void *data, size_t length);
int buf_add_slice(struct buf *buf, struct slice slice);
int buf_add_string(struct buf *buf, const char *string);
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Drops the first `length` bytes, keeping the rest and the memory. */
void buf_consume(struct buf *buf, size_t length);

/* Adds bytes as the inside of a JSON string (RFC 8259, 7); what is not UTF-8 becomes U+FFFD, and
 * what utf8_is_unfit says \uXXXX. */
int buf_add_json(struct buf *buf, struct slice text);

/*
 * Adds bytes so that the result is printable ASCII without quotes: others, `"` and `\` become
 * \xHH. What a client sent goes through here before it reaches a log or a terminal.
 */
int buf_add_escaped(struct buf *buf, struct slice text);

static inline struct slice buf_slice(const struct buf *buf)
{
    return (struct slice){ buf->data, buf->length };
}

/* The bytes as a string: NUL-terminated, the NUL not counted. NULL if that takes memory there is
 * none of. Owned by buf. */
const char *buf_string(struct buf *buf);

#endif
