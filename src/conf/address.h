/*
 * address: what can be listened on, from text. Numeric hosts only: no resolver is linked.
 */
#ifndef CONF_ADDRESS_H
#define CONF_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

struct address {
    socklen_t length;
    bool is_wildcard; /* made from "*": the IPv6 half may be missing in the kernel */
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    };
};

/*
 * Parses "host:port", "[v6]:port", "*:port" (two addresses, IPv4 first) or "unix:/path". Returns
 * the number of addresses; 0 with *fault saying what is wrong and what would be right (static).
 */
unsigned address_parse(struct address addresses[2], const char *text, const char **fault);

unsigned address_port(const struct address *address); /* 0 for unix */
void address_set_port(struct address *address, unsigned port);
bool address_equal(const struct address *a, const struct address *b);

/* Would both take connections for the same address and port ("0.0.0.0:80", "127.0.0.1:80")? */
bool address_overlaps(const struct address *a, const struct address *b);

/* "0.0.0.0:8080", "[::]:8080", "unix:/path"; always NUL-terminated. ADDRESS_TEXT_SIZE is room. */
#define ADDRESS_TEXT_SIZE 128
void address_text(char *text, size_t size, const struct address *address);

/* As a URL for people: "http://0.0.0.0:8080", "http+unix:/path". */
void address_url(char *text, size_t size, const struct address *address);

#endif
