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

#define PROBE_DEADLINE (5 * CLOCK_SECOND)
#define DEFAULT_PATH "/healthz"

struct target {
    struct address address;
    char host[ADDRESS_TEXT_SIZE]; /* what Host says */
    const char *path;
};

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
    target->path = url[length] == '/' ? url + length : "/";
    return COMMAND_SUCCESS;
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

/* Reads as far as the status line; returns the status, or -1 with errno. */
static int get(int fd, const struct target *target, int64_t deadline)
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
    size_t got = 0;
    while (got < sizeof(text) - 1 && !memchr(text, '\n', got)) {
        if (wait_for(fd, POLLIN, deadline) == -1)
            return -1;
        ssize_t more = recv(fd, text + got, sizeof(text) - 1 - got, 0);
        if (more == -1)
            return -1;
        if (more == 0)
            break;
        got += (size_t)more;
    }
    text[got] = '\0';
    int major, minor, status;
    errno = EPROTO;
    return sscanf(text, "HTTP/%d.%d %d", &major, &minor, &status) == 3 ? status : -1;
}

int command_probe(const struct command_options *options)
{
    struct target target = { .path = DEFAULT_PATH };
    const char *url = options->argument;
    bool is_path = url && url[0] == '/';
    int result = url && !is_path ? parse_url(&target, url) : first_listener(&target, options);
    if (result != COMMAND_SUCCESS)
        return result;
    if (is_path)
        target.path = url;
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
