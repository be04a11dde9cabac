/* conf_find_control, for clients of a server whose file may be broken by now. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/control.h"
#include "conf/expand.h"
#include "conf/source.h"
#include "conf/token.h"

/* Moves the reader behind `key =`, wherever that stands: sections may be open that should not. */
static bool find_key(struct token_reader *reader, struct slice key)
{
    struct token last = { .kind = TOKEN_END };
    for (struct token token = token_next(reader); token.kind != TOKEN_END;
         token = token_next(reader)) {
        if (token.kind == TOKEN_EQUALS && last.kind == TOKEN_NAME && slice_equal(last.text, key))
            return true;
        last = token;
    }
    return false;
}

/* The string at the reader, with those that follow it side by side; malloced. NULL: none. */
static char *take_string(struct token_reader *reader)
{
    struct buf raw = { 0 }, expanded = { 0 };
    char fault[EXPAND_FAULT_SIZE];
    bool has_some = false;

    for (;;) {
        struct token_reader here = *reader;
        struct token token = token_next(reader);
        if (token.kind != TOKEN_STRING || token_add_string(&raw, &token) == -1) {
            *reader = here;
            break;
        }
        has_some = true;
    }
    const char *string = has_some ? buf_string(&raw) : NULL;
    if (string && (expand(&expanded, string, fault) != EXPAND_DONE || !buf_string(&expanded)))
        buf_fini(&expanded);
    buf_fini(&raw);
    return expanded.data;
}

static char *find_in_fragments(const char *directory, struct slice text);

/* The value of `control` in the file, or a fragment of it; malloced. NULL: there is none. */
static char *find_in_file(const char *path, bool is_fragment)
{
    struct buf bytes = { 0 };
    char fault[SOURCE_FAULT_SIZE];
    struct token_reader reader;
    char *found = NULL;

    char *absolute = source_absolute(path);
    char *directory = absolute ? source_directory(absolute) : NULL;
    if (directory && source_read(&bytes, absolute, fault) == 0) {
        token_reader_init(&reader, buf_slice(&bytes));
        char *value = find_key(&reader, SLICE("control")) ? take_string(&reader) : NULL;
        if (value && value[0] != '\0')
            found = strcmp(value, "off") == 0 ? strdup(value) : source_join(directory, value);
        free(value);
        if (!found && !is_fragment)
            found = find_in_fragments(directory, buf_slice(&bytes));
    }
    buf_fini(&bytes);
    free(directory);
    free(absolute);
    return found;
}

static char *find_in_pattern(const char *directory, const char *name)
{
    struct source_matches matches = { 0 };
    char *found = NULL;
    char *escaped = source_escape(directory);
    char *pattern = escaped ? source_join(escaped, name) : NULL;

    if (pattern && source_match(&matches, pattern) == 0) {
        for (size_t i = 0; i < matches.count && !found; i++)
            found = find_in_file(matches.paths[i], true);
        source_matches_free(&matches);
    }
    free(pattern);
    free(escaped);
    return found;
}

static char *find_in_fragments(const char *directory, struct slice text)
{
    struct token_reader reader;
    char *found = NULL;

    token_reader_init(&reader, text);
    if (!find_key(&reader, SLICE("include")))
        return NULL;
    for (bool has_more = true; has_more && !found;) {
        char *name = take_string(&reader);
        if (name)
            found = find_in_pattern(directory, name);
        free(name);
        struct token between = token_next(&reader);
        has_more = between.kind == TOKEN_COMMA || between.kind == TOKEN_OPEN;
    }
    return found;
}

int conf_find_control(const char *file, char **path)
{
    char *found = find_in_file(file ? file : conf_default_file(), false);
    if (found && strcmp(found, "off") == 0) {
        free(found);
        found = NULL;
        *path = NULL;
        return 0;
    }
    if (found) {
        *path = found;
        return 0;
    }
    if (control_default(path, true) == CONTROL_FAILED) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}
