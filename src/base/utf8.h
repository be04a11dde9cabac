/*
 * utf8: what is one well-formed UTF-8 sequence (RFC 3629, section 4), and what of it is fit to be
 * read in a line.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the sequence at `data`, 1 to 4; 0 when there is no well-formed one. */
size_t utf8_width(const char *data, size_t length);

/* The code point of the well-formed sequence of `width` bytes at `data`. */
uint32_t utf8_code(const char *data, size_t width);

/*
 * Must it be escaped where people and programs read lines? Control characters, C1 too (terminals
 * obey them); what ends a line for many a reader (U+0085, U+2028, U+2029); what turns the direction
 * of the text around it; and U+FEFF, which nobody sees. All are below U+10000.
 */
bool utf8_is_unfit(uint32_t code);

#endif
