#include "conf/print.h"

#include <stdint.h>

#include "conf/conf.h"
#include "conf/schema.h"
#include "conf/value.h"

/* Copies a pointer and the count behind it, as the rows of lists have them. */
#define READ_COUNTED(items, count, place)                                       \
    do {                                                                        \
        memcpy(&(items), (place), sizeof(items));                               \
        memcpy(&(count), (const char *)(place) + sizeof(items), sizeof(count)); \
    } while (0)

/* Is there anything to print? What has no default and is not set is left out. */
static bool is_set(const struct schema_row *row, const void *base)
{
    const void *place = (const char *)base + row->offset;
    const void *pointer;
    int64_t number;
    int small;

    if (row->fallback && row->type != SCHEMA_USER)
        return true;
    switch (row->type) {
    case SCHEMA_STRING:
    case SCHEMA_PATH:
    case SCHEMA_USER:
    case SCHEMA_STRINGS:
    case SCHEMA_FIELDS:
    case SCHEMA_LISTEN:
        memcpy(&pointer, place, sizeof(pointer));
        return pointer != NULL;
    case SCHEMA_NUMBER:
    case SCHEMA_SIZE:
    case SCHEMA_DURATION:
        memcpy(&number, place, sizeof(number));
        return number != 0;
    case SCHEMA_INT:
        memcpy(&small, place, sizeof(small));
        return small != 0;
    case SCHEMA_GROUP:
    case SCHEMA_LATER:
        return false;
    default:
        return true;
    }
}

static int print_strings(struct buf *out, char *const *strings, size_t count)
{
    if (buf_add(out, "[", 1) == -1)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (buf_add_string(out, i ? ", " : " ") == -1 || value_print_string(out, strings[i]) == -1)
            return -1;
    return buf_add_string(out, " ]");
}

static int print_listen(struct buf *out, const struct conf_listen *listen, size_t count)
{
    if (buf_add(out, "[", 1) == -1)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (buf_add_string(out, i ? ", " : " ") == -1 ||
            value_print_string(out, listen[i].text) == -1)
            return -1;
    return buf_add_string(out, " ]");
}

/* Fields of one name stand together, since they come from one member. */
static int print_fields(struct buf *out, const struct conf_field *fields, size_t count)
{
    if (buf_add(out, "{", 1) == -1)
        return -1;
    for (size_t i = 0; i < count;) {
        size_t same = 1;
        while (i + same < count && strcmp(fields[i].name, fields[i + same].name) == 0)
            same++;
        if (buf_printf(out, "%s%s = %s", i ? "  " : " ", fields[i].name, same > 1 ? "[ " : "") ==
            -1)
            return -1;
        for (size_t j = 0; j < same; j++)
            if ((j > 0 && buf_add_string(out, ", ") == -1) ||
                value_print_string(out, fields[i + j].value) == -1)
                return -1;
        if (same > 1 && buf_add_string(out, " ]") == -1)
            return -1;
        i += same;
    }
    return buf_add_string(out, " }");
}

static int print_sink(struct buf *out, const struct conf_sink *sink)
{
    static const char *const words[] = {
        [CONF_SINK_OFF] = "off",
        [CONF_SINK_STDERR] = "stderr",
        [CONF_SINK_STDOUT] = "stdout",
    };
    return value_print_string(out, sink->kind == CONF_SINK_PATH ? sink->path : words[sink->kind]);
}

static int print_routes(struct buf *out, const struct conf *conf);

static int print_workers(struct buf *out, unsigned workers)
{
    return workers == 0 ? buf_add_string(out, "\"auto\"") : value_print_number(out, workers);
}

/* The types whose values are a pointer, or a pointer and a count. */
static int print_pointed(struct buf *out, const struct schema_row *row, const void *place)
{
    const char *string;
    char **strings;
    struct conf_field *fields;
    struct conf_listen *listen;
    size_t count;

    switch (row->type) {
    case SCHEMA_STRINGS:
        READ_COUNTED(strings, count, place);
        return print_strings(out, strings, count);
    case SCHEMA_FIELDS:
        READ_COUNTED(fields, count, place);
        return print_fields(out, fields, count);
    case SCHEMA_LISTEN:
        READ_COUNTED(listen, count, place);
        return print_listen(out, listen, count);
    default:
        memcpy(&string, place, sizeof(string));
        return value_print_string(out, string ? string : "off");
    }
}

static int print_value(struct buf *out, const struct schema_row *row, const void *base)
{
    const void *place = (const char *)base + row->offset;
    switch (row->type) {
    case SCHEMA_BOOL:
        return buf_add_string(out, *(const bool *)place ? "true" : "false");
    case SCHEMA_NUMBER:
        return value_print_number(out, *(const int64_t *)place);
    case SCHEMA_INT:
        return value_print_number(out, *(const int *)place);
    case SCHEMA_SIZE:
        return value_print_size(out, *(const int64_t *)place);
    case SCHEMA_DURATION:
        return value_print_duration(out, *(const int64_t *)place);
    case SCHEMA_CHOICE:
        return value_print_string(out, row->choices[*(const int *)place]);
    case SCHEMA_WORKERS:
        return print_workers(out, *(const unsigned *)place);
    case SCHEMA_SINK:
        return print_sink(out, place);
    case SCHEMA_STRING:
    case SCHEMA_PATH:
    case SCHEMA_USER:
    case SCHEMA_CONTROL:
    case SCHEMA_STRINGS:
    case SCHEMA_FIELDS:
    case SCHEMA_LISTEN:
        return print_pointed(out, row, place);
    case SCHEMA_INCLUDE:
        return buf_add_string(out, "[ ]");
    case SCHEMA_ROUTES:
        return print_routes(out, base);
    case SCHEMA_GROUP:
    case SCHEMA_LATER:
        break;
    }
    return 0;
}

static int print_members(struct buf *out, const struct schema_row *rows, size_t nrows,
                         const void *base, const char *separator)
{
    for (size_t i = 0; i < nrows; i++)
        if (is_set(&rows[i], base) && (buf_printf(out, "%s%s = ", separator, rows[i].key) == -1 ||
                                       print_value(out, &rows[i], base) == -1))
            return -1;
    return 0;
}

static int print_routes(struct buf *out, const struct conf *conf)
{
    if (conf->nroutes == 0)
        return buf_add_string(out, "( )");
    if (buf_add_string(out, "(\n") == -1)
        return -1;
    for (size_t i = 0; i < conf->nroutes; i++) {
        const struct conf_route *route = &conf->routes[i];
        /* The path first, then what makes the kind, then the rest. */
        if (buf_add_string(out, "    {") == -1 ||
            print_members(out, schema_route_rows, 1, route, " ") == -1 ||
            print_members(out, route->kind->rows, route->kind->nrows, route->options, "  ") == -1 ||
            print_members(out, schema_route_rows + 1, schema_nroute_rows - 1, route, "  ") == -1 ||
            buf_add_string(out, i + 1 < conf->nroutes ? " },\n" : " }\n") == -1)
            return -1;
    }
    return buf_add_string(out, ")");
}

int conf_print(struct buf *out, const struct conf *conf)
{
    for (size_t i = 0; i < schema_nrows; i++) {
        const struct schema_row *row = &schema_rows[i];
        if (row->type == SCHEMA_GROUP) {
            if (buf_printf(out, "%s = {\n", row->key) == -1)
                return -1;
            for (; i + 1 < schema_nrows && schema_is_in_group(&schema_rows[i + 1], row->key); i++)
                if (buf_printf(out, "    %s = ", schema_leaf(&schema_rows[i + 1])) == -1 ||
                    print_value(out, &schema_rows[i + 1], conf) == -1 ||
                    buf_add(out, "\n", 1) == -1)
                    return -1;
            if (buf_add_string(out, "}\n") == -1)
                return -1;
        } else if (is_set(row, conf)) {
            if (buf_printf(out, "%s = ", row->key) == -1 || print_value(out, row, conf) == -1 ||
                buf_add(out, "\n", 1) == -1)
                return -1;
        }
    }
    return 0;
}

/* For a person: without the quotes around it. */
static struct slice bare(const struct buf *value)
{
    struct slice s = buf_slice(value);
    if (s.length >= 2 && s.data[0] == '"')
        return (struct slice){ s.data + 1, s.length - 2 };
    return s;
}

/* Short enough for a line that shows it before and after? */
static bool is_short(const struct schema_row *row)
{
    return row->type != SCHEMA_STRINGS && row->type != SCHEMA_FIELDS && row->type != SCHEMA_ROUTES;
}

static int diff_row(struct buf *out, const struct schema_row *row, const struct conf *before,
                    const struct conf *after, bool *has_some)
{
    struct buf old = { 0 }, new = { 0 };
    int result = -1;

    if ((is_set(row, before) && print_value(&old, row, before) == -1) ||
        (is_set(row, after) && print_value(&new, row, after) == -1))
        goto out;
    result = 0;
    if (slice_equal(buf_slice(&old), buf_slice(&new)))
        goto out;
    if (*has_some)
        result = buf_add_string(out, ", ");
    *has_some = true;
    if (result == 0 && is_short(row))
        result = buf_printf(out, "%s %.*s -> %.*s", row->key, (int)bare(&old).length,
                            bare(&old).length ? bare(&old).data : "", (int)bare(&new).length,
                            bare(&new).length ? bare(&new).data : "");
    else if (result == 0)
        result = buf_printf(out, "%s changed", row->key);
out:
    buf_fini(&old);
    buf_fini(&new);
    return result;
}

int conf_diff(struct buf *out, const struct conf *before, const struct conf *after)
{
    bool has_some = false;
    for (size_t i = 0; i < schema_nrows; i++)
        if (diff_row(out, &schema_rows[i], before, after, &has_some) == -1)
            return -1;
    return 0;
}
