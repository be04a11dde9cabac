/*
 * log: one line an event.
 *
 *   2026-11-30T08:00:00.122Z info  master[100]: worker 1 (pid 101) ready in 0.4 ms
 *
 * or the same as a JSON object. A line is at most 4,096 bytes and is written in one call. What is
 * not UTF-8, and what utf8_is_unfit says, is escaped in the whole line; whatever a client sent must be passed
 * through buf_add_escaped or log_quote besides. To the journal (recognised by JOURNAL_STREAM) each
 * line carries its priority.
 *
 * The log is a file static: a process has one, as it has one title and one start.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/sink.h"
#include "base/slice.h"

enum log_level {
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_ERROR,
};

enum log_format {
    LOG_FORMAT_TEXT,
    LOG_FORMAT_JSON,
};

#define LOG_LINE_MAX 4096

/* NULL-terminated, indexed by the enum: the words of the configuration. */
extern const char *const log_level_names[];
extern const char *const log_format_names[];

/* Who speaks: "master", "worker", "admin". The pid is asked for here, so call it after fork. */
void log_identify(const char *role);

/* Before the first call: text, level info, to descriptor 2. */
void log_set_format(enum log_format format, enum log_level level);

/*
 * Makes `sink` the log; the sink that was is closed. The log owns it from then on. `is_journal`
 * tells whether lines carry a priority (log_is_journal for descriptor 2).
 */
void log_set_sink(struct sink sink, bool is_journal);

/* Does this descriptor lead to the systemd journal? */
bool log_is_journal(int fd);

/* The descriptor of the log now, to hand to a child; -1 when off. Stays the log's. */
int log_descriptor(void);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_vwrite(enum log_level level, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)

/* A limit on one kind of line that a fault can repeat: zeroed at first. */
struct log_limit {
    int64_t window;   /* monotonic ns at which the window began */
    unsigned written; /* in this window */
    uint64_t swallowed;
};

/*
 * As log_write, but at most 5 lines in 10 s for one limit; the first line after a pause says how
 * many were swallowed.
 */
void log_limited(struct log_limit *limit, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The end of whoever has the limit: says what it swallowed since its last line. */
void log_limit_end(struct log_limit *limit, enum log_level level, const char *what);

/* Escapes what a client sent into `text` (always NUL-terminated, cut to fit); returns `text`. */
const char *log_quote(char *text, size_t size, struct slice from_client);

/* For start-up alone: writes an error line and exits with `status`. */
_Noreturn void log_fatal(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
