/*
 * kinds: a table of kinds of routes for tests of the configuration alone.
 *
 * "text" and "redirect" have a string each, "health" a choice, and "sample" one row of every type
 * that a kind may use. "text" makes an answer (the string itself) and counts what is alive; a
 * text of "!" cannot be prepared.
 */
#ifndef SUPPORT_KINDS_H
#define SUPPORT_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "conf/schema.h"

struct kinds_text {
    char *text;
};

struct kinds_health {
    int health;
};

struct kinds_sample {
    char *sample;
    char *file;
    bool flag;
    int64_t number;
    int64_t size;
    int64_t wait;
    int code;
    int colour;
    struct schema_strings words;
    struct conf_field *fields;
    size_t nfields;
};

const struct conf_kinds *kinds_table(void);

/* Answers that were prepared and not yet released, in this test. */
int kinds_alive(void);

#endif
