/*
 * client: an HTTP/1 client of its own, over TCP or a unix socket, that sees what the wire says.
 *
 * It sends what it is told, byte for byte, and reads answers framed by Content-Length. Nothing
 * blocks for longer than a wait of the suite. What returns a result reports; what returns none
 * fails the test. Threads may use the former, each with clients of its own.
 */
#ifndef SUPPORT_CLIENT_H
#define SUPPORT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

struct client {
    int fd;
    struct buf in; /* received */
    size_t used;   /* of it, taken by earlier answers */
    const char *fault;
};

struct reply {
    unsigned status;
    unsigned version;  /* 10 or 11 */
    struct slice head; /* status line and field lines; valid until the next call */
    struct slice body; /* likewise */
    bool is_last;      /* Connection: close */
};

enum client_result {
    CLIENT_REPLY,
    CLIENT_END,    /* the server closed, in order, with no byte of an answer */
    CLIENT_BROKEN, /* it reset, or closed within an answer, or sent no HTTP; client->fault */
    CLIENT_LATE,   /* nothing came; client->fault */
};

/* The address is "http://127.0.0.1:80", "http://[::1]:80" or "http+unix:/path". */
void client_open(struct client *client, const char *url);
/* As above, but -1 with errno. A client that has been opened is to be closed. */
int client_try_open(struct client *client, const char *url);
void client_close(struct client *client);
/* Resets the connection. */
void client_abort(struct client *client);

void client_send(struct client *client, const char *text);
/* False when the connection is gone. */
bool client_send_bytes(struct client *client, const void *data, size_t length);
/* As GET path HTTP/1.1 with a Host field and nothing else. */
void client_send_get(struct client *client, const char *path);
/* Says that nothing more will be sent. */
void client_end(struct client *client);

enum client_result client_receive(struct client *client, struct reply *reply, bool is_head);

/* Reads an answer and fails the test unless it has this status. */
void client_expect(struct client *client, struct reply *reply, unsigned status);

/* True when the server closed in order with nothing more sent; else client->fault says why not. */
bool client_read_end(struct client *client);

/* All that comes until the server closes in order. data is NULL when it does not; client->fault.
 * Valid until the next call. */
struct slice client_read_rest(struct client *client);

/* Would a read wait? */
bool client_is_silent(struct client *client);

/* The local port. */
unsigned client_port(const struct client *client);

/* The value of the first such field line, or NULL. Lives until the test ends. */
const char *reply_field(const struct reply *reply, const char *name);
const char *reply_body(const struct reply *reply);

/* One request on a connection of its own; the status, 0 when there was no answer. The body is
 * kept in *body unless NULL. */
unsigned client_get(const char *url, const char *path, const char **body);

#endif
