#include "answer/redirect.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "answer/prepare.h"
#include "conf/schema.h"
#include "http/grammar.h"
#include "http/request.h"
#include "http/status.h"

struct redirect_options {
    char *target;
};

static const struct schema_row rows[] = {
    {
        .key = "redirect",
        .type = SCHEMA_STRING,
        .offset = offsetof(struct redirect_options, target),
        .purpose = "where the client is sent, a path or an absolute http or https URL; the query "
                   "of the request goes along; status is 301, 302, 303, 307 or 308 (the default)",
    },
};

/* A method goes along, with 307 and 308 (RFC 9110, 15.4.8). */
#define METHODS                                                                  \
    (METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_POST) | METHOD_BIT(METHOD_PUT) | \
     METHOD_BIT(METHOD_PATCH) | METHOD_BIT(METHOD_DELETE))

/* The authority of an absolute URL; data is NULL when it is none. */
static struct slice authority_of(const char *target)
{
    size_t scheme = strncasecmp(target, "https://", 8) == 0  ? 8
                    : strncasecmp(target, "http://", 7) == 0 ? 7
                                                             : 0;
    if (scheme == 0)
        return (struct slice){ NULL, 0 };
    return (struct slice){ target + scheme, strcspn(target + scheme, "/?#") };
}

static const char *target_fault(const char *target)
{
    if (!grammar_is_uri(slice_of(target)))
        return "has a character that no URL may have: write it as %XX";
    /* RFC 3986, 4.2: two slashes begin with a host. */
    if (target[0] == '/' && target[1] == '/')
        return "begins with two slashes, which names another host: write http:// or https://";
    struct slice authority = authority_of(target);
    if (target[0] != '/' && authority.length == 0)
        return "must be a path (\"/hello\") or a URL (\"https://example.org/\")";
    if (authority.data && grammar_authority_fault(authority, false))
        return "has no valid host and port";
    if (strchr(target, '#') != strrchr(target, '#'))
        return "has more than one #: write %23";
    return NULL;
}

static int render(struct conf_route *route, const char *target, unsigned status,
                  struct conf_error *error)
{
    struct buf location = { 0 }, body = { 0 };
    int result = -1;
    if (buf_printf(&location, "Location: %s\r\n", target) == -1 ||
        buf_printf(&body, "%u %s\n", status, status_reason(status)) == -1) {
        result = prepare_no_memory(route, error);
    } else {
        const struct prepare_plan plan = {
            .kind = &redirect_kind,
            .refused = PREPARE_NO_TYPE,
            .status = status,
            .methods = METHODS,
            .type = "text/plain",
            .fields = buf_slice(&location),
            .body = buf_slice(&body),
        };
        result = prepare_answer(route, &plan, error);
    }
    if (result == 0) {
        struct answer *answer = route->answer;
        answer->body = body.data;
    } else {
        buf_fini(&body);
    }
    buf_fini(&location);
    return result;
}

static int prepare(struct conf_route *route, struct conf_error *error)
{
    const struct redirect_options *options = route->options;
    const char *fault = target_fault(options->target);
    if (fault)
        return conf_route_error(error, route, "redirect: \"%s\" %s", options->target, fault);
    switch (route->status) {
    case 0:
        return render(route, options->target, 308, error);
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        return render(route, options->target, (unsigned)route->status, error);
    default:
        return conf_route_error(error, route,
                                "status of a redirect must be 301, 302, 303, 307 or 308, not %d",
                                route->status);
    }
}

/* The fixed fields end with the Location; the query goes before its fragment. */
static int add_query(const struct answer *answer, struct exchange *exchange)
{
    const struct redirect_options *options = exchange->route->options;
    size_t before = strcspn(options->target, "#");
    size_t fragment = strlen(options->target) - before;
    const char *separator = memchr(options->target, '?', before) ? "&" : "?";
    struct slice fields = answer->fixed.fields;
    struct buf *text = &exchange->text;

    int failed = buf_add(text, fields.data, fields.length - 2 - fragment);
    failed |= buf_add_string(text, separator);
    failed |= buf_add_slice(text, exchange->request->query);
    failed |= buf_add_string(text, options->target + before);
    failed |= buf_add_string(text, "\r\n");
    if (failed)
        return -1;
    exchange->own = (struct response){
        .status = answer->fixed.status,
        .fields = buf_slice(text),
        .body = answer->fixed.body,
    };
    return 0;
}

static void serve(const struct answer *answer, struct exchange *exchange)
{
    if (exchange->request->query.length == 0)
        exchange->response = &answer->fixed;
    else if (add_query(answer, exchange) == 0)
        exchange->response = &exchange->own;
    else
        exchange->response = response_errors_find(exchange->context->errors, 500);
    exchange_done(exchange);
}

const struct answer_kind redirect_kind = {
    .conf = {
        .key = "redirect",
        .rows = rows,
        .nrows = sizeof rows / sizeof rows[0],
        .options_size = sizeof(struct redirect_options),
        .prepare = prepare,
        .release = prepare_release,
    },
    .serve = serve,
};
