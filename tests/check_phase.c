/*
 * Deadlines by phase, and what they cost an idle loop: nothing.
 */

#include <check.h>
#include <ev.h>
#include <stdlib.h>

#include "base/clock.h"
#include "support/suite.h"
#include "worker/phase.h"

#define MS CLOCK_MILLISECOND

/* What is watched: a name, and how often it expired. */
struct thing {
    struct phase_entry entry; /* first */
    int expired;
    int64_t again; /* enters the phase anew at that time, once; 0: leaves */
};

static void on_expired(struct phases *phases, struct phase_entry *entry)
{
    struct thing *thing = (struct thing *)entry;
    thing->expired++;
    if (thing->again)
        phase_enter(phases, entry, entry->phase, thing->again);
    else
        phase_leave(phases, entry);
    thing->again = 0;
}

static struct ev_loop *start(struct phases *phases)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    phase_init(phases, loop, on_expired);
    phase_set_span(phases, PHASE_HEADER, 10 * MS);
    phase_set_span(phases, PHASE_IDLE, 50 * MS);
    return loop;
}

static void stop(struct phases *phases, struct ev_loop *loop)
{
    phase_fini(phases);
    ev_loop_destroy(loop);
}

START_TEST(test_order)
{
    struct phases phases;
    struct thing a = { 0 }, b = { 0 }, c = { 0 };
    struct ev_loop *loop = start(&phases);
    phase_enter(&phases, &a.entry, PHASE_IDLE, 1 * MS);
    phase_enter(&phases, &b.entry, PHASE_IDLE, 2 * MS);
    phase_enter(&phases, &c.entry, PHASE_IDLE, 3 * MS);
    ck_assert_uint_eq(phases.lists[PHASE_IDLE].count, 3);
    ck_assert_ptr_eq(phase_first(&phases, PHASE_IDLE), &a.entry);
    ck_assert_ptr_eq(phase_next(&phases, &a.entry), &b.entry);

    phase_enter(&phases, &a.entry, PHASE_IDLE, 4 * MS); /* to the end */
    ck_assert_ptr_eq(phase_first(&phases, PHASE_IDLE), &b.entry);
    ck_assert_ptr_eq(phase_next(&phases, &c.entry), &a.entry);
    ck_assert_ptr_null(phase_next(&phases, &a.entry));

    phase_enter(&phases, &b.entry, PHASE_HEADER, 5 * MS);
    ck_assert_uint_eq(phases.lists[PHASE_IDLE].count, 2);
    ck_assert_ptr_eq(phase_first(&phases, PHASE_HEADER), &b.entry);

    ck_assert_int_eq(phase_run(&phases, 14 * MS), 15 * MS);
    ck_assert_int_eq(phase_run(&phases, 15 * MS), 53 * MS);
    ck_assert_int_eq(b.expired, 1);
    ck_assert_ptr_null(phase_first(&phases, PHASE_HEADER));
    phase_leave(&phases, &c.entry);
    phase_leave(&phases, &c.entry); /* once more changes nothing */
    ck_assert_int_eq(phase_run(&phases, 53 * MS), 54 * MS);
    ck_assert_int_eq(phase_run(&phases, 54 * MS), INT64_MAX);
    ck_assert_int_eq(a.expired, 1);
    ck_assert_int_eq(c.expired, 0);
    stop(&phases, loop);
}
END_TEST

START_TEST(test_no_deadline)
{
    struct phases phases;
    struct thing a = { 0 };
    struct ev_loop *loop = start(&phases);
    phase_enter(&phases, &a.entry, PHASE_WAIT, 1 * MS);
    ck_assert(!ev_is_active(&phases.timer));
    ck_assert_int_eq(phase_run(&phases, INT64_MAX - 1), INT64_MAX);
    ck_assert_int_eq(a.expired, 0);
    phase_leave(&phases, &a.entry);
    stop(&phases, loop);
}
END_TEST

/* One that expires may begin anew. */
START_TEST(test_again)
{
    struct phases phases;
    struct thing a = { .again = 100 * MS };
    struct ev_loop *loop = start(&phases);
    phase_enter(&phases, &a.entry, PHASE_HEADER, 1 * MS);
    ck_assert_int_eq(phase_run(&phases, 50 * MS), 110 * MS);
    ck_assert_int_eq(phase_run(&phases, 110 * MS), INT64_MAX);
    ck_assert_int_eq(a.expired, 2);
    stop(&phases, loop);
}
END_TEST

/* The timer runs while there are deadlines, and is not set again by each that moves. */
START_TEST(test_timer)
{
    struct phases phases;
    struct thing a = { 0 }, b = { 0 };
    struct ev_loop *loop = start(&phases);
    int64_t begun = clock_monotonic();
    ck_assert(!ev_is_active(&phases.timer));
    phase_enter(&phases, &a.entry, PHASE_IDLE, begun);
    int64_t armed = phases.armed;
    ck_assert_int_eq(armed, begun + 50 * MS);
    phase_enter(&phases, &a.entry, PHASE_IDLE, begun + 5 * MS);
    ck_assert_int_eq(phases.armed, armed);
    phase_enter(&phases, &b.entry, PHASE_HEADER, begun); /* earlier */
    ck_assert_int_eq(phases.armed, begun + 10 * MS);

    ev_run(loop, 0); /* ends when no watcher is active */
    int64_t took = clock_monotonic() - begun;
    ck_assert_int_eq(a.expired, 1);
    ck_assert_int_eq(b.expired, 1);
    ck_assert_int_ge(took, 54 * MS);
    ck_assert_int_eq(phases.armed, INT64_MAX);

    phase_enter(&phases, &a.entry, PHASE_IDLE, clock_monotonic());
    phase_leave(&phases, &a.entry);
    ck_assert(!ev_is_active(&phases.timer));
    stop(&phases, loop);
}
END_TEST

/* Against a plain list, with many moves. */
START_TEST(test_many)
{
    enum { THINGS = 200 };
    static struct thing things[THINGS];
    static int64_t deadlines[THINGS];
    struct phases phases;
    struct ev_loop *loop = start(&phases);
    int64_t now = 0;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        int i = rand() % THINGS;
        enum phase phase = rand() % 2 ? PHASE_HEADER : PHASE_IDLE;
        now += rand() % 500000;
        if (rand() % 10 == 0) {
            phase_leave(&phases, &things[i].entry);
            deadlines[i] = 0;
        } else {
            phase_enter(&phases, &things[i].entry, phase, now);
            deadlines[i] = now + (phase == PHASE_HEADER ? 10 * MS : 50 * MS);
        }
        int64_t earliest = phase_run(&phases, now), expected = INT64_MAX;
        for (int k = 0; k < THINGS; k++) {
            bool is_due = deadlines[k] && deadlines[k] <= now;
            ck_assert_int_eq(things[k].expired, is_due);
            things[k].expired = 0;
            if (is_due)
                deadlines[k] = 0;
            if (deadlines[k] && deadlines[k] < expected)
                expected = deadlines[k];
        }
        ck_assert_int_eq(earliest, expected);
    }
    stop(&phases, loop);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("phase");
    TCase *tests = suite_case(suite, "phase");
    tcase_add_test(tests, test_order);
    tcase_add_test(tests, test_no_deadline);
    tcase_add_test(tests, test_again);
    tcase_add_test(tests, test_timer);
    tcase_add_test(tests, test_many);
    return suite_run(suite);
}
