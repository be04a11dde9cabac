#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"

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

/* A terminal that others share, and that could not be opened anew: ask before writing. */
static ssize_t write_if_ready(int fd, const char *lines, size_t length)
{
    struct pollfd ready = { .fd = fd, .events = POLLOUT };
    if (poll(&ready, 1, 0) == 1 && ready.revents & POLLOUT)
        return write(fd, lines, length);
    errno = EAGAIN;
    return -1;
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
                                : write_if_ready(sink->fd, lines, length);
    case SINK_FILE:
    case SINK_OFF:
        break;
    }
    return write(sink->fd, lines, length);
}

int sink_write(struct sink *sink, const char *lines, size_t length)
{
    if (sink->kind == SINK_OFF)
        return 0;
    ssize_t written;
    do
        written = write_once(sink, lines, length);
    while (written == -1 && errno == EINTR);
    if (written == (ssize_t)length)
        return 0;
    if (written >= 0)
        errno = EAGAIN;
    sink->dropped++;
    return -1;
}
