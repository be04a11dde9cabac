#include "conf/source.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "conf/text.h"

static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "is a directory, not a file";
    case S_IFIFO:
        return "is a FIFO, not a regular file";
    case S_IFSOCK:
        return "is a socket, not a regular file";
    default:
        return "is a device, not a regular file";
    }
}

/* Reads one byte more than a file may have, so that the look at the text finds it too large. */
static int read_all(struct buf *out, int fd, size_t expected)
{
    size_t most = TEXT_SIZE_MAX + 1;
    if (buf_reserve(out, (expected < most ? expected : most) + 1) == -1)
        return -1;
    while (out->length < most) {
        if (buf_reserve(out, 1) == -1)
            return -1;
        size_t room = out->capacity - out->length;
        size_t wanted = most - out->length;
        ssize_t got = read(fd, out->data + out->length, room < wanted ? room : wanted);
        if (got == -1 && errno == EINTR)
            continue;
        if (got == -1)
            return -1;
        if (got == 0)
            break;
        out->length += (size_t)got;
    }
    return 0;
}

int source_read(struct buf *out, const char *path, char fault[SOURCE_FAULT_SIZE])
{
    struct stat status;
    int result = -1;

    /* O_NONBLOCK: opening a FIFO must not wait for its writer. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd == -1 || fstat(fd, &status) == -1) {
        if (fd == -1 && errno == ENXIO)
            snprintf(fault, SOURCE_FAULT_SIZE, "is a socket or device, not a regular file");
        else
            snprintf(fault, SOURCE_FAULT_SIZE, "cannot be read: %s", strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        snprintf(fault, SOURCE_FAULT_SIZE, "%s", kind_of(status.st_mode));
        errno = EINVAL;
    } else {
        out->length = 0;
        result = read_all(out, fd, (size_t)status.st_size);
        if (result == -1)
            snprintf(fault, SOURCE_FAULT_SIZE, "cannot be read: %s", strerror(errno));
    }
    fd_close(&fd);
    return result;
}

bool source_is_same(const char *path, struct slice bytes)
{
    struct buf now = { 0 };
    char fault[SOURCE_FAULT_SIZE];
    bool is_same = source_read(&now, path, fault) == 0 && slice_equal(buf_slice(&now), bytes);
    buf_fini(&now);
    return is_same;
}

char *source_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strndup(path, slash ? (size_t)(slash + 1 - path) : 0);
}

char *source_join(const char *directory, const char *path)
{
    char *joined;
    while (path[0] == '.' && path[1] == '/')
        for (path += 2; path[0] == '/';)
            path++;
    if (path[0] == '/' || directory[0] == '\0')
        return strdup(path);
    size_t length = strlen(directory);
    const char *between = directory[length - 1] == '/' ? "" : "/";
    return asprintf(&joined, "%s%s%s", directory, between, path) == -1 ? NULL : joined;
}

char *source_absolute(const char *path)
{
    if (path[0] == '/')
        return strdup(path);
    char *directory = getcwd(NULL, 0);
    if (!directory)
        return NULL;
    char *joined = source_join(directory, path);
    free(directory);
    return joined;
}

static bool is_wildcard(char c)
{
    return c == '*' || c == '?' || c == '[';
}

bool source_is_pattern(const char *path)
{
    return strpbrk(path, "*?[") != NULL;
}

char *source_escape(const char *path)
{
    char *escaped = malloc(2 * strlen(path) + 1);
    char *at = escaped;
    if (!escaped)
        return NULL;
    for (; *path != '\0'; path++) {
        if (is_wildcard(*path) || *path == '\\')
            *at++ = '\\';
        *at++ = *path;
    }
    *at = '\0';
    return escaped;
}

/* What is not there matches nothing; what cannot be read must not look as if it were not there. */
static int glob_fault(const char *path, int error)
{
    (void)path;
    return error != ENOENT && error != ENOTDIR;
}

int source_match(struct source_matches *matches, const char *pattern)
{
    glob_t found = { 0 };
    *matches = (struct source_matches){ 0 };

    int result = glob(pattern, 0, glob_fault, &found);
    if (result == GLOB_NOMATCH) {
        globfree(&found);
        return 0;
    }
    if (result != 0) {
        int error = result == GLOB_NOSPACE ? ENOMEM : errno != 0 ? errno : EIO;
        globfree(&found);
        errno = error;
        return -1;
    }
    matches->paths = found.gl_pathv;
    matches->count = found.gl_pathc;
    return 0;
}

void source_matches_free(struct source_matches *matches)
{
    globfree(&(glob_t){ .gl_pathv = matches->paths, .gl_pathc = matches->count });
    *matches = (struct source_matches){ 0 };
}
