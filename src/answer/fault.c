#include "answer/fault.h"

#ifdef ENABLE_FAULTS

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "answer/prepare.h"
#include "conf/schema.h"

enum fault {
    FAULT_SEGV,
    FAULT_ABORT,
    FAULT_LOOP,
    FAULT_BLOCK,
    FAULT_EXIT,
    FAULT_STOP,
    FAULT_START,
    FAULT_LATE,
    FAULT_MUTE,
    FAULT_TRIAL,
};

/* What a trial of a binary upgrade has in its environment (master/legacy.h). */
#define TRIAL_VARIABLE "HAYATE_TRIAL_FD"

static const char *const faults[] = {
    [FAULT_SEGV] = "segv",
    [FAULT_ABORT] = "abort",
    [FAULT_LOOP] = "loop",
    [FAULT_BLOCK] = "block",
    [FAULT_EXIT] = "exit",
    [FAULT_STOP] = "stop",
    [FAULT_START] = "start",
    [FAULT_LATE] = "late",
    [FAULT_MUTE] = "mute",
    [FAULT_TRIAL] = "trial",
    NULL,
};

struct fault_options {
    int fault;
};

static const struct schema_row rows[] = {
    {
        .key = "fault",
        .type = SCHEMA_CHOICE,
        .choices = faults,
        .offset = offsetof(struct fault_options, fault),
        .purpose = "for tests: segv, abort, loop, block (in a system call), exit (status 3) or "
                   "stop (SIGSTOP) when asked; start: a crash at the worker's own first request; "
                   "late, mute: a crash or a "
                   "hang there, but in the trial of an upgrade; trial: a hang in that alone",
    },
};

static int prepare(struct conf_route *route, struct conf_error *error)
{
    const struct fault_options *options = route->options;
    const struct prepare_plan plan = {
        .kind = &fault_kind,
        .refused = PREPARE_NO_TYPE | PREPARE_NO_STATUS | PREPARE_NO_METHODS | PREPARE_NO_HEADERS,
        .status = 200,
        .type = "text/plain",
        .body = SLICE("survived\n"),
    };
    if (prepare_answer(route, &plan, error) == -1)
        return -1;
    struct answer *answer = route->answer;
    answer->is_harmless = options->fault >= FAULT_START;
    return 0;
}

static void serve(const struct answer *answer, struct exchange *exchange)
{
    const struct fault_options *options = exchange->route->options;
    volatile int forever = 1;
    bool is_trial = getenv(TRIAL_VARIABLE) != NULL;
    if (options->fault == FAULT_TRIAL ? !is_trial : options->fault >= FAULT_LATE && is_trial) {
        prepare_serve_fixed(answer, exchange);
        return;
    }
    switch (options->fault) {
    case FAULT_SEGV:
        raise(SIGSEGV);
        break;
    case FAULT_LOOP:
        while (forever)
            continue;
        break;
    case FAULT_BLOCK:
    case FAULT_MUTE:
    case FAULT_TRIAL:
        while (forever)
            pause();
        break;
    case FAULT_EXIT:
        _exit(3);
    case FAULT_STOP:
        raise(SIGSTOP);
        break;
    default:
        abort();
    }
    prepare_serve_fixed(answer, exchange);
}

const struct answer_kind fault_kind = {
    .conf = {
        .key = "fault",
        .rows = rows,
        .nrows = sizeof rows / sizeof rows[0],
        .options_size = sizeof(struct fault_options),
        .prepare = prepare,
        .release = prepare_release,
    },
    .serve = serve,
};

#endif
