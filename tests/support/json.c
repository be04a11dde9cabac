#include "support/json.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "support/text.h"

#define DEPTH_MAX 32

struct reader {
    const char *at;
    unsigned depth;
};

static bool read_value(struct reader *reader, struct json *json);

static void skip_space(struct reader *reader)
{
    reader->at += strspn(reader->at, " \t\r\n");
}

static bool take(struct reader *reader, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static bool read_hex(struct reader *reader, uint32_t *unit)
{
    char digits[5] = "";

    memcpy(digits, reader->at, strnlen(reader->at, 4));
    if (strspn(digits, "0123456789abcdefABCDEF") != 4)
        return false;
    *unit = (uint32_t)strtoul(digits, NULL, 16);
    reader->at += 4;
    return true;
}

static char *put_utf8(char *out, uint32_t point)
{
    if (point < 0x80) {
        *out++ = (char)point;
    } else if (point < 0x800) {
        *out++ = (char)(0xc0 | point >> 6);
        *out++ = (char)(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        *out++ = (char)(0xe0 | point >> 12);
        *out++ = (char)(0x80 | (point >> 6 & 0x3f));
        *out++ = (char)(0x80 | (point & 0x3f));
    } else {
        *out++ = (char)(0xf0 | point >> 18);
        *out++ = (char)(0x80 | (point >> 12 & 0x3f));
        *out++ = (char)(0x80 | (point >> 6 & 0x3f));
        *out++ = (char)(0x80 | (point & 0x3f));
    }
    return out;
}

/* Behind the backslash. */
static bool read_escape(struct reader *reader, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t point, low;
    const char *name = *reader->at != '\0' ? strchr(names, *reader->at) : NULL;

    if (name != NULL) {
        reader->at++;
        *(*out)++ = values[name - names];
        return true;
    }
    if (!take(reader, "u") || !read_hex(reader, &point) || point == 0)
        return false;
    if (point >= 0xd800 && point < 0xdc00) {
        if (!take(reader, "\\u") || !read_hex(reader, &low) || low < 0xdc00 || low > 0xdfff)
            return false;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    } else if (point >= 0xdc00 && point < 0xe000) {
        return false;
    }
    *out = put_utf8(*out, point);
    return true;
}

static const char *read_string(struct reader *reader)
{
    if (!take(reader, "\""))
        return NULL;
    char *string = text_allocate(strlen(reader->at) + 1), *out = string;
    while (*reader->at != '"') {
        if (take(reader, "\\")) {
            if (!read_escape(reader, &out))
                return NULL;
            continue;
        }
        size_t width = utf8_width(reader->at, strlen(reader->at));
        if (width == 0 || (unsigned char)*reader->at < 0x20)
            return NULL;
        out = mempcpy(out, reader->at, width);
        reader->at += width;
    }
    reader->at++;
    return string;
}

static bool read_number(struct reader *reader, struct json *json)
{
    static const char form[] = "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?)";
    const char *text = text_extract(text_copy(reader->at, strnlen(reader->at, 64)), form);

    if (text == NULL)
        return false;
    reader->at += strlen(text);
    json->type = JSON_NUMBER;
    json->number = strtod(text, NULL);
    return true;
}

/* The children of an array or object, behind its opening bracket. */
static bool read_children(struct reader *reader, struct json *json, const char *end)
{
    const struct json **tail = &json->first;

    if (++reader->depth > DEPTH_MAX)
        return false;
    skip_space(reader);
    bool is_done = take(reader, end);
    while (!is_done) {
        struct json *child = text_allocate(sizeof *child);
        skip_space(reader);
        if (json->type == JSON_OBJECT) {
            child->name = read_string(reader);
            if (child->name == NULL || json_get(json, child->name) != NULL)
                return false;
            skip_space(reader);
            if (!take(reader, ":"))
                return false;
        }
        if (!read_value(reader, child))
            return false;
        *tail = child;
        tail = &child->next;
        is_done = take(reader, end);
        if (!is_done && !take(reader, ","))
            return false;
    }
    reader->depth--;
    return true;
}

static bool read_value(struct reader *reader, struct json *json)
{
    bool is_good = true;

    skip_space(reader);
    if (take(reader, "{")) {
        json->type = JSON_OBJECT;
        is_good = read_children(reader, json, "}");
    } else if (take(reader, "[")) {
        json->type = JSON_ARRAY;
        is_good = read_children(reader, json, "]");
    } else if (*reader->at == '"') {
        json->type = JSON_STRING;
        json->string = read_string(reader);
        is_good = json->string != NULL;
    } else if (take(reader, "null")) {
        json->type = JSON_NULL;
    } else if (take(reader, "true")) {
        json->type = JSON_TRUE;
    } else if (take(reader, "false")) {
        json->type = JSON_FALSE;
    } else {
        is_good = read_number(reader, json);
    }
    skip_space(reader);
    return is_good;
}

const struct json *json_parse(const char *text)
{
    struct reader reader = { .at = text };
    struct json *json = text_allocate(sizeof *json);

    return read_value(&reader, json) && *reader.at == '\0' ? json : NULL;
}

const struct json *json_get(const struct json *object, const char *name)
{
    const struct json *child = object != NULL && object->type == JSON_OBJECT ? object->first : NULL;

    while (child != NULL && strcmp(child->name, name) != 0)
        child = child->next;
    return child;
}

const struct json *json_at(const struct json *array, unsigned index)
{
    const struct json *child = array != NULL ? array->first : NULL;

    while (child != NULL && index-- > 0)
        child = child->next;
    return child;
}

unsigned json_count(const struct json *json)
{
    unsigned count = 0;

    for (const struct json *child = json != NULL ? json->first : NULL; child != NULL;
         child = child->next)
        count++;
    return count;
}

double json_number(const struct json *json)
{
    return json != NULL && json->type == JSON_NUMBER ? json->number : -1;
}

const char *json_string(const struct json *json)
{
    return json != NULL && json->type == JSON_STRING ? json->string : "";
}

unsigned json_check_lines(const char *text, const char *const *members)
{
    unsigned count = 0;

    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1, count++) {
        const char *line = text_copy(text, (size_t)(end - text));
        const struct json *json = json_parse(line);
        ck_assert_msg(json != NULL, "no JSON: %s", line);
        for (const char *const *member = members; *member != NULL; member++)
            ck_assert_msg(json_get(json, *member) != NULL, "no %s: %s", *member, line);
    }
    ck_assert_msg(*text == '\0', "a line has no end: %s", text);
    return count;
}
