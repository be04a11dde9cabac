/*
 * modules: the program and the shared objects that are mapped with it, to give an address a name.
 *
 * A table of fixed size, filled once, while nothing is wrong; from then on it can be read in a
 * signal handler, and by children that are forked. What is loaded later is not in it.
 */
#ifndef BASE_MODULES_H
#define BASE_MODULES_H

#include <stddef.h>
#include <stdint.h>

#define MODULES_NAME 24 /* bytes, with the NUL; longer names are cut */

struct module {
    uintptr_t base;          /* an address less this is what the file calls it: addr2line(1) */
    uintptr_t start, end;    /* its code */
    const uint8_t *unwind;   /* its .eh_frame_hdr; NULL: none */
    size_t unwind_size;      /* bytes */
    char name[MODULES_NAME]; /* without directories; the program's is always "hayate" */
};

/* Fills the table. A second call changes nothing. */
void modules_list(void);

/* Whose code is at an address; NULL: nobody's. Safe in a signal handler. */
const struct module *modules_find(uintptr_t address);

#endif
