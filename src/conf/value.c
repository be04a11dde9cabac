#include "conf/value.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/utf8.h"

struct unit {
    const char *name;
    int64_t factor;
    int64_t least; /* of the unit, to be printed in it: "60s" rather than "1m" */
};

/* The smallest unit stands last: printing takes the first that leaves no rest. */
static const struct unit size_units[] = {
    { "g", INT64_C(1) << 30, 1 },
    { "m", 1 << 20, 1 },
    { "k", 1 << 10, 1 },
    { "", 1, 1 },
    { NULL, 0, 0 },
};
static const struct unit duration_units[] = {
    { "h", 3600 * CLOCK_SECOND, 1 },
    { "m", 60 * CLOCK_SECOND, 2 },
    { "s", CLOCK_SECOND, 1 },
    { "ms", CLOCK_MILLISECOND, 1 },
    { NULL, 0, 0 },
};

/* Digits at the front of `text`; *end is what follows. False: there are none, or too many. */
static bool parse_digits(int64_t *number, const char *text, const char **end)
{
    int64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *at - '0', &value))
            return false;
    *number = value;
    *end = at;
    return at > text;
}

static bool starts_with_digit(const char *text)
{
    return *text >= '0' && *text <= '9';
}

const char *value_parse_number(int64_t *number, const char *text)
{
    const char *end;
    bool is_negative = *text == '-';
    const char *digits = text + (*text == '-' || *text == '+');

    if (!starts_with_digit(digits))
        return "is not a number";
    if (!parse_digits(number, digits, &end))
        return "does not fit 64 bits";
    if (*end != '\0')
        return "is not a number alone";
    if (is_negative)
        *number = -*number;
    return NULL;
}

/* The unit called `name`, or NULL. */
static const struct unit *unit_find(const struct unit *units, const char *name)
{
    for (; units->name; units++)
        if (strcmp(units->name, name) == 0)
            return units;
    return NULL;
}

const char *value_parse_size(int64_t *bytes, const char *text)
{
    const char *end;
    if (*text == '-')
        return "is negative";
    if (!starts_with_digit(text))
        return "is not a size";
    if (!parse_digits(bytes, text, &end))
        return "does not fit 64 bits";
    const struct unit *unit = unit_find(size_units, end);
    if (!unit)
        return "is not a size (the units are k, m and g, or none for bytes)";
    if (__builtin_mul_overflow(*bytes, unit->factor, bytes))
        return "does not fit 64 bits";
    return NULL;
}

const char *value_parse_duration(int64_t *nanoseconds, const char *text)
{
    const char *end;
    if (*text == '-')
        return "is negative";
    if (!starts_with_digit(text))
        return "is not a duration";
    if (!parse_digits(nanoseconds, text, &end))
        return "does not fit 64 bits";
    if (*end == '\0')
        return *nanoseconds == 0 ? NULL : "is a duration without a unit (ms, s, m or h)";
    const struct unit *unit = unit_find(duration_units, end);
    if (!unit)
        return "is not a duration (the units are ms, s, m and h)";
    if (__builtin_mul_overflow(*nanoseconds, unit->factor, nanoseconds))
        return "does not fit 64 bits of nanoseconds";
    return NULL;
}

static int show(struct buf *out, int64_t value, const struct unit *units)
{
    for (; value != 0 && units->name; units++)
        if (value % units->factor == 0 && value / units->factor >= units->least)
            return buf_printf(out, "%lld%s", (long long)(value / units->factor), units->name);
    return buf_printf(out, "%lld", (long long)value);
}

int value_show_size(struct buf *out, int64_t bytes)
{
    return show(out, bytes, size_units);
}

int value_show_duration(struct buf *out, int64_t nanoseconds)
{
    return show(out, nanoseconds, duration_units);
}

int value_print_number(struct buf *out, int64_t number)
{
    /* Without the L libconfig would wrap it at 32 bits. */
    const char *suffix = number < INT_MIN || number > INT_MAX ? "L" : "";
    return buf_printf(out, "%lld%s", (long long)number, suffix);
}

int value_print_size(struct buf *out, int64_t bytes)
{
    return buf_add(out, "\"", 1) == -1 || value_show_size(out, bytes) == -1 ? -1
                                                                            : buf_add(out, "\"", 1);
}

int value_print_duration(struct buf *out, int64_t nanoseconds)
{
    return buf_add(out, "\"", 1) == -1 || value_show_duration(out, nanoseconds) == -1
               ? -1
               : buf_add(out, "\"", 1);
}

/* The bytes of the character at `text` and its escape, if it takes one, in `escape`. */
static size_t escape(char room[8], const char *text)
{
    static const char named[] = "\nn\rr\tt\ff\\\\\"\"";
    unsigned char c = (unsigned char)*text;
    size_t width = utf8_width(text, strnlen(text, 4)); /* no character is longer */

    room[0] = '\0';
    for (const char *name = named; *name; name += 2)
        if (*name == *text) {
            snprintf(room, 8, "\\%c", name[1]);
            return 1;
        }
    if (c < ' ' || c == 0x7f || width == 0) {
        snprintf(room, 8, "\\x%02X", c);
        return 1;
    }
    return width;
}

int value_print_string(struct buf *out, const char *string)
{
    char room[8];
    if (buf_add(out, "\"", 1) == -1)
        return -1;
    while (*string != '\0') {
        if (string[0] == '$' && string[1] == '{' && buf_add(out, "$", 1) == -1)
            return -1;
        size_t width = escape(room, string);
        if ((room[0] ? buf_add_string(out, room) : buf_add(out, string, width)) == -1)
            return -1;
        string += width;
    }
    return buf_add(out, "\"", 1);
}

const char *value_quote(char room[VALUE_QUOTE_SIZE], const char *text)
{
    char escaped[8];
    size_t length = 0;

    room[length++] = '"';
    while (*text != '\0') {
        size_t width = escape(escaped, text);
        size_t add = escaped[0] ? strlen(escaped) : width;
        if (length + add + sizeof("...\"") > VALUE_QUOTE_SIZE) {
            memcpy(room + length, "...", 3);
            length += 3;
            break;
        }
        memcpy(room + length, escaped[0] ? escaped : text, add);
        length += add;
        text += width;
    }
    room[length++] = '"';
    room[length] = '\0';
    return room;
}
