/*
 * local: the name of a unix socket (AF_UNIX, also AF_LOCAL) in the file system.
 *
 * A socket is bound under a temporary name and renamed at the commit, so that its name never leads
 * nowhere. It replaces nothing but a socket that was seen to be dead just before, and only a
 * refused connection proves that. At the end the name is removed if it is still ours.
 */
#ifndef MASTER_LOCAL_H
#define MASTER_LOCAL_H

#include <stdbool.h>

struct listener;
struct listener_error;

/* Binds beside the name; listener->new_mode is the mode of the file. The descriptor, which is the
 * caller's, or -1 with the error. */
int local_bind(struct listener *listener, struct listener_error *error);

/* Listens, and gives it its name and mode. -1 with the error. */
int local_place(struct listener *listener, struct listener_error *error);

/* Does the name still lead to this socket? */
bool local_is_reachable(const struct listener *listener);

void local_unlink(const struct listener *listener);

#endif
