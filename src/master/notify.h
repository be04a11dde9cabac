/*
 * notify: what the service manager is told (sd_notify(3)): one datagram to $NOTIFY_SOCKET.
 *
 * Only the master speaks. Without NOTIFY_SOCKET every call does nothing. A datagram that cannot be
 * sent at once is dropped: the service manager must not stop the server.
 */
#ifndef MASTER_NOTIFY_H
#define MASTER_NOTIFY_H

#include <stdint.h>

/* Reads NOTIFY_SOCKET and takes it out of the environment. A bad value is logged. */
struct notify *notify_new(void);
/* Puts NOTIFY_SOCKET back, for a program that is executed in our place. */
void notify_export(const struct notify *notify);
void notify_free(struct notify *notify);

/* `status` is one line for people: "generation 3, 2 workers". */
void notify_ready(struct notify *notify, const char *status);
/* RELOADING=1 with MONOTONIC_USEC in the same datagram, as Type=notify-reload wants it too. */
void notify_reloading(struct notify *notify);
/* `most`: ns that the rest of the stop may take, so that its timeout waits for that. */
void notify_stopping(struct notify *notify, const char *status, int64_t most);
/* Told only if it is another one than the last. */
void notify_status(struct notify *notify, const char *status);

#endif
