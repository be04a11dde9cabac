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

#ifndef RWF_NOAPPEND
#define RWF_NOAPPEND 0x20
#endif

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

/* Another description of what is open, if we may have one. */
static int open_anew(int fd, int flags)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, flags | O_NOCTTY | O_CLOEXEC);
}

int sink_open_inherited(struct sink *sink, int fd)
{
    *sink = SINK_INIT;
    enum sink_kind kind = kind_of(fd);
    int own = -1;
    if (kind == SINK_PIPE || kind == SINK_TERMINAL)
        own = open_anew(fd, O_WRONLY | O_APPEND | O_NONBLOCK);
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

static bool is_same_file(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

void sink_replace(struct sink *sink, struct sink next)
{
    next.dropped += sink->dropped;
    if (sink->is_torn && is_same_file(sink->fd, next.fd)) {
        next.is_torn = true;
        next.torn_size = sink->torn_size;
    }
    sink_close(sink);
    *sink = next;
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

/* How much was taken; errno tells why not all. A file is asked for the rest at once: either it says
 * why it took no more, or there is room again. */
static size_t write_most(const struct sink *sink, const char *lines, size_t length)
{
    size_t taken = 0;
    ssize_t written;
    do {
        errno = EAGAIN;
        written = write_retrying(sink, lines + taken, length - taken);
        if (written > 0)
            taken += (size_t)written;
    } while (written > 0 && taken < length && sink->kind == SINK_FILE);
    return taken;
}

/* Writes at an offset of a file, although it is open for appending. */
static int overwrite(int fd, const char *text, size_t length, off_t at)
{
    const struct iovec part = { (void *)text, length };
    int flags = fcntl(fd, F_GETFL) & O_APPEND ? RWF_NOAPPEND : 0;
    ssize_t written = pwritev2(fd, &part, 1, at, flags);
    if (written == -1 && errno == EOPNOTSUPP) { /* before Linux 6.9 */
        int other = open_anew(fd, O_WRONLY);
        written = other == -1 ? -1 : pwrite(other, text, length, at);
        fd_close(&other);
    }
    return written == (ssize_t)length ? 0 : -1;
}

/*
 * What was written last ended with a fragment: its last byte becomes the end of the line. Sizes are
 * looked at first, the offset then: that waits for who is just writing with the same description,
 * so that both agree only when the fragment is the end of the file.
 */
static int end_in_place(struct sink *sink)
{
    struct stat status;
    if (sink->kind != SINK_FILE || fstat(sink->fd, &status) == -1 || !S_ISREG(status.st_mode))
        return -1;
    sink->torn_size = status.st_size;
    if (lseek(sink->fd, 0, SEEK_CUR) != status.st_size)
        return 0; /* somebody wrote behind it: too late */
    return overwrite(sink->fd, "\n", 1, status.st_size - 1);
}

/* Does the sink still end with our fragment? */
static bool is_ours_to_end(const struct sink *sink)
{
    struct stat status;
    return sink->kind != SINK_FILE || fstat(sink->fd, &status) == -1 || !S_ISREG(status.st_mode) ||
           status.st_size == sink->torn_size;
}

/* Ends the line that the sink took in part. A full disk may have room again by now. */
static int mend(struct sink *sink)
{
    if (sink->is_torn && is_ours_to_end(sink) && write_retrying(sink, "\n", 1) != 1)
        return -1;
    sink->is_torn = false;
    return 0;
}

static bool is_pausing(const struct sink *sink)
{
    return sink->pause != 0 && clock_monotonic() < sink->pause;
}

/* Of `length` bytes, of which the first `taken` were: how many lines are not there in full? */
static uint64_t count_lost(const char *lines, size_t length, size_t taken)
{
    uint64_t count = lines[length - 1] != '\n';
    for (size_t i = taken; i < length; i++)
        count += lines[i] == '\n';
    return count;
}

/* Returns how much was taken, and leaves no fragment behind if it can. */
static size_t try_write(struct sink *sink, const char *lines, size_t length)
{
    if (mend(sink) == -1)
        return 0;
    size_t taken = write_most(sink, lines, length);
    int reason = errno;
    if (taken > 0 && taken < length && lines[taken - 1] != '\n') {
        sink->is_torn = true;
        if (end_in_place(sink) == 0)
            sink->is_torn = false;
        else
            mend(sink); /* at once: others may be next */
    }
    errno = reason;
    return taken;
}

int sink_write(struct sink *sink, const char *lines, size_t length)
{
    size_t taken = 0;
    if (sink->kind == SINK_OFF || length == 0)
        return 0;
    if (is_pausing(sink)) {
        errno = EAGAIN;
    } else {
        taken = try_write(sink, lines, length);
        if (taken == length)
            return 0;
        if (sink->kind == SINK_TERMINAL && !sink->is_private)
            sink->pause = clock_monotonic() + TERMINAL_PAUSE;
    }
    sink->dropped += count_lost(lines, length, taken);
    return -1;
}
