/*
 * unwind: from a place in a program to the call that led there, one step at a time.
 *
 * A step reads what compilers leave in .eh_frame for debuggers and exceptions (DWARF 5, 6.4, and
 * the Linux Standard Base on .eh_frame): so it goes through code without frame pointers too, as the
 * C library and libev. Where a module has none of it, the frame pointer is followed.
 *
 * Safe in a signal handler: it takes no lock and no memory, and reads the stack only between the
 * given bounds, always upwards. Expressions of DWARF are not understood: a step over one fails.
 * x86-64 and AArch64; elsewhere there is no first step.
 */
#ifndef BASE_UNWIND_H
#define BASE_UNWIND_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Numbers of registers, as DWARF has them for the processor. */
#if defined __x86_64__
#define UNWIND_REGISTERS 17
#define UNWIND_FRAME 6
#define UNWIND_STACK 7
#elif defined __AARCH64EL__
#define UNWIND_REGISTERS 32
#define UNWIND_FRAME 29
#define UNWIND_LINK 30
#define UNWIND_STACK 31
#else
#define UNWIND_REGISTERS 1
#define UNWIND_FRAME 0
#define UNWIND_STACK 0
#endif

struct unwind {
    uintptr_t registers[UNWIND_REGISTERS];
    uintptr_t counter; /* what would be executed next */
    bool is_call;      /* that is behind a call */
    uintptr_t bottom;  /* nothing of the stack is read below; or at the top, or above */
    uintptr_t top;
};

/* The registers of a signal's context; the bounds are the caller's to set. False: not on this
 * processor. */
bool unwind_start(struct unwind *unwind, const ucontext_t *context);

/* To the caller. False: there is none, or it cannot be told. */
bool unwind_step(struct unwind *unwind);

#endif
