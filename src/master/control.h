/*
 * control: the socket of reload, status, stop and the like.
 *
 * A stream socket of mode 0600. A client sends one line, a command; it gets a line with an exit
 * status, then text to the end of the stream. One that says nothing costs a descriptor for some
 * seconds and blocks nobody.
 */
#ifndef MASTER_CONTROL_H
#define MASTER_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct control;
struct listener_set;
struct master;

/* What a client may have to wait for. */
enum control_wait {
    CONTROL_NOTHING,
    CONTROL_RELOAD,
    CONTROL_REOPEN,
    CONTROL_STOP,
    CONTROL_UPGRADE,
    CONTROL_WAITS,
};

/* A client as it crosses exec in an upgrade, which fixes the numbers above. */
struct control_client {
    int fd;
    enum control_wait wait;
    bool is_answered;
    struct slice text; /* the rest of its answer, or what it has said; borrowed */
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

/* Every client, for who writes them down; and one that was. Who waits for a reload waits for the
 * next one that begins. The descriptor is taken over, also on failure (-1: ENOMEM). */
void control_each(const struct control *control,
                  void (*visit)(const struct control_client *client, void *context), void *context);
int control_adopt(struct control *control, const struct control_client *from);

#endif
