/* Longer than most: one life of a socket, from bound to steered to. */

#include "master/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "conf/conf.h"
#include "master/holder.h"
#include "master/local.h"

/* How often a port of the kernel's choice is tried for both halves of "*:0". */
#define PORT_ATTEMPTS 16

#ifndef SO_DETACH_REUSEPORT_BPF
#define SO_DETACH_REUSEPORT_BPF 68
#endif

int listener_fail(struct listener_error *error, const char *format, ...)
{
    int saved = errno;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    errno = saved;
    return -1;
}

int listener_fail_held(struct listener_error *error, const struct address *address, pid_t pid)
{
    char text[ADDRESS_TEXT_SIZE], who[HOLDER_TEXT_SIZE];
    address_text(text, sizeof(text), address);
    return listener_fail(error, "%s is already in use by %s", text, holder_text(who, pid));
}

int listener_fail_at(struct listener_error *error, const struct address *address, const char *what)
{
    char text[ADDRESS_TEXT_SIZE];
    int reason = errno;
    address_text(text, sizeof(text), address);
    if (reason == EADDRINUSE)
        return listener_fail_held(error, address, holder_find(address));
    if (reason == EACCES && address_port(address) > 0 && address_port(address) < 1024)
        return listener_fail(
            error, "cannot %s %s: %s (ports below 1024 need root or CAP_NET_BIND_SERVICE)", what,
            text, strerror(reason));
    return listener_fail(error, "cannot %s %s: %s", what, text, strerror(reason));
}

static int set_flag(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value));
}

/*
 * One socket of a TCP address. The first is bound exclusively: without SO_REUSEPORT the bind fails
 * when anybody listens there, whatever flags they use; after that the flag is set, so that our
 * siblings may join. SO_REUSEADDR lets a bind pass over connections that are left of an earlier
 * server, or belong to our workers, which have another uid than their listening sockets. It is
 * cleared until we listen, so that a later exclusive bind of somebody else fails meanwhile. For
 * port 0 it is never set: the kernel would choose a port that another process has bound with it
 * and does not listen on yet.
 */
static int bind_tcp(const struct address *address, bool is_exclusive)
{
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1)
        return -1;
    if (address->any.sa_family == AF_INET6 && set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) == -1)
        goto failed;
    if (set_flag(fd, SOL_SOCKET, SO_REUSEADDR, address_port(address) != 0) == -1)
        goto failed;
    if (!is_exclusive && set_flag(fd, SOL_SOCKET, SO_REUSEPORT, 1) == -1)
        goto failed;
    if (bind(fd, &address->any, address->length) == -1)
        goto failed;
    if (set_flag(fd, SOL_SOCKET, SO_REUSEADDR, 0) == -1 ||
        set_flag(fd, SOL_SOCKET, SO_REUSEPORT, 1) == -1)
        goto failed;
    /* Accepted sockets inherit it, and an answer is one write anyway. */
    set_flag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    return fd;
failed:
    fd_close(&fd);
    return -1;
}

int listener_add_fd(struct listener *listener, int fd)
{
    int *fds = realloc(listener->fds, (listener->nfds + 1) * sizeof(*fds));
    if (!fds)
        return -1;
    listener->fds = fds;
    fds[listener->nfds++] = fd;
    return 0;
}

static bool overlaps_any(const struct listener_set *set, const struct listener *listener)
{
    for (size_t i = 0; set && i < set->count; i++)
        if (set->items[i] != listener &&
            address_overlaps(&set->items[i]->address, &listener->address))
            return true;
    return false;
}

/* Do we hold that port already, in this set or another? An exclusive bind would fail against us. */
static bool is_ours(const struct listener *listener, const struct listener_set *set,
                    const struct listener_set *const *held)
{
    if (address_port(&listener->address) == 0)
        return false;
    bool is_found = overlaps_any(set, listener) || overlaps_any(set->beside, listener);
    for (size_t i = 0; !is_found && held && held[i]; i++)
        is_found = overlaps_any(held[i], listener);
    return is_found;
}

/* Brings a listener to `slots` sockets. The first bind fixes a port that was 0. -1 with errno. */
static int grow_tcp(struct listener *listener, unsigned slots, bool is_exclusive)
{
    while (listener->nfds < slots) {
        int fd = bind_tcp(&listener->address, is_exclusive && listener->nfds == 0);
        if (fd == -1)
            return -1;
        if (listener_add_fd(listener, fd) == -1) {
            fd_close(&fd);
            return -1;
        }
        socklen_t length = sizeof(struct sockaddr_in6);
        if (getsockname(fd, &listener->address.any, &length) == -1)
            return -1;
    }
    return 0;
}

static void close_from(struct listener *listener, unsigned first)
{
    while (listener->nfds > first)
        fd_close(&listener->fds[--listener->nfds]);
}

static void listener_release(struct listener *listener)
{
    if (--listener->references > 0) {
        close_from(listener, listener->ncommitted);
        if (listener->new_mode != listener->mode)
            chmod(listener->address.local.sun_path, listener->mode);
        listener->new_mode = listener->mode;
        return;
    }
    if (listener->is_shared)
        local_unlink(listener);
    close_from(listener, 0);
    free(listener->fds);
    free(listener->temporary);
    free(listener->text);
    free(listener);
}

bool listener_set_has(const struct listener_set *set, const struct listener *listener)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i] == listener)
            return true;
    return false;
}

/* Is it what this part of the entry asks for? With port 0 only the text can tell. */
static bool is_wanted(const struct listener *listener, const struct conf_listen *entry,
                      unsigned part)
{
    const struct address *address = &entry->addresses[part];
    if (address->any.sa_family != AF_UNIX && address_port(address) == 0)
        return listener->part == part && strcmp(listener->text, entry->text) == 0;
    return address_equal(&listener->address, address);
}

/* Not one that the new generation has already: "127.0.0.1:0" may stand there twice. */
static struct listener *find(const struct listener_set *const *held,
                             const struct conf_listen *entry, unsigned part,
                             const struct listener_set *taken)
{
    for (size_t i = 0; held && held[i]; i++)
        for (size_t k = 0; k < held[i]->count; k++) {
            struct listener *listener = held[i]->items[k];
            if (is_wanted(listener, entry, part) &&
                (!listener->is_shared || local_is_reachable(listener)) &&
                !listener_set_has(taken, listener) &&
                !(taken->beside && listener_set_has(taken->beside, listener)))
                return listener;
        }
    return NULL;
}

int listener_set_add(struct listener_set *set, struct listener *listener)
{
    struct listener **items = realloc(set->items, (set->count + 1) * sizeof(*items));
    if (!items)
        return -1;
    set->items = items;
    items[set->count++] = listener;
    listener->references++;
    return 0;
}

/* What the preparing functions hand on to each other. */
struct plan {
    struct listener_set *set;
    const struct listener_set *const *held;
    const struct conf_listen *entry;
    unsigned *skipped;
    struct listener_error *error;
};

static bool is_missing_v6(const struct address *address)
{
    return address->is_wildcard && address->any.sa_family == AF_INET6 &&
           (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL || errno == EPROTONOSUPPORT);
}

/* One part of an entry, with this address (port fixed by an earlier part, perhaps). 1: made,
 * 0: skipped, -1: error. */
static int prepare_part(const struct plan *plan, unsigned part, const struct address *address)
{
    struct listener *listener = find(plan->held, plan->entry, part, plan->set);
    bool is_new = !listener;
    if (is_new) {
        listener = calloc(1, sizeof(*listener));
        if (!listener || !(listener->text = strdup(plan->entry->text))) {
            free(listener);
            return listener_fail(plan->error, "out of memory");
        }
        listener->part = part;
        listener->address = *address;
        listener->is_shared = address->any.sa_family == AF_UNIX;
    }
    if (listener_set_add(plan->set, listener) == -1) {
        if (is_new)
            listener->references = 1, listener_release(listener);
        return listener_fail(plan->error, "out of memory");
    }
    if (listener->is_shared) {
        listener->new_mode = plan->set->unix_mode;
        if (!is_new)
            return 1;
        int fd = local_bind(listener, plan->error);
        if (fd != -1 && listener_add_fd(listener, fd) == -1)
            fd_close(&fd);
        return fd == -1 ? -1 : 1;
    }
    if (grow_tcp(listener, plan->set->slots, !is_ours(listener, plan->set, plan->held)) == 0)
        return 1;
    if (is_missing_v6(&listener->address)) {
        plan->set->count--;
        listener_release(listener);
        (*plan->skipped)++;
        return 0;
    }
    listener_fail_at(plan->error, &listener->address, "bind");
    return -1;
}

static int prepare_entry(const struct plan *plan)
{
    size_t before = plan->set->count;
    bool is_free_port = address_port(&plan->entry->addresses[0]) == 0 &&
                        plan->entry->addresses[0].any.sa_family != AF_UNIX;
    for (int attempt = 1;; attempt++) {
        int result = prepare_part(plan, 0, &plan->entry->addresses[0]);
        if (result == 1 && plan->entry->naddresses == 2) {
            struct address second = plan->entry->addresses[1];
            const struct listener *first = plan->set->items[plan->set->count - 1];
            address_set_port(&second, address_port(&first->address));
            result = prepare_part(plan, 1, &second);
        }
        if (result != -1)
            return 0;
        /* The kernel chose a port that is free in one family only. */
        if (!is_free_port || errno != EADDRINUSE || attempt == PORT_ATTEMPTS)
            return -1;
        while (plan->set->count > before)
            listener_release(plan->set->items[--plan->set->count]);
    }
}

int listener_set_prepare(struct listener_set *set, const struct conf_listen *entries,
                         size_t nentries, const struct listener_set *const *held, unsigned *skipped,
                         struct listener_error *error)
{
    for (size_t i = 0; i < nentries; i++) {
        struct plan plan = { set, held, &entries[i], skipped, error };
        if (prepare_entry(&plan) == -1) {
            listener_set_free(set);
            return -1;
        }
    }
    return 0;
}

static void attach(const struct listener *listener, struct sock_filter *code, size_t length)
{
    struct sock_fprog program;
    memset(&program, 0, sizeof(program)); /* its padding goes to the kernel too */
    program.len = (unsigned short)length;
    program.filter = code;
    setsockopt(listener->fds[0], SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
}

/* By a random number. */
static void steer_evenly(const struct listener *listener, unsigned slots)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (__u32)(SKF_AD_OFF + SKF_AD_RANDOM)),
        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, slots),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    attach(listener, code, sizeof(code) / sizeof(*code));
}

/* By the client's address, of IPv6 its /64 (peers.h): what it has can be counted where it goes. */
static void steer_by_address(const struct listener *listener, unsigned slots, __u32 key)
{
    bool is_v6 = listener->address.any.sa_family == AF_INET6;
    __u32 first = (__u32)SKF_NET_OFF + (is_v6 ? 8 : 12), second = is_v6 ? first + 4 : first;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, first),
        BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 0x9e3779b1), /* the golden ratio spreads them */
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, second),
        BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
        BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, key), /* nobody can choose those that go to one */
        BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 0x85ebca6b),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, slots),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    attach(listener, code, sizeof(code) / sizeof(*code));
}

/*
 * New connections go to the first `slots` sockets of the group. Without surplus the kernel's own
 * hash does that, unless a client is to be counted, and the program is taken off (it belongs to the
 * kernel's group, so an earlier listener may have left it there). The order of a group is that of
 * listen(2), which is ours. Where the kernel refuses, the surplus sockets get their share, and
 * whoever drains them serves it: nothing is lost.
 */
static void steer(const struct listener *listener, unsigned slots, __u32 address_key)
{
    unsigned sockets = slots < listener->nfds ? slots : listener->nfds;
    if (address_key && sockets > 1)
        steer_by_address(listener, sockets, address_key);
    else if (slots < listener->nfds)
        steer_evenly(listener, slots);
    else
        set_flag(listener->fds[0], SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, 0);
}

int listener_set_place(struct listener_set *set, struct listener_error *error)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i]->is_shared && local_place(set->items[i], error) == -1)
            return -1;
    return 0;
}

int listener_set_listen(struct listener_set *set, int backlog, struct listener_error *error)
{
    for (size_t i = 0; i < set->count; i++) {
        struct listener *listener = set->items[i];
        /* Connections inherit the flag, and it must be set before the kernel compares us with
         * those that are left of an earlier server. Who listens is safe with it. */
        for (unsigned k = 0; !listener->is_shared && k < listener->nfds; k++)
            set_flag(listener->fds[k], SOL_SOCKET, SO_REUSEADDR, 1);
        /* Also those that listen already: the backlog may have changed. */
        for (unsigned k = 0; k < listener->nfds; k++)
            if (listen(listener->fds[k], backlog) == -1)
                return listener_fail_at(error, &listener->address, "listen on");
    }
    return 0;
}

void listener_set_keep(struct listener_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        set->items[i]->ncommitted = set->items[i]->nfds;
        set->items[i]->mode = set->items[i]->new_mode;
        if (!set->items[i]->is_shared)
            steer(set->items[i], set->slots, set->address_key);
    }
}

void listener_set_free(struct listener_set *set)
{
    while (set->count > 0)
        listener_release(set->items[--set->count]);
    free(set->items);
    *set = (struct listener_set){ 0 };
}
