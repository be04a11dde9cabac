#include "answer/text.h"

#include <stddef.h>

#include "answer/prepare.h"
#include "conf/schema.h"
#include "http/status.h"

struct text_options {
    char *text;
};

static const struct schema_row rows[] = {
    {
        .key = "text",
        .type = SCHEMA_STRING,
        .offset = offsetof(struct text_options, text),
        .purpose = "the body of the answer, as it stands",
    },
};

static int prepare(struct conf_route *route, struct conf_error *error)
{
    const struct text_options *options = route->options;
    int status = route->status ? route->status : 200;
    if (status < 200 || status > 599)
        return conf_route_error(error, route, "status must be 200 to 599, not %d", status);
    /* RFC 9110, 15.3.6: nor has 205 content. */
    if ((!status_has_body((unsigned)status) || status == 205) && options->text[0])
        return conf_route_error(error, route, "an answer with status %d has no body: text = \"\"",
                                status);

    const struct prepare_plan plan = {
        .kind = &text_kind,
        .status = (unsigned)status,
        .type = "text/plain",
        .body = slice_of(options->text),
    };
    return prepare_answer(route, &plan, error);
}

const struct answer_kind text_kind = {
    .conf = {
        .key = "text",
        .rows = rows,
        .nrows = sizeof rows / sizeof rows[0],
        .options_size = sizeof(struct text_options),
        .prepare = prepare,
        .release = prepare_release,
    },
    .serve = prepare_serve_fixed,
};
