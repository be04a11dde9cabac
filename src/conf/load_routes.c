#include <libconfig.h>
#include <stdlib.h>

#include "conf/load.h"
#include "conf/value.h"

/* The kind whose key the route has: exactly one. */
static int find_kind(struct load *load, struct load_slot slot, struct conf_route *route)
{
    const struct conf_kind *const *kinds = load->request->kinds->kinds;
    struct buf keys = { 0 };

    for (size_t i = 0; kinds[i]; i++) {
        if (!config_setting_get_member(slot.setting, kinds[i]->key))
            continue;
        if (route->kind)
            return load_refuse(load, slot.document, slot.setting,
                               "a route with both \"%s\" and \"%s\": keep one of them",
                               route->kind->key, kinds[i]->key);
        route->kind = kinds[i];
    }
    if (route->kind)
        return 0;
    /* Perhaps it has one, misspelt. */
    int length = config_setting_length(slot.setting);
    for (int i = 0; i < length; i++) {
        struct load_slot member = { config_setting_get_elem(slot.setting, (unsigned)i),
                                    slot.document };
        const char *name = config_setting_name(member.setting);
        if (!load_is_route_key(load, name))
            return load_refuse_route_key(load, member, NULL, name);
    }
    for (size_t i = 0; kinds[i]; i++)
        if (buf_printf(&keys, "%s%s", i ? ", " : "", kinds[i]->key) == -1)
            break;
    int result = !buf_string(&keys)
                     ? load_no_memory(load)
                     : load_refuse(load, slot.document, slot.setting,
                                   "a route without an answer: wants one of %s", keys.data);
    buf_fini(&keys);
    return result;
}

static int load_member(struct load *load, struct load_slot member, struct conf_route *route)
{
    const char *name = config_setting_name(member.setting);
    const struct conf_kind *kind = route->kind;
    const struct schema_row *row = schema_find(schema_route_rows, schema_nroute_rows, name);
    void *base = route;

    if (!row) {
        row = schema_find(kind->rows, kind->nrows, name);
        base = route->options;
    }
    if (!row)
        return load_refuse_route_key(load, member, kind, name);
    return load_value(load, row, member, base);
}

/* The kind's own defaults, for the keys that the route does not have. */
static int load_fallbacks(struct load *load, struct load_slot slot, struct conf_route *route)
{
    for (size_t i = 0; i < route->kind->nrows; i++) {
        const struct schema_row *row = &route->kind->rows[i];
        struct load_slot fallback;
        struct buf text = { 0 };
        if (!row->fallback || config_setting_get_member(slot.setting, row->key))
            continue;
        struct load_document *document =
            load_document_new(load, LOAD_DEFAULTS, "built-in defaults");
        int result = document ? 0 : -1;
        if (result == 0 && buf_printf(&text, "value = %s\n", row->fallback) == -1)
            result = load_no_memory(load);
        if (result == 0)
            result = load_document_parse(load, document, buf_slice(&text));
        buf_fini(&text);
        if (result == -1 || load_document_value(load, document, &fallback) == -1 ||
            load_value(load, row, fallback, route->options) == -1)
            return -1;
    }
    return 0;
}

static int check_path(struct load *load, struct load_slot slot, const struct conf_route *route)
{
    const struct conf_kinds *kinds = load->request->kinds;
    const struct schema_row *row = schema_find(schema_route_rows, schema_nroute_rows, "path");
    char quoted[VALUE_QUOTE_SIZE];

    struct load_slot path = { config_setting_get_member(slot.setting, "path"), slot.document };
    const char *fault = kinds->path_fault ? kinds->path_fault(route->path) : NULL;
    if (fault)
        return load_refuse_value(load, row, path, "%s: %s", value_quote(quoted, route->path),
                                 fault);

    for (const struct conf_route *other = load->conf->routes; other < route; other++) {
        if (kinds->path_equal ? !kinds->path_equal(other->path, route->path)
                              : strcmp(other->path, route->path) != 0)
            continue;
        value_quote(quoted, route->path);
        if (other->line > 0)
            return load_refuse(load, slot.document, slot.setting,
                               "duplicate route %s, first in %.200s:%d: keep one of them", quoted,
                               other->file, other->line);
        return load_refuse(load, slot.document, slot.setting,
                           "duplicate route %s: keep one of them", quoted);
    }
    return 0;
}

static int load_route(struct load *load, struct load_slot slot, struct conf_route *route)
{
    route->file = slot.document->label;
    if (slot.document->origin == LOAD_FILE)
        route->line = (int)config_setting_source_line(slot.setting);

    if (!config_setting_is_group(slot.setting)) {
        const struct schema_row *row = schema_find(schema_rows, schema_nrows, "routes");
        return load_refuse_type(load, row, slot);
    }
    if (find_kind(load, slot, route) == -1)
        return -1;
    if (!config_setting_get_member(slot.setting, "path"))
        return load_refuse(load, slot.document, slot.setting,
                           "a route without a path: wants path = \"/...\"");
    route->options = calloc(1, route->kind->options_size + 1);
    if (!route->options)
        return load_no_memory(load);
    int length = config_setting_length(slot.setting);
    for (int i = 0; i < length; i++) {
        struct load_slot member = { config_setting_get_elem(slot.setting, (unsigned)i),
                                    slot.document };
        if (load_member(load, member, route) == -1)
            return -1;
    }
    return load_fallbacks(load, slot, route) == -1 ? -1 : check_path(load, slot, route);
}

int load_routes(struct load *load)
{
    const struct schema_row *row = schema_find(schema_rows, schema_nrows, "routes");
    struct conf *conf = load->conf;
    size_t total = 0;

    for (size_t i = 0; i < load->nroute_lists; i++) {
        if (!config_setting_is_list(load->route_lists[i].setting) &&
            !(config_setting_is_array(load->route_lists[i].setting) &&
              config_setting_length(load->route_lists[i].setting) == 0))
            return load_refuse_type(load, row, load->route_lists[i]);
        total += (size_t)config_setting_length(load->route_lists[i].setting);
    }
    conf->routes = calloc(total + 1, sizeof(*conf->routes));
    if (!conf->routes)
        return load_no_memory(load);
    for (size_t i = 0; i < load->nroute_lists; i++) {
        struct load_slot list = load->route_lists[i];
        int length = config_setting_length(list.setting);
        for (int j = 0; j < length; j++) {
            struct load_slot slot = { config_setting_get_elem(list.setting, (unsigned)j),
                                      list.document };
            /* Counted first: what a failure leaves half made is freed with the rest. */
            if (load_route(load, slot, &conf->routes[conf->nroutes++]) == -1)
                return -1;
        }
    }
    return 0;
}
