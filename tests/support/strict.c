#include "support/strict.h"

#include <stdlib.h>
#include <time.h>

#include "support/text.h"

#define DATE_SHAPE "%a, %d %b %Y %H:%M:%S GMT" /* IMF-fixdate, in the C locale */
#define FIELDS_MAX 32

struct field {
    struct slice name, value;
};

struct reading {
    struct strict *answer;
    struct field fields[FIELDS_MAX];
    unsigned nfields;
};

static bool fail(struct reading *reading, const char *fault)
{
    reading->answer->fault = fault;
    return false;
}

static bool matches(struct slice s, const char *pattern)
{
    return !memchr(s.data, '\0', s.length) && text_matches(text_copy(s.data, s.length), pattern);
}

/* Takes a line with its CRLF off the front; data is NULL when there is none. */
static struct slice take_line(struct slice *rest)
{
    const char *end = memmem(rest->data, rest->length, "\r\n", 2);
    if (!end)
        return (struct slice){ NULL, 0 };
    struct slice line = { rest->data, (size_t)(end - rest->data) };
    rest->data += line.length + 2;
    rest->length -= line.length + 2;
    return line;
}

/* The value of the field, which is there at most once; data is NULL when it is not there. */
static struct slice value_of(const struct reading *reading, const char *name)
{
    for (unsigned i = 0; i < reading->nfields; i++)
        if (slice_equal_nocase(reading->fields[i].name, slice_of(name)))
            return reading->fields[i].value;
    return (struct slice){ NULL, 0 };
}

static bool has(const struct reading *reading, const char *name)
{
    return value_of(reading, name).data != NULL;
}

/* No field of ours may stand twice, list or not (RFC 9110, 5.3). */
static bool read_field(struct reading *reading, struct slice line)
{
    if (!matches(line, "^[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^[:cntrl:] ]([^[:cntrl:]]*[^[:cntrl:] ])?$"))
        return fail(reading, "a field line is not name, colon, one space, and a value");
    const char *colon = memchr(line.data, ':', line.length);
    struct slice name = { line.data, (size_t)(colon - line.data) };
    if (has(reading, text_copy(name.data, name.length)))
        return fail(reading, "a field stands there twice");
    if (reading->nfields == FIELDS_MAX)
        return fail(reading, "too many fields");
    reading->fields[reading->nfields++] = (struct field){
        .name = name,
        .value = { colon + 2, line.length - name.length - 2 },
    };
    return true;
}

static bool read_head(struct reading *reading, struct slice *rest)
{
    struct slice line = take_line(rest);
    if (!line.data || !matches(line, "^HTTP/1\\.1 [1-5][0-9][0-9] [^[:cntrl:]]*$"))
        return fail(reading, "not a status line of HTTP/1.1");
    reading->answer->status = (unsigned)strtoul(line.data + 9, NULL, 10);
    while ((line = take_line(rest)).data && line.length > 0)
        if (!read_field(reading, line))
            return false;
    return line.data ? true : fail(reading, "a head without an end");
}

/* Its own writing again is the proof: of the day of the week too. */
static bool is_date(struct slice value)
{
    char again[64];
    struct tm tm = { 0 };
    const char *end = strptime(text_copy(value.data, value.length), DATE_SHAPE, &tm);
    if (!end || *end)
        return false;
    tm.tm_isdst = 0;
    time_t second = timegm(&tm);
    size_t length = strftime(again, sizeof again, DATE_SHAPE, gmtime(&second));
    return slice_equal(value, (struct slice){ again, length });
}

static bool judge_date(struct reading *reading)
{
    reading->answer->date = value_of(reading, "Date");
    if (!reading->answer->date.data)
        return fail(reading, "no Date");
    return is_date(reading->answer->date) || fail(reading, "the Date is no IMF-fixdate");
}

/* Fields that a status must have, and those that none of ours has. */
static bool judge_fields(struct reading *reading)
{
    static const struct {
        unsigned status;
        const char *name;
    } demands[] = {
        { 301, "Location" }, { 302, "Location" },           { 303, "Location" },
        { 307, "Location" }, { 308, "Location" },           { 401, "WWW-Authenticate" },
        { 405, "Allow" },    { 407, "Proxy-Authenticate" },
    };
    static const char *const unsent[] = { "Transfer-Encoding", "Trailer", "TE", "Upgrade",
                                          "Keep-Alive" };
    for (size_t i = 0; i < sizeof demands / sizeof *demands; i++)
        if (reading->answer->status == demands[i].status && !has(reading, demands[i].name))
            return fail(reading, text_format("no %s", demands[i].name));
    for (size_t i = 0; i < sizeof unsent / sizeof *unsent; i++)
        if (has(reading, unsent[i]))
            return fail(reading, text_format("has %s", unsent[i]));
    struct slice allow = value_of(reading, "Allow");
    if (allow.data && !matches(allow, "^[A-Z]+(, [A-Z]+)*$"))
        return fail(reading, "Allow is no list of methods");
    struct slice connection = value_of(reading, "Connection");
    reading->answer->is_last = connection.data && slice_equal(connection, SLICE("close"));
    if (connection.data && !reading->answer->is_last &&
        !slice_equal(connection, SLICE("keep-alive")))
        return fail(reading, "Connection says something else");
    return true;
}

/* The one framing (RFC 9112, 6.3), and the content after it. */
static bool judge_content(struct reading *reading, struct slice rest, bool is_head, size_t *length)
{
    unsigned status = reading->answer->status;
    bool is_bare = status < 200 || status == 204 || status == 304;
    struct slice given = value_of(reading, "Content-Length");
    *length = 0;
    if (is_bare)
        return !given.data || fail(reading, "Content-Length where no content is");
    if (!given.data || !matches(given, "^(0|[1-9][0-9]{0,8})$"))
        return fail(reading, "Content-Length is missing, or no number");
    unsigned long said = strtoul(given.data, NULL, 10);
    if (status == 205 && said > 0)
        return fail(reading, "content in a 205");
    if (said > 0 && !has(reading, "Content-Type"))
        return fail(reading, "content without a Content-Type");
    *length = is_head ? 0 : said;
    return *length <= rest.length || fail(reading, "less content than Content-Length says");
}

void strict_read(struct strict *answer, struct slice bytes, bool is_head)
{
    struct reading reading = { .answer = answer };
    struct slice rest = bytes;
    size_t length;
    *answer = (struct strict){ .date = { "", 0 } };
    if (!read_head(&reading, &rest))
        return;
    if (answer->status < 200 && reading.nfields > 0)
        answer->fault = "fields in a 100";
    else if (answer->status >= 200 && (!judge_date(&reading) || !judge_fields(&reading)))
        return;
    if (!answer->fault && judge_content(&reading, rest, is_head, &length))
        answer->all = (struct slice){ bytes.data, (size_t)(rest.data - bytes.data) + length };
}
