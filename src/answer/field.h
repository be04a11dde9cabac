/*
 * field: the values of those fields of a route that have a grammar, so that what is sent is right.
 *
 * A recipient drops an ETag without quotes, or a date of another form, without a word: better said
 * when the configuration is loaded. Fields that are not known here are taken as they are.
 */
#ifndef ANSWER_FIELD_H
#define ANSWER_FIELD_H

#include "base/slice.h"

/* NULL, or what is wrong with the value and what would be right (static text). */
const char *field_fault(struct slice name, struct slice value);

#endif
