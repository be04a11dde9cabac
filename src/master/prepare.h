/*
 * prepare: all that a generation needs before its first fork: logs, sockets, limits, places.
 *
 * Nothing of it shows outside or disturbs the generation that serves; generation_free undoes it.
 */
#ifndef MASTER_PREPARE_H
#define MASTER_PREPARE_H

struct conf;
struct generation;
struct generation_error;
struct sink;

/* `generation` has its master, conf and number. -1 with error->text: the caller frees it. */
int prepare_generation(struct generation *generation, struct generation_error *error);

/* Its places, and who serves which queue: nobody so far. Its listeners are there. -1: ENOMEM. */
int prepare_members(struct generation *generation);

/*
 * Opens the two logs of a configuration, for a generation or a reopen; the sinks are the caller's.
 * `log` NULL: the access log alone. -1 with the error and nothing open.
 */
int prepare_logs(const struct conf *conf, struct sink *log, struct sink *access,
                 struct generation_error *error);

#endif
