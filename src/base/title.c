#include "base/title.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The process has one command line, as it has one log. */
static struct {
    char *start;
    size_t size;
    char **arguments, **environment; /* the copies, which live as long as the process */
} area;

/* The end of the strings that follow one another from `end` on. */
static char *contiguous_end(char **strings, char *end)
{
    for (size_t i = 0; strings[i]; i++)
        if (strings[i] == end)
            end = strings[i] + strlen(strings[i]) + 1;
    return end;
}

/* One block for the array and its strings: what unsetenv takes out of the array is not lost. */
static char **copy_strings(char **strings)
{
    size_t count = 0, size = 0;
    for (; strings[count]; count++)
        size += strlen(strings[count]) + 1;
    char **copy = malloc((count + 1) * sizeof(*copy) + size);
    if (!copy)
        return NULL;
    char *next = (char *)(copy + count + 1);
    for (size_t i = 0; i < count; i++) {
        copy[i] = next;
        next = stpcpy(next, strings[i]) + 1;
    }
    copy[count] = NULL;
    return copy;
}

int title_init(int argc, char ***argv)
{
    if (argc < 1)
        return 0;
    char *start = (*argv)[0];
    char *end = contiguous_end(environ, contiguous_end(*argv, start));
    char **arguments = copy_strings(*argv), **environment = copy_strings(environ);
    if (!arguments || !environment) {
        free(arguments);
        free(environment);
        return -1;
    }
    *argv = area.arguments = arguments;
    environ = area.environment = environment;
    area.start = start;
    area.size = (size_t)(end - start);
    return 0;
}

void title_set(const char *format, ...)
{
    char title[128];
    va_list args;
    va_start(args, format);
    vsnprintf(title, sizeof(title), format, args);
    va_end(args);
    prctl(PR_SET_NAME, "hayate");
    if (area.size < 2)
        return;
    memset(area.start, 0, area.size);
    snprintf(area.start, area.size, "%s", title);
}
