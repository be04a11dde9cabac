/*
 * expand: ${X} and ${X:-default} in a string, from the environment.
 *
 * A variable that is unset or empty takes the default; without a default it is an error. The
 * default runs to the first "}" and is taken as it stands. "$${" is a literal "${"; any other "$"
 * is itself.
 */
#ifndef CONF_EXPAND_H
#define CONF_EXPAND_H

#include "base/buf.h"

enum expand_result {
    EXPAND_DONE,
    EXPAND_REFUSED, /* `fault` says what is wrong, and what would be right */
    EXPAND_FAILED,  /* ENOMEM */
};

#define EXPAND_FAULT_SIZE 256

/* Adds the expanded string to `out`. */
enum expand_result expand(struct buf *out, const char *string, char fault[EXPAND_FAULT_SIZE]);

#endif
