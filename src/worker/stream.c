#include "worker/stream.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"

static enum stream_state state_of(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK ? STREAM_AGAIN : STREAM_BROKEN;
}

enum stream_state stream_receive(struct stream *stream, char *bytes, size_t *length)
{
    size_t room = *length;
    ssize_t received;
    do
        received = recv(stream->fd, bytes, room, 0);
    while (received == -1 && errno == EINTR);
    *length = received > 0 ? (size_t)received : 0;
    if (received == -1)
        return state_of(errno);
    return received == 0 ? STREAM_ENDED : STREAM_OPEN;
}

enum stream_state stream_send(struct stream *stream, const char *bytes, size_t *length)
{
    size_t left = *length;
    ssize_t sent;
    do
        sent = send(stream->fd, bytes, left, MSG_NOSIGNAL);
    while (sent == -1 && errno == EINTR);
    *length = sent > 0 ? (size_t)sent : 0;
    if (sent == -1)
        return state_of(errno);
    return (size_t)sent == left ? STREAM_OPEN : STREAM_AGAIN;
}

size_t stream_unread(const struct stream *stream)
{
    int bytes = 0;
    return ioctl(stream->fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

bool stream_has_room(const struct stream *stream)
{
    struct pollfd look = { .fd = stream->fd, .events = POLLOUT };
    return poll(&look, 1, 0) == 1 && look.revents & POLLOUT;
}

bool stream_is_dead(const struct stream *stream)
{
    struct pollfd look = { .fd = stream->fd };
    return poll(&look, 1, 0) == 1 && look.revents & (POLLERR | POLLHUP);
}

bool stream_is_ended(const struct stream *stream)
{
    char byte;
    return recv(stream->fd, &byte, 1, MSG_PEEK) == 0;
}

void stream_shutdown(struct stream *stream)
{
    shutdown(stream->fd, SHUT_WR);
}

void stream_abort(struct stream *stream)
{
    const struct linger none = { .l_onoff = 1 };
    setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

void stream_close(struct stream *stream)
{
    fd_close(&stream->fd);
}
