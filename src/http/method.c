#include "http/method.h"

#include <stdbool.h>
#include <string.h>

const char *const method_names[METHOD_COUNT] = {
    [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",     [METHOD_POST] = "POST",
    [METHOD_PUT] = "PUT",         [METHOD_DELETE] = "DELETE", [METHOD_CONNECT] = "CONNECT",
    [METHOD_OPTIONS] = "OPTIONS", [METHOD_TRACE] = "TRACE",   [METHOD_PATCH] = "PATCH",
};

/* What else http-parser knows: METHOD_OTHER. */
static const char *const other_names[] = {
    "ACL",       "BIND",       "CHECKOUT",   "COPY",        "LINK",   "LOCK",   "M-SEARCH",
    "MERGE",     "MKACTIVITY", "MKCALENDAR", "MKCOL",       "MOVE",   "NOTIFY", "PROPFIND",
    "PROPPATCH", "PURGE",      "REBIND",     "REPORT",      "SEARCH", "SOURCE", "SUBSCRIBE",
    "UNBIND",    "UNLINK",     "UNLOCK",     "UNSUBSCRIBE",
};

static bool is_name(struct slice s, const char *name)
{
    return s.data[0] == name[0] && slice_equal(s, slice_of(name));
}

enum method method_find(struct slice name)
{
    if (name.length == 0)
        return METHOD_UNKNOWN;
    for (int method = METHOD_GET; method < METHOD_OTHER; method++)
        if (is_name(name, method_names[method]))
            return (enum method)method;
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (is_name(name, other_names[i]))
            return METHOD_OTHER;
    return METHOD_UNKNOWN;
}

size_t method_set_text(char *text, size_t size, method_set set)
{
    size_t length = 0;
    if (size == 0)
        return 0;
    for (int method = METHOD_GET; method < METHOD_OTHER; method++) {
        const char *name = method_names[method];
        size_t comma = length > 0 ? 2 : 0;
        if (!(set & METHOD_BIT(method)))
            continue;
        if (length + comma + strlen(name) >= size)
            break;
        memcpy(text + length, ", ", comma);
        memcpy(text + length + comma, name, strlen(name));
        length += comma + strlen(name);
    }
    text[length] = '\0';
    return length;
}
