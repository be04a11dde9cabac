#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"

#define LIMIT_WINDOW (10 * CLOCK_SECOND)
#define LIMIT_LINES 5

const char *const log_level_names[] = {
    [LOG_LEVEL_DEBUG] = "debug",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_ERROR] = "error",
    NULL,
};

const char *const log_format_names[] = {
    [LOG_FORMAT_TEXT] = "text",
    [LOG_FORMAT_JSON] = "json",
    NULL,
};

/* The priorities of syslog(3), as sd-daemon(3) puts them before a line. */
static const char journal_priorities[] = {
    [LOG_LEVEL_DEBUG] = '7',
    [LOG_LEVEL_INFO] = '6',
    [LOG_LEVEL_WARNING] = '4',
    [LOG_LEVEL_ERROR] = '3',
};

static struct {
    struct sink sink;
    enum log_format format;
    enum log_level level;
    bool is_journal;
    char role[16];
    pid_t pid;
} self = {
    .sink = { .fd = 2, .kind = SINK_FILE },
    .format = LOG_FORMAT_TEXT,
    .level = LOG_LEVEL_INFO,
    .role = "hayate",
};

void log_identify(const char *role)
{
    snprintf(self.role, sizeof(self.role), "%s", role);
    self.pid = getpid();
    self.sink.dropped = 0; /* what the parent lost it tells itself */
}

void log_set_format(enum log_format format, enum log_level level)
{
    self.format = format;
    self.level = level;
}

void log_set_sink(struct sink sink, bool is_journal)
{
    if (self.sink.fd == 2)
        self.sink.fd = -1; /* not ours to close */
    sink_replace(&self.sink, sink);
    self.is_journal = is_journal;
}

bool log_is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uint64_t device, inode;
    struct stat status;
    return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
           fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

int log_descriptor(void)
{
    return self.sink.fd;
}

/* Puts `text` at the end of a line of bounded length, so that it cannot break the line: the
 * bytes of what is not UTF-8, or not fit for a line, become \xHH; in JSON the backslash of that is
 * escaped once more.
 * Leaves `reserve` bytes for what must follow; what does not fit is cut, never in mid-character. */
static size_t add_text(char *line, size_t length, size_t reserve, const char *text, bool is_json)
{
    size_t left = strlen(text);
    while (left > 0) {
        char piece[8];
        size_t width = utf8_width(text, left), made;
        unsigned char c = (unsigned char)*text;
        if (width > 0 && utf8_is_unfit(utf8_code(text, width)))
            width = 0; /* byte by byte: the bytes behind the first are no UTF-8 on their own */
        if (width == 0)
            made = (size_t)snprintf(piece, sizeof(piece), is_json ? "\\\\x%02X" : "\\x%02X", c);
        else if (is_json && (c == '"' || c == '\\'))
            made = (size_t)snprintf(piece, sizeof(piece), "\\%c", c);
        else
            memcpy(piece, text, made = width);
        if (length + made + reserve > LOG_LINE_MAX)
            break;
        memcpy(line + length, piece, made);
        length += made;
        text += width ? width : 1;
        left -= width ? width : 1;
    }
    return length;
}

static size_t format_line(char line[LOG_LINE_MAX], enum log_level level, const char *message)
{
    char stamp[CLOCK_STAMP_SIZE];
    clock_stamp(stamp, sizeof(stamp), clock_realtime());
    if (self.pid == 0)
        self.pid = getpid();
    size_t length = 0;
    if (self.is_journal)
        length = (size_t)snprintf(line, LOG_LINE_MAX, "<%c>", journal_priorities[level]);
    bool is_json = self.format == LOG_FORMAT_JSON;
    const char *head = is_json ? "{\"time\":\"%s\",\"level\":\"%s\",\"role\":\"%s\",\"pid\":%d,"
                                 "\"message\":\""
                               : "%s %-5s %s[%d]: ";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    length += (size_t)snprintf(line + length, LOG_LINE_MAX - length, head, stamp,
                               log_level_names[level], self.role, (int)self.pid);
#pragma GCC diagnostic pop
    const char *tail = is_json ? "\"}\n" : "\n";
    length = add_text(line, length, strlen(tail), message, is_json);
    memcpy(line + length, tail, strlen(tail));
    return length + strlen(tail);
}

static void write_message(enum log_level level, const char *message)
{
    char line[LOG_LINE_MAX];
    if (self.sink.dropped > 0) {
        char lost[64];
        snprintf(lost, sizeof(lost), "%" PRIu64 " log lines were dropped: nobody took them",
                 self.sink.dropped);
        size_t length = format_line(line, LOG_LEVEL_WARNING, lost);
        uint64_t before = self.sink.dropped;
        self.sink.dropped = 0;
        if (sink_write(&self.sink, line, length) == -1)
            self.sink.dropped = before;
    }
    size_t length = format_line(line, level, message);
    sink_write(&self.sink, line, length);
}

void log_vwrite(enum log_level level, const char *format, va_list args)
{
    int saved = errno;
    if (level >= self.level) {
        char message[LOG_LINE_MAX];
        vsnprintf(message, sizeof(message), format, args);
        write_message(level, message);
    }
    errno = saved;
}

void log_write(enum log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_vwrite(level, format, args);
    va_end(args);
}

void log_limited(struct log_limit *limit, enum log_level level, const char *format, ...)
{
    int64_t now = clock_monotonic();
    if (limit->written == 0 || now - limit->window >= LIMIT_WINDOW) {
        limit->window = now;
        limit->written = 0;
    }
    if (limit->written >= LIMIT_LINES) {
        limit->swallowed++;
        return;
    }
    limit->written++;
    char message[LOG_LINE_MAX];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    if (limit->swallowed > 0 && length >= 0 && (size_t)length < sizeof(message)) {
        snprintf(message + length, sizeof(message) - (size_t)length,
                 " (%" PRIu64 " similar lines swallowed)", limit->swallowed);
        limit->swallowed = 0;
    }
    log_write(level, "%s", message);
}

void log_limit_end(struct log_limit *limit, enum log_level level, const char *what)
{
    if (limit->swallowed > 0)
        log_write(level, "%" PRIu64 " more lines about %s were swallowed", limit->swallowed, what);
    limit->swallowed = 0;
}

const char *log_quote(char *text, size_t size, struct slice from_client)
{
    size_t length = 0;
    for (size_t i = 0; i < from_client.length; i++) {
        unsigned char c = (unsigned char)from_client.data[i];
        bool is_plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
        if (length + (is_plain ? 1 : 4) >= size)
            break;
        if (is_plain)
            text[length++] = (char)c;
        else
            length += (size_t)snprintf(text + length, size - length, "\\x%02X", c);
    }
    text[length] = '\0';
    return text;
}

void log_fatal(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_vwrite(LOG_LEVEL_ERROR, format, args);
    va_end(args);
    exit(status);
}
