/*
 * The roster's policy, pair by pair, and what must hold over any sequence of events.
 */
#include <check.h>

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

/* Has the place a process? A retired one may, which drains. */
static bool is_manned(enum roster_state state)
{
    return state == ROSTER_PROVING || state == ROSTER_PROVEN || state == ROSTER_STARTING ||
           state == ROSTER_SERVING;
}

static bool is_seen[ROSTER_STATES][2];

/* All histories that can happen, from here on. */
static void walk(enum roster_state state, int alive)
{
    if (is_seen[state][alive])
        return;
    is_seen[state][alive] = true;
    ck_assert_msg(state == ROSTER_RETIRED || is_manned(state) == (alive == 1), "%s with %d",
                  roster_state_names[state], alive);
    for (unsigned i = 0; i < ROSTER_EVENTS; i++) {
        enum roster_event event = (enum roster_event)i;
        struct roster_member member = { .state = state };
        bool is_end = event == ROSTER_EXITED || event == ROSTER_LEAVING;
        if ((is_end || event == ROSTER_READY) && alive == 0)
            continue; /* only a process can cause it */
        enum roster_action action = roster_take(&member, event, S);
        int next = alive - is_end + (action == ROSTER_FORK);
        ck_assert_msg(next == 0 || next == 1, "%s + %s: %d processes", roster_state_names[state],
                      roster_event_names[event], next);
        ck_assert(state != ROSTER_RETIRED || action == ROSTER_NOTHING);
        ck_assert((action == ROSTER_DISMISS) == (event == ROSTER_RETIRE && is_manned(state)));
        ck_assert((action == ROSTER_BACK_OFF) == (member.state == ROSTER_WAITING && is_end));
        walk(member.state, next);
    }
}

/* Never two processes in a place, none after the end, nobody who is not told to go; and no state
 * that cannot be reached. */
START_TEST(every_history)
{
    walk(ROSTER_VACANT, 0);
    for (unsigned state = 0; state < ROSTER_STATES; state++)
        ck_assert_msg(is_seen[state][0] || is_seen[state][1], "%s", roster_state_names[state]);
}
END_TEST

START_TEST(every_row_is_one_of_its_own)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        ck_assert(rows[i].action != ROSTER_NOTHING || rows[i].next != rows[i].state);
        for (size_t k = 0; k < i; k++)
            ck_assert(rows[i].state != rows[k].state || rows[i].event != rows[k].event);
    }
}
END_TEST

START_TEST(everything_has_a_name)
{
    const struct {
        const char *const *names;
        unsigned count;
    } tables[] = {
        { roster_state_names, ROSTER_STATES },
        { roster_event_names, ROSTER_EVENTS },
        { roster_action_names, ROSTER_ACTIONS },
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
        for (unsigned k = 0; k < tables[i].count; k++)
            ck_assert(tables[i].names[k] != NULL && *tables[i].names[k] != '\0');
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
    tcase_add_test(tests, every_history);
    tcase_add_test(tests, every_row_is_one_of_its_own);
    tcase_add_test(tests, everything_has_a_name);
    return suite_run(suite);
}
