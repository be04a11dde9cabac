/*
 * adopt: takes over what another binary has written down (bequeath.h), in its place and under its
 * pid: scoreboard, sockets, logs, children and control clients.
 *
 * The generation that served goes on serving, with the configuration it was made from. What cannot
 * be taken over goes back to the old binary, with the reason; when that is not possible either, the
 * process ends, and the workers drain.
 */
#ifndef MASTER_ADOPT_H
#define MASTER_ADOPT_H

#include <stdbool.h>

struct conf;
struct conf_error;
struct legacy;
struct legacy_generation;
struct master;
struct master_options;

/* Were we executed in a master's place? */
bool adopt_is_asked(void);

/* The part before the loop is made: scoreboard, watchdog, log. Malloced. */
struct legacy *adopt_begin(struct master *master);

/* What comes between could not be had: back to the old binary with the reason, or the end. */
_Noreturn void adopt_give_up(const struct master *master, const struct legacy *legacy,
                             const char *reason);

/* The rest, when all of the master is there; the proof begins. Frees the legacy. */
void adopt_end(struct master *master, struct legacy *legacy);

/* The configuration that a generation was made from. NULL with the error. */
struct conf *adopt_conf(const struct master_options *options, const struct legacy *legacy,
                        const struct legacy_generation *from, struct conf_error *error);

#endif
