#include "conf/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/source.h"

void files_fini(struct files *files)
{
    for (size_t i = 0; i < files->nsources; i++) {
        free(files->sources[i].path);
        free(files->sources[i].bytes);
    }
    for (size_t i = 0; i < files->npatterns; i++)
        free(files->patterns[i]);
    free(files->sources);
    free(files->patterns);
    *files = (struct files){ 0 };
}

int files_add(struct files *files, const char *path, struct buf *bytes)
{
    struct files_source source = { .path = strdup(path) };
    struct files_source *grown =
        source.path ? realloc(files->sources, (files->nsources + 1) * sizeof(*grown)) : NULL;
    /* What was read is not NULL, also when it is empty. */
    if (!grown || (bytes && buf_reserve(bytes, 1) == -1)) {
        if (grown)
            files->sources = grown;
        if (bytes)
            buf_fini(bytes);
        free(source.path);
        errno = ENOMEM;
        return -1;
    }
    files->sources = grown;
    if (bytes) {
        source.bytes = bytes->data;
        source.length = bytes->length;
        *bytes = (struct buf){ 0 };
    }
    files->sources[files->nsources++] = source;
    return 0;
}

int files_add_pattern(struct files *files, char *pattern)
{
    char **grown = realloc(files->patterns, (files->npatterns + 1) * sizeof(*grown));
    if (!grown) {
        free(pattern);
        errno = ENOMEM;
        return -1;
    }
    files->patterns = grown;
    files->patterns[files->npatterns++] = pattern;
    return 0;
}

int files_copy(struct files *copy, const struct files *files)
{
    int result = 0;
    *copy = (struct files){ 0 };
    for (size_t i = 0; i < files->nsources && result == 0; i++) {
        const struct files_source *source = &files->sources[i];
        struct buf bytes = { 0 };
        if (source->bytes)
            result = buf_add(&bytes, source->bytes, source->length);
        if (result == 0)
            result = files_add(copy, source->path, source->bytes ? &bytes : NULL);
        buf_fini(&bytes);
    }
    for (size_t i = 0; i < files->npatterns && result == 0; i++) {
        char *pattern = strdup(files->patterns[i]);
        result = pattern ? files_add_pattern(copy, pattern) : -1;
    }
    if (result == -1)
        files_fini(copy);
    return result;
}

bool files_has(const struct files *files, const char *path)
{
    for (size_t i = 0; i < files->nsources; i++)
        if (strcmp(files->sources[i].path, path) == 0)
            return true;
    return false;
}

static bool is_same(const struct files_source *source)
{
    struct buf now = { 0 };
    char fault[SOURCE_FAULT_SIZE];
    if (source->bytes)
        return source_is_same(source->path, (struct slice){ source->bytes, source->length });
    bool is_readable = source_read(&now, source->path, fault) == 0;
    buf_fini(&now);
    return !is_readable;
}

/* Does the pattern match a file that was not there? What cannot be told is a difference. */
static bool has_new_match(const struct files *files, const char *pattern)
{
    struct source_matches matches;
    bool has_new = false;
    if (source_match(&matches, pattern) == -1)
        return true;
    for (size_t i = 0; i < matches.count && !has_new; i++)
        has_new = !files_has(files, matches.paths[i]);
    source_matches_free(&matches);
    return has_new;
}

bool files_have_drifted(const struct files *files, const char **changed)
{
    for (size_t i = 0; i < files->nsources; i++) {
        *changed = files->sources[i].path;
        if (!is_same(&files->sources[i]))
            return true;
    }
    for (size_t i = 0; i < files->npatterns; i++) {
        *changed = files->patterns[i];
        if (has_new_match(files, files->patterns[i]))
            return true;
    }
    *changed = NULL;
    return false;
}
