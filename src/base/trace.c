#include "base/trace.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/unwind.h"

/* More pages than this below the stack, and its pointer is taken for nonsense. */
#define PAGES_BELOW 64

/* A handler gets no argument. Written before the handler is there. Not all zero, so that it lies with
 * what each process writes anyway, not beside the stack, in a page of its own. */
static struct {
    struct trace *trace; /* NULL: none, it is told */
    uintptr_t top;       /* nothing is read there or above */
    uintptr_t page;
} self = { .page = 4096 };

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
 * there to the top all of it is mapped. The advice is what holds anyway, so all that comes of it is an
 * error where nothing is mapped. */
static uintptr_t find_bottom(uintptr_t stack)
{
    uintptr_t page = stack & ~(self.page - 1);
    for (int i = 0; i < PAGES_BELOW && page < self.top; i++, page += self.page) {
        void *start = (void *)page; /* NOLINT(performance-no-int-to-ptr) */
        if (madvise(start, self.page, MADV_NORMAL) == 0)
            return page > stack ? page : stack;
    }
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

/* Text without snprintf, which is not safe in a handler. */
struct line {
    char *at, *end;
};

static void put(struct line *line, const char *text)
{
    while (*text && line->at < line->end)
        *line->at++ = *text++;
}

static void put_number(struct line *line, uint64_t number, unsigned base)
{
    char digits[24];
    size_t i = sizeof(digits);
    digits[--i] = '\0';
    do
        digits[--i] = "0123456789abcdef"[number % base];
    while (number /= base);
    put(line, &digits[i]);
}

/* What a child has written there may be anything. */
static void put_name(struct line *line, const char *name)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+";
    for (size_t i = 0; i < MODULES_NAME - 1 && name[i]; i++) {
        char piece[] = { (char)(strchr(plain, name[i]) ? name[i] : '?'), '\0' };
        put(line, piece);
    }
}

const char *trace_text(char *text, size_t size, const struct trace *trace, pid_t pid)
{
    struct line line = { text, text + size };
    uint32_t count = atomic_load(&trace->count);
    char *end = text;
    if (atomic_load(&trace->pid) != pid)
        count = 0;
    for (uint32_t i = 0; i < count && i < TRACE_FRAMES; i++) {
        char name[MODULES_NAME];
        memcpy(name, trace->frames[i].file, sizeof(name));
        put(&line, i > 0 ? " " : "");
        put_name(&line, name);
        put(&line, name[0] ? "+0x" : "0x");
        put_number(&line, trace->frames[i].offset, 16);
        if (line.at == line.end)
            break; /* it may have been cut */
        end = line.at;
    }
    *end = '\0';
    return text;
}

static const char *name_of(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGILL:
        return "SIGILL";
    case SIGFPE:
        return "SIGFPE";
    default:
        return "SIGABRT";
    }
}

static void tell(int number, const ucontext_t *context)
{
    static struct trace trace;
    char text[TRACE_TEXT_SIZE], line[sizeof(text) + 64];
    struct line out = { line, line + sizeof(line) };
    store(&trace, context);
    trace_text(text, sizeof(text), &trace, getpid());
    put(&out, PACKAGE_NAME "[");
    put_number(&out, (uint64_t)getpid(), 10);
    put(&out, "]: killed by ");
    put(&out, name_of(number));
    put(&out, text[0] ? "; at " : "");
    put(&out, text);
    put(&out, "\n");
    /* Should it fail, there is nobody to hear of that either. */
    if (write(STDERR_FILENO, line, (size_t)(out.at - line)) == -1)
        return;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    if (self.trace)
        store(self.trace, context);
    else
        tell(number, context);
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

void trace_tell(const void *top)
{
    trace_start(NULL, top);
}
