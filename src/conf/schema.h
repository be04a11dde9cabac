/*
 * schema: the one table of the configuration's keys.
 *
 * A row says a key's name, type, range, default, where its value goes and what it is for. It
 * drives loading, printing, the nearest-key hints, and the test that the man page names every key
 * with its default.
 */
#ifndef CONF_SCHEMA_H
#define CONF_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum schema_type {
    SCHEMA_BOOL,     /* bool */
    SCHEMA_NUMBER,   /* int64_t; digits as a string are a number too */
    SCHEMA_INT,      /* the same, in an int */
    SCHEMA_SIZE,     /* int64_t bytes: 16k, 1m, 1g, or none for bytes */
    SCHEMA_DURATION, /* int64_t ns: ms, s, m, h; only 0 may go without */
    SCHEMA_STRING,   /* char * */
    SCHEMA_PATH,     /* char *, made absolute beside the file that names it */
    SCHEMA_CHOICE,   /* int: index into choices */
    SCHEMA_STRINGS,  /* struct schema_strings; a single string is a list of one */
    SCHEMA_FIELDS,   /* struct conf_field * and count: a group of name = "value" or [ values ] */
    SCHEMA_LISTEN,   /* struct conf_listen * and count */
    SCHEMA_WORKERS,  /* unsigned: "auto" is 0 */
    SCHEMA_USER,     /* the account */
    SCHEMA_CONTROL,  /* char *: path or "off" */
    SCHEMA_SINK,     /* struct conf_sink; choices name the words allowed beside a path */
    SCHEMA_INCLUDE,  /* patterns of fragments */
    SCHEMA_ROUTES,   /* the list of routes */
    SCHEMA_GROUP,    /* holds the rows whose keys begin with "KEY." */
    SCHEMA_LATER,    /* a key that is not yet supported: refused by that name */
};

struct schema_strings {
    char **items;
    size_t count;
};

struct schema_row {
    const char *key; /* dotted: "timeouts.header"; of a route: "path" */
    enum schema_type type;
    const char *fallback;       /* the default as it would be written in a file; NULL: none */
    int64_t least, most;        /* range, in the unit of the type; 0, 0: any */
    bool has_zero;              /* 0 stands beside the range: off, or unlimited */
    const char *const *choices; /* for SCHEMA_CHOICE and SCHEMA_SINK; ends with NULL */
    size_t offset;              /* of the value in its struct */
    const char *purpose;        /* half a sentence */
};

/* The rows of the file, and those common to all routes. */
extern const struct schema_row schema_rows[];
extern const size_t schema_nrows;
extern const struct schema_row schema_route_rows[];
extern const size_t schema_nroute_rows;
/* Those of a group in a list of `listen`; their values have no place of their own. */
extern const struct schema_row schema_listen_rows[];
extern const size_t schema_nlisten_rows;

/* The row of that very key among `nrows`, or NULL. */
const struct schema_row *schema_find(const struct schema_row *rows, size_t nrows, const char *key);

/* Adds what a value of the row looks like, for messages: `a duration such as "10s"`. -1: ENOMEM. */
int schema_add_wanted(struct buf *out, const struct schema_row *row);

/* The key below its group: "header" of "timeouts.header". */
const char *schema_leaf(const struct schema_row *row);

/* Frees what the row's value at `base` owns, if anything. Routes are not a value in this sense. */
void schema_free_value(const struct schema_row *row, void *base);

/* Is the row a member of the group called `group` (NULL: of the file itself)? */
bool schema_is_in_group(const struct schema_row *row, const char *group);

#endif
