#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "command/command.h"
#include "conf/conf.h"

/* --control, then $HAYATE_CONTROL, then the file, then the default. NULL: off. Malloced. */
static char *find_control(const struct command_options *options)
{
    const char *from_environment = getenv("HAYATE_CONTROL");
    char *path = NULL;
    if (options->control)
        path = strdup(options->control);
    else if (from_environment && *from_environment)
        path = strdup(from_environment);
    else if (conf_find_control(options->file, &path) == -1)
        return NULL;
    if (path && strcmp(path, "off") == 0) {
        free(path);
        path = NULL;
    }
    return path;
}

static int connect_to(const char *path, int *status)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path)) {
        *status =
            command_fail(COMMAND_USAGE, "control socket %s: the path is longer than %zu bytes",
                         path, sizeof(address.sun_path) - 1);
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd != -1 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
        *status = command_fail(COMMAND_NOT_RUNNING, "not running (no master at %s: %s)", path,
                               strerror(errno));
    else
        *status = command_fail(COMMAND_FAILURE, "cannot reach the master at %s: %s", path,
                               strerror(errno));
    fd_close(&fd);
    return -1;
}

/* How long the master may take: a reload or an upgrade waits for children to get ready, perhaps twice; a stop for
 * requests in flight, which has a bound of its own. Seconds; 0: none. */
static long patience(const char *line)
{
    return strcmp(line, "stop") == 0                                     ? 0
           : strcmp(line, "reload") == 0 || strcmp(line, "upgrade") == 0 ? 60
                                                                         : 15;
}

static int fail_lost(const char *path)
{
    if (errno == EAGAIN)
        return command_fail(COMMAND_FAILURE, "the master at %s does not answer: is it stopped?",
                            path);
    return command_fail(COMMAND_FAILURE, "lost the master at %s: %s", path, strerror(errno));
}

static int send_line(int fd, const char *line)
{
    char text[64];
    int length = snprintf(text, sizeof(text), "%s\n", line);
    return send(fd, text, (size_t)length, MSG_NOSIGNAL) == length ? 0 : -1;
}

static int read_all(int fd, struct buf *answer)
{
    for (;;) {
        if (buf_reserve(answer, 4096) == -1)
            return -1;
        ssize_t got = read(fd, answer->data + answer->length, 4096);
        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            return (int)got;
        answer->length += (size_t)got;
    }
}

/* The first line is the exit status, the rest is for people. */
static int print_answer(struct buf *answer)
{
    const char *text = buf_string(answer);
    char *end;
    if (!text)
        return command_fail(COMMAND_FAILURE, "out of memory");
    long status = strtol(text, &end, 10);
    if (end == text || *end != '\n' || status < 0 || status > 255)
        return command_fail(COMMAND_FAILURE, "the master went away before it answered");
    end++;
    size_t length = answer->length - (size_t)(end - text);
    if (status == COMMAND_SUCCESS)
        return command_print(end, length);
    fwrite(end, 1, length, stderr);
    return (int)status;
}

int client_ask(const struct command_options *options, const char *line)
{
    int status = COMMAND_FAILURE;
    struct buf answer = { 0 };
    char *path = find_control(options);
    if (!path)
        return command_fail(COMMAND_FAILURE,
                            "control is off: use signals, or name a socket with --control");
    int fd = connect_to(path, &status);
    if (fd != -1) {
        struct timeval limit = { .tv_sec = patience(line) };
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        if (send_line(fd, line) == -1 || read_all(fd, &answer) == -1)
            status = fail_lost(path);
        else
            status = print_answer(&answer);
    }
    fd_close(&fd);
    buf_fini(&answer);
    free(path);
    return status;
}

int command_reload(const struct command_options *options)
{
    return client_ask(options, "reload");
}

int command_status(const struct command_options *options)
{
    return client_ask(options, options->is_json ? "status json" : "status");
}

int command_stop(const struct command_options *options)
{
    return client_ask(options, "stop");
}

int command_reopen(const struct command_options *options)
{
    return client_ask(options, "reopen");
}

int command_upgrade(const struct command_options *options)
{
    return client_ask(options, "upgrade");
}
