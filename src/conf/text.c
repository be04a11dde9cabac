#include "conf/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "conf/token.h"

/* What may stand next. */
enum expect {
    EXPECT_KEY,  /* or the end of the section */
    EXPECT_MORE, /* after a value in a group: a separator, a key, or the end */
    EXPECT_EQUALS,
    EXPECT_VALUE,
    EXPECT_ELEMENT, /* in an array or list just opened: a value, or the end */
    EXPECT_COMMA,   /* after a value in an array or list: a comma, or the end */
};

struct section {
    char open; /* ( [ or {; NUL for the file itself */
    int line;
    size_t nkeys;             /* keys that were there before */
    enum token_kind elements; /* of an array; TOKEN_END: none yet */
};

struct key {
    struct slice name;
    int line;
};

struct checker {
    struct token_reader reader;
    struct text_fault *fault;
    struct text_lines *lines;
    struct section sections[TEXT_DEPTH_MAX + 1];
    unsigned depth;
    struct key *keys; /* of the sections that are open */
    size_t nkeys, keys_capacity;
    enum expect expect;
    struct token last; /* the token before this one */
};

__attribute__((format(printf, 3, 4))) static bool refuse(struct text_fault *fault, int line,
                                                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fault->line = line;
    vsnprintf(fault->text, sizeof(fault->text), format, args);
    va_end(args);
    return false;
}

/* For "%.*s": a length that fits a message. */
static int shown(struct slice s)
{
    return s.length < 60 ? (int)s.length : 60;
}

static bool check_bytes(struct slice text, struct text_fault *fault)
{
    int line = 1;
    if (text.length > TEXT_SIZE_MAX)
        return refuse(fault, 0, "is larger than 1 MB: move routes into fragments (include)");
    if (text.length >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        return refuse(fault, 1, "begins with a byte order mark: save it as UTF-8 without BOM");
    for (size_t i = 0; i < text.length;) {
        unsigned char c = (unsigned char)text.data[i];
        if (c >= 0x80) {
            size_t width = utf8_width(text.data + i, text.length - i);
            if (width == 0)
                return refuse(fault, line,
                              "the byte 0x%02X is not UTF-8: save the file as UTF-8, "
                              "or write \\x%02X in a string",
                              c, c);
            i += width;
            continue;
        }
        if (c == '\0')
            return refuse(fault, line, "a NUL byte: this is not a text file, or it is damaged");
        if (c == '\r' && (i + 1 == text.length || text.data[i + 1] != '\n'))
            return refuse(fault, line, "a carriage return alone: lines end with a line feed");
        if (c == 0x7f || (c < ' ' && c != '\t' && c != '\n' && c != '\r'))
            return refuse(fault, line, "the control byte 0x%02X: write \\x%02X in a string", c, c);
        if (c == '\n')
            line++;
        i++;
    }
    return true;
}

static bool no_memory(struct checker *checker)
{
    return refuse(checker->fault, 0, "out of memory");
}

static bool add_line(struct checker *checker, int line)
{
    struct text_lines *lines = checker->lines;
    if (lines->count == lines->capacity) {
        size_t capacity = lines->capacity ? 2 * lines->capacity : 64;
        int *grown = realloc(lines->lines, capacity * sizeof(*grown));
        if (!grown)
            return no_memory(checker);
        lines->lines = grown;
        lines->capacity = capacity;
    }
    lines->lines[lines->count++] = line;
    return true;
}

static bool add_key(struct checker *checker, const struct token *token)
{
    const struct section *section = &checker->sections[checker->depth];
    for (size_t i = section->nkeys; i < checker->nkeys; i++)
        if (slice_equal(checker->keys[i].name, token->text))
            return refuse(checker->fault, token->line,
                          "repeated key \"%.*s\", first set in line %d: keep one of them",
                          shown(token->text), token->text.data, checker->keys[i].line);
    if (checker->nkeys == checker->keys_capacity) {
        size_t capacity = checker->keys_capacity ? 2 * checker->keys_capacity : 64;
        struct key *grown = realloc(checker->keys, capacity * sizeof(*grown));
        if (!grown)
            return no_memory(checker);
        checker->keys = grown;
        checker->keys_capacity = capacity;
    }
    checker->keys[checker->nkeys++] = (struct key){ token->text, token->line };
    checker->expect = EXPECT_EQUALS;
    return true;
}

static char closing(char open)
{
    return open == '(' ? ')' : open == '[' ? ']' : '}';
}

static bool refuse_end(struct checker *checker)
{
    const struct section *section = &checker->sections[checker->depth];
    if (section->open)
        return refuse(checker->fault, section->line, "the %c here is not closed: wants a %c",
                      section->open, closing(section->open));
    return refuse(checker->fault, checker->last.line, "the file ends where a value is missing");
}

/* `token` is not what may stand here. */
static bool refuse_token(struct checker *checker, const struct token *token)
{
    struct text_fault *fault = checker->fault;
    const struct token *last = &checker->last;
    int length = shown(token->text);
    const char *text = token->text.data;

    if (token->kind == TOKEN_END && checker->expect != EXPECT_EQUALS)
        return refuse_end(checker);
    if (token->kind == TOKEN_FAULT)
        return refuse(fault, token->line, "%s", checker->reader.fault);
    switch (checker->expect) {
    case EXPECT_EQUALS:
        return refuse(fault, last->line, "wants a = and a value after \"%.*s\"", shown(last->text),
                      last->text.data);
    case EXPECT_VALUE:
    case EXPECT_ELEMENT:
        if (token->kind == TOKEN_NAME)
            return refuse(fault, token->line, "%.*s wants quotes: \"%.*s\"", length, text, length,
                          text);
        if (last->kind == TOKEN_COMMA && token->kind == TOKEN_CLOSE)
            return refuse(fault, last->line,
                          "a comma before %.*s: wants one more value, or no "
                          "comma",
                          length, text);
        return refuse(fault, token->line, "wants a value before \"%.*s\"", length, text);
    case EXPECT_COMMA:
        return refuse(fault, token->line, "wants a comma between the values of %s",
                      checker->sections[checker->depth].open == '[' ? "an array [ ]"
                                                                    : "a list ( )");
    case EXPECT_KEY:
    case EXPECT_MORE:
        break;
    }
    if (token->kind == TOKEN_STRING)
        return refuse(fault, token->line, "wants KEY = VALUE: a key stands without quotes");
    return refuse(fault, token->line, "wants KEY = VALUE, not \"%.*s\"", length, text);
}

static void after_value(struct checker *checker)
{
    char open = checker->sections[checker->depth].open;
    checker->expect = open == '(' || open == '[' ? EXPECT_COMMA : EXPECT_MORE;
}

static bool open_section(struct checker *checker, const struct token *token)
{
    char open = token->text.data[0];
    if (checker->sections[checker->depth].open == '[')
        return refuse(checker->fault, token->line,
                      "an array [ ] holds plain values only: write a list ( ) around %s",
                      open == '{' ? "groups { }" : "this");
    if (checker->depth == TEXT_DEPTH_MAX)
        return refuse(checker->fault, token->line, "more than %d sections within each other",
                      TEXT_DEPTH_MAX);
    checker->sections[++checker->depth] = (struct section){
        .open = open,
        .line = token->line,
        .nkeys = checker->nkeys,
        .elements = TOKEN_END,
    };
    checker->expect = open == '{' ? EXPECT_KEY : EXPECT_ELEMENT;
    return true;
}

static bool close_section(struct checker *checker, const struct token *token)
{
    const struct section *section = &checker->sections[checker->depth];
    char close = token->text.data[0];
    if (!section->open)
        return refuse(checker->fault, token->line, "a %c that closes nothing: remove it", close);
    if (close != closing(section->open))
        return refuse(checker->fault, token->line, "a %c where the %c of line %d wants a %c", close,
                      section->open, section->line, closing(section->open));
    if (checker->expect == EXPECT_VALUE || checker->expect == EXPECT_EQUALS)
        return refuse_token(checker, token);
    checker->nkeys = section->nkeys;
    checker->depth--;
    after_value(checker);
    return true;
}

static bool plain_value(struct checker *checker, const struct token *token)
{
    struct section *section = &checker->sections[checker->depth];
    bool is_element = section->open == '(' || section->open == '[';

    if (section->open == '[' && section->elements != TOKEN_END && section->elements != token->kind)
        return refuse(checker->fault, token->line,
                      "the values of an array [ ] are all of one type: write a list ( ), or the "
                      "same type");
    section->elements = token->kind;
    after_value(checker);
    return !is_element || add_line(checker, token->line);
}

static bool check_token(struct checker *checker, const struct token *token)
{
    /* Strings side by side are one string, whatever section they stand in. */
    if (token->kind == TOKEN_STRING && checker->last.kind == TOKEN_STRING)
        return true;
    if (token->kind == TOKEN_CLOSE)
        return close_section(checker, token);

    enum expect expect = checker->expect;
    if (expect == EXPECT_MORE && (token->kind == TOKEN_COMMA || token->kind == TOKEN_SEMICOLON)) {
        checker->expect = EXPECT_KEY;
        return true;
    }
    if (expect == EXPECT_KEY || expect == EXPECT_MORE)
        return token->kind == TOKEN_NAME ? add_key(checker, token) : refuse_token(checker, token);
    if (expect == EXPECT_EQUALS || expect == EXPECT_COMMA) {
        if (token->kind != (expect == EXPECT_COMMA ? TOKEN_COMMA : TOKEN_EQUALS))
            return refuse_token(checker, token);
        checker->expect = EXPECT_VALUE;
        return true;
    }
    if (token->kind == TOKEN_OPEN)
        return open_section(checker, token);
    if (token->kind >= TOKEN_STRING && token->kind <= TOKEN_BOOLEAN)
        return plain_value(checker, token);
    return refuse_token(checker, token);
}

bool text_check(struct slice text, struct text_fault *fault, struct text_lines *lines)
{
    struct checker checker = { .fault = fault, .lines = lines, .expect = EXPECT_KEY };
    bool is_good = check_bytes(text, fault);

    token_reader_init(&checker.reader, text);
    while (is_good) {
        struct token token = token_next(&checker.reader);
        bool is_complete =
            checker.depth == 0 && (checker.expect == EXPECT_KEY || checker.expect == EXPECT_MORE);
        if (token.kind == TOKEN_END && is_complete)
            break;
        if (token.kind == TOKEN_END || token.kind == TOKEN_FAULT)
            is_good = refuse_token(&checker, &token);
        else
            is_good = check_token(&checker, &token);
        checker.last = token;
    }
    free(checker.keys);
    return is_good;
}
