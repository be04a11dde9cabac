#include <libconfig.h>
#include <stdlib.h>

#include "conf/load.h"

/* Says where else the same key is set. */
static int refuse_repeat(struct load *load, const struct schema_row *row, struct load_slot slot,
                         struct load_slot other)
{
    return load_refuse(load, slot.document, slot.setting,
                       "repeated key \"%s\", also set in %s:%d: keep one of them", row->key,
                       other.document->label, (int)config_setting_source_line(other.setting));
}

static int collect_routes(struct load *load, struct load_slot slot)
{
    enum load_origin origin = slot.document->origin;
    if (load->nroute_lists > 0 &&
        (origin == LOAD_OVERRIDE || load->route_lists[0].document->origin == LOAD_DEFAULTS))
        load->nroute_lists = 0;
    struct load_slot *grown = realloc(load->route_lists, (load->nroute_lists + 1) * sizeof(*grown));
    if (!grown)
        return load_no_memory(load);
    load->route_lists = grown;
    load->route_lists[load->nroute_lists++] = slot;
    return 0;
}

static int collect_row(struct load *load, struct load_slot slot, const struct schema_row *row);

static int collect_group(struct load *load, struct load_slot slot, const struct schema_row *group)
{
    char dotted[80];
    if (!config_setting_is_group(slot.setting))
        return load_refuse_type(load, group, slot);
    int length = config_setting_length(slot.setting);
    for (int i = 0; i < length; i++) {
        struct load_slot member = { config_setting_get_elem(slot.setting, (unsigned)i),
                                    slot.document };
        const char *name = config_setting_name(member.setting);
        int written = snprintf(dotted, sizeof(dotted), "%s.%s", group->key, name);
        const struct schema_row *row = (size_t)written < sizeof(dotted)
                                           ? schema_find(schema_rows, schema_nrows, dotted)
                                           : NULL;
        if (!row)
            return load_refuse_key(load, member, group->key, name);
        if (collect_row(load, member, row) == -1)
            return -1;
    }
    return 0;
}

static int collect_row(struct load *load, struct load_slot slot, const struct schema_row *row)
{
    struct load_slot *place = &load->slots[row - schema_rows];
    if (row->type == SCHEMA_LATER)
        return load_refuse_later(load, row, slot);
    if (row->type == SCHEMA_GROUP)
        return collect_group(load, slot, row);
    if (row->type == SCHEMA_ROUTES)
        return collect_routes(load, slot);
    if (row->type == SCHEMA_INCLUDE && slot.document->is_fragment)
        return load_refuse(load, slot.document, slot.setting,
                           "a fragment cannot include others: name them in the include of %s",
                           load->slots[row - schema_rows].document->label);
    if (slot.document->origin == LOAD_FILE && place->document &&
        place->document->origin == LOAD_FILE)
        return refuse_repeat(load, row, slot, *place);
    *place = slot;
    return 0;
}

int load_collect_key(struct load *load, struct load_slot slot, const char *key)
{
    const struct schema_row *row = schema_find(schema_rows, schema_nrows, key);
    if (row)
        return collect_row(load, slot, row);

    /* A dotted key comes from -o: the hint looks in its group, if there is one of that name. */
    const char *dot = strchr(key, '.');
    char group[40] = "";
    if (dot && (size_t)(dot - key) < sizeof(group))
        memcpy(group, key, (size_t)(dot - key));
    row = schema_find(schema_rows, schema_nrows, group);
    bool is_in_group = row && row->type == SCHEMA_GROUP;
    return load_refuse_key(load, slot, is_in_group ? row->key : NULL, is_in_group ? dot + 1 : key);
}

int load_collect(struct load *load, struct load_document *document)
{
    const struct config_setting_t *root = config_root_setting(document->config);
    int length = config_setting_length(root);
    for (int i = 0; i < length; i++) {
        struct load_slot slot = { config_setting_get_elem(root, (unsigned)i), document };
        if (load_collect_key(load, slot, config_setting_name(slot.setting)) == -1)
            return -1;
    }
    return 0;
}

/* The defaults as a text, so that they go the same way as a file. */
static int write_defaults(struct buf *out)
{
    for (size_t i = 0; i < schema_nrows; i++) {
        const struct schema_row *row = &schema_rows[i];
        const char *group = row->key;
        if (row->type == SCHEMA_GROUP) {
            if (buf_printf(out, "%s = {\n", group) == -1)
                return -1;
            for (; i + 1 < schema_nrows && schema_is_in_group(&schema_rows[i + 1], group); i++)
                if (schema_rows[i + 1].fallback &&
                    buf_printf(out, "%s = %s\n", schema_leaf(&schema_rows[i + 1]),
                               schema_rows[i + 1].fallback) == -1)
                    return -1;
            if (buf_add_string(out, "}\n") == -1)
                return -1;
        } else if (row->fallback && buf_printf(out, "%s = %s\n", row->key, row->fallback) == -1) {
            return -1;
        }
    }
    return 0;
}

int load_collect_defaults(struct load *load)
{
    struct buf text = { 0 };
    struct load_document *document = load_document_new(load, LOAD_DEFAULTS, "built-in defaults");
    int result = -1;

    if (!document)
        return -1;
    if (write_defaults(&text) == -1)
        load_no_memory(load);
    else if (load_document_parse(load, document, buf_slice(&text)) == 0)
        result = load_collect(load, document);
    buf_fini(&text);
    return result;
}
