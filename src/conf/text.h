/*
 * text: a look at a configuration's raw text before libconfig parses it.
 *
 * libconfig 1.5 lets things vanish (an unclosed comment, "\x00"), wrap (4294967298 becomes 2) or
 * go around the one read (@include), and says of all the rest "syntax error". text_check refuses
 * all of that by line, in plain words; what it passes, libconfig parses as it is written.
 */
#ifndef CONF_TEXT_H
#define CONF_TEXT_H

#include <stdbool.h>

#include "base/slice.h"

#define TEXT_SIZE_MAX (1024 * 1024) /* bytes of one file */
#define TEXT_DEPTH_MAX 16           /* sections within sections */

struct text_fault {
    int line;
    char text[384];
};

/*
 * The lines of the plain values that stand in arrays and lists, in the order of the text.
 * libconfig gives such a value the line of the token behind it.
 */
struct text_lines {
    int *lines; /* freed by the caller */
    size_t count, capacity;
};

/* False with the fault (ENOMEM is one, at line 0). The lines are the caller's to free always. */
bool text_check(struct slice text, struct text_fault *fault, struct text_lines *lines);

#endif
