#include "http/head.h"

#include "http/grammar.h"

/* In the order in which a head goes through them: head_line compares. */
enum head_state {
    HEAD_START,
    HEAD_START_LF, /* CR of an empty line before the request line */
    HEAD_METHOD,
    HEAD_TARGET_START, /* SP after the method */
    HEAD_SCHEME,       /* absolute-form, up to "://"; mark: start of the target */
    HEAD_AUTHORITY,    /* mark: start of the authority */
    HEAD_ASTERISK,
    HEAD_TARGET,      /* path and query of any form */
    HEAD_PERCENT,     /* "%" in these */
    HEAD_PERCENT_HEX, /* "%" and one HEXDIG */
    HEAD_VERSION,     /* SP after the target; mark: start of the version */
    HEAD_LINE,        /* CRLF of any line */
    HEAD_NAME,
    HEAD_VALUE,
    HEAD_VALUE_LF, /* CR after a value */
    HEAD_END_LF,   /* CR of the empty line that ends the head */
    HEAD_DONE,
};

enum head_flag {
    HEAD_IS_CONNECT = 1,
    HEAD_IS_OPTIONS = 2,
};

/* One call of head_scan. The steps return where they stopped, or NULL when they refused. */
struct head {
    struct request_scan *scan;
    const char *base;
    const char *end;
};

static const char *refuse(struct head *head, unsigned status, const char *reason)
{
    head->scan->status = (uint16_t)status;
    head->scan->reason = reason;
    return NULL;
}

static const char *enter(struct head *head, enum head_state state, const char *at)
{
    head->scan->state = state;
    return at;
}

static const char *enter_marked(struct head *head, enum head_state state, const char *at)
{
    head->scan->mark = (uint32_t)(at - head->base);
    return enter(head, state, at);
}

static const char *scan_start(struct head *head, const char *at)
{
    if (head->scan->state == HEAD_START)
        return *at == '\r' ? enter(head, HEAD_START_LF, at + 1) : enter(head, HEAD_METHOD, at);
    if (*at != '\n')
        return refuse(head, 400, "bare CR");
    head->scan->line = (uint32_t)(at + 1 - head->base);
    return enter(head, HEAD_METHOD, at + 1);
}

static const char *scan_method(struct head *head, const char *at)
{
    const char *start = head->base + head->scan->line;
    at = grammar_skip(at, head->end, GRAMMAR_TOKEN);
    if (at == head->end)
        return at;
    if (*at != ' ' || at == start)
        return refuse(head, 400, "the method is not a token");
    struct slice method = { start, (size_t)(at - start) };
    if (slice_equal(method, SLICE("CONNECT")))
        head->scan->flags |= HEAD_IS_CONNECT;
    else if (slice_equal(method, SLICE("OPTIONS")))
        head->scan->flags |= HEAD_IS_OPTIONS;
    return enter(head, HEAD_TARGET_START, at + 1);
}

/* The first byte tells the form (RFC 9112, 3.2); CONNECT takes the authority-form and no other. */
static const char *scan_target_start(struct head *head, const char *at)
{
    if (head->scan->flags & HEAD_IS_CONNECT)
        return enter_marked(head, HEAD_AUTHORITY, at);
    if (*at == '/')
        return enter(head, HEAD_TARGET, at + 1);
    if (*at == 'h' || *at == 'H')
        return enter_marked(head, HEAD_SCHEME, at);
    if (*at != '*')
        return refuse(head, 400, "the request target has no known form");
    if (!(head->scan->flags & HEAD_IS_OPTIONS))
        return refuse(head, 400, "only OPTIONS has the target *");
    return enter(head, HEAD_ASTERISK, at + 1);
}

static bool is_start_of(struct slice start, struct slice whole)
{
    return start.length <= whole.length &&
           slice_equal_nocase(start, (struct slice){ whole.data, start.length });
}

static const char *scan_scheme(struct head *head, const char *at)
{
    const char *start = head->base + head->scan->mark;
    for (; at < head->end; at++) {
        struct slice seen = { start, (size_t)(at + 1 - start) };
        if (!is_start_of(seen, SLICE("http://")) && !is_start_of(seen, SLICE("https://")))
            return refuse(head, 400, "the request target has no known form");
        if (*at == '/' && at[-1] == '/')
            return enter_marked(head, HEAD_AUTHORITY, at + 1);
    }
    return at;
}

/* Of the absolute-form and the authority-form: it is judged when its end is seen. */
static const char *scan_authority(struct head *head, const char *at)
{
    bool is_connect = head->scan->flags & HEAD_IS_CONNECT;
    const char *start = head->base + head->scan->mark;
    while (at < head->end &&
           (grammar_is(*at, GRAMMAR_HOST) || *at == ':' || *at == '%' || *at == '[' || *at == ']'))
        at++;
    if (at == head->end)
        return at;
    if (*at != ' ' && (is_connect || (*at != '/' && *at != '?')))
        return refuse(head, 400,
                      *at == '@' ? "the request target names a user"
                                 : "a byte that no authority has");
    struct slice authority = { start, (size_t)(at - start) };
    const char *fault = grammar_authority_fault(authority, is_connect);
    if (fault)
        return refuse(head, 400, fault);
    return *at == ' ' ? enter_marked(head, HEAD_VERSION, at + 1) : enter(head, HEAD_TARGET, at + 1);
}

static const char *scan_target(struct head *head, const char *at)
{
    at = grammar_skip(at, head->end, GRAMMAR_TARGET);
    if (at == head->end)
        return at;
    if (*at == ' ')
        return enter_marked(head, HEAD_VERSION, at + 1);
    if (*at == '%')
        return enter(head, HEAD_PERCENT, at + 1);
    return refuse(head, 400,
                  *at == '\r' || *at == '\n' ? "the request line has no version"
                                             : "a byte that no request target has");
}

static const char *scan_percent(struct head *head, const char *at)
{
    if (!grammar_is(*at, GRAMMAR_HEX))
        return refuse(head, 400, "a percent sign without two hexadecimal digits");
    bool is_first = head->scan->state == HEAD_PERCENT;
    return enter(head, is_first ? HEAD_PERCENT_HEX : HEAD_TARGET, at + 1);
}

static const char *scan_asterisk(struct head *head, const char *at)
{
    if (*at != ' ')
        return refuse(head, 400, "the request target has no known form");
    return enter_marked(head, HEAD_VERSION, at + 1);
}

/* "HTTP/" DIGIT "." DIGIT CRLF: every byte has its place. HTTP/0.9 has no version to name. */
static const char *scan_version(struct head *head, const char *at)
{
    static const char shape[] = "HTTP/d.d\r\n";
    struct request_scan *scan = head->scan;
    for (; at < head->end; at++) {
        size_t place = (size_t)(at - head->base) - scan->mark;
        if (shape[place] == 'd' ? !grammar_is(*at, GRAMMAR_DIGIT) : *at != shape[place])
            return refuse(head, 400,
                          place < 8 ? "the version is not HTTP/ and two digits"
                                    : "the request line does not end with CRLF");
        if (place == 5)
            scan->major = (uint8_t)(*at - '0');
        if (place == 5 && scan->major == 0)
            return refuse(head, 400, "HTTP/0.9 names no version");
        if (place == 7)
            scan->minor = (uint8_t)(*at - '0');
        if (place == 9)
            return enter(head, HEAD_LINE, at + 1);
    }
    return at;
}

static const char *scan_line(struct head *head, const char *at)
{
    if (*at == '\r')
        return enter(head, HEAD_END_LF, at + 1);
    if (*at == ' ' || *at == '\t')
        return refuse(head, 400, "a folded line");
    if (!grammar_is(*at, GRAMMAR_TOKEN))
        return refuse(head, 400, *at == '\n' ? "bare LF" : "a field name is not a token");
    if (head->scan->fields == REQUEST_FIELDS_MAX)
        return refuse(head, 431, "too many fields");
    head->scan->fields++;
    return enter(head, HEAD_NAME, at + 1);
}

static const char *scan_name(struct head *head, const char *at)
{
    at = grammar_skip(at, head->end, GRAMMAR_TOKEN);
    if (at == head->end)
        return at;
    if (*at != ':')
        return refuse(head, 400,
                      *at == ' ' || *at == '\t' ? "a space before the colon"
                                                : "a field name is not a token");
    return enter(head, HEAD_VALUE, at + 1);
}

static const char *scan_value(struct head *head, const char *at)
{
    at = grammar_skip_value(at, head->end);
    if (at == head->end)
        return at;
    if (*at != '\r')
        return refuse(head, 400, *at == '\n' ? "bare LF" : "a control byte in a field value");
    return enter(head, HEAD_VALUE_LF, at + 1);
}

static const char *scan_lf(struct head *head, const char *at)
{
    if (*at != '\n')
        return refuse(head, 400, "bare CR");
    bool is_last = head->scan->state == HEAD_END_LF;
    return enter(head, is_last ? HEAD_DONE : HEAD_LINE, at + 1);
}

static const char *step(struct head *head, const char *at)
{
    switch ((enum head_state)head->scan->state) {
    case HEAD_START:
    case HEAD_START_LF:
        return scan_start(head, at);
    case HEAD_METHOD:
        return scan_method(head, at);
    case HEAD_TARGET_START:
        return scan_target_start(head, at);
    case HEAD_SCHEME:
        return scan_scheme(head, at);
    case HEAD_AUTHORITY:
        return scan_authority(head, at);
    case HEAD_ASTERISK:
        return scan_asterisk(head, at);
    case HEAD_TARGET:
        return scan_target(head, at);
    case HEAD_PERCENT:
    case HEAD_PERCENT_HEX:
        return scan_percent(head, at);
    case HEAD_VERSION:
        return scan_version(head, at);
    case HEAD_LINE:
        return scan_line(head, at);
    case HEAD_NAME:
        return scan_name(head, at);
    case HEAD_VALUE:
        return scan_value(head, at);
    case HEAD_VALUE_LF:
    case HEAD_END_LF:
        return scan_lf(head, at);
    case HEAD_DONE:
        break;
    }
    return NULL;
}

enum request_result head_scan(struct request_scan *scan, struct slice bytes, size_t limit)
{
    if (limit > UINT32_MAX)
        limit = UINT32_MAX;
    size_t length = bytes.length < limit ? bytes.length : limit;
    struct head head = { scan, bytes.data, bytes.data + length };
    const char *at = bytes.data + scan->position;
    if (scan->status != 0)
        return REQUEST_REFUSED;
    while (at < head.end && scan->state != HEAD_DONE) {
        const char *next = step(&head, at);
        if (!next)
            return REQUEST_REFUSED;
        at = next;
    }
    scan->position = (uint32_t)(at - bytes.data);
    if (scan->state == HEAD_DONE)
        return REQUEST_DONE;
    if (scan->position < limit)
        return REQUEST_MORE;
    if (scan->state == HEAD_METHOD)
        refuse(&head, 501, "the method is longer than any");
    else if (scan->state < HEAD_LINE)
        refuse(&head, 414, "the request line is too long");
    else
        refuse(&head, 431, "the head is too large");
    return REQUEST_REFUSED;
}

void head_line(const struct request_scan *scan, struct slice bytes, struct slice *method,
               struct slice *target)
{
    const char *at = bytes.data + scan->line;
    *method = *target = (struct slice){ "", 0 };
    if (scan->state < HEAD_TARGET_START)
        return;
    const char *end = bytes.data + bytes.length;
    const char *space = memchr(at, ' ', (size_t)(end - at));
    *method = (struct slice){ at, (size_t)(space - at) };
    if (scan->state < HEAD_VERSION)
        return;
    at = space + 1;
    space = memchr(at, ' ', (size_t)(end - at));
    *target = (struct slice){ at, (size_t)(space - at) };
}
