#include "http/route.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "http/grammar.h"

struct route {
    struct slice path; /* normalised; a prefix ends with "/" */
    int index;         /* the caller's; -1: the place is empty */
    bool is_prefix;
};

/* A hash table with open addressing, at most half full. */
struct routes {
    struct buf text; /* what the paths point into */
    size_t *lengths; /* of the prefixes, each once, the longest first */
    size_t nlengths;
    size_t mask; /* places - 1 */
    struct route places[];
};

static size_t hash(struct slice path, bool is_prefix)
{
    uint64_t h = path.length * 2 + is_prefix;
    uint64_t word = 0;
    size_t at = 0;
    for (; path.length - at >= 8; at += 8) {
        memcpy(&word, path.data + at, 8);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    word = 0;
    for (; at < path.length; at++)
        word = word << 8 | (unsigned char)path.data[at];
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 32);
}

/* The place of the route, or the empty place where it would be. */
static const struct route *find(const struct routes *routes, struct slice path, bool is_prefix)
{
    size_t place = hash(path, is_prefix) & routes->mask;
    for (;;) {
        const struct route *route = &routes->places[place];
        if (route->index == -1 || (route->is_prefix == is_prefix && slice_equal(route->path, path)))
            return route;
        place = (place + 1) & routes->mask;
    }
}

/* Keeps the lengths unique and sorted, the longest first. */
static void add_length(struct routes *routes, size_t length)
{
    size_t at = 0;
    while (at < routes->nlengths && routes->lengths[at] > length)
        at++;
    if (at < routes->nlengths && routes->lengths[at] == length)
        return;
    memmove(&routes->lengths[at + 1], &routes->lengths[at],
            (routes->nlengths - at) * sizeof *routes->lengths);
    routes->lengths[at] = length;
    routes->nlengths++;
}

/* Puts the normal form of `path`, without the "*" of a prefix, at the end of the text. */
static int add_text(struct buf *text, struct slice path, bool *is_prefix)
{
    struct buf normal = { 0 };
    *is_prefix = path.data[path.length - 1] == '*';
    if (*is_prefix)
        path.length--;
    enum path_result result = path_normalise(&normal, path);
    int added = result == PATH_FAILED
                    ? -1
                    : buf_add_slice(text, result == PATH_CHANGED ? buf_slice(&normal) : path);
    buf_fini(&normal);
    return added;
}

struct routes *routes_new(const struct slice *paths, size_t count)
{
    size_t places = 2;
    while (places < count * 2)
        places *= 2;
    struct routes *routes = calloc(1, sizeof *routes + places * sizeof routes->places[0]);
    if (!routes)
        return NULL;
    routes->mask = places - 1;
    for (size_t i = 0; i < places; i++)
        routes->places[i].index = -1;

    size_t *ends = calloc(count + 1, sizeof *ends);
    bool *prefixes = calloc(count + 1, sizeof *prefixes);
    routes->lengths = calloc(count + 1, sizeof *routes->lengths);
    bool is_made = ends && prefixes && routes->lengths;
    for (size_t i = 0; is_made && i < count; i++) {
        is_made = add_text(&routes->text, paths[i], &prefixes[i]) == 0;
        ends[i] = routes->text.length;
    }
    for (size_t i = 0; is_made && i < count; i++) { /* only now the text stays where it is */
        size_t start = i > 0 ? ends[i - 1] : 0;
        struct slice path = { routes->text.data + start, ends[i] - start };
        struct route *route = (struct route *)find(routes, path, prefixes[i]);
        *route = (struct route){ path, (int)i, prefixes[i] };
        if (prefixes[i])
            add_length(routes, path.length);
    }
    free(ends);
    free(prefixes);
    if (is_made)
        return routes;
    routes_free(routes);
    return NULL;
}

void routes_free(struct routes *routes)
{
    if (!routes)
        return;
    buf_fini(&routes->text);
    free(routes->lengths);
    free(routes);
}

int routes_find(const struct routes *routes, struct slice path)
{
    int index = find(routes, path, false)->index;
    for (size_t i = 0; index == -1 && i < routes->nlengths; i++) {
        size_t length = routes->lengths[i];
        if (length <= path.length && path.data[length - 1] == '/')
            index = find(routes, (struct slice){ path.data, length }, true)->index;
    }
    return index;
}

const char *route_path_fault(struct slice path)
{
    if (path.length == 0 || path.data[0] != '/')
        return "a path begins with \"/\"";
    for (size_t i = 0; i < path.length; i++) {
        char c = path.data[i];
        if (c == '*' && (i + 1 < path.length || path.data[i - 1] != '/'))
            return "\"*\" stands only at the end of a path, after \"/\" (elsewhere: %2A)";
        if (c == '?' || c == '#')
            return "a path has no query or fragment (\"?\" is %3F, \"#\" is %23)";
        if (c == '%' && (path.length - i < 3 || !grammar_is(path.data[i + 1], GRAMMAR_HEX) ||
                         !grammar_is(path.data[i + 2], GRAMMAR_HEX)))
            return "\"%\" is followed by two hexadecimal digits (itself: %25)";
        if (c != '%' && !grammar_is(c, GRAMMAR_PATH))
            return "a byte that no path has: percent-encode it";
    }
    return NULL;
}

/* Is there an escape, or a segment that begins with a dot? Only then is there work to do. */
static bool may_change(struct slice path)
{
    for (size_t i = 0; i < path.length; i++)
        if (path.data[i] == '%' ||
            (path.data[i] == '/' && i + 1 < path.length && path.data[i + 1] == '.'))
            return true;
    return false;
}

/* Writes one segment to `to` with its escapes in normal form; returns its end. */
static char *write_segment(char *to, const char *at, const char *end)
{
    static const char digits[] = "0123456789ABCDEF";
    while (at < end) {
        if (*at != '%') {
            *to++ = *at++;
            continue;
        }
        unsigned high = grammar_hex(at[1]), low = grammar_hex(at[2]);
        char decoded = (char)(high << 4 | low);
        at += 3;
        if (grammar_is(decoded, GRAMMAR_UNRESERVED)) {
            *to++ = decoded;
            continue;
        }
        *to++ = '%';
        *to++ = digits[high];
        *to++ = digits[low];
    }
    return to;
}

static bool is_segment(const char *start, const char *end, const char *dots)
{
    return slice_equal((struct slice){ start, (size_t)(end - start) }, slice_of(dots));
}

enum path_result path_normalise(struct buf *out, struct slice path)
{
    if (!may_change(path))
        return PATH_SAME;
    if (buf_reserve(out, path.length + 1) == -1)
        return PATH_FAILED;
    char *top = out->data + out->length; /* of this path; `out` may hold others before it */
    char *to = top;
    const char *at = path.data, *end = path.data + path.length;
    while (at < end) { /* *at is the "/" before a segment */
        const char *next = memchr(at + 1, '/', (size_t)(end - at - 1));
        char *slash = to;
        if (!next)
            next = end;
        *to++ = '/';
        to = write_segment(to, at + 1, next);
        bool is_parent = is_segment(slash + 1, to, "..");
        if (is_parent || is_segment(slash + 1, to, ".")) {
            to = slash;
            while (is_parent && to > top && *--to != '/')
                ;
            if (next == end) /* what it names is a folder */
                *to++ = '/';
        }
        at = next;
    }
    size_t length = (size_t)(to - top);
    if (length == path.length && memcmp(top, path.data, length) == 0)
        return PATH_SAME;
    out->length += length;
    return PATH_CHANGED;
}
