/*
 * channel: messages between the master and one child, over a SOCK_SEQPACKET pair.
 *
 * A message is whole or absent, and may pass descriptors. Both ends are non-blocking and
 * close-on-exec. The end of file means that the other side is dead: there is no other way to
 * close. Sending to a full channel fails with EAGAIN: the master takes that as a child that hangs.
 */
#ifndef BASE_CHANNEL_H
#define BASE_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#define CHANNEL_TEXT 1024
#define CHANNEL_FDS 2

enum channel_kind {
    /* From the child. */
    CHANNEL_READY = 1, /* it answered its own request */
    CHANNEL_FAILED,    /* text: why it cannot start; it exits next */
    CHANNEL_REOPENED,  /* it uses the logs it was sent; text: why it keeps the old ones instead */
    CHANNEL_LEAVING,   /* somebody else told it to stop (a signal): it waits to be told to drain */
    CHANNEL_DRAINING,  /* it has closed its listening sockets: no connection is accepted any more */
    CHANNEL_ASK,       /* argument: the scoreboard's slot of a worker that is to look whether it is
                          asked to end idle connections */

    /* From the master. */
    CHANNEL_GO = 32, /* accept connections */
    CHANNEL_DRAIN,   /* argument: enum channel_drain; value: deadline in ns from now */
    CHANNEL_LOGS,    /* argument: bits of enum channel_log; fds: the log, then the access log */
    CHANNEL_TAKE,    /* argument: socket slot whose queue this worker serves too; value: how many
                        slots from there on */
    CHANNEL_GIVE,    /* the same, that it serves no more */
    CHANNEL_ASKED,   /* it is asked to end idle connections: its slot says how many */
};

enum channel_drain {
    CHANNEL_DRAIN_RELOAD, /* idle connections stay for one more request, until the deadline */
    CHANNEL_DRAIN_STOP,   /* idle connections are closed within 1 s */
    CHANNEL_DRAIN_NOW,    /* everything is cut at once */
    /* A bit beside one of the above: first take what is queued on every socket it holds. */
    CHANNEL_DRAIN_TAKE_QUEUE = 256,
};

enum channel_log {
    CHANNEL_LOG_MAIN = 1,
    CHANNEL_LOG_ACCESS = 2,
};

struct channel_message {
    enum channel_kind kind;
    uint32_t argument;
    int64_t value;
    char text[CHANNEL_TEXT]; /* NUL-terminated */
    int fds[CHANNEL_FDS];    /* received ones are close-on-exec, and the receiver's to close */
    unsigned nfds;           /* received: fewer than were sent when no more could be opened */
};

enum channel_result {
    CHANNEL_MESSAGE,
    CHANNEL_EMPTY, /* nothing there now */
    CHANNEL_CLOSED,
    CHANNEL_ERROR, /* errno; EBADMSG for one that is not well-formed */
};

int channel_open(int ends[2]);
int channel_send(int fd, const struct channel_message *message);
enum channel_result channel_receive(int fd, struct channel_message *message);

#endif
