/*
 * print: a configuration as text that loads to the same configuration.
 */
#ifndef CONF_PRINT_H
#define CONF_PRINT_H

#include "base/buf.h"

struct conf;

/*
 * Adds every key with its value in force: fragments merged, paths absolute, values expanded and
 * escaped. Printing, loading and printing again gives the same bytes. -1: ENOMEM.
 */
int conf_print(struct buf *out, const struct conf *conf);

/*
 * The keys whose values differ, for the log of a reload: "workers 2 -> 4, routes changed". Lists of
 * addresses are shown as they are written. Adds nothing when none does. -1: ENOMEM.
 */
int conf_diff(struct buf *out, const struct conf *before, const struct conf *after);

#endif
