/*
 * watched: a server that watches its configuration, and scripts that change that.
 *
 * The configuration is etc/hayate.conf in a folder of the scratch directory ("." is that itself).
 * It has a route /state, by whose text it is known which one is served, and nothing else: the keys
 * come with -o, so that whatever a look in the middle of a change finds is valid.
 */
#ifndef SUPPORT_WATCHED_H
#define SUPPORT_WATCHED_H

#include <stdbool.h>

#include "support/server.h"

#define WATCHED_STATE(text) "routes = ( { path = \"/state\" text = \"" text "\" } )\n"

/* Lines of its log. */
#define WATCHED_RELOADING "watch: .* has changed: reloading"
#define WATCHED_SAME "watch: the files are as they are served"
#define WATCHED_REFUSED "watch: the files are still as they were refused"

/* Makes the files one, two and three with these states, and etc/hayate.conf with state one. */
void watched_prepare(const char *folder);

/* Runs a script of sh in the folder, where $FILE is etc/hayate.conf. It must succeed. */
void watched_shell_in(const char *folder, const char *script);
void watched_shell(const char *script); /* in "." */

/* `prepare` as of server_options. */
void watched_start(struct server *server, const char *folder, void (*prepare)(void));
/* As above with files in "."; and settled. */
void watched_start_settled(struct server *server);
/* A second after a start or reload it looks by itself: waits until that is over after the last one
 * that the log has from `mark` on. Whatever is noticed then was an event. */
void watched_await_settled(const struct server *server, size_t mark);

/* Does it serve this state? NULL: none. */
bool watched_is_state(const struct server *server, const char *state);
/* What status says. */
bool watched_is_on(const struct server *server);

#endif
