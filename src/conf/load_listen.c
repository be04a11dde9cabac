#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/load.h"
#include "conf/value.h"

static bool is_same(const struct conf_listen *a, const struct conf_listen *b)
{
    if (strcmp(a->text, b->text) == 0)
        return true;
    for (unsigned i = 0; i < a->naddresses; i++)
        for (unsigned j = 0; j < b->naddresses; j++) {
            bool is_chosen =
                a->addresses[i].any.sa_family != AF_UNIX && address_port(&a->addresses[i]) == 0;
            if (!is_chosen && address_equal(&a->addresses[i], &b->addresses[j]))
                return true;
        }
    return false;
}

/* The entry among `count` that listens on an address of `entry`, or NULL. */
static const struct conf_listen *find_same(const struct conf_listen *list, size_t count,
                                           const struct conf_listen *entry)
{
    for (size_t i = 0; i < count; i++)
        if (is_same(&list[i], entry))
            return &list[i];
    return NULL;
}

/* A relative path of a unix socket lies beside the file, as all paths do. */
static int resolve_unix(struct load *load, const struct schema_row *row, struct load_slot slot,
                        char **text)
{
    const char *path = *text + strlen("unix:");
    if (strncmp(*text, "unix:", strlen("unix:")) != 0 || path[0] == '/' || path[0] == '\0')
        return 0;
    char *absolute = load_document_path(load, row, slot, path);
    if (!absolute)
        return -1;
    char *joined = NULL;
    int length = asprintf(&joined, "unix:%s", absolute);
    free(absolute);
    if (length == -1)
        return load_no_memory(load);
    free(*text);
    *text = joined;
    return 0;
}

/* `entry` is zeroed; what it holds afterwards is freed with the list, also after a failure. */
static int load_entry(struct load *load, const struct schema_row *row, struct load_slot slot,
                      struct conf_listen *entry)
{
    const struct schema_row element_row = load_element_row(row);
    char quoted[VALUE_QUOTE_SIZE];
    const char *fault;

    if (load_string(load, &element_row, slot, &entry->text) == -1 ||
        resolve_unix(load, row, slot, &entry->text) == -1)
        return -1;
    entry->naddresses = address_parse(entry->addresses, entry->text, &fault);
    if (entry->naddresses == 0)
        return load_refuse_value(load, row, slot, "%s: %s", value_quote(quoted, entry->text),
                                 fault);
    return 0;
}

/* A group of a list: its address. */
static int load_group(struct load *load, const struct schema_row *row, struct load_slot slot,
                      struct conf_listen *entry)
{
    struct load_slot address = { 0 };
    char key[80];
    int length = config_setting_length(slot.setting);

    for (int i = 0; i < length; i++) {
        struct load_slot member = { config_setting_get_elem(slot.setting, (unsigned)i),
                                    slot.document };
        const char *name = config_setting_name(member.setting);
        const struct schema_row *found = schema_find(schema_listen_rows, schema_nlisten_rows, name);
        if (!found)
            return load_refuse(load, slot.document, member.setting,
                               "unknown key \"%.60s\" in a group of %s (it has \"address\")", name,
                               row->key);
        if (found->type == SCHEMA_LATER) {
            snprintf(key, sizeof(key), "%s of %s", found->key, row->key);
            struct schema_row later = *found;
            later.key = key;
            return load_refuse_later(load, &later, member);
        }
        address = member;
    }
    if (!address.document)
        return load_refuse_value(load, row, slot,
                                 "a group without an address: wants { address = \"*:8080\" }");
    return load_entry(load, row, address, entry);
}

static int load_one(struct load *load, const struct schema_row *row, struct load_slot slot,
                    struct conf_listen *list, size_t *count)
{
    struct conf_listen *entry = &list[(*count)++];
    const struct conf *conf = load->conf;

    int result = config_setting_is_group(slot.setting) ? load_group(load, row, slot, entry)
                                                       : load_entry(load, row, slot, entry);
    if (result == -1)
        return -1;
    if (address_port(&entry->addresses[0]) == 0 && entry->addresses[0].any.sa_family != AF_UNIX)
        return 0; /* the kernel chooses another port for each */
    const struct conf_listen *other = find_same(list, *count - 1, entry);
    if (!other) /* admin.listen comes after listen */
        other = find_same(conf->listen, conf->nlisten, entry);
    if (other)
        return load_refuse_value(load, row, slot,
                                 "\"%s\" is listened on already, by \"%s\": keep one of them",
                                 entry->text, other->text);
    return 0;
}

int load_listen(struct load *load, const struct schema_row *row, struct load_slot slot,
                struct conf_listen **list, size_t *count)
{
    bool is_list = config_setting_is_array(slot.setting) || config_setting_is_list(slot.setting);
    if (!is_list && config_setting_type(slot.setting) != CONFIG_TYPE_STRING)
        return load_refuse_type(load, row, slot);

    size_t length = is_list ? (size_t)config_setting_length(slot.setting) : 1;
    bool may_be_empty = strcmp(row->key, "listen") != 0;
    if (length == 0 && !may_be_empty)
        return load_refuse_value(load, row, slot,
                                 "is empty: wants at least one address, such as [ \"*:8080\" ]");
    *list = calloc(length + 1, sizeof(**list));
    if (!*list)
        return load_no_memory(load);
    for (size_t i = 0; i < length; i++) {
        struct load_slot element = slot;
        if (is_list)
            element.setting = config_setting_get_elem(slot.setting, (unsigned)i);
        if (load_one(load, row, element, *list, count) == -1)
            return -1;
    }
    return 0;
}
