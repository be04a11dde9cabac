#include "conf/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"

static const char shape_fault[] = "wants HOST:PORT, [IPV6]:PORT, *:PORT or unix:/PATH";

/* -1 unless all of it is a port in digits. */
static int port_of(struct slice text)
{
    int port = 0;
    if (text.length == 0 || text.length > 5)
        return -1;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -1;
        port = port * 10 + (text.data[i] - '0');
    }
    return port <= 65535 ? port : -1;
}

static void set_v4(struct address *address, struct in_addr host, unsigned port)
{
    *address = (struct address){ .length = sizeof(address->v4) };
    address->v4.sin_family = AF_INET;
    address->v4.sin_addr = host;
    address->v4.sin_port = htons((uint16_t)port);
}

static void set_v6(struct address *address, struct in6_addr host, unsigned scope, unsigned port)
{
    *address = (struct address){ .length = sizeof(address->v6) };
    address->v6.sin6_family = AF_INET6;
    address->v6.sin6_addr = host;
    address->v6.sin6_scope_id = scope;
    address->v6.sin6_port = htons((uint16_t)port);
}

static const char *parse_unix(struct address *address, struct slice path)
{
    if (path.length == 0 || path.data[0] != '/')
        return "wants an absolute path after unix:, such as unix:/run/hayate/http";
    if (path.length >= sizeof(address->local.sun_path))
        return "the path of a unix socket has at most 107 bytes: choose a shorter one";
    *address = (struct address){ 0 };
    address->local.sun_family = AF_UNIX;
    memcpy(address->local.sun_path, path.data, path.length);
    address->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.length + 1);
    return NULL;
}

/* `host` is what stands between the brackets, perhaps with "%interface". */
static const char *parse_v6(struct address *address, struct slice host, unsigned port)
{
    char text[INET6_ADDRSTRLEN];
    char interface[IF_NAMESIZE] = "";
    struct in6_addr parsed;

    const char *percent = host.length > 0 ? memchr(host.data, '%', host.length) : NULL;
    size_t length = percent ? (size_t)(percent - host.data) : host.length;
    if (length >= sizeof(text))
        return "what stands in [ ] is not an IPv6 address";
    memcpy(text, host.data, length);
    text[length] = '\0';
    if (inet_pton(AF_INET6, text, &parsed) != 1)
        return "what stands in [ ] is not an IPv6 address";
    if (IN6_IS_ADDR_V4MAPPED(&parsed))
        return "an IPv4 address stands without brackets and ::ffff:, such as 127.0.0.1:8080";

    unsigned scope = 0;
    if (percent) {
        size_t rest = host.length - length - 1;
        if (rest == 0 || rest >= sizeof(interface))
            return "wants the name of a network interface after %, such as [fe80::1%eth0]:8080";
        memcpy(interface, percent + 1, rest);
        scope = if_nametoindex(interface);
        if (scope == 0)
            return "there is no network interface of the name after %";
        if (!IN6_IS_ADDR_LINKLOCAL(&parsed))
            return "only a link-local address (fe80::) takes an interface: leave out % and its "
                   "name";
    } else if (IN6_IS_ADDR_LINKLOCAL(&parsed)) {
        return "a link-local address needs its interface, such as [fe80::1%eth0]:8080";
    }
    set_v6(address, parsed, scope, port);
    return NULL;
}

/* Why `host` is not a numeric IPv4 address. */
static const char *host_fault(struct slice host)
{
    if (host.length == 0)
        return "the host is missing: *:PORT is every address, 127.0.0.1:PORT this machine only";
    if (memchr(host.data, '/', host.length))
        return "wants HOST:PORT alone, without http:// or a path";
    if (memchr(host.data, ':', host.length))
        return "an IPv6 address stands in brackets, such as [::1]:8080";
    if (slice_equal_nocase(host, SLICE("localhost")))
        return "names are not looked up: write 127.0.0.1:PORT or [::1]:PORT";
    for (size_t i = 0; i < host.length; i++)
        if ((host.data[i] < '0' || host.data[i] > '9') && host.data[i] != '.')
            return "names are not looked up: wants a numeric address, or * for every one";
    return "the host is not an IPv4 address: wants four numbers from 0 to 255";
}

static const char *parse_v4(struct address *address, struct slice host, unsigned port)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr parsed;

    if (host.length >= sizeof(text))
        return host_fault(host);
    if (host.length > 0)
        memcpy(text, host.data, host.length);
    text[host.length] = '\0';
    if (inet_pton(AF_INET, text, &parsed) != 1)
        return host_fault(host);
    set_v4(address, parsed, port);
    return NULL;
}

static unsigned parse_wildcard(struct address addresses[2], unsigned port)
{
    set_v4(&addresses[0], (struct in_addr){ INADDR_ANY }, port);
    set_v6(&addresses[1], in6addr_any, 0, port);
    addresses[0].is_wildcard = addresses[1].is_wildcard = true;
    return 2;
}

unsigned address_parse(struct address addresses[2], const char *text, const char **fault)
{
    struct slice all = slice_of(text);
    *fault = NULL;

    if (all.length >= 5 && memcmp(text, "unix:", 5) == 0) {
        *fault = parse_unix(&addresses[0], (struct slice){ text + 5, all.length - 5 });
        return *fault ? 0 : 1;
    }
    const char *colon = strrchr(text, ':');
    const char *bracket = strrchr(text, ']');
    if (!colon || (bracket && colon < bracket)) {
        *fault = shape_fault;
        return 0;
    }
    int port = port_of((struct slice){ colon + 1, all.length - (size_t)(colon + 1 - text) });
    struct slice host = { text, (size_t)(colon - text) };
    if (port == -1) {
        *fault = strstr(text, "://") ? "wants HOST:PORT alone, without http:// or a path"
                                     : "the port is wrong: wants a number from 0 to 65535";
        return 0;
    }
    if (host.length == 1 && host.data[0] == '*')
        return parse_wildcard(addresses, (unsigned)port);
    if (bracket && (text[0] != '[' || bracket + 1 != colon))
        *fault = shape_fault;
    else if (bracket)
        *fault =
            parse_v6(&addresses[0], (struct slice){ text + 1, host.length - 2 }, (unsigned)port);
    else
        *fault = parse_v4(&addresses[0], host, (unsigned)port);
    return *fault ? 0 : 1;
}

unsigned address_port(const struct address *address)
{
    switch (address->any.sa_family) {
    case AF_INET:
        return ntohs(address->v4.sin_port);
    case AF_INET6:
        return ntohs(address->v6.sin6_port);
    default:
        return 0;
    }
}

void address_set_port(struct address *address, unsigned port)
{
    if (address->any.sa_family == AF_INET)
        address->v4.sin_port = htons((uint16_t)port);
    else if (address->any.sa_family == AF_INET6)
        address->v6.sin6_port = htons((uint16_t)port);
}

bool address_equal(const struct address *a, const struct address *b)
{
    if (a->any.sa_family != b->any.sa_family || address_port(a) != address_port(b))
        return false;
    switch (a->any.sa_family) {
    case AF_INET:
        return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    case AF_INET6:
        return IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr) &&
               a->v6.sin6_scope_id == b->v6.sin6_scope_id;
    case AF_UNIX:
        return strcmp(a->local.sun_path, b->local.sun_path) == 0;
    default:
        return false;
    }
}

static bool is_any(const struct address *address)
{
    return address->any.sa_family == AF_INET    ? address->v4.sin_addr.s_addr == INADDR_ANY
           : address->any.sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr)
                                                : false;
}

bool address_overlaps(const struct address *a, const struct address *b)
{
    /* IPv6 sockets are IPV6_V6ONLY: the families never meet. */
    if (a->any.sa_family != b->any.sa_family || address_port(a) != address_port(b))
        return false;
    return is_any(a) || is_any(b) || address_equal(a, b);
}

void address_text(char *text, size_t size, const struct address *address)
{
    char host[INET6_ADDRSTRLEN] = "";
    char interface[IF_NAMESIZE + 1] = "";

    switch (address->any.sa_family) {
    case AF_INET:
        inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host));
        snprintf(text, size, "%s:%u", host, address_port(address));
        break;
    case AF_INET6:
        inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof(host));
        if (address->v6.sin6_scope_id != 0) {
            interface[0] = '%';
            if (!if_indextoname(address->v6.sin6_scope_id, interface + 1))
                snprintf(interface + 1, sizeof(interface) - 1, "%u", address->v6.sin6_scope_id);
        }
        snprintf(text, size, "[%s%s]:%u", host, interface, address_port(address));
        break;
    case AF_UNIX:
        snprintf(text, size, "unix:%s", address->local.sun_path);
        break;
    default:
        snprintf(text, size, "?");
    }
}

void address_url(char *text, size_t size, const struct address *address)
{
    char plain[ADDRESS_TEXT_SIZE];
    address_text(plain, sizeof(plain), address);
    if (address->any.sa_family == AF_UNIX)
        snprintf(text, size, "http+%s", plain);
    else
        snprintf(text, size, "http://%s", plain);
}
