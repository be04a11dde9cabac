#include "support/client.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/suite.h"
#include "support/text.h"

struct target {
    socklen_t length;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    };
};

static int parse_url(struct target *target, const char *url)
{
    char host[64];
    unsigned port;

    *target = (struct target){ .length = 0 };
    if (strncmp(url, "http+unix:", 10) == 0) {
        target->local.sun_family = AF_UNIX;
        if (strlen(url + 10) >= sizeof target->local.sun_path)
            return -1;
        strcpy(target->local.sun_path, url + 10);
        target->length = sizeof target->local;
    } else if (sscanf(url, "http://[%63[^]]]:%u", host, &port) == 2) {
        target->v6.sin6_family = AF_INET6;
        target->v6.sin6_port = htons((uint16_t)port);
        target->length = sizeof target->v6;
        return inet_pton(AF_INET6, host, &target->v6.sin6_addr) == 1 ? 0 : -1;
    } else if (sscanf(url, "http://%63[^:]:%u", host, &port) == 2) {
        target->v4.sin_family = AF_INET;
        target->v4.sin_port = htons((uint16_t)port);
        target->length = sizeof target->v4;
        return inet_pton(AF_INET, host, &target->v4.sin_addr) == 1 ? 0 : -1;
    }
    return target->length > 0 ? 0 : -1;
}

static bool wait_for(int fd, short events)
{
    struct deadline deadline = deadline_start();
    struct pollfd waited = { .fd = fd, .events = events };
    int ready;

    while ((ready = poll(&waited, 1, deadline_left(&deadline))) < 0 && errno == EINTR)
        ;
    return ready == 1;
}

int client_try_open(struct client *client, const char *url)
{
    struct target target;
    int error = EINVAL, on = 1;
    socklen_t size = sizeof error;

    *client = (struct client){ .fd = -1 };
    if (parse_url(&target, url) != 0)
        goto fail;
    client->fd = socket(target.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0)
        return -1;
    error = 0;
    if (target.any.sa_family != AF_UNIX)
        setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(client->fd, &target.any, target.length) == 0)
        return 0;
    error = errno;
    if (error == EINPROGRESS) {
        error = ETIMEDOUT;
        if (wait_for(client->fd, POLLOUT))
            getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error == 0)
            return 0;
    }
    close(client->fd);
    client->fd = -1;
fail:
    errno = error;
    return -1;
}

void client_open(struct client *client, const char *url)
{
    ck_assert_msg(client_try_open(client, url) == 0, "connect to %s: %s", url, strerror(errno));
}

void client_close(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    buf_fini(&client->in);
    client->used = 0;
}

void client_abort(struct client *client)
{
    struct linger linger = { .l_onoff = 1, .l_linger = 0 };

    setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    client_close(client);
}

bool client_send_bytes(struct client *client, const void *data, size_t length)
{
    const char *rest = data;

    while (length > 0) {
        ssize_t sent = send(client->fd, rest, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN && wait_for(client->fd, POLLOUT))
            continue;
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        rest += sent;
        length -= (size_t)sent;
    }
    return true;
}

void client_send(struct client *client, const char *text)
{
    ck_assert_msg(client_send_bytes(client, text, strlen(text)), "send: %s", strerror(errno));
}

void client_send_get(struct client *client, const char *path)
{
    client_send(client, text_format("GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path));
}

void client_end(struct client *client)
{
    ck_assert(shutdown(client->fd, SHUT_WR) == 0);
}

/* Receives some more. 1; 0 at the end; -1 with client->fault. */
static int receive_more(struct client *client, enum client_result *result)
{
    if (client->used > 0 && client->in.capacity - client->in.length < 4096) {
        buf_consume(&client->in, client->used);
        client->used = 0;
    }
    if (buf_reserve(&client->in, 65536) != 0)
        abort();
    for (;;) {
        ssize_t got = recv(client->fd, client->in.data + client->in.length, 65536, 0);
        if (got > 0)
            client->in.length += (size_t)got;
        if (got >= 0)
            return got > 0;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN) {
            client->fault = errno == ECONNRESET ? "connection reset" : strerrorname_np(errno);
            *result = CLIENT_BROKEN;
            return -1;
        }
        if (!wait_for(client->fd, POLLIN)) {
            client->fault = "nothing came";
            *result = CLIENT_LATE;
            return -1;
        }
    }
}

/* The value of a field in a head; data is NULL when there is none. */
static struct slice find_field(struct slice head, struct slice name)
{
    const char *end = head.data + head.length;

    for (const char *line = head.data; line < end;) {
        const char *stop = memmem(line, (size_t)(end - line), "\r\n", 2);
        if (stop == NULL)
            break;
        const char *colon = memchr(line, ':', (size_t)(stop - line));
        if (colon != NULL &&
            slice_equal_nocase((struct slice){ line, (size_t)(colon - line) }, name))
            return slice_trim((struct slice){ colon + 1, (size_t)(stop - colon - 1) });
        line = stop + 2;
    }
    return (struct slice){ NULL, 0 };
}

/* Takes the status line and the length of the body off a complete head; false when it is no HTTP. */
static bool parse_head(struct reply *reply, struct slice head, bool is_head, size_t *length)
{
    if (head.length < 15 || memcmp(head.data, "HTTP/1.", 7) != 0 || head.data[8] != ' ')
        return false;
    reply->version = 10 + (unsigned)(head.data[7] - '0');
    reply->status = (unsigned)strtoul(head.data + 9, NULL, 10);
    reply->head = head;
    reply->is_last = slice_equal_nocase(find_field(head, SLICE("Connection")), SLICE("close"));
    struct slice given = find_field(head, SLICE("Content-Length"));
    bool is_bodiless =
        is_head || reply->status / 100 == 1 || reply->status == 204 || reply->status == 304;
    if (given.data == NULL && !is_bodiless)
        return false;
    *length = is_bodiless ? 0 : strtoul(given.data, NULL, 10);
    return true;
}

enum client_result client_receive(struct client *client, struct reply *reply, bool is_head)
{
    enum client_result result = CLIENT_BROKEN;

    for (;;) {
        struct slice in = { client->in.data + client->used, client->in.length - client->used };
        const char *end = in.length > 0 ? memmem(in.data, in.length, "\r\n\r\n", 4) : NULL;
        size_t head = end != NULL ? (size_t)(end - in.data) + 4 : 0, length = 0;
        if (end != NULL && !parse_head(reply, (struct slice){ in.data, head }, is_head, &length)) {
            client->fault = "no HTTP";
            return CLIENT_BROKEN;
        }
        if (end != NULL && in.length - head >= length) {
            reply->body = (struct slice){ in.data + head, length };
            client->used += head + length;
            return CLIENT_REPLY;
        }
        int more = receive_more(client, &result);
        if (more < 0)
            return result;
        if (more == 0) {
            bool is_partial = client->in.length > client->used;
            client->fault = is_partial ? "closed within an answer" : "closed without an answer";
            return is_partial ? CLIENT_BROKEN : CLIENT_END;
        }
    }
}

void client_expect(struct client *client, struct reply *reply, unsigned status)
{
    enum client_result result = client_receive(client, reply, false);

    ck_assert_msg(result == CLIENT_REPLY, "no answer: %s", client->fault);
    ck_assert_msg(reply->status == status, "status %u, not %u: %s", reply->status, status,
                  reply_body(reply));
}

bool client_read_end(struct client *client)
{
    enum client_result result;
    int more = client->in.length > client->used ? 1 : receive_more(client, &result);

    if (more > 0)
        client->fault = text_format("more came: %s", text_copy(client->in.data + client->used,
                                                               client->in.length - client->used));
    return more == 0;
}

struct slice client_read_rest(struct client *client)
{
    enum client_result result;
    int more;

    do
        more = receive_more(client, &result);
    while (more > 0);
    if (more < 0)
        return (struct slice){ NULL, 0 };
    struct slice rest = { client->in.data + client->used, client->in.length - client->used };
    client->used = client->in.length;
    return rest;
}

bool client_is_silent(struct client *client)
{
    struct pollfd waited = { .fd = client->fd, .events = POLLIN | POLLRDHUP };

    return client->in.length == client->used && poll(&waited, 1, 0) == 0;
}

unsigned client_port(const struct client *client)
{
    struct target target = { .length = sizeof target.v6 };

    ck_assert(getsockname(client->fd, &target.any, &target.length) == 0);
    return ntohs(target.any.sa_family == AF_INET6 ? target.v6.sin6_port : target.v4.sin_port);
}

const char *reply_field(const struct reply *reply, const char *name)
{
    struct slice value = find_field(reply->head, slice_of(name));

    return value.data != NULL ? text_copy(value.data, value.length) : NULL;
}

const char *reply_body(const struct reply *reply)
{
    return text_copy(reply->body.data, reply->body.length);
}

unsigned client_get(const char *url, const char *path, const char **body)
{
    struct client client;
    struct reply reply;
    unsigned status = 0;

    if (client_try_open(&client, url) != 0)
        return 0;
    const char *text = text_format("GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", path);
    if (client_send_bytes(&client, text, strlen(text)) &&
        client_receive(&client, &reply, false) == CLIENT_REPLY) {
        status = reply.status;
        if (body != NULL)
            *body = reply_body(&reply);
    }
    client_close(&client);
    return status;
}
