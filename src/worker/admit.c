#include "worker/admit.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "worker/census.h"
#include "worker/conn.h"
#include "worker/conns.h"

/* As many as it takes libev to look at a thousand events that were there before. */
#define TURNS 8

/* How long one waits, while others in other workers may be leaving, and how often that is looked at. */
#define PATIENCE (100 * CLOCK_MILLISECOND)
#define RETRY_SPAN (1 * CLOCK_MILLISECOND)

/* Connections that are told 503 and may take their time to read it. */
#define REFUSED_MOST 64

/* Connections that have their last answer and still are open; after those the oldest are closed. */
#define DONE_MOST 1024

/* Late answers that are looked at to make room. */
#define VAIN_MOST 64

void admit_evict(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    /* Before its client can see the end: who needs room next is to find the next oldest. */
    census_publish(conns, phase_next(&conns->phases, &conn->entry));
    if (conn_dismiss(conn))
        scoreboard_add(&conns->slot->counters.refused, 1);
}

/* Drops late answers for those that have reset their connection meanwhile, looking at some in
 * turn. Returns whether there were any. */
static bool drop_vain(struct conns *conns)
{
    bool is_found = false;
    unsigned count = conns->phases.lists[PHASE_WAIT].count;
    for (unsigned i = 0; i < VAIN_MOST && i < count; i++) {
        struct phase_entry *entry = phase_first(&conns->phases, PHASE_WAIT);
        if (conn_is_vain(conn_of(entry))) {
            conn_free(conn_of(entry));
            is_found = true;
        } else {
            phase_enter(&conns->phases, entry, PHASE_WAIT, conns->now);
        }
    }
    return is_found;
}

/* The oldest of those that have their last answer. One that goes on sending might not have read it,
 * and would lose it (RFC 9112, 9.6): it comes last. */
static struct conn *first_done(struct conns *conns)
{
    struct phase_entry *first = phase_first(&conns->phases, PHASE_LINGER), *entry = first;
    while (entry && conn_of(entry)->is_sending)
        entry = phase_next(&conns->phases, entry);
    return conn_of(entry ? entry : first);
}

/* Takes a place for it, if there is one. */
static bool take_place(struct conn *conn, bool is_forced)
{
    struct conns *conns = conn_conns(conn);
    if (conns->most > 0 && conns->admit.inside >= conns->most)
        return false;
    if (!census_enter(conns, is_forced))
        return false;
    conn->is_inside = true;
    conns->admit.inside++;
    return true;
}

static void leave_place(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    if (!conn->is_inside)
        return;
    conn->is_inside = false;
    conns->admit.inside--;
    census_leave(conns);
}

/* Lets it in, and another worker is to end one that has been idle longer than any here. */
static bool displace_older(struct conn *conn, const struct phase_entry *idle)
{
    struct conns *conns = conn_conns(conn);
    struct scoreboard_slot *slot = census_find_older(conns, idle ? idle->entered : INT64_MAX);
    if (!slot || !take_place(conn, true))
        return false;
    census_ask(conns, slot);
    return true;
}

/* At the limit those make room that are owed nothing: who has been idle longest, then who does not
 * wait for its answer any more. */
static bool make_room(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    while (!take_place(conn, false)) {
        struct phase_entry *idle = phase_first(&conns->phases, PHASE_IDLE);
        if (displace_older(conn, idle))
            return true;
        if (idle)
            admit_evict(conn_of(idle));
        else if (!drop_vain(conns))
            return false;
    }
    return true;
}

/* Counts it among those of its address. */
static enum peers_result count_peer(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    if (conns->most_per_address == 0 || conn->is_counted)
        return PEERS_COUNTED;
    enum peers_result result = peers_add(&conns->peers, &conn->peer, conns->most_per_address);
    conn->is_counted = result == PEERS_COUNTED;
    return result;
}

/* NULL, and it has a place; or the limit that it would break, and whether that is of its address. If
 * it is `urgent` others make room. */
static const char *find_limit(struct conn *conn, bool is_urgent, bool *is_address)
{
    struct conns *conns = conn_conns(conn);
    enum peers_result result = count_peer(conn);
    if (result == PEERS_LIMIT && is_urgent && drop_vain(conns))
        result = count_peer(conn);
    *is_address = result == PEERS_LIMIT || result == PEERS_FAILED;
    if (result == PEERS_LIMIT)
        return "limits.per_address";
    if (result == PEERS_FAILED)
        return "the memory for limits.per_address";
    bool has_place = is_urgent ? make_room(conn) : take_place(conn, false);
    return has_place ? NULL : "limits.connections";
}

static void refuse(struct conn *conn, const char *limit)
{
    struct conns *conns = conn_conns(conn);
    char peer[SCOREBOARD_PEER_SIZE];
    scoreboard_peer_text(peer, sizeof peer, &conn->peer);
    log_limited(&conns->limit, LOG_LEVEL_WARNING, "%s is reached: 503 to %s", limit, peer);
    scoreboard_add(&conns->slot->counters.refused, 1);
    conn->is_refused = true;
    conns->admit.refused++;
    conn_refuse(conn, conns->admit.refused <= REFUSED_MOST);
}

enum decision {
    DECISION_OUT, /* refused, or gone */
    DECISION_IN,
    DECISION_LATER,
};

/* Does one of those that have a place elsewhere perhaps leave at this moment? */
static bool is_worth_waiting(const struct conns *conns, int64_t since)
{
    return conns->is_counted && atomic_load(&conns->scoreboard->inside) > conns->admit.inside &&
           conns->now - since < PATIENCE;
}

static enum decision decide(struct conn *conn, int64_t since)
{
    if (conn_is_deserted(conn)) { /* nobody is to make room for that */
        conn_free(conn);
        return DECISION_OUT;
    }
    bool is_address = false;
    const char *limit = find_limit(conn, true, &is_address);
    if (limit && !is_address && is_worth_waiting(conn_conns(conn), since))
        return DECISION_LATER;
    if (limit)
        refuse(conn, limit);
    else
        conn_begin(conn);
    return limit ? DECISION_OUT : DECISION_IN;
}

static void stop_if_empty(struct conns *conns)
{
    if (conns->admit.deferred > 0)
        return;
    ev_idle_stop(conns->loop, &conns->admit.idle);
    ev_timer_stop(conns->loop, &conns->admit.retry);
}

static void put_first(struct admit *admit, struct conn *conn, int64_t since)
{
    conn->is_deferred = true;
    for (unsigned i = admit->deferred++; i > 0; i--)
        admit->waiting[i] = admit->waiting[i - 1];
    admit->waiting[0].conn = conn;
    admit->waiting[0].turns = 0;
    admit->waiting[0].since = since;
}

static void take_out(struct admit *admit, unsigned at)
{
    admit->waiting[at].conn->is_deferred = false;
    for (admit->deferred--; at < admit->deferred; at++)
        admit->waiting[at] = admit->waiting[at + 1];
}

/* All that this worker can see has been looked at; others may need a moment. */
static void wait_for_others(struct conns *conns)
{
    ev_idle_stop(conns->loop, &conns->admit.idle);
    if (!ev_is_active(&conns->admit.retry))
        ev_timer_again(conns->loop, &conns->admit.retry);
}

/* Decides for those that have waited so long, up to one that is let in: it may have gone too, and
 * that must be seen before the next is refused. */
static void decide_those(struct conns *conns, unsigned turns)
{
    struct admit *admit = &conns->admit;
    enum decision decision = DECISION_OUT;
    while (decision == DECISION_OUT && admit->deferred > 0 && admit->waiting[0].turns >= turns) {
        struct conn *conn = admit->waiting[0].conn;
        int64_t since = admit->waiting[0].since;
        take_out(admit, 0);
        decision = decide(conn, since);
        if (decision == DECISION_LATER)
            put_first(admit, conn, since);
    }
    for (unsigned i = 0; decision == DECISION_IN && i < admit->deferred; i++)
        admit->waiting[i].turns = 0;
    if (decision == DECISION_LATER)
        wait_for_others(conns);
    stop_if_empty(conns);
}

/* All that was there before has been looked at. */
static void on_idle(struct ev_loop *loop, ev_idle *idle, int events)
{
    (void)loop;
    (void)events;
    decide_those(idle->data, 0);
}

static void on_retry(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    decide_those(timer->data, 0);
}

static void defer(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    struct admit *admit = &conns->admit;
    conn->is_deferred = true;
    admit->waiting[admit->deferred].conn = conn;
    admit->waiting[admit->deferred].turns = 0;
    admit->waiting[admit->deferred].since = conns->now;
    admit->deferred++;
    if (!ev_is_active(&admit->retry))
        ev_idle_start(conns->loop, &admit->idle);
}

void admit_init(struct conns *conns)
{
    ev_idle_init(&conns->admit.idle, on_idle);
    ev_init(&conns->admit.retry, on_retry);
    conns->admit.retry.repeat = (double)RETRY_SPAN / 1e9;
    conns->admit.idle.data = conns->admit.retry.data = conns;
}

void admit_fini(struct conns *conns)
{
    ev_idle_stop(conns->loop, &conns->admit.idle);
    ev_timer_stop(conns->loop, &conns->admit.retry);
}

void admit_conn(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    bool is_address;
    if (!find_limit(conn, false, &is_address))
        conn_begin(conn);
    else if (conns->admit.deferred < ADMIT_MOST)
        defer(conn);
    else
        decide(conn, conns->now - PATIENCE);
}

void admit_forget(struct conn *conn)
{
    struct admit *admit = &conn_conns(conn)->admit;
    if (conn->is_deferred) {
        unsigned at = 0;
        while (admit->waiting[at].conn != conn)
            at++;
        take_out(admit, at);
        stop_if_empty(conn_conns(conn));
    }
    if (conn->is_refused)
        admit->refused--;
    leave_place(conn);
}

void admit_done(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    leave_place(conn);
    if (conns->phases.lists[PHASE_LINGER].count > DONE_MOST && first_done(conns) != conn)
        conn_free(first_done(conns));
}

void admit_refuse(struct conn *conn)
{
    admit_forget(conn);
    refuse(conn, "limits.connections");
}

bool admit_yield(struct conns *conns)
{
    struct phase_entry *idle = phase_first(&conns->phases, PHASE_IDLE);
    struct conn *done = first_done(conns);
    if (done && (!done->is_sending || !idle))
        conn_free(done);
    else if (idle)
        admit_evict(conn_of(idle));
    return done || idle;
}

void admit_turn(struct conns *conns)
{
    struct admit *admit = &conns->admit;
    if (ev_is_active(&admit->retry))
        return;
    for (unsigned i = 0; i < admit->deferred; i++)
        admit->waiting[i].turns++;
    decide_those(conns, TURNS);
}
