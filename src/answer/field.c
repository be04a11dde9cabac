#include "answer/field.h"

#include <stdbool.h>
#include <time.h>

#include "http/date.h"
#include "http/grammar.h"

/* [ "W/" ] DQUOTE *etagc DQUOTE (RFC 9110, 8.8.3): no blank, no quote, and no escape for one. */
static bool is_entity_tag(struct slice value)
{
    const char *at = value.data, *end = value.data + value.length;
    if (end - at >= 2 && at[0] == 'W' && at[1] == '/')
        at += 2;
    if (end - at < 2 || *at++ != '"' || *--end != '"')
        return false;
    for (; at < end; at++)
        if (*at == '"' || *at == ' ' || !grammar_is(*at, GRAMMAR_VALUE) || *at == '\t')
            return false;
    return true;
}

/* The one form of the three that may be sent (RFC 9110, 5.6.7). */
static bool is_date(struct slice value)
{
    time_t second;
    char text[DATE_LENGTH + 1];
    if (!date_parse(&second, value, time(NULL)))
        return false;
    date_format(text, second);
    return slice_equal(value, slice_of(text));
}

static bool is_seconds(struct slice value)
{
    const char *end = value.data + value.length;
    return value.length > 0 && grammar_skip(value.data, end, GRAMMAR_DIGIT) == end;
}

static bool is_delay(struct slice value)
{
    return is_seconds(value) || is_date(value);
}

#define DATE "\"Sun, 06 Nov 1994 08:49:37 GMT\""
#define URI \
    "must be a path or a URL without blanks, and with %XX for what no URL may have: \"/a%20b\""

static const struct {
    const char *name;
    bool (*is_right)(struct slice value);
    const char *fault;
} rows[] = {
    { "Age", is_seconds, "must be a number of seconds, such as \"60\"" },
    { "Content-Location", grammar_is_uri, URI },
    { "ETag", is_entity_tag,
      "must have quotes of its own, and no blank or quote between them: ETag = \"\\\"abc\\\"\", or "
      "weak, ETag = \"W/\\\"abc\\\"\"" },
    { "Expires", is_date, "must be a date, one in the past for what has expired already: " DATE },
    { "Last-Modified", is_date, "must be a date: " DATE },
    { "Location", grammar_is_uri, URI },
    { "Retry-After", is_delay, "must be a number of seconds, such as \"120\", or a date: " DATE },
};

const char *field_fault(struct slice name, struct slice value)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (slice_equal_nocase(name, slice_of(rows[i].name)) && !rows[i].is_right(value))
            return rows[i].fault;
    return NULL;
}
