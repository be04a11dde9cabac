/*
 * route: finds the route of a path. Exact paths, and prefixes written with a trailing "/" and "*".
 *
 * The longest match wins; an exact path wins over a prefix of the same length. Paths are compared
 * byte by byte after both sides were normalised (unreserved octets decoded, dot segments removed);
 * `//` and a trailing `/` count.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

struct routes;

/*
 * Compiles `count` paths, of which it keeps copies in normal form; the index of a path is its name
 * from then on. NULL: ENOMEM. Faults (route_path_fault) and duplicates (equality after normalising)
 * must have been refused before.
 */
struct routes *routes_new(const struct slice *paths, size_t count);
void routes_free(struct routes *routes);

/* The index of the route for a normalised path, or -1. */
int routes_find(const struct routes *routes, struct slice path);

/*
 * NULL when `path` may stand in a configuration, else what is wrong and would be right (static
 * text): must begin with "/", path characters only (RFC 3986, 3.3), "*" only as a last "/" "*".
 */
const char *route_path_fault(struct slice path);

enum path_result {
    PATH_SAME,    /* already normal: nothing was written */
    PATH_CHANGED, /* the normal form is in `out` */
    PATH_FAILED,  /* ENOMEM */
};

/*
 * Normalises an absolute path: decodes percent-encoded unreserved octets, makes other escapes
 * upper case, removes dot segments (RFC 3986, 5.2.4, 6.2.2). Percent signs must have been checked.
 */
enum path_result path_normalise(struct buf *out, struct slice path);

#endif
