#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

/* Interrupts a write to a terminal that stalls; nobody else has a use for it. */
#define INTERRUPT (SIGRTMIN + 2)
#define TERMINAL_PAUSE CLOCK_SECOND

static enum sink_kind kind_of(int fd)
{
    struct stat status;
    if (fstat(fd, &status) == -1)
        return SINK_FILE;
    if (S_ISFIFO(status.st_mode))
        return SINK_PIPE;
    if (S_ISSOCK(status.st_mode))
        return SINK_SOCKET;
    return S_ISCHR(status.st_mode) && isatty(fd) ? SINK_TERMINAL : SINK_FILE;
}

int sink_open_inherited(struct sink *sink, int fd)
{
    *sink = SINK_INIT;
    enum sink_kind kind = kind_of(fd);
    int own = -1;
    if (kind == SINK_PIPE || kind == SINK_TERMINAL) {
        char path[32];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        own = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    sink->is_private = own != -1;
    if (own == -1)
        own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own == -1)
        return -1;
    sink->fd = own;
    sink->kind = kind;
    return 0;
}

/* A FIFO without a reader cannot be opened for writing alone, and one whose last reader leaves
 * would fail each write until reopened: opened for both, it simply fills up, and lines are
 * dropped until somebody reads. */
static int open_path(const char *path, mode_t mode)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct stat status;
    if (stat(path, &status) == 0 && S_ISFIFO(status.st_mode))
        flags = O_RDWR | O_NONBLOCK | O_CLOEXEC;
    bool is_new = stat(path, &status) == -1 && errno == ENOENT;
    int fd = open(path, flags, mode);
    if (fd != -1 && is_new)
        fchmod(fd, mode); /* whatever the umask took away */
    return fd;
}

int sink_open_path(struct sink *sink, const char *path, mode_t mode)
{
    *sink = SINK_INIT;
    int fd = open_path(path, mode);
    if (fd == -1)
        return -1;
    sink->fd = fd;
    sink->kind = kind_of(fd);
    sink->is_private = true;
    return 0;
}

int sink_adopt(struct sink *sink, int fd)
{
    *sink = SINK_INIT;
    int flags = fcntl(fd, F_GETFL);
    if (flags == -1)
        return -1;
    sink->fd = fd;
    sink->kind = kind_of(fd);
    sink->is_private = flags & O_NONBLOCK;
    return 0;
}

void sink_close(struct sink *sink)
{
    fd_close(&sink->fd);
    sink->kind = SINK_OFF;
}

static void on_timer(int number)
{
    (void)number; /* it is here to interrupt write */
}

/*
 * A terminal that others share, and that could not be opened anew: it may say that there is room
 * and then wait for more of it, or for ever. A signal ends that wait.
 */
static ssize_t write_bounded(int fd, const char *lines, size_t length)
{
    struct sigaction action = { .sa_handler = on_timer }, old_action;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = INTERRUPT };
    struct itimerspec limit = { .it_value.tv_nsec = 10 * CLOCK_MILLISECOND,
                                .it_interval.tv_nsec = 10 * CLOCK_MILLISECOND };
    sigset_t set, old_set;
    timer_t timer;
    struct pollfd ready = { .fd = fd, .events = POLLOUT };
    errno = EAGAIN;
    if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT) ||
        timer_create(CLOCK_MONOTONIC, &event, &timer) == -1)
        return -1;
    sigemptyset(&set);
    sigaddset(&set, INTERRUPT);
    sigaction(INTERRUPT, &action, &old_action);
    sigprocmask(SIG_UNBLOCK, &set, &old_set);
    timer_settime(timer, 0, &limit, NULL);
    ssize_t written = write(fd, lines, length);
    int reason = errno;
    timer_delete(timer);
    sigprocmask(SIG_SETMASK, &old_set, NULL);
    sigaction(INTERRUPT, &old_action, NULL);
    errno = reason == EINTR ? EAGAIN : reason;
    return written;
}

static ssize_t write_once(const struct sink *sink, const char *lines, size_t length)
{
    struct iovec part = { (void *)lines, length };
    switch (sink->kind) {
    case SINK_SOCKET:
        return send(sink->fd, lines, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    case SINK_PIPE:
        return sink->is_private ? write(sink->fd, lines, length)
                                : pwritev2(sink->fd, &part, 1, -1, RWF_NOWAIT);
    case SINK_TERMINAL:
        return sink->is_private ? write(sink->fd, lines, length)
                                : write_bounded(sink->fd, lines, length);
    case SINK_FILE:
    case SINK_OFF:
        break;
    }
    return write(sink->fd, lines, length);
}

static ssize_t write_retrying(const struct sink *sink, const char *lines, size_t length)
{
    ssize_t written;
    do
        written = write_once(sink, lines, length);
    while (written == -1 && errno == EINTR);
    return written;
}

/* Ends the line that the sink took in part. A full disk may have room again by now. */
static int mend(struct sink *sink)
{
    if (sink->is_torn && write_retrying(sink, "\n", 1) != 1)
        return -1;
    sink->is_torn = false;
    return 0;
}

static bool is_pausing(const struct sink *sink)
{
    return sink->pause != 0 && clock_monotonic() < sink->pause;
}

int sink_write(struct sink *sink, const char *lines, size_t length)
{
    ssize_t written = -1;
    if (sink->kind == SINK_OFF)
        return 0;
    if (!is_pausing(sink) && mend(sink) == 0) {
        written = write_retrying(sink, lines, length);
        if (written == (ssize_t)length)
            return 0;
        if (written > 0) {
            sink->is_torn = lines[written - 1] != '\n';
            mend(sink); /* at once: others append to the same file */
        }
        if (sink->kind == SINK_TERMINAL && !sink->is_private)
            sink->pause = clock_monotonic() + TERMINAL_PAUSE;
    }
    if (written >= 0 || is_pausing(sink))
        errno = EAGAIN;
    sink->dropped++;
    return -1;
}
