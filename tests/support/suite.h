/*
 * suite: what every black-box test program begins and ends with.
 *
 * Each test runs in a process of its own (Check forks), starts its own servers on ports that the
 * kernel picks, and waits for conditions, never for time. A wait lasts at most
 * $HAYATE_TEST_TIMEOUT seconds (30): long enough for a slow, busy machine, since only a failure
 * ever takes that long.
 */
#ifndef SUPPORT_SUITE_H
#define SUPPORT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

/* A test case of the suite whose tests may take as long as several waits. */
TCase *suite_case(Suite *suite, const char *name);

/* The end of a loop test over a table of rows. */
#define SUITE_ROWS(rows) ((int)(sizeof(rows) / sizeof((rows)[0])))

/* Runs it (CK_FORK, CK_RUN_CASE, ... of Check work). What main returns. */
int suite_run(Suite *suite);

/* Says on standard output why the test that is running does not apply here. Always true. */
bool suite_skip(const char *reason);

/* True, with the reason said, where the program was built without --enable-faults; where we are
 * not root; where we are. A test returns then. */
bool suite_lacks_faults(void);

/* Does this program, or the server that it starts, run under valgrind? */
bool suite_has_valgrind(void);
bool suite_lacks_root(void);

struct deadline {
    int64_t end; /* monotonic ns */
    int64_t pause;
};

struct deadline deadline_start(void);
/* Milliseconds left, for poll; 0 when it has passed. */
int deadline_left(const struct deadline *deadline);
/* Gives others a turn before the next look; false when the deadline has passed. */
bool deadline_wait(struct deadline *deadline);

/* Waits until the condition holds, looking again and again; fails the test when it never does. */
#define WAIT_FOR(condition)                                         \
    do {                                                            \
        struct deadline deadline_ = deadline_start();               \
        while (!(condition))                                        \
            if (!deadline_wait(&deadline_))                         \
                ck_abort_msg("waited in vain for: %s", #condition); \
    } while (0)

#endif
