/*
 * frames: what .eh_frame says of the frame at an address: where its caller's registers are.
 *
 * See unwind.h, whose part this is. Reads nothing but the module's own .eh_frame.
 */
#ifndef BASE_FRAMES_H
#define BASE_FRAMES_H

#include <stdint.h>

#include "base/unwind.h"

struct module;

enum frames_kind {
    FRAMES_SAME,      /* the register has not changed */
    FRAMES_UNDEFINED, /* it is lost */
    FRAMES_SAVED,     /* at the frame's address plus the value */
    FRAMES_VALUE,     /* it is the frame's address plus the value */
    FRAMES_REGISTER,  /* it is in the register of that number */
};

struct frames_rule {
    enum frames_kind kind;
    int64_t value;
};

struct frames_row {
    uint64_t base;  /* the frame's address ("CFA") is this register ... */
    int64_t offset; /* ... plus this */
    uint64_t back;  /* the register of the return address */
    struct frames_rule rules[UNWIND_REGISTERS];
};

enum frames_result {
    FRAMES_FOUND,
    FRAMES_NONE,    /* nothing is said of that address */
    FRAMES_UNKNOWN, /* something that is not understood */
};

enum frames_result frames_find(const struct module *module, uintptr_t address,
                               struct frames_row *row);

#endif
