#include "conf/conf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/load.h"
#include "conf/schema.h"
#include "conf/source.h"

#ifndef SYSCONFDIR
#define SYSCONFDIR "/etc"
#endif

const char *conf_default_file(void)
{
    return SYSCONFDIR "/hayate/hayate.conf";
}

int conf_route_error(struct conf_error *error, const struct conf_route *route, const char *format,
                     ...)
{
    size_t size = sizeof(error->text);
    va_list args;

    int length =
        route->line > 0
            ? snprintf(error->text, size, "%.500s:%d: ", route->file, route->line)
            : snprintf(error->text, size, "%.100s: route \"%.300s\": ", route->file, route->path);
    va_start(args, format);
    vsnprintf(error->text + length, size - (size_t)length, format, args);
    va_end(args);
    return -1;
}

static void listen_free(struct conf_listen *listen, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(listen[i].text);
    free(listen);
}

static void strings_free(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

static void route_fini(struct conf_route *route)
{
    const struct conf_kind *kind = route->kind;
    if (kind && route->answer && kind->release)
        kind->release(route->answer);
    for (size_t i = 0; kind && route->options && i < kind->nrows; i++)
        schema_free_value(&kind->rows[i], route->options);
    free(route->options);
    for (size_t i = 0; i < schema_nroute_rows; i++)
        schema_free_value(&schema_route_rows[i], route);
}

void schema_free_value(const struct schema_row *row, void *base)
{
    char *place = (char *)base + row->offset;
    /* All pointers look alike in memory; a count stands right behind the pointer. */
    char *pointer;
    size_t count;

    switch (row->type) {
    case SCHEMA_STRING:
    case SCHEMA_PATH:
    case SCHEMA_USER:
    case SCHEMA_CONTROL:
        memcpy(&pointer, place, sizeof(pointer));
        free(pointer);
        break;
    case SCHEMA_SINK:
        free(((struct conf_sink *)(void *)place)->path);
        break;
    case SCHEMA_STRINGS:
        memcpy(&pointer, place, sizeof(pointer));
        memcpy(&count, place + sizeof(pointer), sizeof(count));
        strings_free((char **)(void *)pointer, count);
        break;
    case SCHEMA_FIELDS: {
        struct conf_field *fields;
        memcpy(&fields, place, sizeof(fields));
        memcpy(&count, place + sizeof(fields), sizeof(count));
        for (size_t i = 0; i < count; i++) {
            free(fields[i].name);
            free(fields[i].value);
        }
        free(fields);
        break;
    }
    case SCHEMA_LISTEN: {
        struct conf_listen *listen;
        memcpy(&listen, place, sizeof(listen));
        memcpy(&count, place + sizeof(listen), sizeof(count));
        listen_free(listen, count);
        break;
    }
    case SCHEMA_BOOL:
    case SCHEMA_NUMBER:
    case SCHEMA_INT:
    case SCHEMA_SIZE:
    case SCHEMA_DURATION:
    case SCHEMA_CHOICE:
    case SCHEMA_WORKERS:
    case SCHEMA_INCLUDE:
    case SCHEMA_ROUTES:
    case SCHEMA_GROUP:
    case SCHEMA_LATER:
        break;
    }
}

void conf_free(struct conf *conf)
{
    if (!conf)
        return;
    for (size_t i = 0; i < schema_nrows; i++)
        schema_free_value(&schema_rows[i], conf);
    for (size_t i = 0; i < conf->nroutes; i++)
        route_fini(&conf->routes[i]);
    free(conf->routes);
    for (size_t i = 0; i < conf->nsources; i++) {
        free(conf->sources[i].path);
        free(conf->sources[i].bytes);
    }
    free(conf->sources);
    strings_free(conf->warnings, conf->nwarnings);
    free(conf->file);
    if (conf->internal) {
        strings_free(conf->internal->labels, conf->internal->nlabels);
        strings_free(conf->internal->patterns, conf->internal->npatterns);
        free(conf->internal);
    }
    free(conf);
}

static bool is_source(const struct conf *conf, const char *path)
{
    for (size_t i = 0; i < conf->nsources; i++)
        if (strcmp(conf->sources[i].path, path) == 0)
            return true;
    return false;
}

/* Does a pattern match a file that was not there at the load? */
static bool has_new_fragment(const struct conf *conf, const char **changed)
{
    const struct conf_internal *internal = conf->internal;
    bool has_new = false;

    for (size_t i = 0; i < internal->npatterns && !has_new; i++) {
        struct source_matches matches;
        if (source_match(&matches, internal->patterns[i]) == -1) {
            *changed = internal->patterns[i];
            return true;
        }
        for (size_t j = 0; j < matches.count && !has_new; j++)
            if (!is_source(conf, matches.paths[j])) {
                *changed = internal->patterns[i];
                has_new = true;
            }
        source_matches_free(&matches);
    }
    return has_new;
}

bool conf_has_drifted(const struct conf *conf, const char **changed)
{
    *changed = NULL;
    if (conf->nsources == 0 && access(conf_default_file(), F_OK) == 0) {
        *changed = conf_default_file();
        return true;
    }
    for (size_t i = 0; i < conf->nsources; i++) {
        struct slice bytes = { conf->sources[i].bytes, conf->sources[i].length };
        if (!source_is_same(conf->sources[i].path, bytes)) {
            *changed = conf->sources[i].path;
            return true;
        }
    }
    return has_new_fragment(conf, changed);
}
