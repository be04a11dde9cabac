#include "answer/answer.h"

#include <stdlib.h>
#include <string.h>

#include "answer/health.h"
#include "answer/redirect.h"
#include "answer/text.h"
#include "http/route.h"
#ifdef ENABLE_FAULTS
#include "answer/fault.h"
#endif

static const struct conf_kind *const kinds[] = {
    &text_kind.conf,
    &redirect_kind.conf,
    &health_kind.conf,
#ifdef ENABLE_FAULTS
    &fault_kind.conf,
#endif
    NULL,
};

static const char *path_fault(const char *path)
{
    return route_path_fault(slice_of(path));
}

/* Without memory paths count as different; whoever asks runs out of it soon enough. */
static bool path_equal(const char *a, const char *b)
{
    struct buf normal_a = { 0 }, normal_b = { 0 };
    struct slice left = slice_of(a), right = slice_of(b);
    bool is_equal = false;
    enum path_result result_a = path_normalise(&normal_a, left);
    enum path_result result_b = path_normalise(&normal_b, right);
    if (result_a != PATH_FAILED && result_b != PATH_FAILED) {
        if (result_a == PATH_CHANGED)
            left = buf_slice(&normal_a);
        if (result_b == PATH_CHANGED)
            right = buf_slice(&normal_b);
        is_equal = slice_equal(left, right);
    }
    buf_fini(&normal_a);
    buf_fini(&normal_b);
    return is_equal;
}

static const struct conf_kinds table = {
    .kinds = kinds,
    .path_fault = path_fault,
    .path_equal = path_equal,
};

const struct conf_kinds *answer_kinds(void)
{
    return &table;
}

struct admin_route {
    const char *path;
    enum health_probe probe;
};

static const struct admin_route admin_routes[] = {
    { "/healthz", HEALTH_LIVE },
    { "/readyz", HEALTH_READY },
};

#define ADMIN_ROUTES (sizeof admin_routes / sizeof admin_routes[0])

static int make_admin_route(struct conf_route *route, const struct admin_route *from)
{
    struct health_options *options = calloc(1, sizeof *options);
    struct conf_error error;
    route->kind = &health_kind.conf;
    route->options = options;
    route->path = strdup(from->path);
    if (!options || !route->path)
        return -1;
    options->probe = (int)from->probe;
    return route->kind->prepare(route, &error);
}

struct conf_route *answer_admin_routes(size_t *count)
{
    struct conf_route *routes = calloc(ADMIN_ROUTES, sizeof *routes);
    if (!routes)
        return NULL;
    for (size_t i = 0; i < ADMIN_ROUTES; i++) {
        if (make_admin_route(&routes[i], &admin_routes[i]) == -1) {
            answer_admin_routes_free(routes, ADMIN_ROUTES);
            return NULL;
        }
    }
    *count = ADMIN_ROUTES;
    return routes;
}

void answer_admin_routes_free(struct conf_route *routes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (routes[i].answer)
            routes[i].kind->release(routes[i].answer);
        free(routes[i].options);
        free(routes[i].path);
    }
    free(routes);
}
