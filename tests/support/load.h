/*
 * load: clients that ask for one path, and count what became of each request.
 *
 * A persistent client keeps its connection and opens another when an answer said that it was the
 * last; a fresh one opens a connection for every request. Each request that was sent is either
 * answered right (200 and the body) or failed: there are no retries, for a server that ends a
 * connection in order says so in the answer before, and then does end it.
 */
#ifndef SUPPORT_LOAD_H
#define SUPPORT_LOAD_H

struct load;

struct load_plan {
    const char *url, *path, *body;
    unsigned persistent, fresh; /* clients */
    unsigned pause; /* ms: the most that a persistent one waits before its next request */
    unsigned rate;  /* connections a second, of all fresh ones; 0: one after the other. Theirs is
                       the schedule, not the server's: what is late is made up for, up to 1 s */
};

struct load_result {
    unsigned long right, failed;
    unsigned long refused, reset; /* of those that failed */
    unsigned long connections;    /* opened */
    unsigned long lasts;          /* answers that ended a persistent connection */
    char failure[160];            /* what the first failure was */
};

/* Threads of this process: start it after what forks without exec. */
struct load *load_start_plan(const struct load_plan *plan);
/* As above, without a pause. */
struct load *load_start(const char *url, const char *path, const char *body, unsigned persistent,
                        unsigned fresh);

/* Requests answered right so far. */
unsigned long load_count(struct load *load);
/* Waits until so many more have been answered, by each client. */
void load_await(struct load *load, unsigned long more);

/* Lets each finish its request, and ends it. */
void load_stop(struct load *load, struct load_result *result);

#endif
