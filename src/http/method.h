/*
 * method: the methods we know by name (the IANA registry as far as http-parser has it).
 */
#ifndef HTTP_METHOD_H
#define HTTP_METHOD_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum method {
    METHOD_UNKNOWN,
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_DELETE,
    METHOD_CONNECT,
    METHOD_OPTIONS,
    METHOD_TRACE,
    METHOD_PATCH,
    METHOD_OTHER, /* one of WebDAV and the rest: known, served by nothing unless named in a set */
    METHOD_COUNT,
};

/* A set of methods: bit 1 << enum method. */
typedef uint32_t method_set;
#define METHOD_BIT(method) (UINT32_C(1) << (method))

/* Indexed by the enum; NULL for unknown and other. */
extern const char *const method_names[METHOD_COUNT];

/* Case matters (RFC 9110, 9.1). METHOD_UNKNOWN when we do not know it. */
enum method method_find(struct slice name);

/* "GET, HEAD, OPTIONS": the value of Allow. Returns the length; always NUL-terminated, cut to
 * fit. 128 bytes hold every set. */
size_t method_set_text(char *text, size_t size, method_set set);

#endif
