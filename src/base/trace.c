#include "base/trace.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/unwind.h"

/* More pages than this below the stack, and its pointer is taken for nonsense. */
#define PAGES_BELOW 64

/* A handler gets no argument. Written once, before the handler is there. */
static struct {
    struct trace *trace;
    uintptr_t top; /* nothing is read there or above */
    uintptr_t page;
} self;

static void add(struct trace *trace, uintptr_t address)
{
    uint32_t count = atomic_load(&trace->count);
    const struct module *module = modules_find(address);
    if (count >= TRACE_FRAMES)
        return;
    struct trace_frame *frame = &trace->frames[count];
    frame->offset = module ? address - module->base : address;
    if (module)
        memcpy(frame->file, module->name, sizeof(frame->file));
    else
        frame->file[0] = '\0';
    /* Last: should the rest fault, what is there counts. */
    atomic_store(&trace->count, count + 1);
}

/* The lowest address that can be read: when the stack has overflowed, the pointer is below it. From
 * there to the top all of it is mapped. */
static uintptr_t find_bottom(uintptr_t stack)
{
    uintptr_t page = stack & ~(self.page - 1);
    for (int i = 0; i < PAGES_BELOW && page < self.top; i++, page += self.page)
        if (msync((void *)page, self.page, MS_ASYNC) == 0)
            return page > stack ? page : stack;
    return self.top;
}

static void store(struct trace *trace, const ucontext_t *context)
{
    struct unwind unwind = { .top = self.top };
    if (!unwind_start(&unwind, context))
        return;
    atomic_store(&trace->count, 0);
    atomic_store(&trace->pid, getpid());
    add(trace, unwind.counter);
    unwind.bottom = find_bottom(unwind.registers[UNWIND_STACK]);
    /* Of each call the last byte, not where it returns to: that may be another line. */
    for (int i = 1; i < TRACE_FRAMES && unwind_step(&unwind); i++)
        add(trace, unwind.counter - 1);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    store(self.trace, context);
    /* The handler is gone by now. A real fault comes again when the instruction is tried again, and
     * a core dump shows it there; what somebody has sent does not. */
    if (info->si_code <= 0)
        raise(number);
}

void trace_start(struct trace *trace, const void *top)
{
#ifdef ENABLE_SANITIZERS
    (void)trace;
    (void)top;
    (void)on_fault;
#else
    static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
    static char stack[65536] __attribute__((aligned(16)));
    const stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
    struct sigaction action = { .sa_sigaction = on_fault,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND };
    self.trace = trace;
    self.top = (uintptr_t)top + 2 * sizeof(uintptr_t);
    self.page = (uintptr_t)sysconf(_SC_PAGESIZE);
    modules_list();
    sigfillset(&action.sa_mask);
    if (sigaltstack(&other, NULL) == -1)
        action.sa_flags &= ~SA_ONSTACK;
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        sigaction(faults[i], &action, NULL);
#endif
}

/* What a child has written there may be anything. */
static void copy_name(char name[MODULES_NAME], const char *from)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+";
    size_t i = 0;
    for (; i < MODULES_NAME - 1 && from[i]; i++)
        name[i] = (char)(strchr(plain, from[i]) ? from[i] : '?');
    name[i] = '\0';
}

const char *trace_text(char *text, size_t size, const struct trace *trace, pid_t pid)
{
    size_t length = 0;
    uint32_t count = atomic_load(&trace->count);
    text[0] = '\0';
    if (atomic_load(&trace->pid) != pid)
        return text;
    for (uint32_t i = 0; i < count && i < TRACE_FRAMES; i++) {
        char piece[MODULES_NAME + 32], name[MODULES_NAME];
        copy_name(name, trace->frames[i].file);
        int made = snprintf(piece, sizeof(piece), "%s%s%s0x%" PRIx64, i > 0 ? " " : "", name,
                            name[0] ? "+" : "", trace->frames[i].offset);
        if (made < 0 || length + (size_t)made >= size)
            break;
        memcpy(text + length, piece, (size_t)made + 1);
        length += (size_t)made;
    }
    return text;
}
