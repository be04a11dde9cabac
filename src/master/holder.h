/*
 * holder: which process has the address that we were refused.
 *
 * For people, in an error: what cannot be found out, such as the processes of other accounts, is
 * not told. Reads /proc, all of its processes, and thus only after something has failed.
 */
#ifndef MASTER_HOLDER_H
#define MASTER_HOLDER_H

#include <stddef.h>
#include <sys/types.h>

struct address;

/* The process that listens on a TCP address which overlaps; of several that share the socket, the
 * one that the others descend from. 0: unknown. Keeps errno. */
pid_t holder_find(const struct address *address);

/* "another process", or "process 4711 (nginx)" if it is known and there. Keeps errno. */
#define HOLDER_TEXT_SIZE 64
const char *holder_text(char *text, pid_t pid);

#endif
