/*
 * access: the access log, one line an answer.
 *
 *   127.0.0.1 - - [30/Nov/2026:08:00:00 +0000] "GET /hello HTTP/1.1" 200 5 "-" "curl/7.88.1"
 *
 * or the same as a JSON object. Whatever a client sent is escaped, so that each answer is one
 * well-formed line, and cut, so that a line is at most ACCESS_LINE_MAX bytes. Lines are collected
 * and written by access_flush; one whose reader is too slow loses lines, and nothing waits for it.
 */
#ifndef WORKER_ACCESS_H
#define WORKER_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/log.h"
#include "base/sink.h"
#include "base/slice.h"
#include "conf/conf.h"

#define ACCESS_LINE_MAX 4096 /* bytes, with its newline: PIPE_BUF */

struct scoreboard_peer;

struct access {
    struct sink sink;
    enum conf_access_format format;
    unsigned worker;     /* for JSON */
    uint64_t generation; /* for JSON */
    char *lines;         /* collected; NULL while the log is off */
    size_t length;
    time_t second; /* what `stamp` says */
    char stamp[40];
    struct log_limit limit;
};

/* What is known of an answer; what is not is empty, and logged as "-". */
struct access_entry {
    const struct scoreboard_peer *peer;
    struct slice line; /* the request line */
    struct slice host, referer, user_agent;
    unsigned status;
    uint64_t body;    /* bytes of the answer's body */
    int64_t duration; /* ns, from the first byte of the request to its answer */
};

/* Takes over the sink, which may be off. -1: ENOMEM. */
int access_init(struct access *access, struct sink sink, enum conf_access_format format,
                unsigned worker, uint64_t generation);
/* The same is said then. */
void access_fini(struct access *access);

/*
 * Writes what is collected to the old sink, says in the log what that lost, and takes over the new
 * one. -1: ENOMEM; the old one goes on, the new one stays the caller's.
 */
int access_set_sink(struct access *access, struct sink sink);

static inline bool access_is_on(const struct access *access)
{
    return access->lines != NULL;
}

/* Adds a line. Call it only when the log is on. */
void access_add(struct access *access, const struct access_entry *entry);

/* Writes what is collected, in whole lines. */
void access_flush(struct access *access);

/* Renders one line into `line`. Returns its length. `now` is nanoseconds since 1970. */
size_t access_format(struct access *access, char line[ACCESS_LINE_MAX],
                     const struct access_entry *entry, int64_t now);

#endif
