#include "master/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "master/listener.h"

enum unix_state {
    UNIX_FREE,  /* nothing is there */
    UNIX_STALE, /* a socket that nobody listens on */
    UNIX_TAKEN, /* a live server's, as far as we can tell */
    UNIX_OTHER, /* something that is not a socket */
};

/* Only a refused connection proves that nobody is there: one that we may not make does not. *holder:
 * the process that listens; 0: unknown. */
static enum unix_state unix_state(const struct address *address, pid_t *holder)
{
    struct stat status;
    struct ucred peer;
    socklen_t length = sizeof(peer);
    *holder = 0;
    if (lstat(address->local.sun_path, &status) == -1)
        return UNIX_FREE;
    if (!S_ISSOCK(status.st_mode))
        return UNIX_OTHER;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return UNIX_TAKEN;
    int result = connect(fd, &address->any, address->length);
    enum unix_state state = result == -1 && errno == ECONNREFUSED ? UNIX_STALE
                            : result == -1 && errno == ENOENT     ? UNIX_FREE
                                                                  : UNIX_TAKEN;
    if (result == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0)
        *holder = peer.pid;
    fd_close(&fd);
    return state;
}

/* 0, or -1 with the error when the name is not ours to take. */
static int check_name(const struct address *address, struct listener_error *error)
{
    pid_t holder;
    switch (unix_state(address, &holder)) {
    case UNIX_TAKEN:
        errno = EADDRINUSE;
        return listener_fail_held(error, address, holder);
    case UNIX_OTHER:
        errno = EEXIST;
        return listener_fail(error,
                             "%s exists and is not a socket: remove it or choose another path",
                             address->local.sun_path);
    case UNIX_FREE:
    case UNIX_STALE:
        break;
    }
    return 0;
}

/*
 * The temporary name of a unix socket: its own, shortened if it must be, with the pid and something
 * that no other listener has behind it. A folder with so long a name that none fits leaves NULL,
 * with errno 0: the socket is then bound in place. Malloced.
 */
static char *temporary_name(const struct listener *listener)
{
    const char *path = listener->address.local.sun_path;
    char name[sizeof(listener->address.local.sun_path)], suffix[32];
    size_t folder = (size_t)(strrchr(path, '/') - path) + 1, length = strlen(path);
    size_t behind = (size_t)snprintf(suffix, sizeof(suffix), ".%d-%x", (int)getpid(),
                                     (unsigned)((uintptr_t)listener >> 4));
    errno = 0;
    if (sizeof(name) - 1 - behind <= folder)
        return NULL;
    size_t room = sizeof(name) - 1 - behind;
    snprintf(name, sizeof(name), "%.*s%s", (int)(length < room ? length : room), path, suffix);
    return strdup(name);
}

/* Binds under a temporary name beside the real one; the commit renames it, so that the name never
 * leads nowhere. */
int local_bind(struct listener *listener, struct listener_error *error)
{
    if (check_name(&listener->address, error) == -1)
        return -1;
    struct address bound = listener->address;
    struct stat status;
    bound.length = sizeof(bound.local);
    listener->temporary = temporary_name(listener);
    if (listener->temporary)
        strcpy(bound.local.sun_path, listener->temporary);
    else if (errno == ENOMEM)
        return listener_fail(error, "out of memory");
    const char *path = bound.local.sun_path;
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode))
        unlink(path); /* what a dead process has left */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1 || bind(fd, &bound.any, bound.length) == -1 ||
        chmod(path, listener->new_mode) == -1 || stat(path, &status) == -1) {
        listener_fail_at(error, &listener->address, "bind");
        fd_close(&fd);
        return -1;
    }
    listener->mode = listener->new_mode;
    listener->device = status.st_dev;
    listener->inode = status.st_ino;
    return fd;
}

/* The name is removed only if it still leads to our socket. */
void local_unlink(const struct listener *listener)
{
    const char *path = listener->temporary ? listener->temporary : listener->address.local.sun_path;
    struct stat status;
    if (lstat(path, &status) == 0 && status.st_dev == listener->device &&
        status.st_ino == listener->inode)
        unlink(path);
}

/* A unix socket whose file somebody has removed or replaced is of no use any more. */
bool local_is_reachable(const struct listener *listener)
{
    struct stat status;
    return lstat(listener->address.local.sun_path, &status) == 0 &&
           status.st_dev == listener->device && status.st_ino == listener->inode;
}

/*
 * Gives a unix socket its name. It listens first, so that another server which starts at the same
 * time finds it alive; and it replaces nothing that it has not seen to be dead just before.
 */
int local_place(struct listener *listener, struct listener_error *error)
{
    const char *path = listener->address.local.sun_path;
    if (listener->mode != listener->new_mode && chmod(path, listener->new_mode) == -1)
        return listener_fail_at(error, &listener->address, "change the mode of");
    if (!listener->temporary)
        return 0;
    if (listen(listener->fds[0], 1) == -1)
        return listener_fail_at(error, &listener->address, "listen on");
    for (int attempt = 0; attempt < 2; attempt++) {
        if (renameat2(AT_FDCWD, listener->temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0 ||
            (errno == EINVAL && rename(listener->temporary, path) == 0)) {
            free(listener->temporary);
            listener->temporary = NULL;
            return 0;
        }
        if (errno != EEXIST)
            break;
        if (check_name(&listener->address, error) == -1)
            return -1;
        unlink(path);
    }
    return listener_fail_at(error, &listener->address, "rename the socket to");
}
