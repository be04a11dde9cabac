/*
 * bequeath: writes down all that the master holds, for the program that is to go on in its place.
 */
#ifndef MASTER_BEQUEATH_H
#define MASTER_BEQUEATH_H

struct legacy;
struct master;

/* A failed upgrade that goes back. */
struct bequest_failure {
    int status; /* for who asked for it to exit with */
    const char *reason;
};

/*
 * A memfd with the legacy (close-on-exec, as all that it names still is), and in *copy the same,
 * malloced. No reload and no reopen may be under way. `failure` is NULL on the way forth. -1 with
 * errno.
 */
int bequeath(const struct master *master, const struct bequest_failure *failure,
             struct legacy **copy);

/* The same of a legacy that could not be taken over: it goes back as it came. */
int bequeath_again(const struct legacy *legacy, const struct bequest_failure *failure);

#endif
