/*
 * jump: preloaded into the program, makes the wall clock jump: a day ahead at one look, a day back
 * at the next. The clock that counts a suspended machine's sleep (CLOCK_BOOTTIME) runs a day ahead
 * of the monotonic one. Only the monotonic one can be trusted.
 */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define DAY (24 * 3600)

int clock_gettime(clockid_t id, struct timespec *now)
{
    static _Atomic unsigned looks;
    int result = (int)syscall(SYS_clock_gettime, id, now);

    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += looks++ % 2 == 0 ? DAY : -DAY;
    else if (result == 0 && id == CLOCK_BOOTTIME)
        now->tv_sec += DAY;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;

    int result = clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){ .tv_sec = precise.tv_sec, .tv_usec = precise.tv_nsec / 1000 };
    return result;
}

time_t time(time_t *now)
{
    struct timespec precise;

    clock_gettime(CLOCK_REALTIME, &precise);
    if (now != NULL)
        *now = precise.tv_sec;
    return precise.tv_sec;
}
