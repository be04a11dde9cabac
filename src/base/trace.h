/*
 * trace: a backtrace of a process that dies of a fault of its own, left in memory that another
 * process reads.
 *
 * backtrace(3) is not safe in a signal handler, and its first call costs. So a handler for SIGSEGV,
 * SIGBUS, SIGILL, SIGFPE and SIGABRT, on a stack of its own, unwinds (unwind.h), stores each address
 * as a file and what the file calls it, and lets the signal end the process as it would have
 * without: exit status and core dump are the same. The names are stored, not looked up by who reads:
 * after a binary upgrade that is another program, with other addresses.
 *
 * On processors that unwind.h does not know nothing is stored, nor in a build with sanitizers, which
 * have handlers of their own.
 */
#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/modules.h"

#define TRACE_FRAMES 32

struct trace_frame {
    uint64_t offset;
    char file[MODULES_NAME]; /* "": the offset is an address that is in no file */
};

/* In shared memory: the same in every process and version. Written by one that dies. */
struct trace {
    _Atomic int32_t pid;    /* whose it is */
    _Atomic uint32_t count; /* of frames, the innermost first */
    struct trace_frame frames[TRACE_FRAMES];
};

/*
 * From now on a fault of this process is stored in *trace. `top`: the frame address of the function
 * at which a backtrace may end, one that does not return. Call modules_list before the fork, so
 * that the table is shared. Costs no memory until a fault comes.
 */
void trace_start(struct trace *trace, const void *top);

/*
 * The same for a process that nobody watches: what would be stored goes to standard error in a line
 * of its own, "hayate[100]: killed by SIGSEGV; at hayate+0x1234 hayate+0x2345".
 */
void trace_tell(const void *top);

/*
 * "libc.so.6+0x678 hayate+0x1234 hayate+0x2345", for addr2line(1): where it faulted, then the calls
 * that led there, as many as fit. The empty string when process `pid` left none. Trusts nothing in
 * it. Room for all: TRACE_TEXT_SIZE. Returns `text`. Safe in a signal handler.
 */
#define TRACE_TEXT_SIZE (TRACE_FRAMES * (MODULES_NAME + 24))
const char *trace_text(char *text, size_t size, const struct trace *trace, pid_t pid);

#endif
