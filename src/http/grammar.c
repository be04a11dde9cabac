#include "http/grammar.h"

#include <arpa/inet.h>

#define IS_DIGIT(c) ((c) >= '0' && (c) <= '9')
#define IS_ALPHA(c) (((c) >= 'a' && (c) <= 'z') || ((c) >= 'A' && (c) <= 'Z'))
#define IS_HEX(c) (IS_DIGIT(c) || ((c) >= 'a' && (c) <= 'f') || ((c) >= 'A' && (c) <= 'F'))
#define IS_UNRESERVED(c) \
    (IS_DIGIT(c) || IS_ALPHA(c) || (c) == '-' || (c) == '.' || (c) == '_' || (c) == '~')
#define IS_SUB_DELIM(c) \
    ((c) == '!' || (c) == '$' || ((c) >= '&' && (c) <= ',') || (c) == ';' || (c) == '=')
#define IS_TOKEN(c)                                                                           \
    (IS_DIGIT(c) || IS_ALPHA(c) || (c) == '!' || ((c) >= '#' && (c) <= '\'') || (c) == '*' || \
     (c) == '+' || (c) == '-' || (c) == '.' || (c) == '^' || (c) == '_' || (c) == '`' ||      \
     (c) == '|' || (c) == '~')
#define IS_VALUE(c) ((c) == '\t' || ((c) >= ' ' && (c) != 0x7f))
#define IS_HOST(c) (IS_UNRESERVED(c) || IS_SUB_DELIM(c))
#define IS_PATH(c) (IS_HOST(c) || (c) == ':' || (c) == '@' || (c) == '/')

#define CLASSES(c)                                                                       \
    ((IS_TOKEN(c) ? GRAMMAR_TOKEN : 0) | (IS_VALUE(c) ? GRAMMAR_VALUE : 0) |             \
     (IS_PATH(c) ? GRAMMAR_PATH : 0) | (IS_PATH(c) || (c) == '?' ? GRAMMAR_TARGET : 0) | \
     (IS_HOST(c) ? GRAMMAR_HOST : 0) | (IS_UNRESERVED(c) ? GRAMMAR_UNRESERVED : 0) |     \
     (IS_DIGIT(c) ? GRAMMAR_DIGIT : 0) | (IS_HEX(c) ? GRAMMAR_HEX : 0))
#define FOUR(c) CLASSES(c), CLASSES((c) + 1), CLASSES((c) + 2), CLASSES((c) + 3)
#define SIXTEEN(c) FOUR(c), FOUR((c) + 4), FOUR((c) + 8), FOUR((c) + 12)

const uint8_t grammar_classes[256] = {
    SIXTEEN(0x00), SIXTEEN(0x10), SIXTEEN(0x20), SIXTEEN(0x30), SIXTEEN(0x40), SIXTEEN(0x50),
    SIXTEEN(0x60), SIXTEEN(0x70), SIXTEEN(0x80), SIXTEEN(0x90), SIXTEEN(0xa0), SIXTEEN(0xb0),
    SIXTEEN(0xc0), SIXTEEN(0xd0), SIXTEEN(0xe0), SIXTEEN(0xf0),
};

/* May one of these eight bytes be a control byte? HTAB counts, and is sorted out by the table. */
static bool has_control(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = UINT64_C(0x8080808080808080);
    uint64_t below_space = (bytes - ones * 0x20) & ~bytes;
    uint64_t del = bytes ^ (ones * 0x7f);
    return ((below_space | ((del - ones) & ~del)) & tops) != 0;
}

const char *grammar_skip_value(const char *at, const char *end)
{
    for (;;) {
        uint64_t bytes;
        while (end - at >= 8 && (memcpy(&bytes, at, 8), !has_control(bytes)))
            at += 8;
        const char *stop = end - at >= 8 ? at + 8 : end;
        at = grammar_skip(at, stop, GRAMMAR_VALUE);
        if (at < stop || at == end)
            return at;
    }
}

bool grammar_is_token(struct slice s)
{
    const char *end = s.data + s.length;
    return s.length > 0 && grammar_skip(s.data, end, GRAMMAR_TOKEN) == end;
}

bool grammar_is_uri(struct slice s)
{
    const char *end = s.data + s.length;
    for (const char *at = s.data; at < end; at++) {
        unsigned char c = (unsigned char)*at;
        if (c <= 0x20 || c >= 0x7f || memchr("\"<>\\^`{|}", c, 9))
            return false;
        if (c == '%' &&
            (end - at < 3 || !grammar_is(at[1], GRAMMAR_HEX) || !grammar_is(at[2], GRAMMAR_HEX)))
            return false;
    }
    return true;
}

/* IPvFuture (RFC 3986, 3.2.2): "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" ). */
static bool is_future_address(struct slice s)
{
    const char *end = s.data + s.length;
    const char *dot = grammar_skip(s.data + 1, end, GRAMMAR_HEX);
    if (dot == s.data + 1 || end - dot < 2 || *dot != '.')
        return false;
    for (const char *at = dot + 1; at < end; at++)
        if (!grammar_is(*at, GRAMMAR_HOST) && *at != ':')
            return false;
    return true;
}

/* What stands between the brackets of an IP-literal. */
static bool is_literal(struct slice s)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (s.length == 0)
        return false;
    if (s.data[0] == 'v' || s.data[0] == 'V')
        return is_future_address(s);
    if (s.length >= sizeof text || memchr(s.data, '\0', s.length))
        return false;
    memcpy(text, s.data, s.length);
    text[s.length] = '\0';
    return inet_pton(AF_INET6, text, &address) == 1;
}

/* The end of the host, or NULL when it is not one. */
static const char *skip_host(const char *at, const char *end)
{
    if (at < end && *at == '[') {
        const char *close = memchr(at, ']', (size_t)(end - at));
        if (!close || !is_literal((struct slice){ at + 1, (size_t)(close - at - 1) }))
            return NULL;
        return close + 1;
    }
    for (;;) {
        at = grammar_skip(at, end, GRAMMAR_HOST);
        if (at == end || *at != '%')
            return at;
        if (end - at < 3 || !grammar_is(at[1], GRAMMAR_HEX) || !grammar_is(at[2], GRAMMAR_HEX))
            return NULL;
        at += 3;
    }
}

const char *grammar_authority_fault(struct slice authority, bool needs_port)
{
    const char *end = authority.data + authority.length;
    const char *at = skip_host(authority.data, end);
    unsigned port = 0;
    if (!at)
        return "the host is not valid";
    if (at == authority.data)
        return "the host is empty";
    if (at == end)
        return needs_port ? "the port is missing" : NULL;
    if (*at++ != ':')
        return "the host is not valid";
    for (; at < end; at++) {
        if (!grammar_is(*at, GRAMMAR_DIGIT))
            return "the port is not a number";
        port = port * 10 + grammar_hex(*at);
        if (port > 65535)
            return "the port is too large";
    }
    return needs_port && port == 0 ? "the port is missing" : NULL;
}
