/*
 * listener: the sockets of an address, and the set of addresses of a generation.
 *
 * A TCP address has one SO_REUSEPORT socket for each worker slot, all opened by the master and
 * never closed while the address is configured, so that neither a crash, a reload nor a change of
 * the worker count loses a queued connection. A unix address has one socket that all share.
 *
 * The life of a set: listener_set_prepare binds what is new (a bound socket takes no connection),
 * listener_set_place and _listen make it public, listener_set_keep commits; listener_set_free drops the set, and an address that no set holds
 * any more is closed. A set that was prepared but not committed leaves no trace.
 */
#ifndef MASTER_LISTENER_H
#define MASTER_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "conf/address.h"

struct conf_listen;

struct listener {
    unsigned references;    /* sets that hold it */
    char *text;             /* the entry of the configuration it comes from */
    unsigned part;          /* of the entry: 0, or 1 for the IPv6 half of "*" */
    struct address address; /* as bound: with the port the kernel chose */
    bool is_shared;         /* one socket for all */
    mode_t mode, new_mode;  /* of a unix socket's file: as committed, and as prepared */
    int *fds;
    unsigned nfds;
    unsigned ncommitted; /* of them, those that listen */
    char *temporary;     /* a unix socket before its commit; NULL after */
    dev_t device;        /* of the unix socket's file, to unlink only our own */
    ino_t inode;
};

struct listener_set {
    struct listener **items;
    size_t count;
    unsigned slots;                    /* sockets wanted for each TCP address */
    uint32_t address_key;              /* not 0: a client's connections all go to the socket of one
                                          slot, the same for all addresses and sets of this key */
    mode_t unix_mode;                  /* of the file of a unix socket */
    const struct listener_set *beside; /* of the same generation: its addresses are not for this */
};

/* Where and why a set could not be made. */
struct listener_error {
    char text[512];
};

/*
 * Makes the set for `entries`; set->slots, unix_mode and beside say how. Addresses that one of the `held` sets has are taken over, the rest
 * is bound. Wildcards fall back to IPv4 where the kernel has no IPv6: *skipped counts these. 0, or
 * -1 with the error and nothing changed.
 */
int listener_set_prepare(struct listener_set *set, const struct conf_listen *entries,
                         size_t nentries, const struct listener_set *const *held, unsigned *skipped,
                         struct listener_error *error);

/*
 * The part of a commit that can fail: puts unix sockets in their places, then listens on all of it
 * with this backlog. -1 with the error: the set must be freed, and is then undone.
 */
int listener_set_place(struct listener_set *set, struct listener_error *error);
int listener_set_listen(struct listener_set *set, int backlog, struct listener_error *error);

/* The part that cannot: what was prepared stays, and new connections are steered to the first
 * `slots` sockets of each address. */
void listener_set_keep(struct listener_set *set);

/* One more socket of an address, which takes it over. -1 with ENOMEM. */
int listener_add_fd(struct listener *listener, int fd);

/* Adds one that is whole; the set holds it from then on. -1: ENOMEM. */
int listener_set_add(struct listener_set *set, struct listener *listener);

/* Drops the set; closes what no other set holds, and undoes what was not committed. */
void listener_set_free(struct listener_set *set);

/* Does `set` hold the same address? */
bool listener_set_has(const struct listener_set *set, const struct listener *listener);

/* Set the error, and return -1 with errno kept: the message, or what failed on an address. For
 * this module and local. */
int listener_fail(struct listener_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int listener_fail_at(struct listener_error *error, const struct address *address, const char *what);
/* The same of an address that this process has; 0: unknown. */
int listener_fail_held(struct listener_error *error, const struct address *address, pid_t pid);

#endif
