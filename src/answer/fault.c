#include "answer/fault.h"

#ifdef ENABLE_FAULTS

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer/prepare.h"
#include "conf/schema.h"

enum fault {
    FAULT_SEGV,
    FAULT_ABORT,
    FAULT_DEEP,
    FAULT_OVERFLOW,
    FAULT_WILD,
    FAULT_COPY,
    FAULT_MEMORY,
    FAULT_LOOP,
    FAULT_BLOCK,
    FAULT_EXIT,
    FAULT_STOP,
    FAULT_START,
    FAULT_WRONG,
    FAULT_LATE,
    FAULT_MUTE,
    FAULT_TRIAL,
};

/* What a trial of a binary upgrade has in its environment (master/legacy.h). */
#define TRIAL_VARIABLE "HAYATE_TRIAL_FD"

static const char *const faults[] = {
    [FAULT_SEGV] = "segv",
    [FAULT_ABORT] = "abort",
    [FAULT_DEEP] = "deep",
    [FAULT_OVERFLOW] = "overflow",
    [FAULT_WILD] = "wild",
    [FAULT_COPY] = "copy",
    [FAULT_MEMORY] = "memory",
    [FAULT_LOOP] = "loop",
    [FAULT_BLOCK] = "block",
    [FAULT_EXIT] = "exit",
    [FAULT_STOP] = "stop",
    [FAULT_START] = "start",
    [FAULT_WRONG] = "wrong",
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
        .purpose =
            "for tests: segv, abort, deep (a wild pointer, two calls down), overflow (of the "
            "stack), wild (a call to nowhere), copy (a fault in the C library), memory (all "
            "there is), loop, block (in a system call), exit (status 3) or "
            "stop (SIGSTOP) when asked; start: a crash at the worker's own first request; "
            "wrong: another status than it expects there; late, mute: a crash or a hang there, "
            "but in the trial of an upgrade; trial: a hang in that alone",
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
    if (options->fault == FAULT_WRONG)
        answer->fixed.status++; /* not what was rendered */
    return 0;
}

/* Their names are what a test asks addr2line for: each must stay a function of its own, and looks at
 * what it has called, since a compiler makes the last call of a function a jump. */
#if defined __GNUC__ && !defined __clang__
#define APART __attribute__((noipa))
#else
#define APART __attribute__((noinline))
#endif

APART static int fault_innermost(volatile int *nowhere)
{
    *nowhere = 1;
    return *nowhere;
}

APART static int fault_middle(volatile int *nowhere)
{
    return fault_innermost(nowhere) + 1;
}

APART static int fault_overflow(volatile int *depth)
{
    volatile char room[512];
    room[0] = (char)++*depth;
    return *depth < 0 ? 0 : fault_overflow(depth) + room[0];
}

/* Null, which neither a compiler nor a linter may know. */
static int (*volatile no_function)(void);
static char *volatile no_memory;

APART static int fault_wild(void)
{
    return no_function() + 1;
}

APART static int fault_copy(void)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    static char data[4096];
    copy(no_memory, data, sizeof data);
    return *no_memory + 1;
}

APART static int fault_memory(void)
{
    volatile int taken = 0;
    for (;;) {
        char *volatile more = malloc(1 << 20); /* or else clang leaves it out */
        if (!more)
            pause();
        else
            memset(more, ++taken, 1 << 20);
    }
    return taken;
}

/* False: it is none of these. */
static bool fail_in_a_call(int fault)
{
    volatile int depth = 0;
    switch (fault) {
    case FAULT_DEEP:
        return fault_middle((volatile int *)16) > 0;
    case FAULT_OVERFLOW:
        return fault_overflow(&depth) > 0;
    case FAULT_WILD:
        return fault_wild() > 0;
    case FAULT_COPY:
        return fault_copy() > 0;
    case FAULT_MEMORY:
        return fault_memory() > 0;
    default:
        return false;
    }
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
    if (fail_in_a_call(options->fault))
        return;
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
    case FAULT_WRONG:
        break;
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
