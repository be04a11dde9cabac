/*
 * conf: the configuration, as an immutable value.
 *
 * A struct conf is made by conf_load and never changes after that; everybody else holds it as
 * const. It owns all that it points to. A reload builds a second one beside it. The layer knows no
 * HTTP: kinds of routes are a table that the caller passes in, each with rows of the schema and a
 * prepare step.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "conf/address.h"
#include "conf/files.h"

struct schema_row;
struct conf_internal;

/* One entry of `listen`, or of admin.listen: one address, or two for "*:port". */
struct conf_listen {
    char *text;                  /* as configured, expanded; how reloads recognise it */
    struct address addresses[2]; /* "*": IPv4 first, then IPv6 */
    unsigned naddresses;
};

enum conf_sink_kind {
    CONF_SINK_OFF,
    CONF_SINK_STDERR,
    CONF_SINK_STDOUT,
    CONF_SINK_PATH,
};

struct conf_sink {
    enum conf_sink_kind kind;
    char *path; /* absolute; NULL unless CONF_SINK_PATH */
};

enum conf_access_format {
    CONF_ACCESS_COMBINED,
    CONF_ACCESS_JSON,
};

/* Nanoseconds; 0 is off. */
struct conf_timeouts {
    int64_t header, body, idle, send, drain, watchdog;
};

/* 0 is unlimited, except backlog. */
struct conf_limits {
    int64_t connections; /* of the whole server */
    int64_t per_address; /* connections of the whole server from one address */
    int64_t header;      /* bytes */
    int64_t body;        /* bytes */
    int64_t requests;    /* of one connection */
    int64_t backlog;
};

struct conf_field {
    char *name;
    char *value;
};

struct conf_route {
    char *path;
    const struct conf_kind *kind;
    void *options;  /* the kind's own struct (kind->options_size), filled by its rows */
    char *type;     /* Content-Type; NULL: the kind's default */
    int status;     /* 0: the kind's default */
    char **methods; /* as configured; NULL: the kind's default */
    size_t nmethods;
    struct conf_field *headers;
    size_t nheaders;
    int64_t delay;    /* ns before the answer */
    void *answer;     /* what prepare made; released by the kind */
    const char *file; /* where it stands, for errors; owned by the conf */
    int line;
};

/* Where and what: "hayate.conf:4: unknown key "wrokers" (did you mean "workers"?)". */
struct conf_error {
    char text[1024];
};

/* Sets the error to "FILE:LINE: ..." of a route. Always returns -1. */
int conf_route_error(struct conf_error *error, const struct conf_route *route, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));

/* A kind of route: a route is of the kind whose key it has. The table is static. */
struct conf_kind {
    const char *key;               /* "text", "redirect", "health", ... */
    const struct schema_row *rows; /* its own keys; the first is `key` itself */
    size_t nrows;
    size_t options_size;
    /* Makes route->answer. 0, or -1 with the error. */
    int (*prepare)(struct conf_route *route, struct conf_error *error);
    /* Releases route->answer; never called with NULL. */
    void (*release)(void *answer);
};

struct conf_kinds {
    const struct conf_kind *const *kinds; /* ends with NULL */
    /* What is wrong with a path, or NULL (static text); and are two paths the same route? */
    const char *(*path_fault)(const char *path);
    bool (*path_equal)(const char *a, const char *b);
};

struct conf {
    char *file;         /* absolute, as named (symlinks kept); NULL: built-in defaults */
    struct files files; /* what it was made from */

    struct conf_listen *listen;
    size_t nlisten;
    unsigned workers; /* 0: auto */
    char *user;       /* NULL when it does not apply: not started as root */
    uid_t uid;
    gid_t gid;
    char *control;           /* path; NULL: off */
    bool control_is_default; /* not configured: a failure to bind it is a warning */
    struct conf_sink log;
    enum log_format log_format;
    enum log_level log_level;
    struct conf_sink access_log;
    enum conf_access_format access_log_format;
    struct conf_timeouts timeouts;
    struct conf_limits limits;
    struct conf_route *routes;
    size_t nroutes;
    struct conf_listen *admin_listen;
    size_t nadmin_listen;
    bool watch;          /* reload when a file has changed */
    int64_t drain_delay; /* ns from a stop to the drain; 0: none */

    char **warnings; /* for the log, at each load */
    size_t nwarnings;

    struct conf_internal *internal; /* what conf_load keeps for itself */
};

/*
 * What to load. All of it is borrowed for the length of the call, `kinds` for the conf's life.
 *
 * An override replaces what the file and all fragments say of that key; of several for one key the
 * last wins. `routes` replaces all routes, a group ("timeouts={...}") only the keys in it, and
 * `include` the fragments. Relative paths in an override, and a relative `file`, lie below the
 * working directory: a caller that loads again must stay there.
 */
struct conf_request {
    const char *file;             /* -c FILE; NULL: the default file, or the built-in defaults */
    const char *const *overrides; /* -o KEY=VALUE; ends with NULL; may be NULL */
    const struct conf_kinds *kinds;
};

/*
 * Reads, parses, checks and prepares: all that `check`, a start and a reload need. NULL with the
 * error. Reads regular files only, each once.
 */
struct conf *conf_load(const struct conf_request *request, struct conf_error *error);

/* The same; when it fails, *tried is what it had read by then: the caller's, else empty. */
struct conf *conf_load_tried(const struct conf_request *request, struct conf_error *error,
                             struct files *tried);

/* What an earlier load of the same request has found outside: the files, and the workers' account
 * (of a master that is root). */
struct conf_record {
    const struct files *files;
    uid_t uid;
    gid_t gid;
};

/*
 * The same, but all that is not in the request or the environment is that of the record, which is
 * borrowed for the call, and the places of logs are not judged: what is being served loads again,
 * whatever has become of the disk. For a process that takes over from another.
 */
struct conf *conf_load_recorded(const struct conf_request *request,
                                const struct conf_record *record, struct conf_error *error);

void conf_free(struct conf *conf);

/*
 * Does the disk still hold what this was made from, byte for byte, fragments included? *changed
 * is the first path that differs (a new fragment: the pattern it matches), or NULL; it lives as
 * long as the conf. A conf without a file has drifted when the default file exists now.
 */
bool conf_has_drifted(const struct conf *conf, const char **changed);

/*
 * Only the path of the control socket, from a file that may be broken elsewhere (or missing: `file`
 * may be NULL for the default one), for control clients: *path is malloced, or NULL for "off".
 * Looks into the fragments too. Falls back to the default that a master of this account would
 * take; when no socket is there, to /run/hayate/control if there is that directory. -1: ENOMEM.
 */
int conf_find_control(const char *file, char **path);

/* The file that a start without -c would read: $(sysconfdir)/hayate/hayate.conf. */
const char *conf_default_file(void);

/* The version of libconfig this was built with: "1.5.0". */
const char *conf_library_version(void);

#endif
