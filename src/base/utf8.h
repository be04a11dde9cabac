/*
 * utf8: what is one well-formed UTF-8 sequence (RFC 3629, section 4).
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* The bytes of the sequence at `data`, 1 to 4; 0 when there is no well-formed one. */
size_t utf8_width(const char *data, size_t length);

#endif
