/*
 * scratch: the temporary directory of a test, and its guard.
 *
 * A test is a process of its own, so there is one directory, made at the first use. A guard, a
 * process apart from the test, outlives it however it ends: it kills what the test has started
 * and left behind, and removes the directory.
 */
#ifndef SUPPORT_SCRATCH_H
#define SUPPORT_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* An absolute path in the directory; "" is the directory itself. */
const char *scratch_path(const char *name);

/* A file with this text, put in place by a rename, so that a reader sees the old or the new one.
 * Everybody may read it. */
void scratch_write(const char *name, const char *text);

/* What is in it; "" when it is not there. */
const char *scratch_read(const char *name);

/* While it is guarded, the process group is killed should the test end. */
void scratch_guard(pid_t group);
void scratch_unguard(pid_t group);

#endif
