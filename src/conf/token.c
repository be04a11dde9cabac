#include "conf/token.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/utf8.h"

void token_reader_init(struct token_reader *reader, struct slice text)
{
    /* Nothing may come as NULL, which has no end to add to. */
    const char *start = text.length > 0 ? text.data : "";
    *reader = (struct token_reader){ .at = start, .end = start + text.length, .line = 1 };
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '*';
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c) || c == '-' || c == '_';
}

/* The byte `ahead` of here, or NUL behind the end. */
static char peek(const struct token_reader *reader, size_t ahead)
{
    return ahead < (size_t)(reader->end - reader->at) ? reader->at[ahead] : '\0';
}

__attribute__((format(printf, 3, 4))) static struct token fault(struct token_reader *reader,
                                                                int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reader->fault, sizeof(reader->fault), format, args);
    va_end(args);
    return (struct token){ .kind = TOKEN_FAULT, .line = line };
}

/* Passes white space and comments. False: a comment without end. */
static bool skip_blanks(struct token_reader *reader, int *line)
{
    while (reader->at < reader->end) {
        char c = *reader->at;
        if (c == '\n')
            reader->line++;
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            reader->at++;
        } else if (c == '#' || (c == '/' && peek(reader, 1) == '/')) {
            const char *end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
            reader->at = end ? end : reader->end;
        } else if (c == '/' && peek(reader, 1) == '*') {
            *line = reader->line;
            for (reader->at += 2; reader->at < reader->end; reader->at++) {
                if (*reader->at == '\n')
                    reader->line++;
                if (*reader->at == '*' && peek(reader, 1) == '/')
                    break;
            }
            if (reader->at == reader->end)
                return false;
            reader->at += 2;
        } else {
            break;
        }
    }
    return true;
}

/* The length of the escape at `at`, or 0 if libconfig has no such one. */
static size_t escape_length(const struct token_reader *reader)
{
    char c = peek(reader, 1);
    if (c != '\0' && strchr("nrtf\\\"", c))
        return 2;
    if ((c == 'x' || c == 'X') && hex_value(peek(reader, 2)) >= 0 &&
        hex_value(peek(reader, 3)) >= 0)
        return 4;
    return 0;
}

static struct token next_string(struct token_reader *reader)
{
    const char *start = ++reader->at;
    while (reader->at < reader->end && *reader->at != '\n') {
        if (*reader->at == '"') {
            size_t length = (size_t)(reader->at++ - start);
            return (struct token){ TOKEN_STRING, { start, length }, reader->line };
        }
        if (*reader->at != '\\') {
            reader->at++;
            continue;
        }
        size_t length = escape_length(reader);
        if (length == 0) {
            size_t width = utf8_width(reader->at + 1, (size_t)(reader->end - reader->at - 1));
            reader->at++;
            return fault(reader, reader->line,
                         "unknown escape \\%.*s in a string: there are "
                         "\\n \\r \\t \\f \\\\ \\\" and \\xHH",
                         (unsigned char)peek(reader, 0) < ' ' ? 0 : (int)width, reader->at);
        }
        if (length == 4 && hex_value(reader->at[2]) == 0 && hex_value(reader->at[3]) == 0) {
            reader->at += length;
            return fault(reader, reader->line, "\\x00 in a string: no value can hold a NUL byte");
        }
        reader->at += length;
    }
    return fault(reader, reader->line,
                 "a string is not closed on its line: wants a \" at its end "
                 "(\\n is a line break, and \"a\" \"b\" is one string)");
}

/* Does the number that was written here come out of libconfig as the same number? */
static bool fits(const char *digits, bool is_hex, bool is_64)
{
    errno = 0;
    if (is_hex) {
        unsigned long long value = strtoull(digits, NULL, 16);
        return errno == 0 && value <= (is_64 ? (unsigned long long)INT64_MAX : INT_MAX);
    }
    long long value = strtoll(digits, NULL, 10);
    return errno == 0 && (is_64 || (value >= INT_MIN && value <= INT_MAX));
}

/* The length of a float at `at`: digits with a point, an exponent or both. 0: there is none. */
static size_t float_length(const struct token_reader *reader, size_t sign)
{
    size_t length = sign;
    while (is_digit(peek(reader, length)))
        length++;
    bool has_digits = length > sign;
    bool has_point = peek(reader, length) == '.';
    if (has_point)
        for (length++; is_digit(peek(reader, length));)
            length++;
    if (!has_point && !has_digits)
        return 0;
    size_t exponent = length;
    if ((peek(reader, exponent) | 0x20) == 'e') {
        exponent++;
        if (peek(reader, exponent) == '-' || peek(reader, exponent) == '+')
            exponent++;
        if (is_digit(peek(reader, exponent))) {
            while (is_digit(peek(reader, exponent)))
                exponent++;
            return exponent;
        }
    }
    return has_point ? length : 0;
}

/* The longest number at `at`, as a scanner takes it. 0: there is none. */
static size_t number_length(const struct token_reader *reader, enum token_kind *kind, bool *is_hex)
{
    size_t sign = *reader->at == '-' || *reader->at == '+' ? 1 : 0;
    size_t length = float_length(reader, sign);
    *kind = TOKEN_FLOAT;
    *is_hex = false;
    if (length > 0)
        return length;
    length = sign;
    if (sign == 0 && *reader->at == '0' && (peek(reader, 1) | 0x20) == 'x' &&
        hex_value(peek(reader, 2)) >= 0) {
        *is_hex = true;
        for (length = 3; hex_value(peek(reader, length)) >= 0;)
            length++;
    } else {
        while (is_digit(peek(reader, length)))
            length++;
        if (length == sign)
            return 0;
    }
    *kind = TOKEN_INTEGER;
    for (int i = 0; i < 2 && peek(reader, length) == 'L'; i++) {
        *kind = TOKEN_INTEGER64;
        length++;
    }
    return length;
}

static struct token next_number(struct token_reader *reader, size_t length, enum token_kind kind,
                                bool is_hex)
{
    struct token token = { kind, { reader->at, length }, reader->line };
    char digits[80];
    const int shown = length < 40 ? (int)length : 40;

    if (is_name(peek(reader, length)) || peek(reader, length) == '.') {
        while (is_name(peek(reader, length)) || peek(reader, length) == '.' ||
               peek(reader, length) == ':' || peek(reader, length) == '/')
            length++;
        reader->at += length;
        return fault(reader, token.line, "%.*s wants quotes: \"%.*s\"",
                     length < 60 ? (int)length : 60, token.text.data,
                     length < 60 ? (int)length : 60, token.text.data);
    }
    reader->at += length;
    if (length >= sizeof(digits))
        return fault(reader, token.line, "the number %.*s... is too long", shown, token.text.data);
    memcpy(digits, token.text.data, length);
    digits[length] = '\0';
    if (kind == TOKEN_FLOAT) {
        if (!isfinite(strtod(digits, NULL)))
            return fault(reader, token.line, "the number %s is too large", digits);
    } else if (!fits(digits, is_hex, kind == TOKEN_INTEGER64)) {
        if (kind == TOKEN_INTEGER && fits(digits, is_hex, true))
            return fault(reader, token.line, "the number %s does not fit 32 bits: write %sL",
                         digits, digits);
        return fault(reader, token.line, "the number %s does not fit 64 bits", digits);
    }
    return token;
}

static struct token next_name(struct token_reader *reader)
{
    struct token token = { TOKEN_NAME, { reader->at, 0 }, reader->line };
    while (is_name(peek(reader, token.text.length)))
        token.text.length++;
    reader->at += token.text.length;
    if (slice_equal_nocase(token.text, SLICE("true")) ||
        slice_equal_nocase(token.text, SLICE("false")))
        token.kind = TOKEN_BOOLEAN;
    return token;
}

static struct token next_stray(struct token_reader *reader)
{
    char c = *reader->at;
    int line = reader->line;
    size_t width = utf8_width(reader->at, (size_t)(reader->end - reader->at));
    const char *start = reader->at;
    reader->at += width > 0 ? width : 1;
    if (c == '\'')
        return fault(reader, line, "a string stands in double quotes, not in '");
    if (c == '@')
        return fault(reader, line,
                     "libconfig's own @include is not used here: "
                     "write include = [ \"FILE\" ]");
    if (c == '$')
        return fault(reader, line, "${...} stands inside a string: \"${...}\"");
    return fault(reader, line,
                 "a stray %.*s: a value is a number, true, false, or a string in "
                 "double quotes",
                 (unsigned char)c < ' ' ? 0 : (int)width, start);
}

struct token token_next(struct token_reader *reader)
{
    static const char punctuation[] = "=:,;([{)]}";
    static const enum token_kind kinds[] = {
        TOKEN_EQUALS, TOKEN_EQUALS, TOKEN_COMMA, TOKEN_SEMICOLON, TOKEN_OPEN,
        TOKEN_OPEN,   TOKEN_OPEN,   TOKEN_CLOSE, TOKEN_CLOSE,     TOKEN_CLOSE,
    };
    int line = 0;

    if (!skip_blanks(reader, &line))
        return fault(reader, line, "a comment is not closed: wants a */ at its end");
    if (reader->at == reader->end)
        return (struct token){ .kind = TOKEN_END, .line = reader->line };
    char c = *reader->at;
    const char *found = c != '\0' ? strchr(punctuation, c) : NULL;
    if (found) {
        reader->at++;
        return (struct token){ kinds[found - punctuation], { reader->at - 1, 1 }, reader->line };
    }
    if (c == '"')
        return next_string(reader);
    if (is_name_start(c))
        return next_name(reader);
    enum token_kind kind;
    bool is_hex;
    size_t length = number_length(reader, &kind, &is_hex);
    return length > 0 ? next_number(reader, length, kind, is_hex) : next_stray(reader);
}

int token_add_string(struct buf *out, const struct token *token)
{
    const char *text = token->text.data;
    for (size_t i = 0; i < token->text.length; i++) {
        char c = text[i];
        if (c == '\\' && i + 1 < token->text.length) {
            c = text[++i];
            if ((c == 'x' || c == 'X') && i + 2 < token->text.length) {
                c = (char)(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
                i += 2;
            } else {
                c = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c == 'f' ? '\f' : c;
            }
        }
        if (buf_add(out, &c, 1) == -1)
            return -1;
    }
    return 0;
}
