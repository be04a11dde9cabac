/*
 * server: a hayate that runs, for the length of a test.
 *
 * Its files are in the scratch directory: NAME.conf, NAME.err (standard error, where the log goes
 * unless the configuration says otherwise), NAME.out, and NAME.control, which a configuration is
 * to name: SERVER_BASE does. All calls fail the test when what they wait for does not come, and
 * show the end of the log then. A server that a test leaves behind is killed.
 */
#ifndef SUPPORT_SERVER_H
#define SUPPORT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "support/process.h"

/* The keys that nearly every configuration begins with. */
#define SERVER_CONTROL "control = \"hayate.control\"\n"
#define SERVER_BASE "listen = [ \"127.0.0.1:0\" ]\n" SERVER_CONTROL
/* Another address than that of the listener, to tell them apart. */
#define SERVER_ADMIN "admin = { listen = [ \"127.0.0.2:0\" ] }\n"

#define SERVER_URLS 8

struct server_options {
    const char *config;           /* text of the file; NULL: no -c */
    const char *name;             /* NULL: "hayate" */
    const char *const *arguments; /* after those of -c */
    const char *const *environment;
    void (*prepare)(void);
    int output; /* becomes standard output and error; 0: the files */
};

struct server {
    struct process process;
    pid_t pid; /* of the master; stays after it has ended */
    const char *name;
    const char *config, *err, *control; /* absolute paths */

    /* From the start line. */
    const char *started; /* that line */
    unsigned workers, generation;
    unsigned nurls;
    const char *urls[SERVER_URLS]; /* of the listeners, admin not counted */
    const char *url;               /* the first */
    unsigned port;                 /* of the first */
};

/* Starts it; with server_start, until it says that it has started. */
void server_spawn(struct server *server, const struct server_options *options);
void server_start(struct server *server, const struct server_options *options);
/* SERVER_BASE and two workers. */
void server_start_plain(struct server *server);

/* Waits until it is gone, and all its children. The status as of process_wait. */
int server_wait(struct server *server);
/* Sends the signal first. */
int server_stop(struct server *server, int signal);
/* Starts it, and it must give up with this status. Returns standard error. */
const char *server_expect_failure(struct server *server, const struct server_options *options,
                                  int status);

void server_signal(const struct server *server, int signal);

/* Replaces the file. */
void server_rewrite(const struct server *server, const char *config);

/* Where the log ends now: what server_await and its like look at from there on. */
size_t server_mark(const struct server *server);
/* Waits for a line that matches; returns the first. */
const char *server_await(const struct server *server, size_t mark, const char *pattern);
/* As above in any file of the scratch directory. */
const char *server_await_file(const struct server *server, const char *file, size_t mark,
                              const char *pattern);
unsigned server_count(const struct server *server, size_t mark, const char *pattern);
const char *server_log(const struct server *server);

/* `hayate ARGUMENTS... --control ITS_SOCKET`. */
void server_command(const struct server *server, struct outcome *outcome,
                    const char *const *arguments);
/* Fails the test unless it exits with this status; returns standard output and error. */
const char *server_expect(const struct server *server, int status, const char *const *arguments);

/* Reloads, which must succeed. */
void server_reload(const struct server *server);
/* As above, until the old generation has left: there are so many workers (and no admin) then. */
void server_replace(const struct server *server, unsigned workers);

/* A connection to its control socket, for those who speak its protocol themselves. */
int server_connect_control(const struct server *server);

/* The address of the admin listener, from the log. */
const char *server_admin(const struct server *server);

/* What `status --json` says. */
struct json;
const struct json *server_status(const struct server *server);
/* The pid of a worker that is ready, as status has it, 1 being the first. 0 when there is none. */
pid_t server_worker(const struct server *server, unsigned worker);
/* Waits for one that is not `dead`; sends one a signal. Both return its pid. */
pid_t server_await_worker(const struct server *server, unsigned worker, pid_t dead);
pid_t server_kill_worker(const struct server *server, unsigned worker, int signal);
/* Workers that are ready. */
unsigned server_ready_workers(const struct server *server);
/* The generation being served. */
unsigned server_generation(const struct server *server);

#endif
