#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer/answer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "command/command.h"
#include "conf/conf.h"
#include "http/grammar.h"

#define PROBE_DEADLINE (5 * CLOCK_SECOND)
#define PROBE_PATH_SIZE 1536 /* so that a request fits into 2,048 bytes */
#define DEFAULT_PATH "/healthz"

struct target {
    struct address address;
    char host[ADDRESS_TEXT_SIZE]; /* what Host says */
    char path[PROBE_PATH_SIZE];   /* and query: the request target */
};

/* What an answer comes from. */
struct source {
    int fd;
    int64_t deadline;
    size_t used, length; /* of the bytes */
    char bytes[2048];
};

/* `text` is what follows the authority. A fragment is for who asks, never sent; no path is "/"
 * (RFC 9112, 3.2.1). */
static int set_path(struct target *target, const char *text)
{
    if (!grammar_is_uri(slice_of(text)))
        return command_fail(COMMAND_USAGE, "probe: the path has a character that no URL may have: "
                                           "write it as %%XX, a blank as %%20");
    int length = snprintf(target->path, sizeof(target->path), "%s%.*s", text[0] == '/' ? "" : "/",
                          (int)strcspn(text, "#"), text);
    if (length < 0 || (size_t)length >= sizeof(target->path))
        return command_fail(COMMAND_USAGE, "probe: the path is longer than %zu bytes",
                            sizeof(target->path) - 1);
    return COMMAND_SUCCESS;
}

/* "http://HOST[:PORT][/PATH]" with a numeric host. */
static int parse_url(struct target *target, const char *url)
{
    static const char scheme[] = "http://";
    struct address parsed[2];
    const char *fault = NULL;
    char authority[sizeof(target->host)], with_port[sizeof(target->host) + 4];
    if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
        return command_fail(COMMAND_USAGE,
                            "probe %s: an URL is http://ADDRESS[:PORT][/PATH], or a path alone",
                            url);
    url += sizeof(scheme) - 1;
    size_t length = strcspn(url, "/?#");
    if (length == 0 || length >= sizeof(authority))
        return command_fail(COMMAND_USAGE, "probe: the URL has no usable host");
    memcpy(authority, url, length);
    authority[length] = '\0';
    const char *after_host = strrchr(authority, ']');
    bool has_port = strchr(after_host ? after_host : authority, ':') != NULL;
    snprintf(with_port, sizeof(with_port), "%s%s", authority, has_port ? "" : ":80");
    if (address_parse(parsed, with_port, &fault) == 0 || parsed[0].is_wildcard)
        return command_fail(COMMAND_USAGE, "probe: %s: %s", authority,
                            fault ? fault : "name one address");
    target->address = parsed[0];
    snprintf(target->host, sizeof(target->host), "%s", authority);
    return set_path(target, url + length);
}

/* The first listener of the configuration; a wildcard is reached by the loopback address. */
static int first_listener(struct target *target, const struct command_options *options)
{
    struct conf_error error;
    struct conf_request request = { options->file, options->overrides, answer_kinds() };
    struct conf *conf = conf_load(&request, &error);
    if (!conf)
        return command_fail(COMMAND_FAILURE, "probe: %s", error.text);
    target->address = conf->listen[0].addresses[0];
    conf_free(conf);
    struct address *address = &target->address;
    if (address->any.sa_family == AF_UNIX) {
        strcpy(target->host, "localhost");
        return COMMAND_SUCCESS;
    }
    if (address_port(address) == 0)
        return command_fail(COMMAND_FAILURE,
                            "probe: the first listener has port 0, which the kernel chose at its "
                            "start: name the URL");
    if (address->any.sa_family == AF_INET && address->v4.sin_addr.s_addr == htonl(INADDR_ANY))
        address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (address->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr))
        address->v6.sin6_addr = in6addr_loopback;
    address_text(target->host, sizeof(target->host), address);
    return COMMAND_SUCCESS;
}

static int wait_for(int fd, short events, int64_t deadline)
{
    int64_t left = (deadline - clock_monotonic()) / CLOCK_MILLISECOND;
    struct pollfd ready = { .fd = fd, .events = events };
    int result = left > 0 ? poll(&ready, 1, (int)left) : 0;
    if (result == 0)
        errno = ETIMEDOUT;
    return result == 1 ? 0 : -1;
}

static int connect_within(int fd, const struct address *address, int64_t deadline)
{
    if (connect(fd, &address->any, address->length) == 0)
        return 0;
    int reason = errno;
    socklen_t length = sizeof(reason);
    if (reason == EINPROGRESS) {
        if (wait_for(fd, POLLOUT, deadline) == -1)
            return -1;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &length);
    }
    errno = reason;
    return reason == 0 ? 0 : -1;
}

static int send_get(int fd, const struct target *target)
{
    char text[2048];
    int length = snprintf(text, sizeof(text),
                          "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: hayate-probe/" PACKAGE_VERSION
                          "\r\nConnection: close\r\n\r\n",
                          target->path, target->host);
    errno = EMSGSIZE;
    if (length < 0 || (size_t)length >= sizeof(text) ||
        send(fd, text, (size_t)length, MSG_NOSIGNAL) != length)
        return -1;
    return 0;
}

/* -1 with errno, at the end too: nothing ends well before the status is known. */
static int read_more(struct source *source)
{
    if (wait_for(source->fd, POLLIN, source->deadline) == -1)
        return -1;
    ssize_t more = recv(source->fd, source->bytes, sizeof(source->bytes), 0);
    if (more == 0)
        errno = EPROTO;
    if (more <= 0)
        return -1;
    source->used = 0;
    source->length = (size_t)more;
    return 0;
}

/* A line without its end; what there is no room for is dropped. -1 with errno. */
static int read_line(struct source *source, char *line, size_t size)
{
    size_t length = 0;
    for (;;) {
        if (source->used == source->length && read_more(source) == -1)
            return -1;
        char c = source->bytes[source->used++];
        if (c == '\n')
            break;
        if (length < size - 1)
            line[length++] = c;
    }
    if (length > 0 && line[length - 1] == '\r')
        length--;
    line[length] = '\0';
    return 0;
}

/* Reads as far as the status line of the final answer; returns the status, or -1 with errno. */
static int read_status(struct source *source)
{
    char line[256];
    int major, minor, status;
    for (;;) {
        if (read_line(source, line, sizeof(line)) == -1)
            return -1;
        errno = EPROTO;
        if (sscanf(line, "HTTP/%d.%d %d", &major, &minor, &status) != 3)
            return -1;
        /* Others may come before it, unasked (RFC 9110, 15.2); after 101 it would be no HTTP. */
        if (status < 100 || status > 199 || status == 101)
            return status;
        do {
            if (read_line(source, line, sizeof(line)) == -1)
                return -1;
        } while (line[0]);
    }
}

static int get(int fd, const struct target *target, int64_t deadline)
{
    struct source source = { .fd = fd, .deadline = deadline };
    return send_get(fd, target) == -1 ? -1 : read_status(&source);
}

int command_probe(const struct command_options *options)
{
    struct target target = { .path = DEFAULT_PATH };
    const char *url = options->argument;
    bool is_path = url && url[0] == '/';
    int result = COMMAND_SUCCESS;
    if (is_path)
        result = set_path(&target, url);
    else if (url)
        result = parse_url(&target, url);
    if (result == COMMAND_SUCCESS && (is_path || !url))
        result = first_listener(&target, options);
    if (result != COMMAND_SUCCESS)
        return result;
    int64_t deadline = clock_monotonic() + PROBE_DEADLINE;
    int fd = socket(target.address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int status = -1;
    if (fd != -1 && connect_within(fd, &target.address, deadline) == 0)
        status = get(fd, &target, deadline);
    int reason = errno;
    fd_close(&fd);
    if (status == -1)
        return command_fail(COMMAND_FAILURE, "probe: %s%s: %s", target.host, target.path,
                            strerror(reason));
    if (status < 200 || status > 299)
        return command_fail(COMMAND_FAILURE, "probe: %s%s: status %d", target.host, target.path,
                            status);
    return COMMAND_SUCCESS;
}
