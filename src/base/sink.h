/*
 * sink: where log lines go, written so that no reader or disk of theirs can stop the server.
 *
 * A sink never blocks on a pipe, terminal or socket: what does not fit at once is dropped and
 * counted. No description that we inherited is made non-blocking, since others share it: pipes and
 * terminals are opened anew through /proc/self/fd (before the uid is dropped), sockets take
 * MSG_DONTWAIT, and where opening anew is refused a pipe is written with RWF_NOWAIT, and a terminal
 * under a timer of 10 ms. Regular files are written as they are: a full disk is an error at once,
 * not a wait.
 *
 * Lines of several processes to one sink. A pipe takes up to PIPE_BUF bytes whole or not at all. A
 * file is appended to, whole while there is room. Where the room ends, a line is cut: its fragment
 * is made a line of its own at once, in place, which takes no room, so that what others write next
 * does not stick to it (the last byte taken becomes the newline; a single one leaves an empty line).
 * There is no lock, so no promise for a line that another process writes between the cut and its
 * mending, a few system calls later; nothing of others is ever overwritten. Where the file cannot
 * be written in place (chattr +a; before Linux 6.9, without the right to open it), the one whose
 * line was cut ends it before its next one, unless somebody else was first. Lines of several
 * processes to a terminal or stream socket may mix when it takes them in part.
 */
#ifndef BASE_SINK_H
#define BASE_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum sink_kind {
    SINK_OFF,
    SINK_FILE,
    SINK_PIPE,
    SINK_TERMINAL,
    SINK_SOCKET,
};

struct sink {
    int fd; /* -1 when off; close-on-exec */
    enum sink_kind kind;
    bool is_private; /* the description is ours alone, and non-blocking where it matters */
    bool is_torn;    /* it took part of a line, which must be ended before the next */
    off_t torn_size; /* of the file then: who finds another size is not the next */
    int64_t pause;   /* a shared terminal that stalled: monotonic ns until which it is left alone */
    uint64_t dropped; /* lines that it did not take in full; the owner tells, and sets it to 0 */
};

/* An off sink. */
#define SINK_INIT ((struct sink){ .fd = -1, .kind = SINK_OFF })

/*
 * A sink on a descriptor we inherited, such as 2; the number stays the caller's, the sink holds
 * another. -1 with errno when it is closed.
 */
int sink_open_inherited(struct sink *sink, int fd);

/*
 * Opens a file, FIFO or terminal for appending, creates a file with `mode` whatever the umask.
 * -1 with errno. A FIFO is opened so that a reader which comes and goes harms nobody.
 */
int sink_open_path(struct sink *sink, const char *path, mode_t mode);

/* Takes over a descriptor that another process opened with one of the above and passed to us. */
int sink_adopt(struct sink *sink, int fd);

void sink_close(struct sink *sink);

/*
 * Closes a sink and takes over `next` in its place. What is not told yet is still to be told, and
 * what is not mended still to be mended, should both be the same file.
 */
void sink_replace(struct sink *sink, struct sink next);

/*
 * Writes whole lines, at most PIPE_BUF (4,096) bytes a call where they must not be torn. 0, or -1
 * with errno when not all were taken; the others are counted.
 */
int sink_write(struct sink *sink, const char *lines, size_t length);

#endif
