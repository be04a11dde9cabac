#include <errno.h>
#include <libconfig.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/load.h"
#include "conf/source.h"
#include "conf/text.h"

static const char *keep_label(struct load *load, const char *label)
{
    struct conf_internal *internal = load->internal;
    char **grown = realloc(internal->labels, (internal->nlabels + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    internal->labels = grown;
    char *kept = strdup(label);
    if (kept)
        internal->labels[internal->nlabels++] = kept;
    return kept;
}

struct load_document *load_document_new(struct load *load, enum load_origin origin,
                                        const char *label)
{
    struct load_document *document = calloc(1, sizeof(*document));
    if (!document) {
        load_no_memory(load);
        return NULL;
    }
    document->next = load->documents;
    load->documents = document;
    document->origin = origin;
    document->label = keep_label(load, label);
    document->prefix = origin == LOAD_FILE ? source_directory(label) : strdup("");
    document->config = calloc(1, sizeof(*document->config));
    if (!document->label || !document->prefix || !document->config) {
        load_no_memory(load);
        return NULL;
    }
    config_init(document->config);
    return document;
}

void load_documents_free(struct load *load)
{
    while (load->documents) {
        struct load_document *document = load->documents;
        load->documents = document->next;
        if (document->config)
            config_destroy(document->config);
        free(document->config);
        free(document->prefix);
        free(document->directory);
        free(document);
    }
}

/* Gives the plain values in arrays and lists the lines they stand in, in the order of the text. */
static void set_lines(struct config_setting_t *setting, const struct text_lines *lines, size_t *at)
{
    bool is_list = config_setting_is_array(setting) || config_setting_is_list(setting);
    int length = config_setting_length(setting);
    for (int i = 0; i < length; i++) {
        struct config_setting_t *member = config_setting_get_elem(setting, (unsigned)i);
        if (config_setting_is_aggregate(member))
            set_lines(member, lines, at);
        else if (is_list && *at < lines->count)
            member->line = (unsigned)lines->lines[(*at)++];
    }
}

int load_document_parse(struct load *load, struct load_document *document, struct slice text)
{
    struct text_fault fault;
    struct text_lines lines = { 0 };
    struct buf copy = { 0 };
    size_t at = 0;
    int result = -1;

    if (!text_check(text, &fault, &lines)) {
        if (document->origin == LOAD_FILE && fault.line > 0)
            snprintf(load->error->text, sizeof(load->error->text), "%.500s:%d: %s", document->label,
                     fault.line, fault.text);
        else
            load_refuse(load, document, NULL, "%s", fault.text);
        goto out;
    }
    /* libconfig does not know a comment that ends with the file instead of the line. */
    if (buf_add_slice(&copy, text) == -1 || buf_add(&copy, "\n", 2) == -1) {
        load_no_memory(load);
        goto out;
    }
    if (config_read_string(document->config, copy.data) != CONFIG_TRUE) {
        snprintf(load->error->text, sizeof(load->error->text), "%.500s:%d: %s", document->label,
                 config_error_line(document->config), config_error_text(document->config));
        goto out;
    }
    set_lines(config_root_setting(document->config), &lines, &at);
    result = 0;
out:
    buf_fini(&copy);
    free(lines.lines);
    return result;
}

int load_document_string(struct load *load, struct load_document *document, const char *string)
{
    struct config_setting_t *root = config_root_setting(document->config);
    struct config_setting_t *setting = config_setting_add(root, "value", CONFIG_TYPE_STRING);
    if (!setting || config_setting_set_string(setting, string) != CONFIG_TRUE)
        return load_no_memory(load);
    return 0;
}

int load_document_value(struct load *load, struct load_document *document, struct load_slot *slot)
{
    struct config_setting_t *root = config_root_setting(document->config);
    if (config_setting_length(root) != 1)
        return load_refuse(load, document, NULL, "wants one value, with nothing behind it");
    *slot = (struct load_slot){ config_setting_get_elem(root, 0), document };
    return 0;
}

char *load_document_path(struct load *load, const struct schema_row *row, struct load_slot slot,
                         const char *path)
{
    struct load_document *document = slot.document;
    if (path[0] != '/' && !document->directory) {
        document->directory = getcwd(NULL, 0);
        if (!document->directory) {
            load_refuse_value(load, row, slot,
                              "the working directory has no path (%s): wants an absolute path",
                              strerror(errno));
            return NULL;
        }
    }
    char *joined = source_join(document->directory ? document->directory : "", path);
    if (!joined)
        load_no_memory(load);
    return joined;
}
