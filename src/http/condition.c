#include "http/condition.h"

#include <stdbool.h>
#include <string.h>

#include "http/date.h"
#include "http/request.h"

/* Takes a line off the front, as name and value. False when none is left. */
static bool next_line(struct slice *fields, struct slice *line, struct slice *name,
                      struct slice *value)
{
    const char *end = fields->length > 0 ? memchr(fields->data, '\n', fields->length) : NULL;
    if (!end)
        return false;
    *line = (struct slice){ fields->data, (size_t)(end + 1 - fields->data) };
    const char *colon = memchr(line->data, ':', line->length);
    *name = *value = SLICE("");
    if (colon) {
        *name = (struct slice){ line->data, (size_t)(colon - line->data) };
        struct slice rest = { colon + 1, (size_t)(end - colon - 1) };
        if (rest.length > 0 && rest.data[rest.length - 1] == '\r')
            rest.length--;
        *value = slice_trim(rest);
    }
    *fields = (struct slice){ end + 1, fields->length - line->length };
    return true;
}

/* The value of the first such field line; data is NULL when there is none. */
static struct slice find_line(struct slice fields, struct slice wanted)
{
    struct slice line, name, value;
    while (next_line(&fields, &line, &name, &value))
        if (slice_equal_nocase(name, wanted))
            return value;
    return (struct slice){ 0 };
}

/*
 * Takes an entity-tag and the comma behind it off the front (8.8.3); its opaque part, quotes
 * included, is between the quotes of its own, so a comma may be in it. False at the end, or where
 * none begins: what follows is then no list of them.
 */
static bool next_tag(struct slice *list, struct slice *tag, bool *is_weak)
{
    const char *at = list->data, *end = list->data + list->length;
    while (at < end && (*at == ',' || *at == ' ' || *at == '\t'))
        at++;
    *is_weak = end - at > 2 && memcmp(at, "W/", 2) == 0;
    if (*is_weak)
        at += 2;
    const char *closing =
        at < end && *at == '"' ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;
    if (!closing)
        return false;
    *tag = (struct slice){ at, (size_t)(closing + 1 - at) };
    *list = (struct slice){ closing + 1, (size_t)(end - closing - 1) };
    return true;
}

/* Does a member of the lists of that name match the tag? Weakly (8.8.3.2) or strongly. */
static bool has_match(const struct request *request, struct slice name, struct slice etag,
                      bool exists, bool is_strong)
{
    struct slice own = { 0 }, tag;
    bool is_own_weak = false, is_weak;
    bool has_own = etag.data && next_tag(&etag, &own, &is_own_weak);
    for (unsigned i = 0; i < request->nfields; i++) {
        struct slice list = request->fields[i].value;
        if (!slice_equal_nocase(request->fields[i].name, name))
            continue;
        if (slice_equal(list, SLICE("*")) && exists)
            return true;
        while (has_own && next_tag(&list, &tag, &is_weak))
            if (slice_equal(tag, own) && !(is_strong && (is_weak || is_own_weak)))
                return true;
    }
    return false;
}

/* The date in the one field line of that name. */
static bool find_date(const struct request *request, struct slice name, time_t now, time_t *second)
{
    struct slice value = request_field(request, name);
    unsigned count = 0;
    for (unsigned i = 0; i < request->nfields; i++)
        count += slice_equal_nocase(request->fields[i].name, name);
    return count == 1 && date_parse(second, value, now);
}

enum condition condition_judge(const struct request *request, struct slice fields, bool exists,
                               time_t now)
{
    struct slice etag = find_line(fields, SLICE("ETag"));
    time_t modified = 0, since;
    bool has_modified = date_parse(&modified, find_line(fields, SLICE("Last-Modified")), now);
    bool reads = request->method == METHOD_GET || request->method == METHOD_HEAD;
    enum condition unless = reads ? CONDITION_NOT_MODIFIED : CONDITION_FAILED;

    /* In this order (13.2.2). */
    if (request_field(request, SLICE("If-Match")).data) {
        if (!has_match(request, SLICE("If-Match"), etag, exists, true))
            return CONDITION_FAILED;
    } else if (has_modified && find_date(request, SLICE("If-Unmodified-Since"), now, &since) &&
               modified > since) {
        return CONDITION_FAILED;
    }
    if (request_field(request, SLICE("If-None-Match")).data)
        return has_match(request, SLICE("If-None-Match"), etag, exists, false) ? unless
                                                                               : CONDITION_MET;
    if (reads && has_modified && find_date(request, SLICE("If-Modified-Since"), now, &since) &&
        modified <= since)
        return CONDITION_NOT_MODIFIED;
    return CONDITION_MET;
}

int condition_keep(struct buf *to, struct slice fields)
{
    static const char *const kept[] = {
        "Cache-Control", "Content-Location", "ETag", "Expires", "Vary",
    };
    struct slice line, name, value;
    while (next_line(&fields, &line, &name, &value))
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
            if (slice_equal_nocase(name, slice_of(kept[i])) && buf_add_slice(to, line) == -1)
                return -1;
    return 0;
}
