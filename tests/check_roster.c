/*
 * The roster's policy, pair by pair, and what must hold over any sequence of events.
 */
#include <check.h>
#include <stdlib.h>

#include "master/roster.h"
#include "support/suite.h"

#define MS INT64_C(1000000)
#define S (1000 * MS)

struct row {
    enum roster_state state;
    enum roster_event event;
    enum roster_action action;
    enum roster_state next;
};

/* All that does anything; every other pair must do nothing and stay. */
static const struct row rows[] = {
    { ROSTER_VACANT, ROSTER_START, ROSTER_FORK, ROSTER_PROVING },
    { ROSTER_VACANT, ROSTER_RETIRE, ROSTER_NOTHING, ROSTER_RETIRED },

    { ROSTER_PROVING, ROSTER_COMMIT, ROSTER_NOTHING, ROSTER_STARTING },
    { ROSTER_PROVING, ROSTER_READY, ROSTER_NOTHING, ROSTER_PROVEN },
    { ROSTER_PROVING, ROSTER_EXITED, ROSTER_FAIL, ROSTER_RETIRED },
    { ROSTER_PROVING, ROSTER_LEAVING, ROSTER_FAIL, ROSTER_RETIRED },
    { ROSTER_PROVING, ROSTER_RETIRE, ROSTER_DISMISS, ROSTER_RETIRED },

    { ROSTER_PROVEN, ROSTER_COMMIT, ROSTER_ADMIT, ROSTER_SERVING },
    { ROSTER_PROVEN, ROSTER_EXITED, ROSTER_FAIL, ROSTER_RETIRED },
    { ROSTER_PROVEN, ROSTER_LEAVING, ROSTER_FAIL, ROSTER_RETIRED },
    { ROSTER_PROVEN, ROSTER_RETIRE, ROSTER_DISMISS, ROSTER_RETIRED },

    { ROSTER_STARTING, ROSTER_READY, ROSTER_ADMIT, ROSTER_SERVING },
    { ROSTER_STARTING, ROSTER_EXITED, ROSTER_BACK_OFF, ROSTER_WAITING },
    { ROSTER_STARTING, ROSTER_LEAVING, ROSTER_BACK_OFF, ROSTER_WAITING },
    { ROSTER_STARTING, ROSTER_RETIRE, ROSTER_DISMISS, ROSTER_RETIRED },

    { ROSTER_SERVING, ROSTER_EXITED, ROSTER_BACK_OFF, ROSTER_WAITING },
    { ROSTER_SERVING, ROSTER_LEAVING, ROSTER_BACK_OFF, ROSTER_WAITING },
    { ROSTER_SERVING, ROSTER_RETIRE, ROSTER_DISMISS, ROSTER_RETIRED },

    { ROSTER_WAITING, ROSTER_DUE, ROSTER_FORK, ROSTER_STARTING },
    { ROSTER_WAITING, ROSTER_RETIRE, ROSTER_NOTHING, ROSTER_RETIRED },
};

static struct row expected(enum roster_state state, enum roster_event event)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i].state == state && rows[i].event == event)
            return rows[i];
    return (struct row){ state, event, ROSTER_NOTHING, state };
}

START_TEST(every_pair)
{
    enum roster_state state = (enum roster_state)(_i / ROSTER_EVENTS);
    enum roster_event event = (enum roster_event)(_i % ROSTER_EVENTS);
    struct roster_member member = { .state = state };
    struct row want = expected(state, event);
    enum roster_action action = roster_take(&member, event, S);
    ck_assert_msg(action == want.action && member.state == want.next,
                  "%s + %s: %s, %s; wanted %s, %s", roster_state_names[state],
                  roster_event_names[event], roster_action_names[action],
                  roster_state_names[member.state], roster_action_names[want.action],
                  roster_state_names[want.next]);
}
END_TEST

/* One life after another: failing at once, over and over. */
START_TEST(back_off_doubles_to_its_cap)
{
    static const int64_t delays[] = { 0,         100 * MS,  200 * MS,  400 * MS, 800 * MS,
                                      1600 * MS, 3200 * MS, 6400 * MS, 10 * S,   10 * S };
    struct roster_member member = { .state = ROSTER_SERVING, .ready_since = S };
    int64_t now = S;
    for (size_t i = 0; i < sizeof(delays) / sizeof(*delays); i++) {
        ck_assert_int_eq(roster_take(&member, ROSTER_EXITED, now), ROSTER_BACK_OFF);
        ck_assert_int_eq(member.delay, delays[i]);
        now += member.delay;
        ck_assert_int_eq(roster_take(&member, ROSTER_DUE, now), ROSTER_FORK);
    }
    ck_assert_uint_eq(member.restarts, sizeof(delays) / sizeof(*delays));
}
END_TEST

START_TEST(health_forgets_failures)
{
    struct {
        int64_t health, delay;
    } const cases[] = {
        { 0, 400 * MS },
        { 10 * S - 1, 400 * MS },
        { 10 * S, 0 },
        { 3600 * S, 0 },
    };
    struct roster_member member = { .state = ROSTER_STARTING, .failures = 3 };
    roster_take(&member, ROSTER_READY, 5 * S);
    roster_take(&member, ROSTER_EXITED, 5 * S + cases[_i].health);
    ck_assert_int_eq(member.delay, cases[_i].delay);
}
END_TEST

/* Somebody else told it to go: a short pause, and nothing is held against the place. */
START_TEST(leaving_is_no_failure)
{
    struct roster_member member = { .state = ROSTER_SERVING, .failures = (unsigned)_i };
    ck_assert_int_eq(roster_take(&member, ROSTER_LEAVING, S), ROSTER_BACK_OFF);
    ck_assert_int_eq(member.delay, 10 * MS);
    ck_assert_uint_eq(member.failures, (unsigned)_i);
    ck_assert_int_eq(roster_take(&member, ROSTER_DUE, S), ROSTER_FORK);
}
END_TEST

/* A process that never got ready has no health, however long it took. */
START_TEST(slow_failed_start_is_no_health)
{
    struct roster_member member = { .state = ROSTER_STARTING, .failures = 2 };
    roster_take(&member, ROSTER_EXITED, 3600 * S);
    ck_assert_int_eq(member.delay, 200 * MS);
}
END_TEST

/* Random histories: never two processes in a place, never one after the end. */
START_TEST(never_two_processes)
{
    srand(1);
    for (int history = 0; history < 2000; history++) {
        struct roster_member member = { 0 };
        int alive = 0;
        bool is_over = false;
        int64_t now = S;
        for (int step = 0; step < 50; step++) {
            enum roster_event event = (enum roster_event)(rand() % ROSTER_EVENTS);
            /* Events that only a living process, or only an empty place, can cause. */
            if ((event == ROSTER_EXITED || event == ROSTER_READY || event == ROSTER_LEAVING) &&
                !alive)
                continue;
            if (event == ROSTER_EXITED || event == ROSTER_LEAVING)
                alive--;
            enum roster_action action = roster_take(&member, event, now += S);
            alive += action == ROSTER_FORK;
            ck_assert_int_ge(alive, 0);
            ck_assert_int_le(alive, 1);
            ck_assert(!is_over || action == ROSTER_NOTHING);
            is_over |= event == ROSTER_RETIRE;
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("roster");
    TCase *tests = suite_case(suite, "policy");
    tcase_add_loop_test(tests, every_pair, 0, ROSTER_STATES * ROSTER_EVENTS);
    tcase_add_test(tests, back_off_doubles_to_its_cap);
    tcase_add_loop_test(tests, health_forgets_failures, 0, 4);
    tcase_add_loop_test(tests, leaving_is_no_failure, 0, 4);
    tcase_add_test(tests, slow_failed_start_is_no_health);
    tcase_add_test(tests, never_two_processes);
    return suite_run(suite);
}
