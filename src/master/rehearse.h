/*
 * rehearse: the trial of a new binary, in that binary, before it is executed in the master's place.
 *
 * The master forks and executes it with its own arguments (upgrade.h). Here it shows that it could
 * take over: it understands the legacy, the scoreboard and the configuration that is being served,
 * accepts the one on disk, and answers a request as a worker of it. It binds nothing, and shares
 * nothing with those who serve. What it has to say goes over a channel: CHANNEL_READY, or
 * CHANNEL_FAILED with the reason and the exit status of who asked.
 */
#ifndef MASTER_REHEARSE_H
#define MASTER_REHEARSE_H

#include <stdbool.h>

struct master_options;

/* Were we executed for that? */
bool rehearse_is_asked(void);

_Noreturn void rehearse(const struct master_options *options);

#endif
