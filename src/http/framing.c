#include "http/framing.h"

#include "http/grammar.h"

/* What the fields say, before it is judged. */
struct reading {
    struct slice host, length, coding;
    unsigned hosts, lengths, codings; /* field lines of these */
    bool is_close, is_keep_alive;
};

/* Whole tokens only, in all field lines of the name (RFC 9110, 7.6.1). */
static void read_connection(struct reading *reading, struct slice value)
{
    struct slice option;
    while (slice_next_member(&value, &option)) {
        if (slice_equal_nocase(option, SLICE("close")))
            reading->is_close = true;
        else if (slice_equal_nocase(option, SLICE("keep-alive")))
            reading->is_keep_alive = true;
    }
}

static void read_expect(struct request *request, struct slice value)
{
    struct slice expectation;
    while (slice_next_member(&value, &expectation)) {
        if (slice_equal_nocase(expectation, SLICE("100-continue")))
            request->expects_continue = true;
        else
            request->expects_other = true;
    }
}

static void read_field(struct request *request, struct reading *reading,
                       const struct request_field *field)
{
    struct slice name = field->name;
    switch (name.length) {
    case 4:
        if (slice_equal_nocase(name, SLICE("Host")) && reading->hosts++ == 0)
            reading->host = field->value;
        break;
    case 6:
        if (slice_equal_nocase(name, SLICE("Expect")))
            read_expect(request, field->value);
        break;
    case 7:
        if (slice_equal_nocase(name, SLICE("Referer")) && request->referer.length == 0)
            request->referer = field->value;
        break;
    case 8:
        if (slice_equal_nocase(name, SLICE("If-Match")))
            request->is_conditional = true;
        break;
    case 10:
        if (slice_equal_nocase(name, SLICE("Connection")))
            read_connection(reading, field->value);
        else if (slice_equal_nocase(name, SLICE("User-Agent")) && request->user_agent.length == 0)
            request->user_agent = field->value;
        break;
    case 13:
        if (slice_equal_nocase(name, SLICE("If-None-Match")))
            request->is_conditional = true;
        break;
    case 14:
        if (slice_equal_nocase(name, SLICE("Content-Length")) && reading->lengths++ == 0)
            reading->length = field->value;
        break;
    case 17:
        if (slice_equal_nocase(name, SLICE("Transfer-Encoding")) && reading->codings++ == 0)
            reading->coding = field->value;
        else if (slice_equal_nocase(name, SLICE("If-Modified-Since")))
            request->is_conditional = true;
        break;
    case 19:
        if (slice_equal_nocase(name, SLICE("If-Unmodified-Since")))
            request->is_conditional = true;
        break;
    default:
        break;
    }
}

/* Host (RFC 9112, 3.2; RFC 9110, 7.2). NULL, or what is wrong. */
static const char *judge_host(struct request *request, const struct reading *reading)
{
    if (reading->hosts > 1)
        return "more than one Host";
    if (reading->hosts == 0 && request->version >= 11)
        return "Host is missing";
    if (reading->host.length > 0 && grammar_authority_fault(reading->host, false))
        return "Host is not valid";
    if (request->host.length == 0)
        request->host = reading->host;
    return NULL;
}

static const char *judge_length(struct request *request, struct slice digits)
{
    uint64_t length = 0;
    if (digits.length == 0)
        return "Content-Length is empty";
    for (size_t i = 0; i < digits.length; i++) {
        if (!grammar_is(digits.data[i], GRAMMAR_DIGIT))
            return "Content-Length is not a number";
        if (length > (uint64_t)(INT64_MAX - 9) / 10)
            return "Content-Length is too large";
        length = length * 10 + grammar_hex(digits.data[i]);
    }
    request->content_length = length;
    request->framing = length > 0 ? REQUEST_LENGTH : REQUEST_NO_BODY;
    return NULL;
}

/* Other codings before one final "chunked": framed well, but nothing here decodes them. */
static bool has_unknown_coding(struct slice codings)
{
    struct slice coding;
    unsigned others = 0, chunked = 0;
    bool is_chunked = false;
    while (slice_next_member(&codings, &coding)) {
        is_chunked = slice_equal_nocase(coding, SLICE("chunked"));
        chunked += is_chunked;
        others += !is_chunked;
    }
    return others > 0 && chunked == 1 && is_chunked;
}

/* Framing (RFC 9112, 6). 0, or the status; every ambiguity is a 400. */
static unsigned judge_framing(struct request *request, const struct reading *reading,
                              const char **reason)
{
    if (reading->codings == 0 && reading->lengths == 0)
        return 0;
    if (reading->codings == 0) {
        *reason = reading->lengths > 1 ? "more than one Content-Length"
                                       : judge_length(request, reading->length);
        return *reason ? 400 : 0;
    }
    unsigned status = 400;
    if (reading->lengths > 0)
        *reason = "Content-Length beside Transfer-Encoding";
    else if (reading->codings > 1)
        *reason = "more than one Transfer-Encoding";
    else if (request->version < 11)
        *reason = "Transfer-Encoding in HTTP/1.0";
    else if (slice_equal_nocase(reading->coding, SLICE("chunked")))
        status = 0;
    else if (has_unknown_coding(reading->coding))
        status = 501, *reason = "a transfer coding other than chunked";
    else
        *reason = "Transfer-Encoding does not end in one chunked";
    request->framing = REQUEST_CHUNKED;
    return status;
}

unsigned framing_judge(struct request *request, const char **reason)
{
    struct reading reading = { 0 };
    for (unsigned i = 0; i < request->nfields; i++)
        read_field(request, &reading, &request->fields[i]);
    unsigned status = judge_framing(request, &reading, reason);
    const char *host_fault = judge_host(request, &reading);
    if (host_fault && status != 400) {
        *reason = host_fault;
        status = 400;
    }
    request->is_persistent = !reading.is_close && (request->version >= 11 || reading.is_keep_alive);
    /* Nobody waits where no body follows; in 1.0 it must be ignored (RFC 9110, 10.1.1). */
    if (request->version < 11 || request->framing == REQUEST_NO_BODY)
        request->expects_continue = false;
    return status;
}
