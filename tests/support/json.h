/*
 * json: a strict reader of JSON (RFC 8259), for what the program prints.
 *
 * The tree lives until the test ends. Looking for what is not there gives NULL, and the readers of
 * values take NULL, so that lookups can be chained.
 */
#ifndef SUPPORT_JSON_H
#define SUPPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>

enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

struct json {
    enum json_type type;
    double number;
    const char *string;       /* decoded, UTF-8 */
    const char *name;         /* of a member of an object */
    const struct json *first; /* of the children, in order */
    const struct json *next;  /* the sibling after this one */
};

/* NULL unless the text is one JSON value and nothing else. A name twice in an object is refused. */
const struct json *json_parse(const char *text);

const struct json *json_get(const struct json *object, const char *name);
const struct json *json_at(const struct json *array, unsigned index);
unsigned json_count(const struct json *json);
/* -1 and "" where there is no such value. */
double json_number(const struct json *json);
const char *json_string(const struct json *json);

/* Each line of the text must be an object with these members, else the test fails. Returns how many
 * there are. */
unsigned json_check_lines(const char *text, const char *const *members);

#endif
