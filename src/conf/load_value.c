#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/expand.h"
#include "conf/load.h"
#include "conf/value.h"

static const char *type_name(const struct config_setting_t *setting)
{
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_GROUP:
        return "a group { }";
    case CONFIG_TYPE_ARRAY:
        return "an array [ ]";
    case CONFIG_TYPE_LIST:
        return "a list ( )";
    case CONFIG_TYPE_STRING:
        return "a string";
    case CONFIG_TYPE_BOOL:
        return config_setting_get_bool(setting) ? "true" : "false";
    case CONFIG_TYPE_FLOAT:
        return "a number with a point";
    default:
        return "a number";
    }
}

int load_refuse_wanting(struct load *load, const struct schema_row *row, struct load_slot slot,
                        const char *what)
{
    struct buf wanted = { 0 };
    int result = schema_add_wanted(&wanted, row) == -1 || !buf_string(&wanted)
                     ? load_no_memory(load)
                     : load_refuse_value(load, row, slot, "%s, wants %s", what, wanted.data);
    buf_fini(&wanted);
    return result;
}

int load_refuse_type(struct load *load, const struct schema_row *row, struct load_slot slot)
{
    char what[40];
    snprintf(what, sizeof(what), "got %s", type_name(slot.setting));
    return load_refuse_wanting(load, row, slot, what);
}

int load_refuse_text(struct load *load, const struct schema_row *row, struct load_slot slot,
                     const char *text, const char *fault)
{
    char quoted[VALUE_QUOTE_SIZE];
    char what[2 * VALUE_QUOTE_SIZE];
    snprintf(what, sizeof(what), "%s %s", value_quote(quoted, text), fault);
    return load_refuse_wanting(load, row, slot, what);
}

struct schema_row load_element_row(const struct schema_row *row)
{
    struct schema_row element = *row;
    element.type = SCHEMA_STRING;
    return element;
}

int load_string(struct load *load, const struct schema_row *row, struct load_slot slot,
                char **string)
{
    char fault[EXPAND_FAULT_SIZE];
    struct buf expanded = { 0 };

    *string = NULL;
    if (config_setting_type(slot.setting) != CONFIG_TYPE_STRING) {
        load_refuse_type(load, row, slot);
        return -1;
    }
    enum expand_result result = expand(&expanded, config_setting_get_string(slot.setting), fault);
    if (result == EXPAND_DONE && buf_string(&expanded)) {
        *string = expanded.data;
        return 0;
    }
    buf_fini(&expanded);
    if (result == EXPAND_REFUSED)
        load_refuse_value(load, row, slot, "%s", fault);
    else
        load_no_memory(load);
    return -1;
}

static int load_bool(struct load *load, const struct schema_row *row, struct load_slot slot,
                     bool *value)
{
    char *text;
    if (config_setting_type(slot.setting) == CONFIG_TYPE_BOOL) {
        *value = config_setting_get_bool(slot.setting);
        return 0;
    }
    if (load_string(load, row, slot, &text) == -1)
        return -1;
    *value = strcmp(text, "true") == 0;
    int result = *value || strcmp(text, "false") == 0
                     ? 0
                     : load_refuse_text(load, row, slot, text, "is neither");
    free(text);
    return result;
}

static int load_choice(struct load *load, const struct schema_row *row, struct load_slot slot,
                       int *choice)
{
    char *text;
    if (load_string(load, row, slot, &text) == -1)
        return -1;
    for (int i = 0; row->choices[i]; i++)
        if (strcmp(row->choices[i], text) == 0) {
            *choice = i;
            free(text);
            return 0;
        }
    load_refuse_text(load, row, slot, text, "is none of its words");
    free(text);
    return -1;
}

static int load_path(struct load *load, const struct schema_row *row, struct load_slot slot,
                     char **path)
{
    char *text;
    if (load_string(load, row, slot, &text) == -1)
        return -1;
    if (text[0] == '\0')
        load_refuse_text(load, row, slot, text, "is empty");
    else
        *path = load_document_path(load, row, slot, text);
    free(text);
    return *path ? 0 : -1;
}

static int load_strings(struct load *load, const struct schema_row *row, struct load_slot slot,
                        struct schema_strings *strings)
{
    const struct schema_row element_row = load_element_row(row);
    bool is_list = config_setting_is_array(slot.setting) || config_setting_is_list(slot.setting);
    if (!is_list && config_setting_type(slot.setting) != CONFIG_TYPE_STRING)
        return load_refuse_type(load, row, slot);

    size_t length = is_list ? (size_t)config_setting_length(slot.setting) : 1;
    if (length == 0 && row->type == SCHEMA_STRINGS)
        return load_refuse_wanting(load, row, slot, "an empty array [ ]");
    strings->items = calloc(length + 1, sizeof(*strings->items));
    if (!strings->items)
        return load_no_memory(load);
    for (size_t i = 0; i < length; i++) {
        struct load_slot element = slot;
        if (is_list)
            element.setting = config_setting_get_elem(slot.setting, (unsigned)i);
        if (load_string(load, &element_row, element, &strings->items[i]) == -1)
            return -1;
        strings->count++;
    }
    return 0;
}

struct fields {
    struct conf_field *items;
    size_t count;
};

/* The values of one member of a group of fields: a string, or several. */
static int load_field(struct load *load, const struct schema_row *row, struct load_slot slot,
                      struct fields *fields)
{
    struct schema_strings values = { 0 };
    struct schema_row values_row = *row;
    values_row.type = SCHEMA_STRINGS;

    int result = load_strings(load, &values_row, slot, &values);
    if (result == 0) {
        size_t count = fields->count + values.count;
        struct conf_field *grown = realloc(fields->items, count * sizeof(*grown));
        if (grown)
            fields->items = grown;
        else
            result = load_no_memory(load);
        for (size_t i = 0; grown && i < values.count; i++) {
            char *name = strdup(config_setting_name(slot.setting));
            if (!name) {
                result = load_no_memory(load);
                break;
            }
            fields->items[fields->count++] = (struct conf_field){ name, values.items[i] };
            values.items[i] = NULL;
        }
    }
    for (size_t i = 0; i < values.count; i++)
        free(values.items[i]);
    free(values.items);
    return result;
}

static int load_fields(struct load *load, const struct schema_row *row, struct load_slot slot,
                       struct fields *fields)
{
    if (!config_setting_is_group(slot.setting))
        return load_refuse_type(load, row, slot);
    int length = config_setting_length(slot.setting);
    for (int i = 0; i < length; i++) {
        struct load_slot member = { config_setting_get_elem(slot.setting, (unsigned)i),
                                    slot.document };
        const char *name = config_setting_name(member.setting);
        for (size_t j = 0; j < fields->count; j++)
            if (slice_equal_nocase(slice_of(fields->items[j].name), slice_of(name)))
                return load_refuse_value(load, row, member,
                                         "repeated field \"%.60s\": write [ \"a\", \"b\" ] for "
                                         "several values",
                                         name);
        if (load_field(load, row, member, fields) == -1)
            return -1;
    }
    return 0;
}

/* Values of several words are put together here and copied into place: the rows know only where
 * the pointer stands, and that the count stands behind it. Also when it failed, so that what there
 * is will be freed. */
static int load_counted(struct load *load, const struct schema_row *row, struct load_slot slot,
                        void *place)
{
    struct schema_strings strings = { 0 };
    struct fields fields = { 0 };
    struct {
        struct conf_listen *items;
        size_t count;
    } listen = { 0 };
    int result;

    switch (row->type) {
    case SCHEMA_FIELDS:
        result = load_fields(load, row, slot, &fields);
        memcpy(place, &fields, sizeof(fields));
        break;
    case SCHEMA_LISTEN:
        result = load_listen(load, row, slot, &listen.items, &listen.count);
        memcpy(place, &listen, sizeof(listen));
        break;
    default:
        result = load_strings(load, row, slot, &strings);
        memcpy(place, &strings, sizeof(strings));
    }
    return result;
}

int load_value(struct load *load, const struct schema_row *row, struct load_slot slot, void *base)
{
    void *place = (char *)base + row->offset;
    int64_t number = 0;

    switch (row->type) {
    case SCHEMA_BOOL:
        return load_bool(load, row, slot, place);
    case SCHEMA_NUMBER:
    case SCHEMA_SIZE:
    case SCHEMA_DURATION:
        return load_number(load, row, slot, place);
    case SCHEMA_INT:
        if (load_number(load, row, slot, &number) == -1)
            return -1;
        *(int *)place = (int)number;
        return 0;
    case SCHEMA_STRING:
        return load_string(load, row, slot, place);
    case SCHEMA_PATH:
        return load_path(load, row, slot, place);
    case SCHEMA_CHOICE:
        return load_choice(load, row, slot, place);
    case SCHEMA_STRINGS:
    case SCHEMA_INCLUDE:
    case SCHEMA_FIELDS:
    case SCHEMA_LISTEN:
        return load_counted(load, row, slot, place);
    case SCHEMA_WORKERS:
        return load_workers(load, row, slot, place);
    case SCHEMA_USER:
        return load_user(load, row, slot);
    case SCHEMA_CONTROL:
        return load_control(load, row, slot, place);
    case SCHEMA_SINK:
        return load_sink(load, row, slot, place);
    case SCHEMA_ROUTES:
    case SCHEMA_GROUP:
        return 0;
    case SCHEMA_LATER:
        return load_refuse_later(load, row, slot);
    }
    return 0;
}

int load_values(struct load *load)
{
    for (size_t i = 0; i < schema_nrows; i++) {
        const struct schema_row *row = &schema_rows[i];
        /* Fragments are done with by now; routes come after all else. */
        if (row->type == SCHEMA_INCLUDE || !load->slots[i].document)
            continue;
        if (load_value(load, row, load->slots[i], load->conf) == -1)
            return -1;
    }
    return 0;
}
