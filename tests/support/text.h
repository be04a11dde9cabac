/*
 * text: memory and texts that live until the test ends, and patterns to look into them.
 *
 * A test is a process of its own, so nothing is given back by hand. Patterns are POSIX extended
 * regular expressions. What cannot be done (no memory, a bad pattern) fails the test.
 */
#ifndef SUPPORT_TEXT_H
#define SUPPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

void *text_allocate(size_t size); /* zeroed */
const char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *text_copy(const char *data, size_t length);

/* What a file holds from an offset on, NUL-terminated; "" when it is not there. *length may be
 * NULL. */
const char *text_read(const char *path, size_t offset, size_t *length);

/* The end of a text, short enough for a message of Check. */
const char *text_tail(const char *text);

/* `count` times the same. */
const char *text_repeat(const char *text, size_t count);

/* All occurrences of `from` replaced. */
const char *text_replace(const char *text, const char *from, const char *to);

bool text_matches(const char *text, const char *pattern);

/* The first group of the pattern, or NULL where it does not match. */
const char *text_extract(const char *text, const char *pattern);

/* The first whole line that matches, or NULL; how many do. */
const char *text_find_line(const char *text, const char *pattern);
unsigned text_count_lines(const char *text, const char *pattern);

#endif
