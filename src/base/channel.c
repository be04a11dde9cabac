#include "base/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What goes over the wire before the text. Both ends are the same program at the same version,
 * except after a binary upgrade, when kinds may be added but these fields stay. */
struct wire {
    uint32_t kind;
    uint32_t argument;
    int64_t value;
};

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(CHANNEL_FDS * sizeof(int))];
};

int channel_open(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
}

int channel_send(int fd, const struct channel_message *message)
{
    struct wire wire = { (uint32_t)message->kind, message->argument, message->value };
    struct iovec parts[2] = {
        { &wire, sizeof(wire) },
        { (void *)message->text, strnlen(message->text, CHANNEL_TEXT - 1) },
    };
    struct msghdr header = { .msg_iov = parts, .msg_iovlen = 2 };
    union control control = { 0 };
    if (message->nfds > 0) {
        size_t size = message->nfds * sizeof(int);
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(rights), message->fds, size);
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &header, MSG_NOSIGNAL);
    while (sent == -1 && errno == EINTR);
    return sent == -1 ? -1 : 0;
}

/* Takes every descriptor that came, also beyond what a message may carry: none may leak. */
static void take_descriptors(struct msghdr *header, struct channel_message *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (message->nfds < CHANNEL_FDS)
                message->fds[message->nfds++] = fd;
            else
                close(fd);
        }
    }
}

enum channel_result channel_receive(int fd, struct channel_message *message)
{
    struct wire wire;
    struct iovec parts[2] = {
        { &wire, sizeof(wire) },
        { message->text, CHANNEL_TEXT - 1 },
    };
    union control control = { 0 };
    struct msghdr header = {
        .msg_iov = parts,
        .msg_iovlen = 2,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    message->nfds = 0;
    ssize_t length;
    do
        length = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
    while (length == -1 && errno == EINTR);
    if (length == -1) {
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return CHANNEL_EMPTY;
        return errno == ECONNRESET ? CHANNEL_CLOSED : CHANNEL_ERROR;
    }
    if (length == 0)
        return CHANNEL_CLOSED;
    take_descriptors(&header, message);
    if ((size_t)length < sizeof(wire) || header.msg_flags & MSG_TRUNC) {
        while (message->nfds > 0)
            close(message->fds[--message->nfds]);
        errno = EBADMSG;
        return CHANNEL_ERROR;
    }
    message->kind = (enum channel_kind)wire.kind;
    message->argument = wire.argument;
    message->value = wire.value;
    message->text[(size_t)length - sizeof(wire)] = '\0';
    return CHANNEL_MESSAGE;
}
