#include "worker/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/scoreboard.h"
#include "base/utf8.h"

#define LINES_SIZE (8 * ACCESS_LINE_MAX)

/* Bytes that what came from the client may take, escaped. Together with everything else they stay
 * below ACCESS_LINE_MAX. */
#define LINE_ROOM 2048
#define FIELD_ROOM 512 /* each of host, referer, user agent */

/* A line being written. Nothing is ever cut but by the rooms above. */
struct pen {
    char *at;
};

static void put(struct pen *pen, struct slice text)
{
    memcpy(pen->at, text.data, text.length);
    pen->at += text.length;
}

static void put_string(struct pen *pen, const char *text)
{
    put(pen, slice_of(text));
}

static void put_number(struct pen *pen, uint64_t number)
{
    char digits[20];
    char *start = digits + sizeof digits;
    do
        *--start = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    put(pen, (struct slice){ start, (size_t)(digits + sizeof digits - start) });
}

/* As buf_add_escaped, at most `room` bytes. */
static void put_escaped(struct pen *pen, struct slice text, size_t room)
{
    static const char hex[] = "0123456789ABCDEF";
    const char *end = pen->at + room;
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool is_plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
        if (pen->at + (is_plain ? 1 : 4) > end)
            return;
        if (is_plain) {
            *pen->at++ = (char)c;
        } else {
            put(pen, SLICE("\\x"));
            *pen->at++ = hex[c >> 4];
            *pen->at++ = hex[c & 15];
        }
    }
}

/* As buf_add_json, at most `room` bytes; and NUL becomes U+FFFD too, for many a reader of JSON
 * refuses it. */
static void put_json(struct pen *pen, struct slice text, size_t room)
{
    const char *end = pen->at + room;
    for (size_t i = 0; i < text.length;) {
        unsigned char c = (unsigned char)text.data[i];
        size_t width = utf8_width(text.data + i, text.length - i);
        uint32_t code = width > 0 ? utf8_code(text.data + i, width) : 0;
        char piece[12];
        struct slice made = { piece, 0 };
        if (code == 0)
            made = SLICE("\xef\xbf\xbd");
        else if (utf8_is_unfit(code))
            made.length = (size_t)snprintf(piece, sizeof piece, "\\u%04x", code);
        else if (c == '"' || c == '\\')
            made.length = (size_t)snprintf(piece, sizeof piece, "\\%c", c);
        else
            made = (struct slice){ text.data + i, width };
        if (pen->at + made.length > end)
            return;
        put(pen, made);
        i += width ? width : 1;
    }
}

static void put_address(struct pen *pen, const struct scoreboard_peer *peer)
{
    char text[INET6_ADDRSTRLEN];
    if (peer->family == AF_INET || peer->family == AF_INET6)
        put_string(pen, inet_ntop(peer->family, peer->address, text, sizeof text));
    else
        put_string(pen, peer->family == AF_UNIX ? "unix" : "-");
}

/* The stamp of a second serves all its lines. */
static void refresh_stamp(struct access *access, int64_t now)
{
    time_t second = (time_t)(now / CLOCK_SECOND);
    if (second == access->second && access->stamp[0])
        return;
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm;
    access->second = second;
    gmtime_r(&second, &tm);
    if (access->format == CONF_ACCESS_JSON)
        strftime(access->stamp, sizeof access->stamp, "%Y-%m-%dT%H:%M:%S", &tm);
    else
        snprintf(access->stamp, sizeof access->stamp, "[%02d/%.3s/%d:%02d:%02d:%02d +0000]",
                 tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                 tm.tm_sec);
}

static void put_quoted(struct pen *pen, struct slice text, size_t room)
{
    put(pen, SLICE(" \""));
    if (text.length > 0)
        put_escaped(pen, text, room);
    else
        put(pen, SLICE("-"));
    put(pen, SLICE("\""));
}

static void format_combined(const struct access *access, struct pen *pen,
                            const struct access_entry *entry)
{
    put_address(pen, entry->peer);
    put(pen, SLICE(" - - "));
    put_string(pen, access->stamp);
    put_quoted(pen, entry->line, LINE_ROOM);
    put(pen, SLICE(" "));
    put_number(pen, entry->status);
    put(pen, SLICE(" "));
    if (entry->body > 0)
        put_number(pen, entry->body);
    else
        put(pen, SLICE("-"));
    put_quoted(pen, entry->referer, FIELD_ROOM);
    put_quoted(pen, entry->user_agent, FIELD_ROOM);
}

static void put_member(struct pen *pen, const char *name, struct slice text, size_t room)
{
    put(pen, SLICE(",\""));
    put_string(pen, name);
    put(pen, SLICE("\":\""));
    if (text.length > 0)
        put_json(pen, text, room);
    else
        put(pen, SLICE("-"));
    put(pen, SLICE("\""));
}

static void put_figure(struct pen *pen, const char *name, uint64_t number)
{
    put(pen, SLICE(",\""));
    put_string(pen, name);
    put(pen, SLICE("\":"));
    put_number(pen, number);
}

static void format_json(const struct access *access, struct pen *pen,
                        const struct access_entry *entry, int64_t now)
{
    char text[64];
    snprintf(text, sizeof text, ".%03dZ", (int)(now % CLOCK_SECOND / CLOCK_MILLISECOND));
    put(pen, SLICE("{\"time\":\""));
    put_string(pen, access->stamp);
    put_string(pen, text);
    put(pen, SLICE("\",\"address\":\""));
    put_address(pen, entry->peer);
    put(pen, SLICE("\""));
    put_member(pen, "request", entry->line, LINE_ROOM);
    put_figure(pen, "status", entry->status);
    put_figure(pen, "bytes", entry->body);
    put_member(pen, "host", entry->host, FIELD_ROOM / 2);
    put_member(pen, "referer", entry->referer, FIELD_ROOM);
    put_member(pen, "user_agent", entry->user_agent, FIELD_ROOM);
    int64_t microseconds = entry->duration / 1000;
    snprintf(text, sizeof text, ",\"duration\":%" PRId64 ".%06d", microseconds / 1000000,
             (int)(microseconds % 1000000));
    put_string(pen, text);
    put_figure(pen, "worker", access->worker);
    put_figure(pen, "generation", access->generation);
    put(pen, SLICE("}"));
}

size_t access_format(struct access *access, char line[ACCESS_LINE_MAX],
                     const struct access_entry *entry, int64_t now)
{
    struct pen pen = { line };
    refresh_stamp(access, now);
    if (access->format == CONF_ACCESS_JSON)
        format_json(access, &pen, entry, now);
    else
        format_combined(access, &pen, entry);
    put(&pen, SLICE("\n"));
    return (size_t)(pen.at - line);
}

int access_init(struct access *access, struct sink sink, enum conf_access_format format,
                unsigned worker, uint64_t generation)
{
    *access = (struct access){
        .sink = SINK_INIT,
        .format = format,
        .worker = worker,
        .generation = generation,
    };
    return access_set_sink(access, sink);
}

/* What is to be said and done before a sink is closed. */
static void finish(struct access *access)
{
    if (access->lines)
        access_flush(access);
    log_limit_end(&access->limit, LOG_LEVEL_WARNING, "the access log");
    if (access->sink.dropped > 0)
        log_warning("access log: %" PRIu64 " lines were dropped in all", access->sink.dropped);
    access->sink.dropped = 0;
}

void access_fini(struct access *access)
{
    finish(access);
    sink_close(&access->sink);
    free(access->lines);
    access->lines = NULL;
}

int access_set_sink(struct access *access, struct sink sink)
{
    bool is_on = sink.kind != SINK_OFF;
    char *lines = access->lines;
    if (is_on && !lines && !(lines = malloc(LINES_SIZE)))
        return -1;
    finish(access);
    sink_replace(&access->sink, sink);
    if (!is_on) {
        free(lines);
        lines = NULL;
    }
    access->lines = lines;
    return 0;
}

void access_add(struct access *access, const struct access_entry *entry)
{
    if (LINES_SIZE - access->length < ACCESS_LINE_MAX)
        access_flush(access);
    access->length +=
        access_format(access, access->lines + access->length, entry, clock_realtime());
}

/* The most whole lines that fit into one write that a pipe does not tear. */
static size_t whole_lines(const struct access *access, const char *lines, size_t length)
{
    if (access->sink.kind == SINK_FILE || length <= ACCESS_LINE_MAX)
        return length;
    const char *end = memrchr(lines, '\n', ACCESS_LINE_MAX);
    return (size_t)(end - lines) + 1;
}

void access_flush(struct access *access)
{
    size_t at = 0;
    while (at < access->length) {
        size_t length = whole_lines(access, access->lines + at, access->length - at);
        if (sink_write(&access->sink, access->lines + at, length) == -1)
            log_limited(&access->limit, LOG_LEVEL_WARNING, "access log: lines were dropped: %s",
                        strerror(errno));
        at += length;
    }
    access->length = 0;
}
