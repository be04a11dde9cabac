#include "master/roster.h"

const char *const roster_state_names[ROSTER_STATES] = {
    [ROSTER_VACANT] = "vacant",     [ROSTER_PROVING] = "proving", [ROSTER_PROVEN] = "proven",
    [ROSTER_STARTING] = "starting", [ROSTER_SERVING] = "serving", [ROSTER_WAITING] = "waiting",
    [ROSTER_RETIRED] = "retired",
};

const char *const roster_event_names[ROSTER_EVENTS] = {
    [ROSTER_START] = "start",   [ROSTER_COMMIT] = "commit",   [ROSTER_READY] = "ready",
    [ROSTER_EXITED] = "exited", [ROSTER_LEAVING] = "leaving", [ROSTER_DUE] = "due",
    [ROSTER_RETIRE] = "retire",
};

const char *const roster_action_names[ROSTER_ACTIONS] = {
    [ROSTER_NOTHING] = "nothing",   [ROSTER_FORK] = "fork",       [ROSTER_ADMIT] = "admit",
    [ROSTER_BACK_OFF] = "back off", [ROSTER_DISMISS] = "dismiss", [ROSTER_FAIL] = "fail",
};

struct move {
    enum roster_action action;
    enum roster_state next;
};

/* The whole policy. A pair that cannot happen changes nothing: it is a late report. */
static const struct move moves[ROSTER_STATES][ROSTER_EVENTS] = {
    [ROSTER_VACANT] = {
        [ROSTER_START]   = { ROSTER_FORK,     ROSTER_PROVING },
        [ROSTER_COMMIT]  = { ROSTER_NOTHING,  ROSTER_VACANT },
        [ROSTER_READY]   = { ROSTER_NOTHING,  ROSTER_VACANT },
        [ROSTER_EXITED]  = { ROSTER_NOTHING,  ROSTER_VACANT },
        [ROSTER_LEAVING] = { ROSTER_NOTHING,  ROSTER_VACANT },
        [ROSTER_DUE]     = { ROSTER_NOTHING,  ROSTER_VACANT },
        [ROSTER_RETIRE]  = { ROSTER_NOTHING,  ROSTER_RETIRED },
    },
    [ROSTER_PROVING] = {
        [ROSTER_START]   = { ROSTER_NOTHING,  ROSTER_PROVING },
        [ROSTER_COMMIT]  = { ROSTER_NOTHING,  ROSTER_STARTING },
        [ROSTER_READY]   = { ROSTER_NOTHING,  ROSTER_PROVEN },
        [ROSTER_EXITED]  = { ROSTER_FAIL,     ROSTER_RETIRED },
        [ROSTER_LEAVING] = { ROSTER_FAIL,     ROSTER_RETIRED },
        [ROSTER_DUE]     = { ROSTER_NOTHING,  ROSTER_PROVING },
        [ROSTER_RETIRE]  = { ROSTER_DISMISS,  ROSTER_RETIRED },
    },
    [ROSTER_PROVEN] = {
        [ROSTER_START]   = { ROSTER_NOTHING,  ROSTER_PROVEN },
        [ROSTER_COMMIT]  = { ROSTER_ADMIT,    ROSTER_SERVING },
        [ROSTER_READY]   = { ROSTER_NOTHING,  ROSTER_PROVEN },
        [ROSTER_EXITED]  = { ROSTER_FAIL,     ROSTER_RETIRED },
        [ROSTER_LEAVING] = { ROSTER_FAIL,     ROSTER_RETIRED },
        [ROSTER_DUE]     = { ROSTER_NOTHING,  ROSTER_PROVEN },
        [ROSTER_RETIRE]  = { ROSTER_DISMISS,  ROSTER_RETIRED },
    },
    [ROSTER_STARTING] = {
        [ROSTER_START]   = { ROSTER_NOTHING,  ROSTER_STARTING },
        [ROSTER_COMMIT]  = { ROSTER_NOTHING,  ROSTER_STARTING },
        [ROSTER_READY]   = { ROSTER_ADMIT,    ROSTER_SERVING },
        [ROSTER_EXITED]  = { ROSTER_BACK_OFF, ROSTER_WAITING },
        [ROSTER_LEAVING] = { ROSTER_BACK_OFF, ROSTER_WAITING },
        [ROSTER_DUE]     = { ROSTER_NOTHING,  ROSTER_STARTING },
        [ROSTER_RETIRE]  = { ROSTER_DISMISS,  ROSTER_RETIRED },
    },
    [ROSTER_SERVING] = {
        [ROSTER_START]   = { ROSTER_NOTHING,  ROSTER_SERVING },
        [ROSTER_COMMIT]  = { ROSTER_NOTHING,  ROSTER_SERVING },
        [ROSTER_READY]   = { ROSTER_NOTHING,  ROSTER_SERVING },
        [ROSTER_EXITED]  = { ROSTER_BACK_OFF, ROSTER_WAITING },
        [ROSTER_LEAVING] = { ROSTER_BACK_OFF, ROSTER_WAITING },
        [ROSTER_DUE]     = { ROSTER_NOTHING,  ROSTER_SERVING },
        [ROSTER_RETIRE]  = { ROSTER_DISMISS,  ROSTER_RETIRED },
    },
    [ROSTER_WAITING] = {
        [ROSTER_START]   = { ROSTER_NOTHING,  ROSTER_WAITING },
        [ROSTER_COMMIT]  = { ROSTER_NOTHING,  ROSTER_WAITING },
        [ROSTER_READY]   = { ROSTER_NOTHING,  ROSTER_WAITING },
        [ROSTER_EXITED]  = { ROSTER_NOTHING,  ROSTER_WAITING },
        [ROSTER_LEAVING] = { ROSTER_NOTHING,  ROSTER_WAITING },
        [ROSTER_DUE]     = { ROSTER_FORK,     ROSTER_STARTING },
        [ROSTER_RETIRE]  = { ROSTER_NOTHING,  ROSTER_RETIRED },
    },
    [ROSTER_RETIRED] = {
        [ROSTER_START]   = { ROSTER_NOTHING,  ROSTER_RETIRED },
        [ROSTER_COMMIT]  = { ROSTER_NOTHING,  ROSTER_RETIRED },
        [ROSTER_READY]   = { ROSTER_NOTHING,  ROSTER_RETIRED },
        [ROSTER_EXITED]  = { ROSTER_NOTHING,  ROSTER_RETIRED },
        [ROSTER_LEAVING] = { ROSTER_NOTHING,  ROSTER_RETIRED },
        [ROSTER_DUE]     = { ROSTER_NOTHING,  ROSTER_RETIRED },
        [ROSTER_RETIRE]  = { ROSTER_NOTHING,  ROSTER_RETIRED },
    },
};

/* 0, 100 ms, 200 ms, ... 10 s. */
static int64_t back_off(unsigned failures)
{
    if (failures == 0)
        return 0;
    int64_t delay = ROSTER_BACK_OFF_LEAST;
    for (unsigned i = 1; i < failures && delay < ROSTER_BACK_OFF_MOST; i++)
        delay *= 2;
    return delay < ROSTER_BACK_OFF_MOST ? delay : ROSTER_BACK_OFF_MOST;
}

enum roster_action roster_take(struct roster_member *member, enum roster_event event, int64_t now)
{
    const struct move *move = &moves[member->state][event];
    if (event == ROSTER_READY && move->next != member->state)
        member->ready_since = now;
    switch (move->action) {
    case ROSTER_BACK_OFF:
        if (event == ROSTER_LEAVING) {
            member->delay = ROSTER_LEAVE_PAUSE;
            member->ready_since = 0;
            break;
        }
        if (member->ready_since != 0 && now - member->ready_since >= ROSTER_HEALTH)
            member->failures = 0;
        member->delay = back_off(member->failures);
        member->failures++;
        member->ready_since = 0;
        break;
    case ROSTER_FORK:
        if (event != ROSTER_START)
            member->restarts++;
        member->ready_since = 0;
        break;
    default:
        break;
    }
    member->state = move->next;
    return move->action;
}
