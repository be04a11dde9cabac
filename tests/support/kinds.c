#include "support/kinds.h"

#include <stddef.h>
#include <string.h>

/* A test is a process of its own. */
static int alive;

static const char *const health_words[] = { "live", "ready", NULL };
static const char *const colours[] = { "red", "green", "blue", NULL };

#define SAMPLE(field) .offset = offsetof(struct kinds_sample, field)

static const struct schema_row text_rows[] = { { .key = "text", .type = SCHEMA_STRING } };
static const struct schema_row redirect_rows[] = { { .key = "redirect", .type = SCHEMA_STRING } };
static const struct schema_row health_rows[] = {
    { .key = "health", .type = SCHEMA_CHOICE, .choices = health_words },
};
static const struct schema_row sample_rows[] = {
    { .key = "sample", .type = SCHEMA_STRING, SAMPLE(sample) },
    { .key = "file", .type = SCHEMA_PATH, SAMPLE(file) },
    { .key = "flag", .type = SCHEMA_BOOL, .fallback = "true", SAMPLE(flag) },
    { .key = "number", .type = SCHEMA_NUMBER, .least = -5, .most = 1000000000000, SAMPLE(number) },
    { .key = "size", .type = SCHEMA_SIZE, .fallback = "\"2k\"", SAMPLE(size) },
    { .key = "wait", .type = SCHEMA_DURATION, .fallback = "\"1s\"", SAMPLE(wait) },
    { .key = "code", .type = SCHEMA_INT, .least = 1, .most = 9, SAMPLE(code) },
    { .key = "colour",
      .type = SCHEMA_CHOICE,
      .fallback = "\"green\"",
      .choices = colours,
      SAMPLE(colour) },
    { .key = "words", .type = SCHEMA_STRINGS, SAMPLE(words) },
    { .key = "fields", .type = SCHEMA_FIELDS, SAMPLE(fields) },
    { .key = "someday", .type = SCHEMA_LATER },
};

static int prepare(struct conf_route *route, struct conf_error *error)
{
    const struct kinds_text *options = route->options;
    if (strcmp(options->text, "!") == 0)
        return conf_route_error(error, route, "text: cannot be prepared");
    route->answer = options->text;
    alive++;
    return 0;
}

static void release(void *answer)
{
    (void)answer;
    alive--;
}

static const struct conf_kind text_kind = {
    "text", text_rows, 1, sizeof(struct kinds_text), prepare, release,
};
static const struct conf_kind redirect_kind = {
    "redirect", redirect_rows, 1, sizeof(struct kinds_text), NULL, NULL,
};
static const struct conf_kind health_kind = {
    "health", health_rows, 1, sizeof(struct kinds_health), NULL, NULL,
};
static const struct conf_kind sample_kind = {
    "sample",
    sample_rows,
    sizeof(sample_rows) / sizeof(sample_rows[0]),
    sizeof(struct kinds_sample),
    NULL,
    NULL,
};
static const struct conf_kind *const kinds[] = {
    &text_kind, &redirect_kind, &health_kind, &sample_kind, NULL,
};

static const char *path_fault(const char *path)
{
    return path[0] == '/' ? NULL : "wants a / first";
}

/* As if every "%41" were an "A". */
static bool path_equal(const char *a, const char *b)
{
    while (*a && *b) {
        char left = strncmp(a, "%41", 3) == 0 ? 'A' : *a;
        char right = strncmp(b, "%41", 3) == 0 ? 'A' : *b;
        if (left != right)
            return false;
        a += strncmp(a, "%41", 3) == 0 ? 3 : 1;
        b += strncmp(b, "%41", 3) == 0 ? 3 : 1;
    }
    return *a == *b;
}

static const struct conf_kinds table = { kinds, path_fault, path_equal };

const struct conf_kinds *kinds_table(void)
{
    return &table;
}

int kinds_alive(void)
{
    return alive;
}
