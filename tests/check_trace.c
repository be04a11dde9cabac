/* Backtraces of processes that die: real ones, and what a mad process may have left. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/modules.h"
#include "base/trace.h"
#include "support/suite.h"
#include "support/text.h"

/* A function of its own, whatever the compiler may think. */
#if defined __GNUC__ && !defined __clang__
#define APART __attribute__((noipa))
#else
#define APART __attribute__((noinline))
#endif

static bool lacks_traces(void)
{
#if defined ENABLE_SANITIZERS
    return suite_skip("the sanitizers have handlers of their own");
#elif !defined __x86_64__ && !defined __AARCH64EL__
    return suite_skip("no backtraces on this processor");
#else
    return suite_has_valgrind() && suite_skip("valgrind would report each fault");
#endif
}

/* Ways to die. Where they do, as far as it is known: in the function, or in what it calls. */

APART static int die_by_null(void)
{
    volatile int *volatile nowhere = NULL;
    return *nowhere;
}

APART static int die_by_call(void)
{
    int (*volatile nowhere)(void) = NULL;
    return nowhere() + 1;
}

APART static int die_by_data(void)
{
    static char data[64];
    int (*volatile nowhere)(void) = (int (*)(void))(void *)data;
    return nowhere() + 1;
}

APART static int die_by_abort(void)
{
    abort();
}

APART static int die_by_trap(void)
{
    __builtin_trap();
}

APART static int die_by_copy(void)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    static char data[4096];
    return copy(NULL, data, sizeof(data)) != NULL;
}

APART static int die_by_truncation(void)
{
    char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memfd_create("empty", 0), 0);
    return *(volatile char *)page;
}

static int (*outer)(void);

APART static int compare(const void *a, const void *b)
{
    return outer() + *(const char *)a - *(const char *)b;
}

/* Through the C library. */
APART static int die_in_sort(void)
{
    char letters[] = "ba";
    outer = die_by_null;
    qsort(letters, 2, 1, compare);
    return letters[0];
}

APART static int die_by_overflow(void)
{
    volatile char room[300];
    room[0] = 1;
    return (room[0] > 0 ? die_by_overflow() : 0) + room[0];
}

APART static int die_by_large_frame(void)
{
    volatile char room[1 << 23];
    for (size_t i = 0; i < sizeof(room); i += 1024)
        room[i] = 1;
    return room[4096];
}

APART static int die_by_kill(void)
{
    return kill(getpid(), SIGBUS) + 1;
}

static const struct row {
    const char *name;
    int (*die)(void);
    int signal;
    bool is_outside;   /* the first frame is in none of the functions of this program */
    unsigned at_least; /* frames */
} rows[] = {
    { "null", die_by_null, SIGSEGV, false, 3 },
    { "call", die_by_call, SIGSEGV, true, 4 },
    { "data", die_by_data, SIGSEGV, true, 4 },
    { "abort", die_by_abort, SIGABRT, true, 4 },
    { "trap", die_by_trap, 0, false, 3 },
    { "copy", die_by_copy, SIGSEGV, true, 4 },
    { "truncation", die_by_truncation, SIGBUS, false, 3 },
    { "sort", die_in_sort, SIGSEGV, false, 5 },
    { "overflow", die_by_overflow, SIGSEGV, false, TRACE_FRAMES },
    { "large frame", die_by_large_frame, SIGSEGV, false, 1 },
    { "kill", die_by_kill, SIGBUS, true, 4 },
};

static struct trace *new_trace(void)
{
    struct trace *trace =
        mmap(NULL, sizeof(*trace), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(trace != MAP_FAILED);
    return trace;
}

APART static int begin(struct trace *trace, int (*die)(void))
{
    trace_start(trace, __builtin_frame_address(0));
    return die() + 1;
}

/* The signal that ended it. */
static int die_in_a_child(struct trace *trace, int (*die)(void), pid_t *pid)
{
    const struct rlimit no_core = { 0, 0 };
    int status;
    *pid = fork();
    ck_assert_int_ge(*pid, 0);
    if (*pid == 0) {
        setrlimit(RLIMIT_CORE, &no_core);
        for (int number = 1; number < NSIG; number++)
            signal(number, SIG_DFL);
        _exit(begin(trace, die) > 0);
    }
    ck_assert_int_eq(waitpid(*pid, &status, 0), *pid);
    ck_assert_msg(WIFSIGNALED(status), "status %x", (unsigned)status);
    return WTERMSIG(status);
}

/* An address that a trace names, if it is of this program. */
static uintptr_t address_of(const struct trace_frame *frame)
{
    const struct module *module = modules_find((uintptr_t)die_by_null);
    return strcmp(frame->file, PACKAGE_NAME) == 0 ? module->base + frame->offset : 0;
}

/* The functions here are short. */
static bool is_in(const struct trace_frame *frame, uintptr_t function)
{
    return address_of(frame) - function < 256;
}

START_TEST(way_to_die)
{
    const struct row *row = &rows[_i];
    struct trace *trace = new_trace();
    char text[TRACE_TEXT_SIZE];
    pid_t pid;

    if (lacks_traces())
        return;
    modules_list();
    int number = die_in_a_child(trace, row->die, &pid);
    trace_text(text, sizeof(text), trace, pid);
    ck_assert_msg(row->signal == 0 || number == row->signal, "%s: signal %d", row->name, number);
    ck_assert_msg(trace->count >= row->at_least, "%s: %s", row->name, text);
    unsigned first = 0;
    while (row->is_outside && first < trace->count && address_of(&trace->frames[first]) == 0)
        first++;
    ck_assert_msg((first > 0) == row->is_outside, "%s: %s", row->name, text);
    uintptr_t expected = (uintptr_t)(row->die == die_in_sort ? die_by_null : row->die);
    ck_assert_msg(is_in(&trace->frames[first], expected), "%s: %s", row->name, text);
    if (row->at_least >= TRACE_FRAMES || row->at_least == 1)
        return;
    unsigned outermost = atomic_load(&trace->count);
    ck_assert_msg(outermost > 2 && is_in(&trace->frames[outermost - 2], (uintptr_t)begin), "%s: %s",
                  row->name, text);
    ck_assert_msg(text_matches(text, "^(([A-Za-z0-9._-]+\\+)?0x[0-9a-f]+ ?)+$"), "%s", text);
}
END_TEST

#if defined __x86_64__
/* Registers that point anywhere: the handler must not fault, nor change the signal. */

APART static int die_with_stack_at(uintptr_t stack, uintptr_t frame)
{
    __asm__ volatile("mov %0, %%rsp\n mov %1, %%rbp\n movl $1, 0" : : "r"(stack), "r"(frame));
    return 0;
}

static uintptr_t here(void)
{
    return (uintptr_t)__builtin_frame_address(0);
}

static int die_on_null(void)
{
    return die_with_stack_at(0, 0);
}
static int die_on_nonsense(void)
{
    return die_with_stack_at(0x4141414141414141, 0x4242424242424242);
}
static int die_high(void)
{
    return die_with_stack_at(UINTPTR_MAX - 7, UINTPTR_MAX - 15);
}
static int die_odd(void)
{
    return die_with_stack_at(here() - 1001, here() - 3);
}
static int die_far_below(void)
{
    return die_with_stack_at(here() - (1 << 30), here());
}
static int die_on_loop(void)
{
    uintptr_t *loop = (uintptr_t *)(here() & ~(uintptr_t)15) - 64;
    for (int i = 0; i < 32; i++)
        loop[i] = (uintptr_t)loop;
    return die_with_stack_at((uintptr_t)loop, (uintptr_t)loop);
}

static int (*const mad[])(void) = { die_on_null, die_on_nonsense, die_high,
                                    die_odd,     die_far_below,   die_on_loop };

START_TEST(mad_registers)
{
    struct trace *trace = new_trace();
    pid_t pid;

    modules_list();
    if (lacks_traces())
        return;
    ck_assert_int_eq(die_in_a_child(trace, mad[_i], &pid), SIGSEGV);
    ck_assert_int_eq(trace->pid, pid);
    ck_assert_uint_ge(trace->count, 1);
    ck_assert(is_in(&trace->frames[0], (uintptr_t)die_with_stack_at));
}
END_TEST
#endif

/* What it says is checked by who reads. */

START_TEST(hostile_trace)
{
    struct trace *trace = new_trace();
    char text[TRACE_TEXT_SIZE], small[16];

    memset(trace, 0xff, sizeof(*trace));
    trace->pid = 7;
    trace_text(text, sizeof(text), trace, 7);
    const char *frame = text_format("%s+0xffffffffffffffff", text_repeat("?", MODULES_NAME - 1));
    const char *rest = text_repeat(text_format(" %s", frame), TRACE_FRAMES - 1);
    ck_assert_str_eq(text, text_format("%s%s", frame, rest));
    ck_assert_str_eq(trace_text(text, sizeof(text), trace, 8), "");
    ck_assert_str_eq(trace_text(small, sizeof(small), trace, 7), "");

    memset(trace, 0, sizeof(*trace));
    ck_assert_str_eq(trace_text(text, sizeof(text), trace, 7), "");
    trace->pid = 7;
    ck_assert_str_eq(trace_text(text, sizeof(text), trace, 7), "");
    trace->count = 2;
    strcpy(trace->frames[0].file, "a\n\x1b b");
    trace->frames[1].offset = 0x1234;
    ck_assert_str_eq(trace_text(text, sizeof(text), trace, 7), "a???b+0x0 0x1234");
    ck_assert_str_eq(trace_text(small, sizeof(small), trace, 7), "a???b+0x0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace");
    TCase *tests = suite_case(suite, "trace");
    tcase_add_loop_test(tests, way_to_die, 0, SUITE_ROWS(rows));
#if defined __x86_64__
    tcase_add_loop_test(tests, mad_registers, 0, SUITE_ROWS(mad));
#endif
    tcase_add_test(tests, hostile_trace);
    return suite_run(suite);
}
