/*
 * process: starts the program that is tested, and waits for it.
 *
 * The program is $HAYATE. Every process gets the same environment (nothing of the caller's that
 * hayate looks at; DIR is the scratch directory), dies with the test, and begins with descriptors
 * 0 to 2 alone, unless `prepare` changes that.
 */
#ifndef SUPPORT_PROCESS_H
#define SUPPORT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Ends with NULL: the compound literal of a list of strings. */
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

struct launch {
    const char *const *arguments;   /* after the name of the program */
    const char *const *environment; /* "NAME=VALUE", or "NAME" to have it unset; may be NULL */
    void (*prepare)(void);          /* called in the new process, just before exec; may be NULL */
    int out, err;                   /* become 1 and 2; 0 stands for /dev/null */
    bool is_group;                  /* it leads a process group of its own, which is guarded */
};

struct process {
    pid_t pid;
    int handle; /* a pidfd */
};

void process_start(struct process *process, const struct launch *launch);

/* The exit status, or -N when signal N killed it. Fails the test when it does not end. */
int process_wait(struct process *process);

/* Has it ended? It is not waited for. */
bool process_has_ended(const struct process *process);

/* Is there such a process, zombies not counted? */
bool process_is_alive(pid_t pid);

/* The members of a process group, zombies not counted. Returns how many, also above `size`. */
unsigned process_group(pid_t group, pid_t *members, unsigned size);

/* The value of a line "NAME:<blanks>VALUE" of /proc/PID/status; "" when it has gone. */
const char *process_status(pid_t pid, const char *name);

/* Open descriptors of a process. */
unsigned process_count_files(pid_t pid);

/* What a command did. */
struct outcome {
    int status; /* as of process_wait */
    const char *out, *err;
};

/* Runs `hayate ARGUMENTS...` to its end. */
void process_run(struct outcome *outcome, const char *const *arguments);
void process_run_with(struct outcome *outcome, const struct launch *launch);

/* Runs it and fails the test unless it exits with this status. Returns its standard output. */
const char *process_expect(int status, const char *const *arguments);

#endif
