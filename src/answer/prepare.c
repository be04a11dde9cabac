#include "answer/prepare.h"

#include <stdlib.h>
#include <string.h>

#include "answer/field.h"
#include "http/grammar.h"
#include "http/status.h"

int prepare_no_memory(const struct conf_route *route, struct conf_error *error)
{
    return conf_route_error(error, route, "out of memory");
}

static int check_refused(const struct conf_route *route, unsigned refused, struct conf_error *error)
{
    const char *key = NULL;
    if (refused & PREPARE_NO_TYPE && route->type)
        key = "type";
    else if (refused & PREPARE_NO_STATUS && route->status)
        key = "status";
    else if (refused & PREPARE_NO_METHODS && route->methods)
        key = "methods";
    else if (refused & PREPARE_NO_HEADERS && route->nheaders)
        key = "headers";
    if (!key)
        return 0;
    return conf_route_error(error, route, "\"%s\" does not go with \"%s\": leave it out", key,
                            route->kind->key);
}

/* Skips a token, at least one character; NULL where there is none. */
static const char *skip_token(const char *at, const char *end)
{
    const char *next = at ? grammar_skip(at, end, GRAMMAR_TOKEN) : at;
    return next == at ? NULL : next;
}

static const char *skip_char(const char *at, const char *end, char c)
{
    return at && at < end && *at == c ? at + 1 : NULL;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

/* RFC 9110, 5.6.4. */
static const char *skip_quoted(const char *at, const char *end)
{
    for (at = skip_char(at, end, '"'); at && at < end; at++) {
        if (*at == '"')
            return at + 1;
        if (*at == '\\')
            at++;
        if (at == end || !grammar_is(*at, GRAMMAR_VALUE))
            return NULL;
    }
    return NULL;
}

/* type "/" subtype *( OWS ";" OWS name "=" value ) (RFC 9110, 5.6.6, 8.3.1). */
static bool is_media_type(struct slice type)
{
    const char *end = type.data + type.length;
    const char *at = skip_token(skip_char(skip_token(type.data, end), end, '/'), end);
    while (at && at < end) {
        at = skip_char(skip_blanks(at, end), end, ';');
        at = at ? skip_char(skip_token(skip_blanks(at, end), end), end, '=') : NULL;
        if (at)
            at = at < end && *at == '"' ? skip_quoted(at, end) : skip_token(at, end);
    }
    return at != NULL;
}

static int check_type(const struct conf_route *route, struct conf_error *error)
{
    if (!route->type)
        return 0;
    if (is_media_type(slice_of(route->type)))
        return 0;
    return conf_route_error(error, route,
                            "type must be a media type, such as \"text/html; charset=utf-8\"");
}

/* Statuses that mean nothing without a field of the route's own (RFC 9110, 15.3.7, 15.5). */
static const struct {
    unsigned status;
    const char *field, *example;
} needed_fields[] = {
    { 206, "Content-Range", "bytes 0-4/10" },
    { 401, "WWW-Authenticate", "Basic realm=\\\"NAME\\\"" },
    { 407, "Proxy-Authenticate", "Basic realm=\\\"NAME\\\"" },
};

/* Fields whose value is no list: a second line would make both wrong (RFC 9110, 5.3). */
static const char *const singular_fields[] = {
    "Age",           "Content-Location", "Content-Range", "ETag",   "Expires",
    "Last-Modified", "Location",         "Retry-After",   "Server",
};

static size_t count_headers(const struct conf_route *route, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < route->nheaders; i++)
        count += slice_equal_nocase(slice_of(route->headers[i].name), slice_of(name));
    return count;
}

static bool is_repeated(const struct conf_route *route, const char *name)
{
    for (size_t i = 0; i < sizeof singular_fields / sizeof singular_fields[0]; i++)
        if (slice_equal_nocase(slice_of(name), slice_of(singular_fields[i])))
            return count_headers(route, name) > 1;
    return false;
}

static int check_status(const struct conf_route *route, unsigned status, struct conf_error *error)
{
    for (size_t i = 0; i < sizeof needed_fields / sizeof needed_fields[0]; i++) {
        const char *field = needed_fields[i].field;
        if (status == needed_fields[i].status && count_headers(route, field) == 0)
            return conf_route_error(error, route,
                                    "status %u needs a field: headers = { %s = \"%s\" }", status,
                                    field, needed_fields[i].example);
    }
    if (status == 426) /* the field would be Upgrade, which the server alone may set */
        return conf_route_error(error, route,
                                "status 426 needs a protocol to upgrade to, and there is none");
    return 0;
}

static int check_headers(const struct conf_route *route, struct conf_error *error)
{
    for (size_t i = 0; i < route->nheaders; i++) {
        const struct conf_field *field = &route->headers[i];
        const char *fault = response_field_fault(slice_of(field->name), slice_of(field->value));
        if (!fault && is_repeated(route, field->name))
            fault = "has one value";
        else if (!fault && slice_equal_nocase(slice_of(field->name), SLICE("Content-Type")))
            fault = "\"type\" sets it";
        else if (!fault && slice_equal_nocase(slice_of(field->name), SLICE("Location")) &&
                 strcmp(route->kind->key, "redirect") == 0)
            fault = "\"redirect\" sets it";
        if (!fault)
            fault = field_fault(slice_of(field->name), slice_of(field->value));
        if (fault)
            return conf_route_error(error, route, "headers: %s: %s", field->name, fault);
    }
    return 0;
}

static int find_methods(const struct conf_route *route, method_set fallback, method_set *methods,
                        struct conf_error *error)
{
    method_set named = 0;
    *methods = METHOD_BIT(METHOD_OPTIONS);
    if (!route->methods)
        *methods |= fallback ? fallback : METHOD_BIT(METHOD_GET);
    else if (route->nmethods == 0)
        return conf_route_error(error, route, "methods names none: leave it out for the default");
    for (size_t i = 0; route->methods && i < route->nmethods; i++) {
        enum method method = method_find(slice_of(route->methods[i]));
        switch (method) {
        case METHOD_GET:
        case METHOD_HEAD:
        case METHOD_POST:
        case METHOD_PUT:
        case METHOD_DELETE:
        case METHOD_OPTIONS:
        case METHOD_PATCH:
            if (named & METHOD_BIT(method))
                return conf_route_error(error, route, "methods: \"%s\" stands there twice",
                                        route->methods[i]);
            named |= METHOD_BIT(method);
            break;
        default:
            return conf_route_error(error, route,
                                    "methods: \"%s\" is none of GET, HEAD, POST, PUT, DELETE, "
                                    "PATCH, OPTIONS",
                                    route->methods[i]);
        }
    }
    *methods |= named;
    if (*methods & METHOD_BIT(METHOD_GET))
        *methods |= METHOD_BIT(METHOD_HEAD);
    return 0;
}

/* The field lines of the fixed response. What `plan` adds comes last: kinds rely on it. */
static char *render_fields(const struct conf_route *route, const struct prepare_plan *plan,
                           method_set methods, size_t *length)
{
    struct buf text = { 0 };
    int failed = 0;
    const char *type = route->type ? route->type : plan->type;
    if (type && status_has_body(plan->status))
        failed |= buf_printf(&text, "Content-Type: %s\r\n", type);
    for (size_t i = 0; i < route->nheaders; i++)
        failed |= buf_printf(&text, "%s: %s\r\n", route->headers[i].name, route->headers[i].value);
    if (plan->status == 405) { /* RFC 9110, 15.5.6 */
        char names[128];
        method_set_text(names, sizeof names, methods);
        failed |= buf_printf(&text, "Allow: %s\r\n", names);
    }
    failed |= buf_add_slice(&text, plan->fields);
    if (failed || !buf_string(&text)) {
        buf_fini(&text);
        return NULL;
    }
    *length = text.length;
    return text.data;
}

/* 204 and 405, which say what is allowed (RFC 9110, 9.3.7, 15.5.6). */
static int prepare_allow(struct answer *answer)
{
    char methods[128];
    method_set_text(methods, sizeof methods, answer->methods);
    struct buf text = { 0 };
    if (buf_printf(&text, "Content-Type: text/plain\r\nAllow: %s\r\n", methods) == -1)
        return -1;
    answer->allow = text.data;
    struct slice both = buf_slice(&text);
    size_t type = SLICE("Content-Type: text/plain\r\n").length;

    answer->options.status = 204;
    answer->options.fields = (struct slice){ both.data + type, both.length - type };
    answer->not_allowed.status = 405;
    answer->not_allowed.fields = both;
    answer->not_allowed.body = SLICE("405 Method Not Allowed\n");
    if (response_prepare(&answer->options) == -1)
        return -1;
    return response_prepare(&answer->not_allowed);
}

static bool is_exact(const char *path)
{
    size_t length = strlen(path);
    return length < 2 || strcmp(path + length - 2, "/*") != 0;
}

static int render(struct answer *answer, const struct conf_route *route,
                  const struct prepare_plan *plan)
{
    size_t length = 0;
    answer->fields = render_fields(route, plan, answer->methods, &length);
    if (!answer->fields)
        return -1;
    answer->fixed.status = plan->status;
    answer->fixed.fields = (struct slice){ answer->fields, length };
    answer->fixed.body = plan->body;
    if (response_prepare(&answer->fixed) == -1)
        return -1;
    return prepare_allow(answer);
}

int prepare_answer(struct conf_route *route, const struct prepare_plan *plan,
                   struct conf_error *error)
{
    method_set methods;
    if (check_refused(route, plan->refused, error) == -1 || check_type(route, error) == -1 ||
        check_headers(route, error) == -1 || check_status(route, plan->status, error) == -1 ||
        find_methods(route, plan->methods, &methods, error) == -1)
        return -1;

    struct answer *answer = calloc(1, sizeof *answer);
    if (!answer)
        return prepare_no_memory(route, error);
    answer->kind = plan->kind;
    answer->methods = methods;
    answer->delay = route->delay;
    answer->is_late = route->delay > 0;
    answer->is_fixed = plan->kind->serve == prepare_serve_fixed;
    answer->is_harmless =
        !answer->is_late && is_exact(route->path) && methods & METHOD_BIT(METHOD_GET);
    if (render(answer, route, plan) == -1) {
        prepare_release(answer);
        return prepare_no_memory(route, error);
    }
    route->answer = answer;
    return 0;
}

void prepare_release(void *prepared)
{
    struct answer *answer = prepared;
    response_fini(&answer->options);
    response_fini(&answer->not_allowed);
    response_fini(&answer->fixed);
    free(answer->fields);
    free(answer->allow);
    free(answer->body);
    free(answer);
}

void prepare_serve_fixed(const struct answer *answer, struct exchange *exchange)
{
    exchange->response = &answer->fixed;
    exchange_done(exchange);
}
