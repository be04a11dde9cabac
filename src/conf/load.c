#include "conf/load.h"

#include <errno.h>
#include <libconfig.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Puts "LABEL:LINE: " or "LABEL: " first; returns its length, cut to fit. */
static size_t begin_error(struct load *load, const struct load_document *document,
                          const struct config_setting_t *setting)
{
    size_t size = sizeof(load->error->text);
    bool has_line = setting && document->origin == LOAD_FILE;
    int length = has_line ? snprintf(load->error->text, size, "%.500s:%d: ", document->label,
                                     (int)config_setting_source_line(setting))
                          : snprintf(load->error->text, size, "%.500s: ", document->label);
    return length < 0 ? 0 : (size_t)length;
}

int load_refuse(struct load *load, const struct load_document *document,
                const struct config_setting_t *setting, const char *format, ...)
{
    va_list args;
    size_t length = begin_error(load, document, setting);
    va_start(args, format);
    vsnprintf(load->error->text + length, sizeof(load->error->text) - length, format, args);
    va_end(args);
    return -1;
}

int load_refuse_value(struct load *load, const struct schema_row *row, struct load_slot slot,
                      const char *format, ...)
{
    va_list args;
    size_t size = sizeof(load->error->text);
    size_t length = begin_error(load, slot.document, slot.setting);
    const char *key = slot.document->key;
    if (!key || strcmp(key, row->key) != 0)
        length += (size_t)snprintf(load->error->text + length, size - length, "%.60s: ", row->key);
    va_start(args, format);
    vsnprintf(load->error->text + length, size - length, format, args);
    va_end(args);
    return -1;
}

int load_no_memory(struct load *load)
{
    snprintf(load->error->text, sizeof(load->error->text), "out of memory");
    errno = ENOMEM;
    return -1;
}

int load_warn(struct load *load, const char *format, ...)
{
    struct conf *conf = load->conf;
    char *warning;
    va_list args;

    char **grown = realloc(conf->warnings, (conf->nwarnings + 1) * sizeof(*grown));
    if (!grown)
        return load_no_memory(load);
    conf->warnings = grown;
    va_start(args, format);
    int length = vasprintf(&warning, format, args);
    va_end(args);
    if (length == -1)
        return load_no_memory(load);
    conf->warnings[conf->nwarnings++] = warning;
    return 0;
}

static int prepare_routes(struct load *load)
{
    struct conf *conf = load->conf;
    for (size_t i = 0; i < conf->nroutes; i++)
        if (conf->routes[i].kind->prepare &&
            conf->routes[i].kind->prepare(&conf->routes[i], load->error) == -1)
            return -1;
    return 0;
}

static bool is_listened_on(const struct conf_listen *list, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].addresses[0].any.sa_family == AF_UNIX &&
            strcmp(list[i].addresses[0].local.sun_path, path) == 0)
            return true;
    return false;
}

/* The control socket is for its owner alone: it must not be one that everybody may use. */
static int check_control(struct load *load)
{
    const struct conf *conf = load->conf;
    const struct schema_row *row = schema_find(schema_rows, schema_nrows, "control");
    struct load_slot slot = load->slots[row - schema_rows];
    if (!conf->control || !slot.document ||
        (!is_listened_on(conf->listen, conf->nlisten, conf->control) &&
         !is_listened_on(conf->admin_listen, conf->nadmin_listen, conf->control)))
        return 0;
    return load_refuse_value(load, row, slot,
                             "\"%s\" is listened on for HTTP already: wants a path of its own",
                             conf->control);
}

/* All that comes after the file was read: the same for a file, for bytes and for neither. */
static int finish(struct load *load)
{
    if (load_overrides(load, true) == -1 || load_fragments(load) == -1 ||
        load_overrides(load, false) == -1)
        return -1;
    if (load_values(load) == -1 || check_control(load) == -1 || load_routes(load) == -1)
        return -1;
    return prepare_routes(load);
}

static int begin(struct load *load)
{
    load->conf = calloc(1, sizeof(*load->conf));
    load->slots = calloc(schema_nrows, sizeof(*load->slots));
    load->internal = calloc(1, sizeof(*load->internal));
    if (!load->conf || !load->slots || !load->internal) {
        free(load->internal);
        return load_no_memory(load);
    }
    load->conf->internal = load->internal;
    return load_collect_defaults(load);
}

static struct conf *end(struct load *load, int result, struct files *tried)
{
    load_documents_free(load);
    free(load->slots);
    free(load->route_lists);
    if (result == 0)
        return load->conf;
    if (load->conf && tried) {
        *tried = load->conf->files;
        load->conf->files = (struct files){ 0 };
    }
    conf_free(load->conf);
    return NULL;
}

static struct conf *load_request(struct load *load, struct files *tried)
{
    load->error->text[0] = '\0';
    if (tried)
        *tried = (struct files){ 0 };
    int result = begin(load);
    if (result == 0)
        result = load_file(load);
    if (result == 0)
        result = finish(load);
    return end(load, result, tried);
}

struct conf *conf_load_tried(const struct conf_request *request, struct conf_error *error,
                             struct files *tried)
{
    struct load load = { .request = request, .error = error };
    return load_request(&load, tried);
}

struct conf *conf_load(const struct conf_request *request, struct conf_error *error)
{
    return conf_load_tried(request, error, NULL);
}

struct conf *conf_load_recorded(const struct conf_request *request,
                                const struct conf_record *record, struct conf_error *error)
{
    struct load load = { .request = request, .record = record, .error = error };
    return load_request(&load, NULL);
}

struct conf *load_bytes(const struct conf_request *request, struct slice bytes,
                        struct conf_error *error)
{
    struct load load = { .request = request, .error = error };
    error->text[0] = '\0';
    int result = begin(&load);
    if (result == 0)
        result = load_file_bytes(&load, request->file, bytes);
    if (result == 0)
        result = finish(&load);
    return end(&load, result, NULL);
}

#define STRING(x) STRING_OF(x)
#define STRING_OF(x) #x
const char *conf_library_version(void)
{
    return STRING(LIBCONFIG_VER_MAJOR) "." STRING(LIBCONFIG_VER_MINOR) "." STRING(
        LIBCONFIG_VER_REVISION);
}
