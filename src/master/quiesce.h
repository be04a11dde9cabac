/*
 * quiesce: an address that goes gets no new connections.
 *
 * Whoever takes the last of its queue and then closes the socket loses what comes in between: the
 * kernel has promised that client a connection, and resets it. So the kernel is told first to drop
 * what asks for one. The client asks again a second later, and is refused in order, or served by
 * whoever has the address then. Handshakes that have begun still end in the queue.
 */
#ifndef MASTER_QUIESCE_H
#define MASTER_QUIESCE_H

struct listener_set;

/* For those that no other set holds. Unix sockets need none of it: their name is removed before the
 * queue is taken. Where the kernel refuses, all is as without it. */
void quiesce_set(const struct listener_set *set);

#endif
