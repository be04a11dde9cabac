/*
 * source: the files a configuration is read from, and their paths.
 *
 * Only regular files are read, each in one go; nothing here ever waits for a FIFO or a device.
 */
#ifndef CONF_SOURCE_H
#define CONF_SOURCE_H

#include "base/buf.h"

/* For what is wrong with a file: "is a directory, not a file", "cannot be read: Permission denied". */
#define SOURCE_FAULT_SIZE 128

/* Adds the bytes of the file at `path`. -1 with errno and the fault (EINVAL: not one to read). */
int source_read(struct buf *out, const char *path, char fault[SOURCE_FAULT_SIZE]);

/* Is there a file at `path` that holds these bytes? */
bool source_is_same(const char *path, struct slice bytes);

/* All of these are malloced; NULL with errno. */
char *source_absolute(const char *path);  /* `path` below the working directory */
char *source_directory(const char *path); /* up to the last "/", which stays: "conf/", "/", "" */
char *source_join(const char *directory, const char *path); /* an absolute path stays itself */

/*
 * The files that an absolute pattern of glob(7) matches, sorted by bytes. A name without
 * wildcards matches itself, whether it exists or not. -1 with errno; free with
 * source_matches_free always.
 */
struct source_matches {
    char **paths;
    size_t count;
};
int source_match(struct source_matches *matches, const char *pattern);
void source_matches_free(struct source_matches *matches);
bool source_is_pattern(const char *path);

/* `path` with every wildcard in it taken literally. Malloced; NULL with errno. */
char *source_escape(const char *path);

#endif
