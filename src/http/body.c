#include "http/body.h"

#include "http/grammar.h"

#define BODY_EXTENSIONS_MAX 4096 /* bytes, of all chunks together, beyond those of content */
#define BODY_TRAILERS_MAX 8192   /* bytes, of the whole trailer section */

enum body_state {
    BODY_FINISHED, /* also of a zeroed struct: there is no body */
    BODY_FAILED,
    BODY_CONTENT, /* of a Content-Length */

    BODY_SIZE_START,
    BODY_SIZE,
    BODY_SIZE_LF,

    /* *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] ) (RFC 9112, 7.1.1) */
    BODY_EXTENSION_SPACE, /* BWS: ";" must follow */
    BODY_EXTENSION_START,
    BODY_EXTENSION_NAME,
    BODY_EXTENSION_NAME_SPACE, /* BWS: "=" or ";" must follow */
    BODY_EXTENSION_VALUE_START,
    BODY_EXTENSION_TOKEN,
    BODY_EXTENSION_QUOTED,
    BODY_EXTENSION_ESCAPED,
    BODY_EXTENSION_UNQUOTED, /* the closing quote was seen */

    BODY_CHUNK,
    BODY_CHUNK_CR,
    BODY_CHUNK_LF,

    BODY_TRAILER_START,
    BODY_TRAILER_NAME,
    BODY_TRAILER_VALUE,
    BODY_TRAILER_LF,
    BODY_END_LF,
};

static bool refuse(struct body *body, unsigned status, const char *reason)
{
    body->state = BODY_FAILED;
    body->status = (uint16_t)status;
    body->reason = reason;
    return false;
}

static bool enter(struct body *body, enum body_state state)
{
    body->state = (uint8_t)state;
    return true;
}

/* The size of a chunk is known: may there be so much? */
static bool judge_size(struct body *body)
{
    if (body->limit > 0 && body->left > body->limit - body->received)
        return refuse(body, 413, "the body is too large");
    if (body->left > UINT64_MAX - body->received)
        return refuse(body, 400, "the chunk sizes overflow");
    return true;
}

/* Counts a byte of an extension, or of zeros before a size: there may be as many as of content, so
 * that a signature for each chunk passes, and who sends nothing else is soon refused. */
static bool count_overhead(struct body *body)
{
    if (body->overhead == UINT32_MAX || body->overhead >= BODY_EXTENSIONS_MAX + body->received)
        return refuse(body, 400, "the chunk extensions are too large");
    body->overhead++;
    return true;
}

/* A digit of the size. What comes after a zero that is the first leaves a zero before the size. */
static bool add_digit(struct body *body, char c)
{
    if (body->left > UINT64_MAX >> 4)
        return refuse(body, 400, "a chunk size is too large");
    if (body->state == BODY_SIZE && body->left == 0 && !count_overhead(body))
        return false;
    body->left = body->left << 4 | grammar_hex(c);
    return enter(body, BODY_SIZE);
}

/* What may follow the size, an extension's token or its quoted string. */
static bool end_piece(struct body *body, char c, const char *reason)
{
    if (c == '\r')
        return enter(body, BODY_SIZE_LF);
    if (c == ';')
        return enter(body, BODY_EXTENSION_START);
    if (c == ' ' || c == '\t')
        return enter(body, BODY_EXTENSION_SPACE);
    return refuse(body, 400, reason);
}

static bool step_size(struct body *body, char c)
{
    if (body->state == BODY_SIZE_LF) {
        if (c != '\n')
            return refuse(body, 400, "a chunk size does not end with CRLF");
        if (body->left > 0)
            return enter(body, BODY_CHUNK);
        body->overhead = 0; /* from here on it counts the trailers */
        return enter(body, BODY_TRAILER_START);
    }
    if (grammar_is(c, GRAMMAR_HEX))
        return add_digit(body, c);
    if (body->state == BODY_SIZE_START)
        return refuse(body, 400, "a chunk size is not hexadecimal");
    return judge_size(body) && end_piece(body, c, "a chunk size is not hexadecimal");
}

static bool step_extension_name(struct body *body, char c)
{
    static const char reason[] = "a chunk extension is malformed";
    bool is_space = c == ' ' || c == '\t';
    switch ((enum body_state)body->state) {
    case BODY_EXTENSION_SPACE:
        if (c == '\r')
            return refuse(body, 400, "a space after a chunk size");
        return end_piece(body, c, reason);
    case BODY_EXTENSION_START:
        if (grammar_is(c, GRAMMAR_TOKEN))
            return enter(body, BODY_EXTENSION_NAME);
        return is_space || refuse(body, 400, reason);
    case BODY_EXTENSION_NAME:
        if (grammar_is(c, GRAMMAR_TOKEN))
            return true;
        if (is_space)
            return enter(body, BODY_EXTENSION_NAME_SPACE);
        return c == '=' ? enter(body, BODY_EXTENSION_VALUE_START) : end_piece(body, c, reason);
    default: /* BODY_EXTENSION_NAME_SPACE */
        if (c == '=')
            return enter(body, BODY_EXTENSION_VALUE_START);
        if (c == ';')
            return enter(body, BODY_EXTENSION_START);
        return is_space || refuse(body, 400, reason);
    }
}

static bool step_extension_value(struct body *body, char c)
{
    static const char reason[] = "the value of a chunk extension is malformed";
    switch ((enum body_state)body->state) {
    case BODY_EXTENSION_VALUE_START:
        if (c == '"')
            return enter(body, BODY_EXTENSION_QUOTED);
        if (grammar_is(c, GRAMMAR_TOKEN))
            return enter(body, BODY_EXTENSION_TOKEN);
        return c == ' ' || c == '\t' || refuse(body, 400, reason);
    case BODY_EXTENSION_TOKEN:
        return grammar_is(c, GRAMMAR_TOKEN) || end_piece(body, c, reason);
    case BODY_EXTENSION_QUOTED:
        if (c == '"')
            return enter(body, BODY_EXTENSION_UNQUOTED);
        if (c == '\\')
            return enter(body, BODY_EXTENSION_ESCAPED);
        return grammar_is(c, GRAMMAR_VALUE) || refuse(body, 400, reason);
    case BODY_EXTENSION_ESCAPED:
        return grammar_is(c, GRAMMAR_VALUE) ? enter(body, BODY_EXTENSION_QUOTED)
                                            : refuse(body, 400, reason);
    default: /* BODY_EXTENSION_UNQUOTED */
        return end_piece(body, c, reason);
    }
}

/* Trailers are checked as fields are, and dropped: never merged (RFC 9110, 6.5.1). */
static bool step_trailer(struct body *body, char c)
{
    switch ((enum body_state)body->state) {
    case BODY_TRAILER_START:
        if (c == '\r')
            return enter(body, BODY_END_LF);
        return grammar_is(c, GRAMMAR_TOKEN) ? enter(body, BODY_TRAILER_NAME)
                                            : refuse(body, 400, "a trailer is malformed");
    case BODY_TRAILER_NAME:
        if (c == ':')
            return enter(body, BODY_TRAILER_VALUE);
        return grammar_is(c, GRAMMAR_TOKEN) || refuse(body, 400, "a trailer is malformed");
    case BODY_TRAILER_VALUE:
        if (c == '\r')
            return enter(body, BODY_TRAILER_LF);
        return grammar_is(c, GRAMMAR_VALUE) || refuse(body, 400, "a control byte in a trailer");
    default: /* BODY_TRAILER_LF, BODY_END_LF */
        if (c != '\n')
            return refuse(body, 400, "a trailer does not end with CRLF");
        return enter(body, body->state == BODY_END_LF ? BODY_FINISHED : BODY_TRAILER_START);
    }
}

/* One byte of what is not content. False: refused. */
static bool step(struct body *body, char c)
{
    if (body->state >= BODY_TRAILER_START) {
        if (++body->overhead > BODY_TRAILERS_MAX)
            return refuse(body, 400, "the trailers are too large");
    } else if (body->state >= BODY_EXTENSION_SPACE && body->state <= BODY_EXTENSION_UNQUOTED) {
        if (!count_overhead(body))
            return false;
    }
    if (body->state <= BODY_SIZE_LF)
        return step_size(body, c);
    if (body->state <= BODY_EXTENSION_NAME_SPACE)
        return step_extension_name(body, c);
    if (body->state <= BODY_EXTENSION_UNQUOTED)
        return step_extension_value(body, c);
    if (body->state >= BODY_TRAILER_START)
        return step_trailer(body, c);
    if (c != (body->state == BODY_CHUNK_CR ? '\r' : '\n'))
        return refuse(body, 400, "a chunk does not end with CRLF");
    return enter(body, body->state == BODY_CHUNK_CR ? BODY_CHUNK_LF : BODY_SIZE_START);
}

static enum body_result result_of(const struct body *body)
{
    if (body->state == BODY_FAILED)
        return BODY_REFUSED;
    return body->state == BODY_FINISHED ? BODY_DONE : BODY_MORE;
}

enum body_result body_start(struct body *body, const struct request *request, uint64_t limit)
{
    *body = (struct body){ .limit = limit };
    if (request->framing == REQUEST_CHUNKED)
        body->state = BODY_SIZE_START;
    if (request->framing == REQUEST_LENGTH) {
        body->state = BODY_CONTENT;
        body->left = request->content_length;
        judge_size(body);
    }
    return result_of(body);
}

enum body_result body_feed(struct body *body, struct slice bytes, size_t *used)
{
    size_t at = 0;
    while (at < bytes.length && body->state > BODY_FAILED) {
        if (body->state != BODY_CONTENT && body->state != BODY_CHUNK) {
            if (!step(body, bytes.data[at]))
                break;
            at++;
            continue;
        }
        uint64_t there = bytes.length - at;
        uint64_t taken = body->left < there ? body->left : there;
        body->left -= taken;
        body->received += taken;
        at += (size_t)taken;
        if (body->left == 0)
            enter(body, body->state == BODY_CONTENT ? BODY_FINISHED : BODY_CHUNK_CR);
    }
    *used = at;
    return result_of(body);
}
