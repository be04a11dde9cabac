/*
 * identity: what a child takes on before it does anything: its user, its signals, and the guard
 * against a dead master.
 */
#ifndef WORKER_IDENTITY_H
#define WORKER_IDENTITY_H

struct heritage;

/*
 * Becomes the user of the heritage if it is root, and asks for what a change of user would undo.
 * -1 with errno and *what saying what could not be done (static text); ESRCH: the master is dead.
 */
int identity_take(const struct heritage *heritage, const char **what);

/*
 * Signals that end a worker (TERM, INT, QUIT) are read from the descriptor that is returned, so
 * that none is lost from birth on; what means something to a master is ignored; nothing else is
 * blocked any more. -1 with errno.
 */
int identity_signals(void);

#endif
