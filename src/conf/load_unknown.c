#include <libconfig.h>
#include <stdlib.h>

#include "conf/hint.h"
#include "conf/load.h"
#include "conf/value.h"

static void consider_row(struct hint *hint, const struct schema_row *row, const char *key,
                         const char *dotted)
{
    /* What is not yet supported is no good advice. */
    if (row->type == SCHEMA_LATER)
        return;
    hint_consider(hint, key, schema_leaf(row), row->key);
    if (dotted)
        hint_consider(hint, dotted, row->key, row->key);
}

/* The rows of the file's own keys, those of `group` first so that they win a draw. */
static void consider_rows(struct hint *hint, const char *group, const char *key, const char *dotted)
{
    for (size_t i = 0; i < schema_nrows; i++)
        if (schema_is_in_group(&schema_rows[i], group))
            consider_row(hint, &schema_rows[i], key, NULL);
    for (size_t i = 0; i < schema_nrows; i++)
        consider_row(hint, &schema_rows[i], key, dotted);
}

/* The kind that has a row for the key, or NULL. */
static const struct conf_kind *find_kind(const struct conf_kinds *kinds, const char *key)
{
    for (size_t i = 0; kinds->kinds[i]; i++)
        if (schema_find(kinds->kinds[i]->rows, kinds->kinds[i]->nrows, key))
            return kinds->kinds[i];
    return NULL;
}

bool load_is_route_key(const struct load *load, const char *key)
{
    return schema_find(schema_route_rows, schema_nroute_rows, key) ||
           find_kind(load->request->kinds, key);
}

int load_refuse_key(struct load *load, struct load_slot slot, const char *group, const char *key)
{
    char quoted[VALUE_QUOTE_SIZE];
    char *dotted = NULL;
    struct hint hint = { 0 };

    if (asprintf(&dotted, "%s%s%s", group ? group : "", group ? "." : "", key) == -1)
        return load_no_memory(load);
    value_quote(quoted, dotted);
    consider_rows(&hint, group, key, dotted);
    free(dotted);

    if (hint.best && hint.distance > 0 && !group && load_is_route_key(load, key))
        hint.best = NULL;
    if (hint.best)
        return load_refuse(load, slot.document, slot.setting,
                           "unknown key %s (did you mean \"%s\"?)", quoted, hint.best);
    if (!group && load_is_route_key(load, key))
        return load_refuse(load, slot.document, slot.setting,
                           "unknown key %s (it belongs in a route: routes = ( { ... } ))", quoted);
    return load_refuse(load, slot.document, slot.setting,
                       "unknown key %s (hayate.conf(5) has them all)", quoted);
}

int load_refuse_route_key(struct load *load, struct load_slot slot, const struct conf_kind *kind,
                          const char *key)
{
    char quoted[VALUE_QUOTE_SIZE];
    struct hint hint = { 0 };
    const struct conf_kinds *kinds = load->request->kinds;

    value_quote(quoted, key);
    const struct conf_kind *other = find_kind(kinds, key);
    if (kind && other)
        return load_refuse(load, slot.document, slot.setting,
                           "%s goes with a route's \"%s\", not with \"%s\"", quoted, other->key,
                           kind->key);
    for (size_t i = 0; i < schema_nroute_rows; i++)
        consider_row(&hint, &schema_route_rows[i], key, NULL);
    for (size_t i = 0; kinds->kinds[i]; i++)
        for (size_t j = 0; j < kinds->kinds[i]->nrows && (!kind || kind == kinds->kinds[i]); j++)
            consider_row(&hint, &kinds->kinds[i]->rows[j], key, NULL);
    if (hint.best)
        return load_refuse(load, slot.document, slot.setting,
                           "unknown key %s in a route (did you mean \"%s\"?)", quoted, hint.best);
    consider_rows(&hint, NULL, key, key);
    if (hint.best && hint.distance == 0)
        return load_refuse(load, slot.document, slot.setting,
                           "unknown key %s in a route (\"%s\" belongs outside of routes)", quoted,
                           hint.best);
    return load_refuse(load, slot.document, slot.setting,
                       "unknown key %s in a route (hayate.conf(5) has them all)", quoted);
}

int load_refuse_later(struct load *load, const struct schema_row *row, struct load_slot slot)
{
    return load_refuse(load, slot.document, slot.setting, "\"%s\" is not yet supported: remove it",
                       row->key);
}
