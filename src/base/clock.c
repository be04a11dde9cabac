#include "base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * CLOCK_SECOND + now.tv_nsec;
}

int64_t clock_monotonic(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_realtime(void)
{
    return read_clock(CLOCK_REALTIME);
}

/* Written once, before main. */
static int64_t process_start, first_instruction;

/* What the scheduler knows of this process: ns on a CPU and ns waiting for one. /proc/self/stat
 * has the start in 10 ms ticks, which is no use here. */
static int64_t scheduled(void)
{
    char text[128];
    int fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return 0;
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    int64_t run, wait;
    if (length <= 0)
        return 0;
    text[length] = '\0';
    return sscanf(text, "%" SCNd64 " %" SCNd64, &run, &wait) == 2 ? run + wait : 0;
}

__attribute__((constructor(101))) static void note_start(void)
{
    first_instruction = clock_monotonic();
    process_start = first_instruction - scheduled();
}

int64_t clock_process_start(void)
{
    return process_start;
}

int64_t clock_first_instruction(void)
{
    return first_instruction;
}

void clock_stamp(char *text, size_t size, int64_t realtime)
{
    time_t second = (time_t)(realtime / CLOCK_SECOND);
    struct tm tm;
    gmtime_r(&second, &tm);
    snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
             (int)(realtime % CLOCK_SECOND / CLOCK_MILLISECOND));
}

void clock_span(char *text, size_t size, int64_t nanoseconds)
{
    int64_t seconds = nanoseconds / CLOCK_SECOND;
    if (nanoseconds == 0)
        snprintf(text, size, "0 ms");
    else if (nanoseconds < 100 * CLOCK_MILLISECOND)
        snprintf(text, size, "%.1f ms", (double)nanoseconds / 1e6);
    else if (nanoseconds < CLOCK_SECOND)
        snprintf(text, size, "%" PRId64 " ms", nanoseconds / CLOCK_MILLISECOND);
    else if (seconds < 60)
        snprintf(text, size, "%.1f s", (double)nanoseconds / 1e9);
    else if (seconds < 3600)
        snprintf(text, size, "%" PRId64 "m%02" PRId64 "s", seconds / 60, seconds % 60);
    else if (seconds < 86400)
        snprintf(text, size, "%" PRId64 "h%02" PRId64 "m", seconds / 3600, seconds / 60 % 60);
    else
        snprintf(text, size, "%" PRId64 "d%02" PRId64 "h", seconds / 86400, seconds / 3600 % 24);
}
