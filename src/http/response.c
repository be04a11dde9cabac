#include "http/response.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/grammar.h"
#include "http/status.h"

/* A response that is not prepared, in pieces. */
struct pieces {
    char line[64];   /* the status line */
    char length[48]; /* the field line of Content-Length, or nothing */
    struct slice body;
};

static struct slice content(const struct response *response)
{
    /* 205 says itself that there is none (RFC 9110, 15.3.6), and is framed by a length of 0. */
    bool has_content = status_has_body(response->status) && response->status != 205;
    return has_content ? response->body : (struct slice){ "", 0 };
}

static struct slice connection(const struct response_form *form)
{
    if (!form->is_persistent)
        return SLICE("Connection: close\r\n");
    if (form->version < 11)
        return SLICE("Connection: keep-alive\r\n");
    return (struct slice){ "", 0 };
}

static void cut(const struct response *response, struct pieces *pieces)
{
    snprintf(pieces->line, sizeof pieces->line, "HTTP/1.1 %03u %s\r\n", response->status,
             status_reason(response->status));
    pieces->body = content(response);
    pieces->length[0] = '\0';
    if (status_has_body(response->status))
        snprintf(pieces->length, sizeof pieces->length, "Content-Length: %zu\r\n",
                 pieces->body.length);
}

static void put(struct buf *out, struct slice piece)
{
    if (piece.length > 0)
        memcpy(out->data + out->length, piece.data, piece.length);
    out->length += piece.length;
}

/* Renders a whole response. The offset of the date in `out` goes to *date_offset, that of the
 * body to *body_offset. */
static int render(struct buf *out, const struct response *response,
                  const struct response_form *form, const char *date, size_t *date_offset,
                  size_t *body_offset)
{
    struct pieces pieces = { 0 };
    cut(response, &pieces);
    struct slice all[] = {
        slice_of(pieces.line),
        SLICE("Date: "),
        { date, DATE_LENGTH },
        SLICE("\r\n"),
        response->fields,
        slice_of(pieces.length),
        connection(form),
        SLICE("\r\n"),
        form->is_head ? (struct slice){ "", 0 } : pieces.body,
    };
    const size_t count = sizeof all / sizeof *all;
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += all[i].length;
    if (buf_reserve(out, length) == -1)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (i == 2)
            *date_offset = out->length;
        if (i == count - 1)
            *body_offset = out->length;
        put(out, all[i]);
    }
    return 0;
}

int response_prepare(struct response *response)
{
    static const struct response_form form = { .is_persistent = true, .version = 11 };
    static const char no_date[DATE_LENGTH] = "";
    struct buf out = { 0 };
    size_t date_offset = 0, body_offset = 0;
    if (render(&out, response, &form, no_date, &date_offset, &body_offset) == -1)
        return -1;
    char *fitting = realloc(out.data, out.length); /* it may live for long */
    response_fini(response);
    if (fitting)
        out.data = fitting;
    response->bytes = out.data;
    response->length = out.length;
    response->head_length = body_offset;
    response->date_offset = date_offset;
    return 0;
}

void response_fini(struct response *response)
{
    free(response->bytes);
    response->bytes = NULL;
}

int response_write(struct buf *out, const struct response *response,
                   const struct response_form *form, const struct date *date)
{
    size_t unused;
    if (!response->bytes)
        return render(out, response, form, date->text, &unused, &unused);

    struct slice field = connection(form);
    size_t length = form->is_head ? response->head_length : response->length;
    if (buf_reserve(out, length + field.length) == -1)
        return -1;
    char *start = out->data + out->length;
    if (field.length == 0) {
        memcpy(start, response->bytes, length);
    } else { /* in front of the empty line */
        size_t before = response->head_length - 2;
        memcpy(start, response->bytes, before);
        memcpy(start + before, field.data, field.length);
        memcpy(start + before + field.length, response->bytes + before, length - before);
    }
    memcpy(start + response->date_offset, date->text, DATE_LENGTH);
    out->length += length + field.length;
    return 0;
}

size_t response_body_length(const struct response *response, const struct response_form *form)
{
    return form->is_head ? 0 : content(response).length;
}

int response_write_continue(struct buf *out)
{
    return buf_add_slice(out, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
}

/* One status of the set, and the text its response points to. */
struct response_error {
    struct response response;
    char text[80];
};

struct response_errors {
    struct response_error *index[200]; /* by status - 400; NULL: it has no name */
    size_t count;
    struct response_error errors[];
};

struct response_errors *response_errors_new(void)
{
    size_t count = 0;
    for (unsigned status = 400; status < 600; status++)
        count += status_reason(status)[0] != '\0';
    struct response_errors *errors = calloc(1, sizeof *errors + count * sizeof errors->errors[0]);
    if (!errors)
        return NULL;
    for (unsigned status = 400; status < 600; status++) {
        if (status_reason(status)[0] == '\0')
            continue;
        struct response_error *error = &errors->errors[errors->count++];
        /* RFC 9110, 15.6.6: a 505 tells which versions there are. */
        snprintf(error->text, sizeof error->text, "%u %s%s\n", status, status_reason(status),
                 status == 505 ? ": only HTTP/1.1 and HTTP/1.0 are" : "");
        error->response = (struct response){
            .status = status,
            .fields = SLICE("Content-Type: text/plain\r\n"),
            .body = slice_of(error->text),
        };
        errors->index[status - 400] = error;
        if (response_prepare(&error->response) == -1) {
            response_errors_free(errors);
            errno = ENOMEM;
            return NULL;
        }
    }
    return errors;
}

void response_errors_free(struct response_errors *errors)
{
    if (!errors)
        return;
    for (size_t i = 0; i < errors->count; i++)
        response_fini(&errors->errors[i].response);
    free(errors);
}

const struct response *response_errors_find(const struct response_errors *errors, unsigned status)
{
    assert(status >= 400 && status < 600);
    const struct response_error *error = errors->index[status - 400];
    if (!error)
        error = errors->index[status < 500 ? 0 : 100];
    return &error->response;
}

const char *response_field_fault(struct slice name, struct slice value)
{
    static const char *const own[] = {
        "Connection", "Content-Length",    "Date",    "Keep-Alive", "Proxy-Connection", "TE",
        "Trailer",    "Transfer-Encoding", "Upgrade",
    };
    if (!grammar_is_token(name))
        return "a field name is a token: letters, digits and !#$%&'*+-.^_`|~";
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (slice_equal_nocase(name, slice_of(own[i])))
            return "the server makes this field itself";
    if (grammar_skip_value(value.data, value.data + value.length) != value.data + value.length)
        return "a field value holds no control bytes";
    if (slice_trim(value).length != value.length)
        return "a field value neither begins nor ends with a space";
    return NULL;
}
