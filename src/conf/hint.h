/*
 * hint: the nearest right word to a wrong one.
 */
#ifndef CONF_HINT_H
#define CONF_HINT_H

#include <stdbool.h>
#include <stddef.h>

struct hint {
    const char *best; /* NULL: nothing is near */
    unsigned distance;
};

/*
 * Takes `candidate` for the hint if it is nearer to `wrong` than what there is, by letters added,
 * dropped, changed or swapped, and near at all. Case does not count. `shown` is what the hint then
 * says (a dotted key, say).
 */
void hint_consider(struct hint *hint, const char *wrong, const char *candidate, const char *shown);

#endif
