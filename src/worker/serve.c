/* Longer than most: one request, from its head to what is counted and logged of its answer. */

#include "worker/serve.h"

#include <assert.h>

#include "base/clock.h"
#include "base/scoreboard.h"
#include "base/tally.h"
#include "http/body.h"
#include "http/condition.h"
#include "http/request.h"
#include "http/route.h"
#include "worker/conn.h"
#include "worker/conns.h"
#include "worker/late.h"

static void done(struct exchange *exchange)
{
    serve_write((struct serve *)exchange);
}

/* The first line of a head, as it came; an empty line before it does not count. */
static struct slice first_line(struct slice bytes)
{
    size_t start = 0;
    while (start < bytes.length && (bytes.data[start] == '\r' || bytes.data[start] == '\n'))
        start++;
    struct slice line = { bytes.data + start, bytes.length - start };
    const char *end = line.length > 0 ? memchr(line.data, '\n', line.length) : NULL;
    if (end)
        line.length = (size_t)(end - line.data);
    if (line.length > 0 && line.data[line.length - 1] == '\r')
        line.length--;
    return line;
}

/* The worker's one exchange for answers that are done at once. */
static struct serve *prepare(struct conn *conn, const struct request *request, struct slice bytes,
                             int64_t began)
{
    struct conns *conns = conn_conns(conn);
    struct serve *serve = &conns->serve;
    struct buf text = serve->exchange.text;
    text.length = 0;
    *serve = (struct serve){
        .exchange = {
            .request = request,
            .context = &conns->context,
            .text = text,
            .done = done,
        },
        .conn = conn,
        .line = first_line(bytes),
        .began = began,
    };
    return serve;
}

static void log_answer(const struct serve *serve, unsigned status, size_t body)
{
    static const struct request nothing;
    struct access *access = &conn_conns(serve->conn)->access;
    if (!access_is_on(access) || serve->conn->is_own)
        return;
    const struct request *request = serve->exchange.request ? serve->exchange.request : &nothing;
    const struct access_entry entry = {
        .peer = &serve->conn->peer,
        .line = serve->line,
        .host = request->host,
        .referer = request->referer,
        .user_agent = request->user_agent,
        .status = status,
        .body = body,
        .duration = clock_monotonic() - serve->began,
    };
    access_add(access, &entry);
}

/* By route and latency. An answer that was waited for, or whose request did not come in one piece,
 * has its own latency; the others of a batch share one, taken when it was written: a clock is not
 * read for each. */
static void count_in_tally(const struct serve *serve, unsigned status)
{
    struct conns *conns = conn_conns(serve->conn);
    const struct conf_route *route = serve->exchange.route;
    tally_response(conns->tally, route ? (size_t)(route - conns->routes) : conns->nroutes, status);
    if (serve == &conns->serve && serve->began == conns->now)
        conns->answers++;
    else
        tally_latency(conns->tally, clock_monotonic() - serve->began, 1);
}

static void count_answer(const struct serve *serve, unsigned status)
{
    struct conns *conns = conn_conns(serve->conn);
    struct scoreboard_counters *counters = &conns->slot->counters;
    unsigned class = status / 100;
    if (serve->conn->is_own)
        return;
    if (serve->line.length > 0)
        scoreboard_add(&counters->requests, 1);
    if (class < SCOREBOARD_CLASSES)
        scoreboard_add(&counters->responses[class], 1);
    if (conns->tally)
        count_in_tally(serve, status);
}

static bool is_last(const struct serve *serve)
{
    const struct conns *conns = conn_conns(serve->conn);
    const struct request *request = serve->exchange.request;
    int64_t limit = conns->conf->limits.requests;
    return serve->closes || serve->conn->is_dismissed || !request || !request->is_persistent ||
           conns->context.is_draining || (limit > 0 && serve->conn->answered + 1 >= limit);
}

/* The preconditions of the request. They count only where a representation is asked for and would
 * be given (RFC 9110, 13.2.1). */
static enum condition judge(const struct serve *serve, const struct response *response)
{
    const struct exchange *exchange = &serve->exchange;
    const struct request *request = exchange->request;
    struct date *date = &conn_conns(serve->conn)->date;
    if (!request || !request->is_conditional || request->method == METHOD_OPTIONS ||
        !exchange->route || response->status / 100 != 2)
        return CONDITION_MET;
    const struct answer *answer = exchange->route->answer;
    bool exists = answer->methods & METHOD_BIT(METHOD_GET);
    date_refresh(date);
    return condition_judge(request, response->fields, exists, date->second);
}

/* What the preconditions make of the answer: `response`, or 304 in `own`, whose fields are in
 * `kept`; or 412. */
static const struct response *apply_conditions(const struct serve *serve, struct response *own,
                                               struct buf *kept)
{
    const struct response *response = serve->exchange.response;
    const struct conns *conns = conn_conns(serve->conn);
    switch (judge(serve, response)) {
    case CONDITION_MET:
        break;
    case CONDITION_NOT_MODIFIED:
        if (condition_keep(kept, response->fields) == -1)
            return response_errors_find(conns->errors, 500);
        *own = (struct response){ .status = 304, .fields = buf_slice(kept) };
        return own;
    case CONDITION_FAILED:
        return response_errors_find(conns->errors, 412);
    }
    return response;
}

/* Of a request whose head is not whole the line may tell (RFC 9110, 9.3.2). */
static bool is_head(const struct serve *serve)
{
    const struct request *request = serve->exchange.request;
    struct slice name = SLICE("HEAD ");
    if (request)
        return request->method == METHOD_HEAD;
    return serve->line.length >= name.length &&
           slice_equal((struct slice){ serve->line.data, name.length }, name);
}

void serve_write(struct serve *serve)
{
    struct conn *conn = serve->conn;
    struct conns *conns = conn_conns(conn);
    const struct request *request = serve->exchange.request;
    struct response own;
    struct buf kept = { 0 };
    date_refresh(&conns->date);
    const struct response *response = apply_conditions(serve, &own, &kept);
    const struct response_form form = {
        .is_head = is_head(serve),
        .is_persistent = !is_last(serve),
        .version = request && request->version ? request->version : 11,
    };
    int failed = response_write(conn_output(conn), response, &form, &conns->date);
    buf_fini(&kept);
    if (failed) {
        conn->is_broken = true;
        return;
    }
    if (!form.is_persistent)
        conn->is_closing = true;
    conn->answered++;
    count_answer(serve, response->status);
    log_answer(serve, response->status, response_body_length(response, &form));
}

void serve_now(struct serve *serve)
{
    struct exchange *exchange = &serve->exchange;
    if (exchange->response) {
        exchange_done(exchange);
        return;
    }
    const struct answer *answer = exchange->route ? exchange->route->answer : NULL;
    assert(answer);
    answer->kind->serve(answer, exchange);
}

static void refuse(struct serve *serve, unsigned status)
{
    /* To one who has not been asked for his request yet: it may be a HEAD (RFC 9110, 9.3.2). */
    static const struct response bare = { .status = 503 };
    struct conns *conns = conn_conns(serve->conn);
    serve->closes = true;
    serve->exchange.response =
        serve->conn->is_refused ? &bare : response_errors_find(conns->errors, status);
    exchange_done(&serve->exchange);
}

void serve_error(struct conn *conn, unsigned status)
{
    struct conn_held *held = conn->held;
    if (held && held->late) { /* its body did not come in time, or is not well-formed */
        refuse(&held->late->serve, status);
        return;
    }
    bool has_begun = held && held->input.length > 0;
    struct slice head = has_begun ? buf_slice(&held->input) : SLICE("");
    refuse(prepare(conn, NULL, head, has_begun ? held->began : conn_conns(conn)->now), status);
}

/* Finds the route and decides what can be decided by the head alone: sets the response, if it is
 * not the kind's to make. Returns whether that response refuses the request. */
static bool decide(struct serve *serve)
{
    struct exchange *exchange = &serve->exchange;
    const struct conns *conns = conn_conns(serve->conn);
    const struct request *request = exchange->request;
    const struct response *options = &conns->options, *not_allowed = &conns->not_allowed;
    bool is_allowed = request->method == METHOD_OPTIONS;

    /* No connection is secured here, and none known to be a gateway's (RFC 9110, 7.4). */
    if (request->is_https) {
        exchange->response = response_errors_find(conns->errors, 421);
        return true;
    }
    /* "OPTIONS *" and CONNECT are about the server, not about a path. */
    if (request->method != METHOD_CONNECT && !slice_equal(request->path, SLICE("*"))) {
        int index = routes_find(conns->index, request->path);
        if (index == -1) {
            exchange->response = response_errors_find(conns->errors, 404);
            return true;
        }
        exchange->route = &conns->routes[index];
        const struct answer *answer = exchange->route->answer;
        options = &answer->options;
        not_allowed = &answer->not_allowed;
        is_allowed = is_allowed || (answer->methods & METHOD_BIT(request->method));
    }
    if (!is_allowed)
        exchange->response = not_allowed;
    else if (request->expects_other)
        exchange->response = response_errors_find(conns->errors, 417);
    else if (request->method == METHOD_OPTIONS)
        exchange->response = options;
    return !is_allowed || request->expects_other;
}

/* Do the preconditions refuse the request, before its body is asked for (RFC 9110, 10.1.1)? They
 * do not count where the body is too large (13.2.1). */
static bool fails_early(struct serve *serve)
{
    struct exchange *exchange = &serve->exchange;
    const struct conns *conns = conn_conns(serve->conn);
    const struct answer *answer = exchange->route ? exchange->route->answer : NULL;
    struct body body;
    if (exchange->response || !answer || !answer->is_fixed ||
        body_start(&body, exchange->request, (uint64_t)conns->conf->limits.body) == BODY_REFUSED ||
        judge(serve, &answer->fixed) != CONDITION_FAILED)
        return false;
    exchange->response = response_errors_find(conns->errors, 412);
    return true;
}

/* Begins the body of the request, of which `rest` is there; *used of that belongs to it. */
static enum body_result begin_body(const struct serve *serve, struct body *body, struct slice rest,
                                   size_t *used)
{
    const struct conns *conns = conn_conns(serve->conn);
    enum body_result result =
        body_start(body, serve->exchange.request, (uint64_t)conns->conf->limits.body);
    *used = 0;
    return result == BODY_MORE && rest.length > 0 ? body_feed(body, rest, used) : result;
}

/* What is missing of it comes next on this connection. */
static void await_body(struct conn *conn, const struct body *body)
{
    conn->held->body = *body;
    conn->is_in_body = true;
}

/* A body, of which `rest` is there, follows a request that is refused: the answer goes first. */
static size_t skip_body(struct serve *serve, struct slice rest)
{
    struct conn *conn = serve->conn;
    const struct request *request = serve->exchange.request;
    struct body body;
    size_t used;
    enum body_result result = begin_body(serve, &body, rest, &used);
    /* Who waits for a 100 may or may not send the body after this (RFC 9110, 10.1.1). */
    serve->closes = result == BODY_REFUSED || request->expects_continue || request->expects_other;
    serve_now(serve);
    if (result == BODY_MORE && !conn->is_closing && conn_hold(conn))
        await_body(conn, &body);
    return used;
}

/* All of the request is there. */
static void finish(struct serve *serve, struct slice bytes)
{
    const struct exchange *exchange = &serve->exchange;
    const struct answer *answer = exchange->route ? exchange->route->answer : NULL;
    if (!exchange->response && answer && answer->is_late) {
        struct late *late = late_new(serve, bytes);
        if (late)
            late_begin(late);
    } else {
        serve_now(serve);
    }
}

/* The body must be there before the answer. What is missing of it makes the request a late one. */
static size_t read_body(struct serve *serve, struct slice bytes, struct slice rest)
{
    struct conn *conn = serve->conn;
    const struct request *request = serve->exchange.request;
    struct body body;
    size_t used;
    enum body_result result = begin_body(serve, &body, rest, &used);
    switch (result) {
    case BODY_REFUSED:
        refuse(serve, body.status);
        return 0;
    case BODY_DONE:
        finish(serve, bytes);
        return used;
    case BODY_MORE:
        break;
    }
    if (request->expects_continue && response_write_continue(conn_output(conn)) == -1)
        conn->is_broken = true;
    if (late_new(serve, bytes))
        await_body(conn, &body);
    return used;
}

static size_t serve_request(struct serve *serve, struct slice bytes)
{
    const struct request *request = serve->exchange.request;
    size_t used = request->head_length;
    struct slice rest = { bytes.data + used, bytes.length - used };
    bool is_refused = decide(serve);
    serve->conn->is_renewed = true;
    if (request->framing == REQUEST_NO_BODY)
        finish(serve, bytes);
    else if (is_refused || fails_early(serve))
        used += skip_body(serve, rest);
    else
        used += read_body(serve, bytes, rest);
    return used;
}

size_t serve_head(struct conn *conn, struct slice bytes)
{
    struct conns *conns = conn_conns(conn);
    struct conn_held *held = conn->held;
    struct request_scan fresh = { 0 }, *scan = held ? &held->scan : &fresh;
    int64_t began = scan->position > scan->line ? held->began : conns->now;

    scoreboard_request_set(&conns->slot->answering, &conn->peer, bytes);
    switch (request_feed(&conns->request, scan, bytes, &conns->head_limits)) {
    case REQUEST_DONE:
        return serve_request(prepare(conn, &conns->request, bytes, began), bytes);
    case REQUEST_REFUSED:
        refuse(prepare(conn, &conns->request, bytes, began), conns->request.status);
        return 0;
    case REQUEST_MORE:
        break;
    }
    held = conn_hold(conn);
    if (held) {
        held->scan = *scan;
        held->began = began;
    }
    return 0;
}

size_t serve_body(struct conn *conn, struct slice bytes)
{
    struct conn_held *held = conn->held;
    size_t used = 0;
    switch (body_feed(&held->body, bytes, &used)) {
    case BODY_MORE:
        break;
    case BODY_DONE:
        conn->is_in_body = false;
        if (held->late)
            late_begin(held->late);
        break;
    case BODY_REFUSED: /* no second answer for one that was answered already */
        if (held->late)
            refuse(&held->late->serve, held->body.status);
        else
            conn->is_closing = true;
        return 0;
    }
    return used;
}
