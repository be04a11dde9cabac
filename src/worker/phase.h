/*
 * phase: the deadlines of all connections of a worker, by the phase each is in.
 *
 * All that are in one phase have the same span, so each phase is a list in the order of its
 * deadlines: to enter, move and leave costs nothing that grows with their number, and the first of
 * PHASE_IDLE is the connection that has been idle longest. One timer stands for the earliest of
 * all; it is set again only when it fires, and is off when nobody has a deadline. Times are
 * monotonic: a clock that is set moves nothing.
 */
#ifndef WORKER_PHASE_H
#define WORKER_PHASE_H

#include <ev.h>
#include <stdint.h>

enum phase {
    PHASE_HEADER, /* from accept, or the first byte of a request, to the end of its head */
    PHASE_BODY,   /* to the end of its body */
    PHASE_WAIT,   /* a late answer is awaited; ends only when nobody will read it */
    PHASE_SEND,   /* the kernel has not taken all of the answer; begins again when it takes some */
    PHASE_IDLE,   /* between requests */
    PHASE_LINGER, /* all is sent; until the peer closes too */
    PHASE_COUNT,
};

extern const char *const phase_names[PHASE_COUNT];

/* Embedded in what has the deadline; zeroed at first. */
struct phase_entry {
    struct phase_entry *next, *previous; /* NULL: in no phase */
    int64_t entered;                     /* ns, when it came into its phase */
    int64_t deadline;                    /* ns; INT64_MAX: none */
    enum phase phase;
};

struct phase_list {
    struct phase_entry ends; /* next: the first, previous: the last */
    int64_t span;            /* ns; 0: no deadline */
    unsigned count;
};

struct phases {
    struct ev_loop *loop;
    ev_timer timer;
    int64_t armed; /* the deadline the timer stands for; INT64_MAX: off */
    /* Must take the entry out, or let it enter a phase anew. */
    void (*expired)(struct phases *phases, struct phase_entry *entry);
    struct phase_list lists[PHASE_COUNT];
};

void phase_init(struct phases *phases, struct ev_loop *loop,
                void (*expired)(struct phases *phases, struct phase_entry *entry));
void phase_fini(struct phases *phases);

/* For those that enter from now on. */
void phase_set_span(struct phases *phases, enum phase phase, int64_t span);

/* Puts the entry at the end of a phase, wherever it was, with a new deadline. */
void phase_enter(struct phases *phases, struct phase_entry *entry, enum phase phase, int64_t now);
void phase_leave(struct phases *phases, struct phase_entry *entry);

/* Walk a phase from its oldest entry; NULL at the end. */
struct phase_entry *phase_first(struct phases *phases, enum phase phase);
struct phase_entry *phase_next(struct phases *phases, const struct phase_entry *entry);

/* Calls `expired` for all whose deadline has come. Returns the earliest one that is left,
 * INT64_MAX if there is none. The timer does this by itself. */
int64_t phase_run(struct phases *phases, int64_t now);

#endif
