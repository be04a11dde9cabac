#include <errno.h>
#include <fnmatch.h>
#include <libconfig.h>
#include <stdlib.h>

#include "conf/load.h"
#include "conf/source.h"

/* `bytes` is taken over. */
static int load_text(struct load *load, const char *label, const char *absolute, bool is_fragment,
                     struct buf *bytes)
{
    struct load_document *document = load_document_new(load, LOAD_FILE, label);
    if (document) {
        document->is_fragment = is_fragment;
        document->directory = source_directory(absolute);
    }
    if (!document || !document->directory) {
        buf_fini(bytes);
        return load_no_memory(load);
    }
    if (files_add(&load->conf->files, absolute, bytes) == -1)
        return load_no_memory(load);
    const struct files_source *source = &load->conf->files.sources[load->conf->files.nsources - 1];
    if (load_document_parse(load, document, (struct slice){ source->bytes, source->length }) == -1)
        return -1;
    return load_collect(load, document);
}

int load_file_bytes(struct load *load, const char *name, struct slice bytes)
{
    struct buf copy = { 0 };
    load->conf->file = source_absolute(name);
    if (!load->conf->file || buf_add_slice(&copy, bytes) == -1)
        return load_no_memory(load);
    return load_text(load, name, load->conf->file, false, &copy);
}

/* As source_read, from the disk or from the record. */
static int read_source(const struct load *load, struct buf *out, const char *path,
                       char fault[SOURCE_FAULT_SIZE])
{
    if (!load->record)
        return source_read(out, path, fault);
    const struct files *files = load->record->files;
    char *absolute = source_absolute(path);
    errno = absolute ? ENOENT : errno;
    int result = -1;
    for (size_t i = 0; absolute && result == -1 && i < files->nsources; i++) {
        const struct files_source *source = &files->sources[i];
        if (strcmp(source->path, absolute) == 0)
            result = buf_add(out, source->bytes, source->length);
    }
    free(absolute);
    if (result == -1)
        snprintf(fault, SOURCE_FAULT_SIZE, "was not recorded: %s", strerror(errno));
    return result;
}

static int refuse_file(struct load *load, const char *name, const char *fault)
{
    snprintf(load->error->text, sizeof(load->error->text), "%.500s: %s", name, fault);
    return -1;
}

int load_file(struct load *load)
{
    const char *name = load->request->file ? load->request->file : conf_default_file();
    char fault[SOURCE_FAULT_SIZE];
    struct buf bytes = { 0 };

    if (name[0] == '\0')
        return refuse_file(load, "-c", "wants the name of a file");
    if (read_source(load, &bytes, name, fault) == -1) {
        bool is_absent = errno == ENOENT || errno == ENOTDIR;
        buf_fini(&bytes);
        if (!load->request->file && is_absent)
            return load_warn(load, "runs on built-in defaults: there is no %s, and no -c FILE",
                             name);
        char *absolute = source_absolute(name);
        if (absolute)
            files_add(&load->conf->files, absolute, NULL);
        free(absolute);
        return refuse_file(load, name, fault);
    }
    load->conf->file = source_absolute(name);
    if (!load->conf->file) {
        int error = errno;
        buf_fini(&bytes);
        if (error == ENOMEM)
            return load_no_memory(load);
        return refuse_file(load, name, "the working directory has no path: wants an absolute one");
    }
    return load_text(load, name, load->conf->file, false, &bytes);
}

/* One -o KEY=VALUE, as a document of its own. */
static int load_override(struct load *load, const char *key, const char *value)
{
    char label[80];
    struct load_slot slot;
    struct buf text = { 0 };
    int result;

    snprintf(label, sizeof(label), "-o %.60s", key);
    struct load_document *document = load_document_new(load, LOAD_OVERRIDE, label);
    if (!document)
        return -1;
    document->key = document->label + strlen("-o ");
    if (value[0] != '\0' && strchr("[({\"", value[0])) {
        if (buf_printf(&text, "value = %s\n", value) == -1)
            result = load_no_memory(load);
        else
            result = load_document_parse(load, document, buf_slice(&text));
        if (result == -1 && value[0] == '[' && strstr(value, "]:"))
            load_refuse(load, document, NULL, "an IPv6 address wants quotes here: %s=\"%s\"", key,
                        value);
    } else {
        result = load_document_string(load, document, value);
    }
    buf_fini(&text);
    if (result == -1 || load_document_value(load, document, &slot) == -1)
        return -1;
    return load_collect_key(load, slot, key);
}

int load_overrides(struct load *load, bool is_include)
{
    const char *const *overrides = load->request->overrides;
    for (size_t i = 0; overrides && overrides[i]; i++) {
        const char *equals = strchr(overrides[i], '=');
        if (!equals || equals == overrides[i]) {
            snprintf(load->error->text, sizeof(load->error->text),
                     "-o %.200s: wants KEY=VALUE, such as -o workers=2", overrides[i]);
            return -1;
        }
        char *key = strndup(overrides[i], (size_t)(equals - overrides[i]));
        if (!key)
            return load_no_memory(load);
        int result = 0;
        if ((strcmp(key, "include") == 0) == is_include)
            result = load_override(load, key, equals + 1);
        free(key);
        if (result == -1)
            return -1;
    }
    return 0;
}

/* `path` is absolute; the label shows it as the include named it. */
static int load_fragment(struct load *load, const struct schema_row *row, struct load_slot slot,
                         const char *path, bool is_relative)
{
    struct buf bytes = { 0 };
    char fault[SOURCE_FAULT_SIZE];
    char *label = NULL;
    const char *directory = slot.document->directory;

    if (load->conf->file && strcmp(path, load->conf->file) == 0)
        return load_refuse_value(load, row, slot, "%s is the file that includes it", path);
    if (files_has(&load->conf->files, path))
        return 0;
    if (read_source(load, &bytes, path, fault) == -1) {
        buf_fini(&bytes);
        files_add(&load->conf->files, path, NULL);
        return load_refuse_value(load, row, slot, "%s %s", path, fault);
    }
    size_t skip = is_relative && directory ? strlen(directory) : 0;
    if (skip > 0)
        while (path[skip] == '/')
            skip++;
    if (asprintf(&label, "%s%s", is_relative ? slot.document->prefix : "", path + skip) == -1) {
        buf_fini(&bytes);
        return load_no_memory(load);
    }
    int result = load_text(load, label, path, true, &bytes);
    free(label);
    return result;
}

/* The absolute pattern for `name`: only what was written in the config has wildcards. */
static char *make_pattern(struct load *load, const struct schema_row *row, struct load_slot slot,
                          const char *name)
{
    char *plain = load_document_path(load, row, slot, "x");
    if (!plain)
        return NULL;
    plain[strlen(plain) - 1] = '\0';
    char *directory = source_escape(plain);
    char *pattern = directory ? source_join(directory, name) : NULL;
    free(directory);
    free(plain);
    if (!pattern)
        load_no_memory(load);
    return pattern;
}

/* They were recorded in the order in which they matched. */
static int load_recorded_matches(struct load *load, const struct schema_row *row,
                                 struct load_slot slot, const char *pattern, bool is_relative)
{
    const struct files *files = load->record->files;
    int result = 0;
    for (size_t i = 0; i < files->nsources && result == 0; i++) {
        const char *path = files->sources[i].path;
        if (fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0)
            result = load_fragment(load, row, slot, path, is_relative);
    }
    return result;
}

static int load_pattern(struct load *load, const struct schema_row *row, struct load_slot slot,
                        const char *name)
{
    int result = 0;

    if (name[0] == '\0')
        return load_refuse_value(load, row, slot, "an empty name: wants a file or a pattern");
    if (!source_is_pattern(name)) {
        char *path = load_document_path(load, row, slot, name);
        result = path ? load_fragment(load, row, slot, path, name[0] != '/') : -1;
        free(path);
        return result;
    }
    char *pattern = make_pattern(load, row, slot, name);
    if (!pattern)
        return -1;
    if (files_add_pattern(&load->conf->files, pattern) == -1)
        return load_no_memory(load);
    if (load->record)
        return load_recorded_matches(load, row, slot, pattern, name[0] != '/');
    struct source_matches matches = { 0 };
    if (source_match(&matches, pattern) == -1)
        return load_refuse_value(load, row, slot, "%s cannot be read: %s", name, strerror(errno));
    for (size_t i = 0; i < matches.count && result == 0; i++)
        result = load_fragment(load, row, slot, matches.paths[i], name[0] != '/');
    source_matches_free(&matches);
    return result;
}

int load_fragments(struct load *load)
{
    const struct schema_row *row = schema_find(schema_rows, schema_nrows, "include");
    struct load_slot slot = load->slots[row - schema_rows];
    struct schema_strings names = { 0 };

    int result = load_value(load, row, slot, &names);
    for (size_t i = 0; i < names.count && result == 0; i++) {
        struct load_slot element = slot;
        if (config_setting_is_aggregate(slot.setting))
            element.setting = config_setting_get_elem(slot.setting, (unsigned)i);
        result = load_pattern(load, row, element, names.items[i]);
    }
    for (size_t i = 0; i < names.count; i++)
        free(names.items[i]);
    free(names.items);
    return result;
}
