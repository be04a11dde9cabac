/*
 * site: the servers that several test programs begin with, and what they ask of them.
 */
#ifndef SUPPORT_SITE_H
#define SUPPORT_SITE_H

#include <stddef.h>
#include <sys/types.h>

#include "support/client.h"
#include "support/server.h"

#define H "Host: a\r\n"
#define GET "GET /hello HTTP/1.1\r\n" H "\r\n"
#define NEVER "GET /never HTTP/1.1\r\n" H "\r\n"

/* A request that is in flight until the test sends the rest. */
#define HALF "GET /hello HTTP/1.1\r\nHo"
#define REST "st: a\r\n\r\n"

/* Routes /hello, /slow (500 ms), /never (1 h) and /post (POST only), and `more` configuration. */
void site_start(struct server *server, const char *more);

/* A route of the kind `fault`, for text_format with its value. */
#define FAULT ",\n{ path = \"/crash\" fault = \"%s\" }"

/* Routes /hello, /never and `routes` (each with a comma before it), and `more` configuration. */
void site_start_faulty(struct server *server, const char *routes, const char *more);

/* A number of `hayate status --json`. */
double site_counter(const struct server *server, const char *name);

/* Waits for another process in the place of this one, and for an answer. Returns it. */
pid_t site_await_successor(const struct server *server, unsigned worker, pid_t dead);

/* A connection with `request` in flight: it comes in one piece with GET, whose answer is read. */
void site_open_in_flight(struct client *client, const struct server *server, const char *request);

/* A thread that sends what a test cannot send without reading at the same time: start it with
 * site_send and a struct site_sender. It returns NULL when it could not send all. */
struct site_sender {
    struct client *client;
    const char *text;
    size_t length;
};
void *site_send(void *sender);

#endif
