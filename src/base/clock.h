/*
 * clock: time in 64-bit nanoseconds.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define CLOCK_MILLISECOND INT64_C(1000000)
#define CLOCK_SECOND INT64_C(1000000000)

/* Never jumps (CLOCK_MONOTONIC); for deadlines and ages. */
int64_t clock_monotonic(void);

/* Since 1970 UTC (CLOCK_REALTIME); for people, never for a deadline. */
int64_t clock_realtime(void);

/*
 * When this process began to execute the program, on the monotonic clock: the time of the first
 * constructor less what the scheduler has accounted to the process till then (run and wait time of
 * /proc/self/schedstat). It overstates the start by what ran in this process before exec.
 */
int64_t clock_process_start(void);

/* When its first constructor ran, on the monotonic clock: understates by what exec and the dynamic
 * linker took. */
int64_t clock_first_instruction(void);

/* "2026-11-30T08:00:00.122Z" with its NUL. `size` at least CLOCK_STAMP_SIZE. */
#define CLOCK_STAMP_SIZE 32
void clock_stamp(char *text, size_t size, int64_t realtime);

/* A duration for people: "0.4 ms", "9.4 s", "3m12s", "2h05m", "4d07h". */
#define CLOCK_SPAN_SIZE 32
void clock_span(char *text, size_t size, int64_t nanoseconds);

#endif
