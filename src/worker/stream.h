/*
 * stream: the bytes of one connection. The only place where a connection does I/O, so that TLS can
 * stand between it and the socket later.
 *
 * Everything is non-blocking and never raises SIGPIPE. A stream owns its descriptor.
 */
#ifndef WORKER_STREAM_H
#define WORKER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct stream {
    int fd;
};

enum stream_state {
    STREAM_OPEN,
    STREAM_AGAIN,  /* nothing there now, or no room now */
    STREAM_ENDED,  /* receive: the peer sends no more */
    STREAM_BROKEN, /* reset, or another error: nothing can be received or sent any more */
};

/* *length: room for bytes, then how many came (0 unless STREAM_OPEN). */
enum stream_state stream_receive(struct stream *stream, char *bytes, size_t *length);

/* *length: how many to send, then how many were taken. STREAM_OPEN only if all of them were. */
enum stream_state stream_send(struct stream *stream, const char *bytes, size_t *length);

/* Are there bytes that came already, so that the descriptor will not become readable for them?
 * A socket has none; a layer that decodes may. */
static inline bool stream_has_pending(const struct stream *stream)
{
    (void)stream;
    return false;
}

/* Bytes that the kernel has taken and the peer has not: when there are fewer than before, it
 * reads, though the kernel may not yet take more. */
size_t stream_unread(const struct stream *stream);

/* Would the kernel take bytes now? */
bool stream_has_room(const struct stream *stream);

/* Has the peer reset it, or is it over in both directions? Asks without reading. */
bool stream_is_dead(const struct stream *stream);

/* Has the peer ended it, with nothing left to receive? Asks without taking. */
bool stream_is_ended(const struct stream *stream);

/* No more will be sent; the peer sees the end once it has read all. */
void stream_shutdown(struct stream *stream);

/* Closing it will drop what the peer has not read, and reset the connection. */
void stream_abort(struct stream *stream);

void stream_close(struct stream *stream);

#endif
