#include "worker/conns.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/scoreboard.h"
#include "http/route.h"
#include "worker/census.h"
#include "worker/conn.h"

#define LINGER_SPAN (2 * CLOCK_SECOND)

/* Memory of the output buffer that is kept after a large answer. */
#define OUTPUT_KEPT (256 * 1024)

/* So much is read in a turn of the loop before the pieces get small. */
#define READ_BUDGET (1024 * 1024)

/* So many connections leave enough memory behind that it is worth giving back; and so many a table
 * of the loop that is worth a new loop. */
#define PEAK_LARGE 64
#define PEAK_SPREAD 512

/* How often a late answer is looked at: will anybody read it? */
#define WAIT_SPAN (5 * CLOCK_SECOND)

static void on_expired(struct phases *phases, struct phase_entry *entry)
{
    (void)phases;
    conn_expire(conn_of(entry));
}

static int index_routes(struct conns *conns)
{
    struct slice *paths = calloc(conns->nroutes + 1, sizeof *paths);
    if (!paths)
        return -1;
    for (size_t i = 0; i < conns->nroutes; i++)
        paths[i] = slice_of(conns->routes[i].path);
    conns->index = routes_new(paths, conns->nroutes);
    free(paths);
    return conns->index ? 0 : -1;
}

/* What is said of the server as a whole: the methods of all its routes (RFC 9110, 9.3.7). */
static int prepare_server(struct conns *conns)
{
    method_set methods = METHOD_BIT(METHOD_OPTIONS);
    for (size_t i = 0; i < conns->nroutes; i++)
        methods |= ((const struct answer *)conns->routes[i].answer)->methods;
    const char *prefix = "Content-Type: text/plain\r\nAllow: ";
    size_t type = SLICE("Content-Type: text/plain\r\n").length;
    memcpy(conns->allow, prefix, strlen(prefix));
    size_t length = strlen(prefix);
    length += method_set_text(conns->allow + length, sizeof conns->allow - length - 2, methods);
    memcpy(conns->allow + length, "\r\n", 2);
    struct slice not_allowed = { conns->allow, length + 2 };
    struct slice allow = { conns->allow + type, not_allowed.length - type };
    conns->options = (struct response){ .status = 204, .fields = allow };
    conns->not_allowed = (struct response){
        .status = 405,
        .fields = not_allowed,
        .body = SLICE("405 Method Not Allowed\n"),
    };
    if (response_prepare(&conns->options) == -1)
        return -1;
    return response_prepare(&conns->not_allowed);
}

static void set_spans(struct conns *conns)
{
    const struct conf_timeouts *timeouts = &conns->conf->timeouts;
    phase_set_span(&conns->phases, PHASE_HEADER, timeouts->header);
    phase_set_span(&conns->phases, PHASE_BODY, timeouts->body);
    phase_set_span(&conns->phases, PHASE_SEND, timeouts->send);
    phase_set_span(&conns->phases, PHASE_IDLE, timeouts->idle);
    phase_set_span(&conns->phases, PHASE_LINGER, LINGER_SPAN);
    phase_set_span(&conns->phases, PHASE_WAIT, WAIT_SPAN);
}

int conns_init(struct conns *conns)
{
    phase_init(&conns->phases, conns->loop, on_expired);
    admit_init(conns);
    set_spans(conns);
    conns->now = clock_monotonic();
    conns->read_left = READ_BUDGET;
    conns->head_limits.header = (size_t)conns->conf->limits.header;
    conns->errors = response_errors_new();
    conns->input = malloc(CONNS_INPUT);
    if (!conns->errors || !conns->input || index_routes(conns) == -1 || prepare_server(conns) == -1)
        return -1;
    conns->context = (struct answer_context){
        .scoreboard = conns->scoreboard,
        .errors = conns->errors,
    };
    return 0;
}

/* Whoever has sent a part of a request, or is owed an answer, loses something. */
static bool is_in_flight(const struct conn *conn)
{
    return conn_is_answering(conn) || (conn->entry.phase == PHASE_HEADER && !conn->is_fresh);
}

void conns_cut(struct conns *conns)
{
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        struct phase_entry *entry;
        while ((entry = phase_first(&conns->phases, (enum phase)phase))) {
            struct conn *conn = conn_of(entry);
            if (is_in_flight(conn))
                scoreboard_add(&conns->slot->counters.cut, 1);
            conn_free(conn);
        }
    }
}

void conns_fini(struct conns *conns)
{
    conns->gone = NULL;
    conns_cut(conns);
    admit_fini(conns);
    phase_fini(&conns->phases);
    peers_fini(&conns->peers);
    response_fini(&conns->options);
    response_fini(&conns->not_allowed);
    response_errors_free(conns->errors);
    routes_free(conns->index);
    request_fini(&conns->request);
    buf_fini(&conns->serve.exchange.text);
    buf_fini(&conns->output);
    free(conns->input);
    conns->input = NULL;
}

void conns_open(struct conns *conns, int fd, const struct sockaddr *address)
{
    if (address)
        scoreboard_add(&conns->slot->counters.connections, 1);
    struct conn *conn = conn_new(conns, fd);
    if (!conn)
        return;
    conn->is_own = !address;
    if (address) {
        scoreboard_peer_set(&conn->peer, address);
        admit_conn(conn);
    } else {
        conn_begin(conn);
    }
}

void conns_move(struct conns *conns, struct ev_loop *loop)
{
    assert(conns->open == 0);
    conns->loop = conns->phases.loop = loop;
}

void conns_wake(struct conns *conns)
{
    conns->now = clock_monotonic();
    conns->read_left = READ_BUDGET;
}

/* What most of many connections have left behind: the allocator keeps it unless it is asked. */
static void give_back(struct conns *conns)
{
    if (conns->open > conns->peak)
        conns->peak = conns->open;
    if (conns->peak >= PEAK_SPREAD)
        conns->is_spread = true;
    bool is_deserted = conns->is_spread && conns->open == 0;
    if (!is_deserted && (conns->peak < PEAK_LARGE || conns->open > conns->peak / 4))
        return;
    conns->peak = conns->open;
    malloc_trim(0);
    if (!is_deserted)
        return;
    conns->is_spread = false;
    if (conns->deserted)
        conns->deserted(conns);
}

void conns_rest(struct conns *conns)
{
    admit_turn(conns);
    conns_make_room(conns);
    census_publish(conns, phase_first(&conns->phases, PHASE_IDLE));
    struct scoreboard_slot *slot = conns->slot;
    atomic_store_explicit(&slot->open, conns->open, memory_order_relaxed);
    atomic_store_explicit(&slot->waiting, conns->waiting, memory_order_relaxed);
    if (conns->access.length > 0)
        access_flush(&conns->access);
    if (conns->output.capacity > OUTPUT_KEPT)
        buf_fini(&conns->output);
    give_back(conns);
}

void conns_make_room(struct conns *conns)
{
    struct phase_entry *entry;
    while (census_is_asked(conns) && (entry = phase_first(&conns->phases, PHASE_IDLE))) {
        admit_evict(conn_of(entry));
        census_comply(conns);
    }
}

void conns_drain(struct conns *conns)
{
    conns->context.is_draining = true;
}

void conns_close_idle(struct conns *conns)
{
    static const enum phase phases[] = { PHASE_IDLE, PHASE_HEADER, PHASE_BODY };
    struct phase_entry *entry, *next;
    conns->closes_idle = true;
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        for (entry = phase_first(&conns->phases, phases[i]); entry; entry = next) {
            next = phase_next(&conns->phases, entry);
            conn_dismiss(conn_of(entry));
        }
    }
}
