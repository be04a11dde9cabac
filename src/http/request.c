#include "http/request.h"

#include <http_parser.h>
#include <stddef.h>
#include <stdio.h>

#include "http/framing.h"
#include "http/head.h"
#include "http/route.h"

/* What http-parser says of a head. */
struct parse {
    struct request *request;
    struct slice target;
    uint64_t content_length; /* UINT64_MAX: none */
    bool is_chunked;
    bool is_complete;
};

void request_fini(struct request *request)
{
    buf_fini(&request->normal);
}

static enum request_result refuse(struct request *request, unsigned status, const char *reason)
{
    request->status = status;
    request->reason = reason;
    request->is_persistent = false;
    return REQUEST_REFUSED;
}

static int on_url(http_parser *parser, const char *at, size_t length)
{
    ((struct parse *)parser->data)->target = (struct slice){ at, length };
    return 0;
}

static int on_header_field(http_parser *parser, const char *at, size_t length)
{
    struct request *request = ((struct parse *)parser->data)->request;
    if (request->nfields == REQUEST_FIELDS_MAX)
        return -1;
    request->fields[request->nfields].name = (struct slice){ at, length };
    return 0;
}

static int on_header_value(http_parser *parser, const char *at, size_t length)
{
    struct request *request = ((struct parse *)parser->data)->request;
    request->fields[request->nfields++].value = slice_trim((struct slice){ at, length });
    return 0;
}

static int on_headers_complete(http_parser *parser)
{
    struct parse *parse = parser->data;
    parse->content_length = parser->content_length;
    parse->is_chunked = parser->flags & F_CHUNKED;
    parse->is_complete = true;
    return 1; /* no body for this parser: what follows is for body, and the framing is ours */
}

/* Runs http-parser over the whole head. NULL, or why it refused; the fields up to there are in. */
static const char *parse_head(struct parse *parse, struct slice head)
{
    static const struct http_parser_settings settings = {
        .on_url = on_url,
        .on_header_field = on_header_field,
        .on_header_value = on_header_value,
        .on_headers_complete = on_headers_complete,
    };
    http_parser parser;

    /* Its own limit is the process's and rarely in the way: ours has been kept already. */
    if (head.length >= HTTP_MAX_HEADER_SIZE)
        http_parser_set_max_header_size(UINT32_MAX / 2);
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = parse;
    /* It takes Transfer-EncodingX for Transfer-Encoding, and would refuse it beside a
     * Content-Length. Of what it is lenient in then, the scanner and framing let nothing pass. */
    parser.lenient_http_headers = 1;
    size_t used = http_parser_execute(&parser, &settings, head.data, head.length);
    if (HTTP_PARSER_ERRNO(&parser) != HPE_OK)
        return http_errno_description(HTTP_PARSER_ERRNO(&parser));
    if (used != head.length || !parse->is_complete)
        return "the parsers disagree about the end of the head";
    return NULL;
}

/* Lets a slice of `from` point to the same bytes of the copy `to`; static texts stay. */
static void move(struct slice *s, struct slice from, const char *to)
{
    uintptr_t offset = (uintptr_t)s->data - (uintptr_t)from.data;
    if (s->data && offset <= from.length)
        s->data = to + offset;
}

/*
 * The same for a head with HTAB, of which http-parser takes none behind a Content-Length or
 * Transfer-Encoding, where the grammar has OWS (RFC 9110, 5.6.3): it gets a copy without. What the
 * values are is judged on the bytes that came.
 */
static const char *parse_without_tabs(struct parse *parse, struct slice head)
{
    struct request *request = parse->request;
    struct buf copy = { 0 };
    if (buf_add_slice(&copy, head) == -1)
        return "out of memory";
    for (char *at = copy.data; (at = memchr(at, '\t', (size_t)(copy.data + copy.length - at)));)
        *at = ' ';
    const char *fault = parse_head(parse, buf_slice(&copy));
    move(&parse->target, buf_slice(&copy), head.data);
    for (unsigned i = 0; i < request->nfields; i++) {
        move(&request->fields[i].name, buf_slice(&copy), head.data);
        move(&request->fields[i].value, buf_slice(&copy), head.data);
    }
    buf_fini(&copy);
    return fault;
}

/* Parts the target, whose grammar the scanner has checked (RFC 9112, 3.2). -1: ENOMEM. */
static int split_target(struct request *request)
{
    struct slice rest = request->target;
    const char *end = rest.data + rest.length;
    if (request->method == METHOD_CONNECT) {
        request->host = rest;
        return 0;
    }
    if (rest.data[0] != '/' && rest.data[0] != '*') {
        const char *start = (const char *)memchr(rest.data, ':', rest.length) + 3;
        const char *stop = start;
        while (stop < end && *stop != '/' && *stop != '?')
            stop++;
        request->host = (struct slice){ start, (size_t)(stop - start) };
        request->is_absolute = true;
        request->is_https = start[-4] == 's' || start[-4] == 'S';
        rest = (struct slice){ stop, (size_t)(end - stop) };
    }
    const char *mark = rest.length > 0 ? memchr(rest.data, '?', rest.length) : NULL;
    if (mark) {
        request->query = (struct slice){ mark + 1, (size_t)(end - mark - 1) };
        rest.length = (size_t)(mark - rest.data);
    }
    request->path = rest;
    if (rest.length == 0) /* no path is "/", but OPTIONS means the server (RFC 9110, 4.2.3) */
        request->path = request->method == METHOD_OPTIONS && !mark ? SLICE("*") : SLICE("/");
    if (request->path.data[0] != '/')
        return 0;
    request->normal.length = 0;
    enum path_result result = path_normalise(&request->normal, request->path);
    if (result == PATH_CHANGED)
        request->path = buf_slice(&request->normal);
    return result == PATH_FAILED ? -1 : 0;
}

/*
 * Has http-parser seen what we have? Of "chunked" it may know less than we do, never more: a later
 * Transfer-EncodingX makes it forget.
 */
static bool agrees(const struct parse *parse, const struct request_scan *scan)
{
    const struct request *request = parse->request;
    uint64_t length = parse->content_length != UINT64_MAX ? parse->content_length : 0;
    return slice_equal(parse->target, request->target) && request->nfields == scan->fields &&
           length == request->content_length &&
           (!parse->is_chunked || request->framing == REQUEST_CHUNKED);
}

/* The head is whole and its grammar is right; what is left is its meaning. */
static enum request_result complete(struct request *request, const struct request_scan *scan,
                                    struct slice head)
{
    struct parse parse = { .request = request, .content_length = UINT64_MAX };
    const char *reason = NULL;
    unsigned status = 0;

    if (scan->major != 1)
        return refuse(request, 505, "the version is not HTTP/1");
    if (request->method == METHOD_UNKNOWN)
        return refuse(request, 501, "an unknown method");
    request->version = scan->minor == 0 ? 10 : 11;
    request->head_length = head.length;
    if (split_target(request) == -1)
        return refuse(request, 500, "out of memory");
    bool has_tab = memchr(head.data, '\t', head.length);
    const char *parse_fault = has_tab ? parse_without_tabs(&parse, head) : parse_head(&parse, head);
    if (request->nfields == scan->fields)
        status = framing_judge(request, &reason);
    if (status == 0 && parse_fault)
        return refuse(request, 400, parse_fault);
    if (status != 0)
        return refuse(request, status, reason);
    if (!agrees(&parse, scan))
        return refuse(request, 400, "the parsers disagree");
    return REQUEST_DONE;
}

/* All but the fields and `normal`, whose memory is used again. */
static void reset(struct request *request)
{
    memset(request, 0, offsetof(struct request, fields));
    request->status = 0;
    request->reason = NULL;
}

enum request_result request_feed(struct request *request, struct request_scan *scan,
                                 struct slice bytes, const struct request_limits *limits)
{
    enum request_result result = head_scan(scan, bytes, limits->header);
    if (result == REQUEST_MORE)
        return result;
    reset(request);
    head_line(scan, bytes, &request->method_text, &request->target);
    request->method = method_find(request->method_text);
    if (result == REQUEST_REFUSED)
        return refuse(request, scan->status, scan->reason);
    result = complete(request, scan, (struct slice){ bytes.data, scan->position });
    if (result == REQUEST_REFUSED) {
        scan->status = (uint16_t)request->status;
        scan->reason = request->reason;
    } else {
        *scan = (struct request_scan){ 0 };
    }
    return result;
}

struct slice request_field(const struct request *request, struct slice name)
{
    for (unsigned i = 0; i < request->nfields; i++)
        if (slice_equal_nocase(request->fields[i].name, name))
            return request->fields[i].value;
    return (struct slice){ NULL, 0 };
}

int request_move(struct request *to, const struct request *from, const char *old, const char *new)
{
    struct slice head = { old, from->head_length };
    struct buf normal = to->normal;
    bool is_normal = from->path.data && from->path.data == from->normal.data;
    if (to != from) {
        normal.length = 0;
        if (is_normal && buf_add_slice(&normal, from->path) == -1)
            return -1;
        *to = *from;
        to->normal = normal;
    }
    if (is_normal)
        to->path = buf_slice(&to->normal);
    else
        move(&to->path, head, new);
    struct slice *slices[] = { &to->method_text, &to->target,  &to->query,
                               &to->host,        &to->referer, &to->user_agent };
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
        move(slices[i], head, new);
    for (unsigned i = 0; i < to->nfields; i++) {
        move(&to->fields[i].name, head, new);
        move(&to->fields[i].value, head, new);
    }
    return 0;
}

void request_parser_version(char *text, size_t size)
{
    unsigned long version = http_parser_version();
    snprintf(text, size, "%lu.%lu.%lu", version >> 16, version >> 8 & 255, version & 255);
}
