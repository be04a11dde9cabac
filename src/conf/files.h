/*
 * files: what a configuration was read from, and whether the disk still holds it.
 *
 * Each file that was opened, with its bytes, and each pattern that named fragments. It is part of a
 * conf; a load that fails leaves one too, so that the same mistake is known again. Owns all that it
 * points to. Out of memory is -1 with errno.
 */
#ifndef CONF_FILES_H
#define CONF_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct files_source {
    char *path;  /* absolute */
    char *bytes; /* NULL: it could not be read, and the load has failed for that */
    size_t length;
};

struct files {
    struct files_source *sources; /* the file first, then its fragments in order */
    size_t nsources;
    char **patterns; /* of include: absolute, as glob takes them */
    size_t npatterns;
};

void files_fini(struct files *files);

/* `path` is copied; `bytes` are taken over, also by a failure. NULL: it could not be read. */
int files_add(struct files *files, const char *path, struct buf *bytes);
/* `pattern` is taken over, also by a failure. */
int files_add_pattern(struct files *files, char *pattern);

/* `copy` is overwritten; -1: it is empty then. */
int files_copy(struct files *copy, const struct files *files);

bool files_has(const struct files *files, const char *path);

/*
 * Does the disk hold anything else, or anything more that a pattern matches? *changed is the first
 * path that differs, or the pattern, else NULL; it lives as long as `files`.
 */
bool files_have_drifted(const struct files *files, const char **changed);

#endif
