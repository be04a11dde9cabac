#include "support/text.h"

#include <check.h>
#include <fcntl.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All that was allocated, so that a leak checker finds it reachable. */
struct kept {
    struct kept *next;
    max_align_t data[];
};
static struct kept *everything;

void *text_allocate(size_t size)
{
    struct kept *kept = calloc(1, sizeof *kept + size);
    ck_assert(kept != NULL);
    kept->next = everything;
    everything = kept;
    return kept->data;
}

const char *text_copy(const char *data, size_t length)
{
    char *copy = text_allocate(length + 1);
    memcpy(copy, data, length);
    return copy;
}

const char *text_format(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    ck_assert(length >= 0);
    char *text = text_allocate((size_t)length + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

const char *text_read(const char *path, size_t offset, size_t *length)
{
    size_t used = 0, size = 4096;
    char *text = malloc(size);
    ssize_t got;

    ck_assert(text != NULL);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && offset > 0)
        lseek(fd, (off_t)offset, SEEK_SET);
    while (fd >= 0 && (got = read(fd, text + used, size - used)) > 0) {
        used += (size_t)got;
        if (used == size) {
            size *= 2;
            char *larger = realloc(text, size);
            ck_assert(larger != NULL);
            text = larger;
        }
    }
    if (fd >= 0)
        close(fd);
    if (length != NULL)
        *length = used;
    const char *kept = text_copy(text, used);
    free(text);
    return kept;
}

const char *text_tail(const char *text)
{
    const size_t most = 3000;
    size_t length = strlen(text);
    return length > most ? text + (length - most) : text;
}

const char *text_repeat(const char *text, size_t count)
{
    size_t length = strlen(text);
    char *result = text_allocate(length * count + 1);

    for (size_t i = 0; i < count; i++)
        memcpy(result + i * length, text, length);
    return result;
}

const char *text_replace(const char *text, const char *from, const char *to)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, from)) != NULL; at += strlen(from))
        count++;
    char *result = text_allocate(strlen(text) + count * strlen(to) + 1);
    char *end = result;
    const char *rest = text;
    for (const char *at; (at = strstr(rest, from)) != NULL; rest = at + strlen(from)) {
        end = mempcpy(end, rest, (size_t)(at - rest));
        end = stpcpy(end, to);
    }
    strcpy(end, rest);
    return result;
}

static regex_t *compile(regex_t *regex, const char *pattern)
{
    int error = regcomp(regex, pattern, REG_EXTENDED);
    ck_assert_msg(error == 0, "bad pattern: %s", pattern);
    return regex;
}

bool text_matches(const char *text, const char *pattern)
{
    regex_t regex;

    int result = regexec(compile(&regex, pattern), text, 0, NULL, 0);
    regfree(&regex);
    return result == 0;
}

const char *text_extract(const char *text, const char *pattern)
{
    regex_t regex;
    regmatch_t matches[2];

    int result = regexec(compile(&regex, pattern), text, 2, matches, 0);
    regfree(&regex);
    if (result != 0 || matches[1].rm_so < 0)
        return NULL;
    return text_copy(text + matches[1].rm_so, (size_t)(matches[1].rm_eo - matches[1].rm_so));
}

/* Counts the whole lines that match; *first is a copy of the first. */
static unsigned scan_lines(const char *text, const char *pattern, const char **first)
{
    regex_t regex;
    unsigned count = 0;

    compile(&regex, pattern);
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        regmatch_t line = { .rm_so = 0, .rm_eo = (regoff_t)(end - text) };
        if (regexec(&regex, text, 1, &line, REG_STARTEND) != 0)
            continue;
        if (count++ == 0)
            *first = text_copy(text, (size_t)(end - text));
    }
    regfree(&regex);
    return count;
}

const char *text_find_line(const char *text, const char *pattern)
{
    const char *first = NULL;

    scan_lines(text, pattern, &first);
    return first;
}

unsigned text_count_lines(const char *text, const char *pattern)
{
    const char *first;

    return scan_lines(text, pattern, &first);
}
