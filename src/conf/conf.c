#include "conf/conf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/load.h"
#include "conf/schema.h"

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
    files_fini(&conf->files);
    strings_free(conf->warnings, conf->nwarnings);
    free(conf->file);
    if (conf->internal) {
        strings_free(conf->internal->labels, conf->internal->nlabels);
        free(conf->internal);
    }
    free(conf);
}

bool conf_has_drifted(const struct conf *conf, const char **changed)
{
    if (!conf->file && access(conf_default_file(), F_OK) == 0) {
        *changed = conf_default_file();
        return true;
    }
    return files_have_drifted(&conf->files, changed);
}
