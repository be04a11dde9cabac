#include "worker/admit.h"

#include "base/log.h"
#include "base/scoreboard.h"
#include "worker/conn.h"
#include "worker/conns.h"

/* As many as it takes libev to look at a thousand events that were there before. */
#define TURNS 8

/* Connections that are told 503 and may take their time to read it. */
#define REFUSED_MOST 64

/* Late answers that are looked at to make room. */
#define VAIN_MOST 64

static struct conn *conn_of(struct phase_entry *entry)
{
    return (struct conn *)entry;
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

/* Who has its last answer already; those that were refused do not count anyway. */
static struct phase_entry *first_done(struct conns *conns)
{
    struct phase_entry *entry = phase_first(&conns->phases, PHASE_LINGER);
    while (entry && conn_of(entry)->is_outside)
        entry = phase_next(&conns->phases, entry);
    return entry;
}

static bool is_full(const struct conns *conns)
{
    return conns->share > 0 && conns->open - conns->admit.outside >= conns->share;
}

/* At the limit those make room that are owed nothing: who has its last answer already, then who
 * has been idle longest, then who does not wait any more. */
static bool make_room(struct conns *conns)
{
    while (is_full(conns)) {
        struct phase_entry *entry = first_done(conns);
        if (entry) {
            conn_free(conn_of(entry));
        } else if ((entry = phase_first(&conns->phases, PHASE_IDLE))) {
            if (conn_dismiss(conn_of(entry)))
                scoreboard_add(&conns->slot->counters.refused, 1);
        } else if (!drop_vain(conns)) {
            return false;
        }
    }
    return true;
}

/* Counts it among those of its address. */
static enum peers_result count_peer(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    if (conns->share_per_address == 0 || conn->is_counted)
        return PEERS_COUNTED;
    enum peers_result result = peers_add(&conns->peers, &conn->peer, conns->share_per_address);
    conn->is_counted = result == PEERS_COUNTED;
    return result;
}

/* NULL, or the limit that this connection would break. If it is `urgent` others make room. */
static const char *find_limit(struct conn *conn, bool is_urgent)
{
    struct conns *conns = conn_conns(conn);
    enum peers_result result = count_peer(conn);
    if (result == PEERS_LIMIT && is_urgent && drop_vain(conns))
        result = count_peer(conn);
    if (result == PEERS_LIMIT)
        return "limits.per_address";
    if (result == PEERS_FAILED)
        return "the memory for limits.per_address";
    bool has_room = is_urgent ? make_room(conns) : !is_full(conns);
    return has_room ? NULL : "limits.connections";
}

static void refuse(struct conn *conn, const char *limit)
{
    struct conns *conns = conn_conns(conn);
    char peer[SCOREBOARD_PEER_SIZE];
    scoreboard_peer_text(peer, sizeof peer, &conn->peer);
    log_limited(&conns->limit, LOG_LEVEL_WARNING, "%s is reached: 503 to %s", limit, peer);
    scoreboard_add(&conns->slot->counters.refused, 1);
    conn->is_refused = true;
    conn_refuse(conn, conns->admit.outside - conns->admit.deferred <= REFUSED_MOST);
}

static void let_in(struct conn *conn)
{
    conn->is_outside = false;
    conn_conns(conn)->admit.outside--;
    conn_begin(conn);
}

/* Returns whether it was let in. */
static bool decide(struct conn *conn)
{
    if (conn_is_deserted(conn)) { /* nobody is to make room for that */
        conn_free(conn);
        return false;
    }
    const char *limit = find_limit(conn, true);
    if (limit)
        refuse(conn, limit);
    else
        let_in(conn);
    return !limit;
}

static void stop_if_empty(struct conns *conns)
{
    if (conns->admit.deferred == 0)
        ev_idle_stop(conns->loop, &conns->admit.idle);
}

/* Decides for those that have waited so long, up to one that is let in: it may have gone too, and
 * that must be seen before the next is refused. */
static void decide_those(struct conns *conns, unsigned turns)
{
    struct admit *admit = &conns->admit;
    bool is_in = false;
    while (!is_in && admit->deferred > 0 && admit->waiting[0].turns >= turns) {
        struct conn *conn = admit->waiting[0].conn;
        conn->is_deferred = false;
        admit->deferred--;
        for (unsigned i = 0; i < admit->deferred; i++)
            admit->waiting[i] = admit->waiting[i + 1];
        is_in = decide(conn);
    }
    for (unsigned i = 0; is_in && i < admit->deferred; i++)
        admit->waiting[i].turns = 0;
    stop_if_empty(conns);
}

/* All that was there before has been looked at. */
static void on_idle(struct ev_loop *loop, ev_idle *idle, int events)
{
    (void)loop;
    (void)events;
    decide_those(idle->data, 0);
}

static void defer(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    conn->is_deferred = true;
    conns->admit.waiting[conns->admit.deferred].conn = conn;
    conns->admit.waiting[conns->admit.deferred].turns = 0;
    conns->admit.deferred++;
    ev_idle_start(conns->loop, &conns->admit.idle);
}

void admit_init(struct conns *conns)
{
    ev_idle_init(&conns->admit.idle, on_idle);
    conns->admit.idle.data = conns;
}

void admit_fini(struct conns *conns)
{
    ev_idle_stop(conns->loop, &conns->admit.idle);
}

void admit_conn(struct conn *conn)
{
    struct conns *conns = conn_conns(conn);
    conn->is_outside = true;
    conns->admit.outside++;
    if (!find_limit(conn, false))
        let_in(conn);
    else if (conns->admit.deferred < ADMIT_MOST)
        defer(conn);
    else
        decide(conn);
}

void admit_forget(struct conn *conn)
{
    struct admit *admit = &conn_conns(conn)->admit;
    if (conn->is_deferred) {
        unsigned at = 0;
        while (admit->waiting[at].conn != conn)
            at++;
        for (admit->deferred--; at < admit->deferred; at++)
            admit->waiting[at] = admit->waiting[at + 1];
        stop_if_empty(conn_conns(conn));
    }
    if (conn->is_outside)
        admit->outside--;
    conn->is_deferred = conn->is_outside = false;
}

void admit_turn(struct conns *conns)
{
    struct admit *admit = &conns->admit;
    for (unsigned i = 0; i < admit->deferred; i++)
        admit->waiting[i].turns++;
    decide_those(conns, TURNS);
}
