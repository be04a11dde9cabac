/*
 * control: the socket of reload, status, stop and the like.
 *
 * A stream socket of mode 0600. A client sends one line, a command; it gets a line with an exit
 * status, then text to the end of the stream. One that says nothing costs a descriptor for some
 * seconds and blocks nobody.
 */
#ifndef MASTER_CONTROL_H
#define MASTER_CONTROL_H

#include <stdint.h>

struct control;
struct listener_set;
struct master;

/* What a client may have to wait for. */
enum control_wait {
    CONTROL_NOTHING,
    CONTROL_RELOAD,
    CONTROL_REOPEN,
    CONTROL_STOP,
};

struct control *control_new(struct master *master);
void control_free(struct control *control);

/* Accepts on the socket of this set from now on (a generation's; none: on nothing). */
void control_listen(struct control *control, const struct listener_set *set);

/*
 * Answers all clients that wait for the end of this round or an earlier one; `status` is the exit
 * status they shall leave with.
 */
void control_answer(struct control *control, enum control_wait wait, uint64_t round, int status,
                    const char *text);

#endif
