#include "answer/health.h"

#include <stddef.h>
#include <string.h>

#include "answer/prepare.h"
#include "base/scoreboard.h"
#include "conf/schema.h"

static const char *const probes[] = {
    [HEALTH_LIVE] = "live",
    [HEALTH_READY] = "ready",
    NULL,
};

static const struct schema_row rows[] = {
    {
        .key = "health",
        .type = SCHEMA_CHOICE,
        .choices = probes,
        .offset = offsetof(struct health_options, probe),
        .purpose = "live: 200 while the process answers; ready: 200 while the server is ready, "
                   "else 503 and the reason",
    },
};

static int prepare(struct conf_route *route, struct conf_error *error)
{
    const struct health_options *options = route->options;
    const struct prepare_plan plan = {
        .kind = &health_kind,
        .refused = PREPARE_NO_TYPE | PREPARE_NO_STATUS | PREPARE_NO_METHODS,
        .status = 200,
        .type = "text/plain",
        .fields = SLICE("Cache-Control: no-store\r\n"),
        .body = options->probe == HEALTH_LIVE ? SLICE("ok\n") : SLICE("ready\n"),
    };
    if (prepare_answer(route, &plan, error) == -1)
        return -1;
    /* "ready" is 503 until a worker serves, which comes after a worker's own first request. */
    struct answer *answer = route->answer;
    answer->is_harmless = answer->is_harmless && options->probe == HEALTH_LIVE;
    return 0;
}

/* The master may be writing the reason at this moment: copy first, then trust nothing in it. */
static int add_reason(struct buf *text, const struct scoreboard *scoreboard)
{
    char reason[SCOREBOARD_TEXT];
    memcpy(reason, scoreboard->master.reason, sizeof reason);
    struct slice known = { reason, strnlen(reason, sizeof reason) };
    if (known.length == 0)
        known =
            atomic_load(&scoreboard->master.is_draining) ? SLICE("stopping") : SLICE("starting");
    int failed = buf_add_string(text, "not ready: ");
    failed |= buf_add_escaped(text, known);
    failed |= buf_add_string(text, "\n");
    return failed;
}

static void serve(const struct answer *answer, struct exchange *exchange)
{
    const struct health_options *options = exchange->route->options;
    const struct scoreboard *scoreboard = exchange->context->scoreboard;
    if (options->probe == HEALTH_LIVE || !scoreboard ||
        (atomic_load(&scoreboard->master.is_ready) &&
         !atomic_load(&scoreboard->master.is_draining))) {
        exchange->response = &answer->fixed;
    } else if (add_reason(&exchange->text, scoreboard) == 0) {
        exchange->own = (struct response){
            .status = 503,
            .fields = answer->fixed.fields,
            .body = buf_slice(&exchange->text),
        };
        exchange->response = &exchange->own;
    } else {
        exchange->response = response_errors_find(exchange->context->errors, 503);
    }
    exchange_done(exchange);
}

const struct answer_kind health_kind = {
    .conf = {
        .key = "health",
        .rows = rows,
        .nrows = sizeof rows / sizeof rows[0],
        .options_size = sizeof(struct health_options),
        .prepare = prepare,
        .release = prepare_release,
    },
    .serve = serve,
};
