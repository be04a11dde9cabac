/*
 * strict: one answer of a server, read as the strictest client would (RFC 9112, 4 to 6; RFC 9110,
 * 5, 6.6.1, 8.6).
 *
 * Nothing is forgiven: every byte must be the grammar's, every response framed once, dated once
 * and rightly, and have the fields that its status demands. It knows what this server never sends
 * (transfer codings, trailers, upgrades) and refuses that too.
 */
#ifndef SUPPORT_STRICT_H
#define SUPPORT_STRICT_H

#include <stdbool.h>

#include "base/slice.h"

struct strict {
    const char *fault; /* NULL: there is none */
    unsigned status;
    struct slice all;  /* its bytes, content included */
    struct slice date; /* the value; empty in 1xx */
    bool is_last;      /* Connection: close */
};

/* Reads the answer that `bytes` begin with. `is_head`: to a HEAD. */
void strict_read(struct strict *answer, struct slice bytes, bool is_head);

#endif
