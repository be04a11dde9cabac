#include "base/unwind.h"

#include <stddef.h>
#include <string.h>

#include "base/frames.h"
#include "base/modules.h"

#define WORD sizeof(uintptr_t)

#if defined __x86_64__

bool unwind_start(struct unwind *unwind, const ucontext_t *context)
{
    /* By their numbers in DWARF. */
    static const int from[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
    for (size_t i = 0; i < UNWIND_REGISTERS; i++)
        unwind->registers[i] = (uintptr_t)context->uc_mcontext.gregs[from[i]];
    unwind->counter = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    unwind->is_call = false;
    return true;
}

static uintptr_t plain(uintptr_t address)
{
    return address;
}

#elif defined __AARCH64EL__

bool unwind_start(struct unwind *unwind, const ucontext_t *context)
{
    for (size_t i = 0; i < UNWIND_STACK; i++)
        unwind->registers[i] = (uintptr_t)context->uc_mcontext.regs[i];
    unwind->registers[UNWIND_STACK] = (uintptr_t)context->uc_mcontext.sp;
    unwind->counter = (uintptr_t)context->uc_mcontext.pc;
    unwind->is_call = false;
    return true;
}

/* A return address may be signed, in the bits that no address uses. */
static uintptr_t plain(uintptr_t address)
{
    return address & ((UINT64_C(1) << 48) - 1);
}

#else

bool unwind_start(struct unwind *unwind, const ucontext_t *context)
{
    (void)unwind;
    (void)context;
    return false;
}

static uintptr_t plain(uintptr_t address)
{
    return address;
}

#endif

static bool load(const struct unwind *unwind, uintptr_t place, uintptr_t *word)
{
    if (place % WORD != 0 || place < unwind->bottom || place >= unwind->top ||
        unwind->top - place < WORD)
        return false;
    *word = *(const uintptr_t *)place; /* NOLINT(performance-no-int-to-ptr) */
    return true;
}

/* The call that `address` is behind, in a frame that begins at `stack`. */
static bool enter(struct unwind *unwind, uintptr_t address, uintptr_t stack)
{
    address = plain(address);
    if (!modules_find(address - 1) || stack <= unwind->bottom)
        return false;
    unwind->counter = address;
    unwind->is_call = true;
    unwind->registers[UNWIND_STACK] = stack;
    unwind->bottom = stack;
    return true;
}

static bool follow_frame_pointer(struct unwind *unwind)
{
    uintptr_t frame = unwind->registers[UNWIND_FRAME], caller, address;
    if (!load(unwind, frame, &caller) || !load(unwind, frame + WORD, &address) ||
        !enter(unwind, address, frame + 2 * WORD))
        return false;
    unwind->registers[UNWIND_FRAME] = caller;
    return true;
}

/* A call to where no code is: nothing has been done there yet. */
static bool leave_nowhere(struct unwind *unwind)
{
#ifdef UNWIND_LINK
    unwind->bottom--; /* that call has no frame */
    return enter(unwind, unwind->registers[UNWIND_LINK], unwind->registers[UNWIND_STACK]);
#else
    uintptr_t stack = unwind->registers[UNWIND_STACK], address;
    return load(unwind, stack, &address) && enter(unwind, address, stack + WORD);
#endif
}

static bool follow_row(struct unwind *unwind, const struct frames_row *row)
{
    struct unwind next = *unwind;
    if (row->base >= UNWIND_REGISTERS)
        return false;
    uintptr_t base = unwind->registers[row->base] + (uintptr_t)row->offset;
    for (unsigned i = 0; i < UNWIND_REGISTERS; i++) {
        const struct frames_rule *rule = &row->rules[i];
        uintptr_t place = base + (uintptr_t)rule->value;
        /* Behind the last pop of a function its place is below the stack, and the register back. */
        if (rule->kind == FRAMES_SAVED && !load(unwind, place, &next.registers[i]) &&
            i == row->back)
            return false;
        if (rule->kind == FRAMES_VALUE)
            next.registers[i] = place;
        if (rule->kind == FRAMES_REGISTER && (uint64_t)rule->value < UNWIND_REGISTERS)
            next.registers[i] = unwind->registers[rule->value];
    }
    /* Only a leaf has its return address still where a call puts it, in a register. */
    if (row->back >= UNWIND_REGISTERS || row->rules[row->back].kind == FRAMES_UNDEFINED ||
        (row->rules[row->back].kind == FRAMES_SAME && unwind->is_call))
        return false;
    /* A leaf of AArch64 may have no frame at all. */
    if (!unwind->is_call && base == next.bottom)
        next.bottom--;
    if (!enter(&next, next.registers[row->back], base))
        return false;
    *unwind = next;
    return true;
}

bool unwind_step(struct unwind *unwind)
{
    struct frames_row row;
    uintptr_t counter = unwind->is_call ? unwind->counter - 1 : unwind->counter;
    const struct module *module = modules_find(counter);
    if (!module)
        return !unwind->is_call && leave_nowhere(unwind);
    switch (frames_find(module, counter, &row)) {
    case FRAMES_FOUND:
        return follow_row(unwind, &row);
    case FRAMES_NONE:
        return follow_frame_pointer(unwind);
    case FRAMES_UNKNOWN:
        break;
    }
    return false;
}
