#include "conf/schema.h"

#include <limits.h>

#include "base/clock.h"
#include "conf/conf.h"
#include "conf/value.h"

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define MS CLOCK_MILLISECOND
#define DAY (24 * 3600 * CLOCK_SECOND)

#define AT(field) .offset = offsetof(struct conf, field)
#define ROUTE_AT(field) .offset = offsetof(struct conf_route, field)

static const char *const log_words[] = { "stderr", NULL };
static const char *const access_log_words[] = { "off", "stdout", NULL };
static const char *const access_format_words[] = {
    [CONF_ACCESS_COMBINED] = "combined",
    [CONF_ACCESS_JSON] = "json",
    NULL,
};

/* In the order in which they are printed; the members of a group stand together. */
const struct schema_row schema_rows[] = {
    { "listen", SCHEMA_LISTEN, "[ \"*:${PORT:-8080}\" ]", AT(listen),
      .purpose = "the addresses that take connections" },
    { "workers", SCHEMA_WORKERS, "\"auto\"", .least = 1, .most = 1024, AT(workers),
      .purpose = "how many processes answer" },
    { "user", SCHEMA_USER, "\"hayate\"", AT(user),
      .purpose = "the account of the workers, when started as root" },
    { "control", SCHEMA_CONTROL, "\"/run/hayate/control\"", AT(control),
      .purpose = "the socket of reload, status and the like" },
    { "log", SCHEMA_SINK, "\"stderr\"", .choices = log_words, AT(log),
      .purpose = "where the log goes" },
    { "log_format", SCHEMA_CHOICE, "\"text\"", .choices = log_format_names, AT(log_format),
      .purpose = "how a line of the log is written" },
    { "log_level", SCHEMA_CHOICE, "\"info\"", .choices = log_level_names, AT(log_level),
      .purpose = "the least level that is logged" },
    { "access_log", SCHEMA_SINK, "\"off\"", .choices = access_log_words, AT(access_log),
      .purpose = "where a line for each request goes" },
    { "access_log_format", SCHEMA_CHOICE, "\"combined\"", .choices = access_format_words,
      AT(access_log_format), .purpose = "how a line of the access log is written" },

    { "timeouts", SCHEMA_GROUP, .purpose = "how long the server waits" },
    { "timeouts.header", SCHEMA_DURATION, "\"10s\"", 10 * MS, DAY, true, AT(timeouts.header),
      .purpose = "for the whole head of a request" },
    { "timeouts.body", SCHEMA_DURATION, "\"30s\"", 10 * MS, DAY, true, AT(timeouts.body),
      .purpose = "for the whole body of a request" },
    { "timeouts.idle", SCHEMA_DURATION, "\"60s\"", 10 * MS, DAY, true, AT(timeouts.idle),
      .purpose = "for the next request of a connection" },
    { "timeouts.send", SCHEMA_DURATION, "\"30s\"", 10 * MS, DAY, true, AT(timeouts.send),
      .purpose = "for a client that takes nothing of its answer" },
    { "timeouts.drain", SCHEMA_DURATION, "\"30s\"", 0, DAY, true, AT(timeouts.drain),
      .purpose = "for requests in flight at a stop or reload" },
    { "timeouts.watchdog", SCHEMA_DURATION, "\"10s\"", 100 * MS, DAY, true, AT(timeouts.watchdog),
      .purpose = "for a worker that does not return to its loop" },

    { "limits", SCHEMA_GROUP, .purpose = "how much the server takes on" },
    { "limits.connections", SCHEMA_NUMBER, "10000", 1, 10000000, true, AT(limits.connections),
      .purpose = "connections of the whole server" },
    { "limits.per_address", SCHEMA_NUMBER, "0", 1, 10000000, true, AT(limits.per_address),
      .purpose = "connections of the whole server from one address" },
    { "limits.header", SCHEMA_SIZE, "\"16k\"", 256, 16 * MIB, false, AT(limits.header),
      .purpose = "bytes of the head of a request" },
    { "limits.body", SCHEMA_SIZE, "\"1m\"", 1, 1024 * GIB, true, AT(limits.body),
      .purpose = "bytes of the body of a request" },
    { "limits.requests", SCHEMA_NUMBER, "0", 1, INT_MAX, true, AT(limits.requests),
      .purpose = "requests of one connection" },
    { "limits.backlog", SCHEMA_NUMBER, "4096", 1, 65535, false, AT(limits.backlog),
      .purpose = "connections that wait to be accepted, of each socket" },

    { "routes", SCHEMA_ROUTES,
      "( { path = \"/hello\"  text = \"Hello\" },"
      " { path = \"/healthz\"  health = \"live\" },"
      " { path = \"/readyz\"  health = \"ready\" } )",
      AT(routes), .purpose = "what is answered" },

    { "admin", SCHEMA_GROUP, .purpose = "health and metrics, off the public port" },
    { "admin.listen", SCHEMA_LISTEN, "[ ]", AT(admin_listen),
      .purpose = "the addresses of the admin listener; none: off" },

    { "include", SCHEMA_INCLUDE, "[ ]", .purpose = "fragments to load besides: files or patterns" },
    { "watch", SCHEMA_BOOL, "false", AT(watch), .purpose = "reload when a file changes" },
    { "drain_delay", SCHEMA_DURATION, "\"0s\"", 0, DAY, true, AT(drain_delay),
      .purpose = "how long serving goes on, not ready, before a stop drains" },

    { "pidfile", SCHEMA_LATER, .purpose = "a file that holds the master's pid" },
    { "sandbox", SCHEMA_LATER, .purpose = "what the workers give up" },
    { "idle_exit", SCHEMA_LATER, .purpose = "leave when nobody asks for anything" },
    { "access_log_sample", SCHEMA_LATER, .purpose = "log only some of the requests" },
    { "proxy_protocol", SCHEMA_LATER, .purpose = "the client's address from a proxy" },
    { "trusted_proxies", SCHEMA_LATER, .purpose = "whose Forwarded fields count" },
    { "errors", SCHEMA_LATER, .purpose = "bodies of error answers" },
};
const size_t schema_nrows = sizeof(schema_rows) / sizeof(schema_rows[0]);

const struct schema_row schema_route_rows[] = {
    { "path", SCHEMA_STRING, ROUTE_AT(path), .purpose = "the path that is answered" },
    { "type", SCHEMA_STRING, ROUTE_AT(type), .purpose = "the Content-Type of the answer" },
    { "status", SCHEMA_INT, NULL, 200, 599, false, ROUTE_AT(status),
      .purpose = "the status of the answer" },
    { "methods", SCHEMA_STRINGS, ROUTE_AT(methods), .purpose = "the methods that are allowed" },
    { "headers", SCHEMA_FIELDS, ROUTE_AT(headers), .purpose = "more fields of the answer" },
    { "delay", SCHEMA_DURATION, NULL, 0, DAY, true, ROUTE_AT(delay),
      .purpose = "how long the answer waits" },
};
const size_t schema_nroute_rows = sizeof(schema_route_rows) / sizeof(schema_route_rows[0]);

/* The members of `listen` when it is a list with groups. */
const struct schema_row schema_listen_rows[] = {
    { "address", SCHEMA_STRING, .purpose = "as in a plain list" },
    { "proxy_protocol", SCHEMA_LATER, .purpose = "the client's address from a proxy" },
};
const size_t schema_nlisten_rows = sizeof(schema_listen_rows) / sizeof(schema_listen_rows[0]);

const struct schema_row *schema_find(const struct schema_row *rows, size_t nrows, const char *key)
{
    for (size_t i = 0; i < nrows; i++)
        if (strcmp(rows[i].key, key) == 0)
            return &rows[i];
    return NULL;
}

const char *schema_leaf(const struct schema_row *row)
{
    const char *dot = strchr(row->key, '.');
    return dot ? dot + 1 : row->key;
}

bool schema_is_in_group(const struct schema_row *row, const char *group)
{
    const char *dot = strchr(row->key, '.');
    if (!group || !dot)
        return !group && !dot;
    return strlen(group) == (size_t)(dot - row->key) &&
           memcmp(group, row->key, (size_t)(dot - row->key)) == 0;
}

static int add_choices(struct buf *out, const char *const *choices, const char *last)
{
    for (size_t i = 0; choices[i]; i++) {
        const char *between = i == 0 ? "" : choices[i + 1] || last ? ", " : " or ";
        if (buf_printf(out, "%s\"%s\"", between, choices[i]) == -1)
            return -1;
    }
    return last ? buf_printf(out, " or %s", last) : 0;
}

static int add_bound(struct buf *out, const struct schema_row *row, int64_t bound)
{
    switch (row->type) {
    case SCHEMA_SIZE:
        return value_show_size(out, bound);
    case SCHEMA_DURATION:
        return value_show_duration(out, bound);
    default:
        return buf_printf(out, "%lld", (long long)bound);
    }
}

static int add_with_range(struct buf *out, const char *text, const struct schema_row *row)
{
    bool has_example = strchr(text, '"') != NULL;
    bool has_zero = row->has_zero && row->least > 0;

    if (buf_add_string(out, text) == -1)
        return -1;
    if (row->least == 0 && row->most == 0)
        return 0;
    if (buf_add_string(out, has_zero      ? ", 0 or"
                            : has_example ? ","
                                          : "") == -1 ||
        buf_add_string(out, " from ") == -1 || add_bound(out, row, row->least) == -1 ||
        buf_add_string(out, " to ") == -1)
        return -1;
    return add_bound(out, row, row->most);
}

int schema_add_wanted(struct buf *out, const struct schema_row *row)
{
    switch (row->type) {
    case SCHEMA_BOOL:
        return buf_add_string(out, "true or false");
    case SCHEMA_NUMBER:
    case SCHEMA_INT:
        return add_with_range(out, "a number", row);
    case SCHEMA_SIZE:
        return add_with_range(out, "a size such as \"16k\"", row);
    case SCHEMA_DURATION:
        return add_with_range(out, "a duration such as \"10s\"", row);
    case SCHEMA_STRING:
        return buf_add_string(out, "a string");
    case SCHEMA_PATH:
        return buf_add_string(out, "a path");
    case SCHEMA_CHOICE:
        return add_choices(out, row->choices, NULL);
    case SCHEMA_STRINGS:
        return buf_add_string(out, "an array of strings, such as [ \"a\", \"b\" ]");
    case SCHEMA_FIELDS:
        return buf_add_string(out, "a group of fields, such as { X-Name = \"value\" }");
    case SCHEMA_LISTEN:
        return buf_add_string(out, "an array of addresses, such as [ \"*:8080\" ]");
    case SCHEMA_WORKERS:
        return buf_add_string(out, "\"auto\" or a number from 1 to 1024");
    case SCHEMA_USER:
        return buf_add_string(out, "the name or number of an account");
    case SCHEMA_CONTROL:
        return buf_add_string(out, "a path or \"off\"");
    case SCHEMA_SINK:
        return add_choices(out, row->choices, "a path");
    case SCHEMA_INCLUDE:
        return buf_add_string(out, "an array of files, such as [ \"conf.d/*.conf\" ]");
    case SCHEMA_ROUTES:
        return buf_add_string(out, "a list of groups, such as ( { path = \"/\"  text = \"Hi\" } )");
    case SCHEMA_GROUP:
        return buf_add_string(out, "a group { }");
    case SCHEMA_LATER:
        return buf_add_string(out, "nothing yet");
    }
    return 0;
}
