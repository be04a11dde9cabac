/*
 * load: from text to a struct conf, for the files load_*.c and find.c only.
 *
 * A document is one text: the built-in defaults, the file, a fragment, or one -o. Each is parsed
 * by libconfig and its settings are collected into slots, one a row of the schema, where a later
 * document replaces the defaults, an override replaces everything, and a key that two files set is
 * refused. Only then are the values in force converted, in the order of the schema. What was
 * replaced is never looked at, so an override can mend a file.
 *
 * Everything that returns int returns 0, or -1 with load->error set.
 */
#ifndef CONF_LOAD_H
#define CONF_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "conf/conf.h"
#include "conf/schema.h"

struct config_setting_t;
struct config_t;

enum load_origin {
    LOAD_DEFAULTS,
    LOAD_FILE, /* the file or a fragment */
    LOAD_OVERRIDE,
};

struct load_document {
    struct load_document *next;
    enum load_origin origin;
    bool is_fragment;
    const char *label; /* as errors name it: "hayate.conf", "-o workers"; the conf's */
    char *prefix;      /* directory of the label: what a relative path is shown below */
    char *directory;   /* the same, absolute; NULL: the working directory, unknown so far */
    const char *key;   /* of an override */
    struct config_t *config;
};

/* Where the value of a row comes from. */
struct load_slot {
    const struct config_setting_t *setting;
    struct load_document *document; /* NULL: unset */
};

struct load {
    const struct conf_request *request;
    const struct conf_record *record; /* of an earlier load, instead of the disk; NULL: none */
    struct conf *conf;
    struct conf_internal *internal; /* conf->internal */
    struct conf_error *error;
    struct load_document *documents;
    struct load_slot *slots;       /* by row of the schema; that of routes is unused */
    struct load_slot *route_lists; /* the lists of routes, which append */
    size_t nroute_lists;
};

/* What conf->internal points to. */
struct conf_internal {
    char **labels; /* what conf_route.file points to */
    size_t nlabels;
};

/* As conf_load, but the file is named request->file and holds these bytes. */
struct conf *load_bytes(const struct conf_request *request, struct slice bytes,
                        struct conf_error *error);

/* load.c: errors and warnings. "LABEL:LINE: ...", without the line where there are no lines. */
int load_refuse(struct load *load, const struct load_document *document,
                const struct config_setting_t *setting, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same about the value of a row: "LABEL:LINE: KEY: ...". */
int load_refuse_value(struct load *load, const struct schema_row *row, struct load_slot slot,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
int load_no_memory(struct load *load);
int load_warn(struct load *load, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* load_document.c. The document is load's, and the bytes are copied. NULL: the error is set. */
struct load_document *load_document_new(struct load *load, enum load_origin origin,
                                        const char *label);
int load_document_parse(struct load *load, struct load_document *document, struct slice text);
/* The document holds one setting: the string itself. */
int load_document_string(struct load *load, struct load_document *document, const char *string);
/* The one setting of a document of `value = ...`. */
int load_document_value(struct load *load, struct load_document *document, struct load_slot *slot);
void load_documents_free(struct load *load);
/* `path` beside the document, absolute and malloced. NULL: the error is set. */
char *load_document_path(struct load *load, const struct schema_row *row, struct load_slot slot,
                         const char *path);

/* load_collect.c: settings into slots. */
int load_collect_defaults(struct load *load);
int load_collect(struct load *load, struct load_document *document);
int load_collect_key(struct load *load, struct load_slot slot, const char *key);

/* load_source.c: the file, fragments and overrides as documents. */
int load_file(struct load *load);
int load_file_bytes(struct load *load, const char *name, struct slice bytes);
int load_overrides(struct load *load, bool is_include);
int load_fragments(struct load *load);

/* load_value.c: the value of a slot, converted, at row->offset of `base`. */
int load_value(struct load *load, const struct schema_row *row, struct load_slot slot, void *base);
int load_values(struct load *load);
/* The string in `setting`, expanded and malloced. */
int load_string(struct load *load, const struct schema_row *row, struct load_slot slot,
                char **string);
int load_refuse_type(struct load *load, const struct schema_row *row, struct load_slot slot);
/* "WHAT: wants ...", with what a value of the row looks like. */
int load_refuse_wanting(struct load *load, const struct schema_row *row, struct load_slot slot,
                        const char *what);
/* The same of a string: `"TEXT" is so and so: wants ...`. */
int load_refuse_text(struct load *load, const struct schema_row *row, struct load_slot slot,
                     const char *text, const char *fault);
/* A row for the elements of another: the same key, but a string. */
struct schema_row load_element_row(const struct schema_row *row);

/* load_number.c, load_listen.c, load_place.c, load_routes.c: the types with rules of their own. */
int load_number(struct load *load, const struct schema_row *row, struct load_slot slot,
                int64_t *number);
int load_workers(struct load *load, const struct schema_row *row, struct load_slot slot,
                 unsigned *workers);
int load_listen(struct load *load, const struct schema_row *row, struct load_slot slot,
                struct conf_listen **list, size_t *count);
int load_user(struct load *load, const struct schema_row *row, struct load_slot slot);
int load_control(struct load *load, const struct schema_row *row, struct load_slot slot,
                 char **path);
int load_sink(struct load *load, const struct schema_row *row, struct load_slot slot,
              struct conf_sink *sink);
int load_routes(struct load *load);

/* load_unknown.c: refuses a key that is in no row, with the nearest one that is. */
int load_refuse_key(struct load *load, struct load_slot slot, const char *group, const char *key);
/* The same for a route of that kind, or of none that is known. */
int load_refuse_route_key(struct load *load, struct load_slot slot, const struct conf_kind *kind,
                          const char *key);
bool load_is_route_key(const struct load *load, const char *key);
int load_refuse_later(struct load *load, const struct schema_row *row, struct load_slot slot);

#endif
