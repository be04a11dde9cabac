/*
 * roster: the worker table's policy, as a pure function: (state, event) -> (action, next state).
 *
 * One member is one place in a generation: worker 1, worker 2, or admin. A process comes and goes
 * in it. Nothing here forks, kills, logs or reads a clock: the caller reports what happened and
 * when, and does what it is told.
 */
#ifndef MASTER_ROSTER_H
#define MASTER_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

enum roster_state {
    ROSTER_VACANT,  /* never had a process */
    ROSTER_PROVING, /* first process of the place, not yet ready: if it fails, the generation does */
    ROSTER_PROVEN,  /* ready, waiting for the rest of its generation */
    ROSTER_STARTING, /* a later process, not yet ready */
    ROSTER_SERVING,  /* ready, told to go */
    ROSTER_WAITING,  /* no process; the next one is forked when the back-off is over */
    ROSTER_RETIRED,  /* told to drain, or gone for good */
    ROSTER_STATES,
};

enum roster_event {
    ROSTER_START,   /* the generation begins */
    ROSTER_COMMIT,  /* the generation takes over */
    ROSTER_READY,   /* the process says ready */
    ROSTER_EXITED,  /* the process is gone, however; also: it could not be forked */
    ROSTER_LEAVING, /* the process drains because somebody else told it to: not a failure */
    ROSTER_DUE,     /* the back-off is over */
    ROSTER_RETIRE,  /* the generation ends: reload or stop */
    ROSTER_EVENTS,
};

enum roster_action {
    ROSTER_NOTHING,
    ROSTER_FORK,     /* now */
    ROSTER_ADMIT,    /* tell the process to go */
    ROSTER_BACK_OFF, /* ROSTER_DUE after member->delay (0: at once) */
    ROSTER_DISMISS,  /* tell the process to drain */
    ROSTER_FAIL,     /* the generation cannot start */
    ROSTER_ACTIONS,
};

/* Names for logs and tests, indexed by the enums. */
extern const char *const roster_state_names[ROSTER_STATES];
extern const char *const roster_event_names[ROSTER_EVENTS];
extern const char *const roster_action_names[ROSTER_ACTIONS];

/* The back-off: none, then doubling, forgotten after some time of health. In ns. */
#define ROSTER_BACK_OFF_LEAST INT64_C(100000000)
#define ROSTER_BACK_OFF_MOST INT64_C(10000000000)
#define ROSTER_HEALTH INT64_C(10000000000)

/* Between a process that leaves and the next: whoever signals a whole process group reaches the
 * children first, and the master may learn only now that it is to stop too. In ns. */
#define ROSTER_LEAVE_PAUSE INT64_C(10000000)

/* Zeroed at first. */
struct roster_member {
    enum roster_state state;
    unsigned failures;   /* ends in a row, none of them after enough health */
    unsigned restarts;   /* processes after the first */
    int64_t delay;       /* ns; valid with ROSTER_BACK_OFF */
    int64_t ready_since; /* monotonic ns; 0 while not ready */
};

/* Takes one event at monotonic time `now`; changes the member, and says what to do. */
enum roster_action roster_take(struct roster_member *member, enum roster_event event, int64_t now);

#endif
