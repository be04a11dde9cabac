/*
 * value: numbers, sizes, durations and strings as a configuration writes them.
 *
 * Parsing returns NULL, or what is wrong and would be right (static text). Printing adds text that
 * parses to the same value; -1 is ENOMEM.
 */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include <stdint.h>

#include "base/buf.h"

/* Decimal digits, perhaps with a sign. */
const char *value_parse_number(int64_t *number, const char *text);
/* Digits, then k, m, g or nothing, for bytes. */
const char *value_parse_size(int64_t *bytes, const char *text);
/* Digits, then ms, s, m or h; only 0 may go without. Nanoseconds. */
const char *value_parse_duration(int64_t *nanoseconds, const char *text);

/* With the largest unit that leaves no rest; quoted where there is one. */
int value_print_number(struct buf *out, int64_t number);
int value_print_size(struct buf *out, int64_t bytes);
int value_print_duration(struct buf *out, int64_t nanoseconds);

/* The same without quotes, for messages. */
int value_show_size(struct buf *out, int64_t bytes);
int value_show_duration(struct buf *out, int64_t nanoseconds);

/* In quotes, with every escape it takes, that of `${` included. */
int value_print_string(struct buf *out, const char *string);

/*
 * For messages: `text` in quotes, control bytes and what is not UTF-8 as \xHH, cut to fit.
 * Returns `room`.
 */
#define VALUE_QUOTE_SIZE 128
const char *value_quote(char room[VALUE_QUOTE_SIZE], const char *text);

#endif
