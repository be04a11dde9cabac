/*
 * fd: small helpers for file descriptors. Failures return -1 with errno.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stdbool.h>

/*
 * Opens /dev/null on each of the descriptors 0 to 2 that is closed, so that no socket or file of
 * ours ever lands on a number that somebody writes to by habit. Call it first in main.
 */
int fd_ensure_standard(void);

/* Closes *fd unless it is -1, and sets it to -1; errno is kept. */
void fd_close(int *fd);

/* Shall it be closed at exec? */
int fd_set_cloexec(int fd, bool is_on);

/* Raises the soft limit on descriptors to `wanted`, at most to the hard one. Returns the limit
 * that is now in force. */
unsigned long fd_raise_limit(unsigned long wanted);

#endif
