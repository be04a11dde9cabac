/*
 * token: the words of a configuration's text, as libconfig 1.5 reads them, but strictly.
 *
 * Whatever libconfig drops, wraps or takes literally without a word (an unclosed comment, "\x00",
 * an unknown escape, a number that does not fit) is a fault here. A token is a view of the text,
 * which the caller keeps. After a fault the lexer stands behind what was wrong, so that a tolerant
 * reader can go on.
 */
#ifndef CONF_TOKEN_H
#define CONF_TOKEN_H

#include "base/buf.h"
#include "base/slice.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_INTEGER,
    TOKEN_INTEGER64,
    TOKEN_FLOAT,
    TOKEN_BOOLEAN,
    TOKEN_EQUALS,    /* = or : */
    TOKEN_COMMA,     /* , */
    TOKEN_SEMICOLON, /* ; */
    TOKEN_OPEN,      /* one of ( [ { */
    TOKEN_CLOSE,     /* one of ) ] } */
    TOKEN_FAULT,
};

struct token {
    enum token_kind kind;
    struct slice text; /* as written; of a string, what stands between the quotes */
    int line;          /* where it begins */
};

struct token_reader {
    const char *at, *end;
    int line;
    char fault[192]; /* of the last TOKEN_FAULT: what is wrong, and what would be right */
};

void token_reader_init(struct token_reader *reader, struct slice text);
struct token token_next(struct token_reader *reader);

/* Adds the bytes a string token stands for: its escapes undone. -1: ENOMEM. */
int token_add_string(struct buf *out, const struct token *token);

#endif
