/*
 * command: what the program can be asked to do, from the command line.
 *
 * Each command gets the options that were parsed and returns the exit status: 0 success,
 * 1 failure, 2 usage, 3 not running, 78 bad configuration. It speaks on stdout, and says what went
 * wrong on stderr.
 */
#ifndef COMMAND_COMMAND_H
#define COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

enum command_exit {
    COMMAND_SUCCESS = 0,
    COMMAND_FAILURE = 1,
    COMMAND_USAGE = 2,
    COMMAND_NOT_RUNNING = 3,
    COMMAND_CONFIG = 78, /* EX_CONFIG of sysexits.h */
};

struct command_options {
    const char *file;             /* -c */
    const char *const *overrides; /* -o, ends with NULL */
    const char *control;          /* --control */
    char *const *arguments;       /* of main, without change of meaning */
    const char *argument;         /* of the command: the URL of probe; NULL: none */
    bool is_json;                 /* --json */
    bool is_running;              /* --running */
};

/* The whole of main: parses, runs a command, returns the exit status. */
int command_main(int argc, char **argv);

int command_run(const struct command_options *options);
int command_check(const struct command_options *options);
int command_config(const struct command_options *options);
int command_probe(const struct command_options *options);

/* The commands of the control socket. */
int command_reload(const struct command_options *options);
int command_status(const struct command_options *options);
int command_stop(const struct command_options *options);
int command_reopen(const struct command_options *options);
int command_upgrade(const struct command_options *options);

/* Sends one command line to the running master, and prints what it answers. */
int client_ask(const struct command_options *options, const char *line);

/* Writes all of it to stdout; COMMAND_FAILURE when that is not possible (a full disk). */
int command_print(const char *text, size_t length);

/* "hayate: ..." to stderr; returns the status. */
int command_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
