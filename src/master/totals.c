#include "master/totals.h"

#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "master/generation.h"
#include "master/master.h"

void totals_fini(struct totals *totals)
{
    for (size_t i = 0; i < totals->nroutes; i++)
        free(totals->routes[i].path);
    free(totals->routes);
    *totals = (struct totals){ 0 };
}

static struct totals_route *find(struct totals *totals, const char *path)
{
    for (size_t i = 0; i < totals->nroutes; i++) {
        const char *known = totals->routes[i].path;
        if (known == path || (known && path && strcmp(known, path) == 0))
            return &totals->routes[i];
    }
    struct totals_route *routes = realloc(totals->routes, (totals->nroutes + 1) * sizeof(*routes));
    if (!routes)
        return NULL;
    totals->routes = routes;
    char *copy = path ? strdup(path) : NULL;
    if (path && !copy)
        return NULL;
    routes[totals->nroutes] = (struct totals_route){ .path = copy };
    return &routes[totals->nroutes++];
}

int totals_add_route(struct totals *totals, const char *path, const uint64_t *responses)
{
    struct totals_route *route = find(totals, path);
    for (unsigned class = 0; route && class < TALLY_CLASSES; class ++)
        route->responses[class] += responses[class];
    return route ? 0 : -1;
}

int totals_add(struct totals *totals, const struct generation *generation)
{
    const struct conf *conf = generation->conf;
    const struct tally *tally = generation->tally;
    int result = 0;
    for (size_t i = 0; tally && i <= conf->nroutes; i++) {
        uint64_t responses[TALLY_CLASSES];
        for (unsigned class = 0; class < TALLY_CLASSES; class ++)
            responses[class] = atomic_load(&tally->routes[i].responses[class]);
        const char *path = i < conf->nroutes ? conf->routes[i].path : NULL;
        result |= totals_add_route(totals, path, responses);
    }
    for (unsigned i = 0; tally && i < TALLY_BUCKETS; i++)
        totals->latency[i] += atomic_load(&tally->latency[i]);
    totals->latency_sum += tally ? atomic_load(&tally->latency_sum) : 0;
    return result;
}

int totals_read(struct totals *totals, const struct master *master)
{
    const struct totals *gone = &master->totals;
    int result = 0;
    *totals = (struct totals){ .latency_sum = gone->latency_sum };
    memcpy(totals->latency, gone->latency, sizeof(totals->latency));
    for (size_t i = 0; i < gone->nroutes; i++)
        result |= totals_add_route(totals, gone->routes[i].path, gone->routes[i].responses);
    if (master->current)
        result |= totals_add(totals, master->current);
    for (const struct generation *old = master->draining; old; old = old->next)
        result |= totals_add(totals, old);
    return result;
}
