#include "support/scratch.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/text.h"

#define GUARDED_MAX 64

/* One test is one process: its directory, and the pipe to its guard. */
static char directory[128];
static int guard = -1;
static bool is_open;

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
    (void)status;
    (void)flag;
    (void)ftw;
    remove(path);
    return 0;
}

/* The guard reads groups to watch, and negated ones to forget, until the test has gone. */
static _Noreturn void guard_run(int orders)
{
    pid_t groups[GUARDED_MAX] = { 0 };
    pid_t order;

    prctl(PR_SET_NAME, "test-guard");
    close_range(0, (unsigned)orders - 1, 0);
    close_range((unsigned)orders + 1, ~0U, 0);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_IGN);
    while (read(orders, &order, sizeof order) == sizeof order) {
        if (order >= -1 && order <= 1)
            continue; /* never everybody, never init */
        size_t i = 0;
        while (i < GUARDED_MAX - 1 && groups[i] != (order > 0 ? 0 : -order))
            i++;
        groups[i] = order > 0 ? order : 0;
    }
    for (size_t i = 0; i < GUARDED_MAX; i++)
        if (groups[i] != 0)
            kill(-groups[i], SIGKILL);
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static void scratch_open(void)
{
    const char *parent = getenv("TMPDIR");
    int ends[2];

    /* A child of the test, about to become the server, uses what the test has opened. It must not
     * assert either: the descriptor of Check's messages is closed there, or another's. */
    if (is_open)
        return;
    is_open = true;
    if (parent == NULL || strlen(parent) > 40)
        parent = "/tmp";
    snprintf(directory, sizeof directory, "%s/hayate-test-XXXXXX", parent);
    ck_assert_msg(mkdtemp(directory) != NULL, "%s: %s", directory, strerror(errno));
    ck_assert(chmod(directory, 0755) == 0);
    ck_assert(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    ck_assert(pid >= 0);
    if (pid == 0) {
        close(ends[1]);
        /* Check kills the process group of a test that has ended. */
        setsid();
        /* Once more, so that the guard is nobody's child that somebody would have to wait for. */
        if (fork() == 0)
            guard_run(ends[0]);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    close(ends[0]);
    guard = ends[1];
}

const char *scratch_path(const char *name)
{
    scratch_open();
    return *name == '\0' ? directory : text_format("%s/%s", directory, name);
}

void scratch_write(const char *name, const char *text)
{
    const char *path = scratch_path(name);
    const char *fresh = text_format("%s.new", path);
    size_t length = strlen(text);

    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_msg(fd >= 0, "%s: %s", fresh, strerror(errno));
    ck_assert(write(fd, text, length) == (ssize_t)length);
    ck_assert(fchmod(fd, 0644) == 0);
    close(fd);
    ck_assert(rename(fresh, path) == 0);
}

const char *scratch_read(const char *name)
{
    return text_read(scratch_path(name), 0, NULL);
}

static void guard_tell(pid_t order)
{
    scratch_open();
    ssize_t written = write(guard, &order, sizeof order);
    ck_assert(written == sizeof order);
}

void scratch_guard(pid_t group)
{
    guard_tell(group);
}

void scratch_unguard(pid_t group)
{
    guard_tell(-group);
}
