#include "support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/text.h"

#define SECOND INT64_C(1000000000)
#define PAUSE_LEAST INT64_C(500000)
#define PAUSE_MOST INT64_C(20000000)

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

static int64_t wait_seconds(void)
{
    const char *text = getenv("HAYATE_TEST_TIMEOUT");
    long seconds = text != NULL ? strtol(text, NULL, 10) : 0;
    return seconds > 0 ? seconds : 30;
}

TCase *suite_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, (double)(wait_seconds() * 10));
    suite_add_tcase(suite, tests);
    return tests;
}

int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool suite_skip(const char *reason)
{
    /* One write, as a comment of TAP: Check has no word for a test that was skipped. */
    char line[256];
    int length = snprintf(line, sizeof line, "# skipped: %s\n", reason);
    ssize_t written = write(STDOUT_FILENO, line, (size_t)length);
    (void)written;
    return true;
}

bool suite_lacks_faults(void)
{
    const char *faults = getenv("HAYATE_FAULTS");
    if (faults != NULL && strcmp(faults, "1") == 0)
        return false;
    return suite_skip("needs a program built with --enable-faults");
}

bool suite_lacks_root(void)
{
    return geteuid() != 0 && suite_skip("needs root");
}

struct deadline deadline_start(void)
{
    return (struct deadline){ .end = now() + wait_seconds() * SECOND, .pause = PAUSE_LEAST };
}

int deadline_left(const struct deadline *deadline)
{
    int64_t left = deadline->end - now();
    return left > 0 ? (int)((left + 999999) / 1000000) : 0;
}

bool deadline_wait(struct deadline *deadline)
{
    if (deadline_left(deadline) == 0)
        return false;
    struct timespec pause = { .tv_nsec = deadline->pause };
    nanosleep(&pause, NULL);
    if (deadline->pause < PAUSE_MOST)
        deadline->pause += deadline->pause / 2;
    return true;
}

bool suite_has_valgrind(void)
{
    return getenv("HAYATE_VALGRIND") != NULL ||
           strstr(text_read("/proc/self/maps", 0, NULL), "/valgrind/") != NULL;
}
