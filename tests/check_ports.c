/* Listening: addresses, ports, unix sockets, and who may hold them already. */

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

static bool has_ipv6(void)
{
    return *text_read("/proc/net/if_inet6", 0, NULL) != '\0';
}

static const struct {
    const char *listen;
    unsigned nurls;
    const char *urls[3]; /* patterns */
    bool needs_ipv6;
} listen_rows[] = {
    { "[ \"127.0.0.1:0\" ]", 1, { "^http://127\\.0\\.0\\.1:[0-9]+$" }, false },
    { "\"127.0.0.1:0\"", 1, { "^http://127\\.0\\.0\\.1:[0-9]+$" }, false },
    { "[ \"[::1]:0\" ]", 1, { "^http://\\[::1\\]:[0-9]+$" }, true },
    { "[ \"*:0\" ]", 2, { "^http://0\\.0\\.0\\.0:[0-9]+$", "^http://\\[::\\]:[0-9]+$" }, true },
    { "[ \"unix:hayate.socket\" ]", 1, { "^http\\+unix:/.*/hayate\\.socket$" }, false },
    { "[ \"127.0.0.1:0\", \"127.0.0.2:0\", \"unix:hayate.socket\" ]",
      3,
      { "^http://127\\.0\\.0\\.1:[0-9]+$", "^http://127\\.0\\.0\\.2:[0-9]+$",
        "^http\\+unix:/.*/hayate\\.socket$" },
      false },
    { "( \"127.0.0.1:0\", { address = \"unix:hayate.socket\" } )",
      2,
      { "^http://127\\.0\\.0\\.1:[0-9]+$", "^http\\+unix:/.*/hayate\\.socket$" },
      false },
};

START_TEST(every_address_serves)
{
    struct server server;

    if (listen_rows[_i].needs_ipv6 && !has_ipv6() && suite_skip("no IPv6 here"))
        return;
    server_start(&server, &(struct server_options){
                              .config = text_format(
                                  SERVER_CONTROL "listen = %s\nworkers = 3\n",
                                  text_replace(listen_rows[_i].listen, "unix:", "unix:${DIR}/")) });
    ck_assert_uint_eq(server.nurls, listen_rows[_i].nurls);
    for (unsigned i = 0; i < server.nurls; i++) {
        ck_assert_msg(text_matches(server.urls[i], listen_rows[_i].urls[i]), "%s", server.urls[i]);
        const char *body = "", *url = text_replace(server.urls[i], "0.0.0.0", "127.0.0.1");
        ck_assert_uint_eq(client_get(text_replace(url, "[::]", "[::1]"), "/hello", &body), 200);
        ck_assert_str_eq(body, "Hello");
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Lines of /proc/net/tcp or tcp6 that listen on the port: one a socket. */
static unsigned count_listening(const char *table, unsigned port)
{
    return text_count_lines(text_read(text_format("/proc/net/%s", table), 0, NULL),
                            text_format("^ *[0-9]+: [0-9A-F]+:%04X [0-9A-F]+:0000 0A ", port));
}

START_TEST(port_0_is_one_port_for_all_workers)
{
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_CONTROL
                                                    "listen = \"*:0\"\nworkers = 4\n" });
    unsigned port = server.port;
    ck_assert_uint_eq(count_listening("tcp", port), 4);
    if (has_ipv6()) {
        ck_assert_uint_eq(count_listening("tcp6", port), 4);
        ck_assert_str_eq(server.urls[1], text_format("http://[::]:%u", port));
    }
    server_reload(&server);
    const struct json *listening = json_get(server_status(&server), "listening");
    for (unsigned i = 0; i < server.nurls; i++)
        ck_assert_str_eq(json_string(json_at(listening, i)), server.urls[i]);
    ck_assert_uint_eq(count_listening("tcp", port), 4);
    ck_assert_uint_eq(client_get(text_format("http://127.0.0.1:%u", port), "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_uint_eq(count_listening("tcp", port), 0);
}
END_TEST

static const struct {
    const char *port;
    const char *listen; /* in the printed configuration; NULL: refused */
} port_rows[] = {
    { "PORT", "\\*:8080" },        { "PORT=", "\\*:8080" }, { "PORT=0", "\\*:0" },
    { "PORT=81", "\\*:81" },       { "PORT=abc", NULL },    { "PORT=70000", NULL },
    { "PORT=65536", NULL },        { "PORT=-1", NULL },     { "PORT= 80", NULL },
    { "PORT=8080x", NULL },        { "PORT=0x50", NULL },   { "PORT=99999999999999999999", NULL },
    { "PORT=65535", "\\*:65535" },
};

START_TEST(port_from_the_environment)
{
    const char *config = SERVER_CONTROL "listen = [ \"*:${PORT:-8080}\" ]\n";
    struct outcome outcome;

    scratch_write("hayate.conf", config);
    const char *file = scratch_path("hayate.conf");
    struct launch launch = { .arguments = LIST("config", "-c", file),
                             .environment = LIST(port_rows[_i].port) };
    process_run_with(&outcome, &launch);
    if (port_rows[_i].listen != NULL) {
        ck_assert_msg(outcome.status == 0, "%d: %s", outcome.status, outcome.err);
        ck_assert_msg(
            text_matches(outcome.out, text_format("listen = .*\"%s\"", port_rows[_i].listen)), "%s",
            outcome.out);
        return;
    }
    ck_assert_int_eq(outcome.status, 78);
    ck_assert_msg(text_matches(outcome.err, "hayate\\.conf:2: "), "%s", outcome.err);
    /* A start agrees. */
    struct server server;
    const char *log = server_expect_failure(
        &server,
        &(struct server_options){ .config = config, .environment = LIST(port_rows[_i].port) }, 78);
    ck_assert_msg(text_matches(log, "hayate\\.conf:2: "), "%s", log);
}
END_TEST

START_TEST(port_0_from_the_environment_serves)
{
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_CONTROL
                                                    "listen = [ \"127.0.0.1:${PORT:-8080}\" ]\n",
                                                    .environment = LIST("PORT=0") });
    ck_assert_uint_ne(server.port, 0);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* A port that somebody else holds. */

struct holder {
    const char *name;
    bool is_wildcard, has_reuseport;
    int family;
};

static int hold_port(const struct holder *holder, unsigned *port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    bool is_v6 = holder->family == AF_INET6;
    struct sockaddr *address = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t length = is_v6 ? sizeof v6 : sizeof v4;
    int on = 1;

    v4.sin_addr.s_addr = htonl(holder->is_wildcard ? INADDR_ANY : INADDR_LOOPBACK);
    v6.sin6_addr = holder->is_wildcard ? in6addr_any : in6addr_loopback;
    int fd = socket(holder->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (holder->has_reuseport)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    ck_assert_msg(bind(fd, address, length) == 0, "bind: %s", strerror(errno));
    ck_assert(listen(fd, 8) == 0);
    ck_assert(getsockname(fd, address, &length) == 0);
    *port = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
    return fd;
}

static const struct holder holder_rows[] = {
    { "loopback", false, false, AF_INET }, { "loopback with SO_REUSEPORT", false, true, AF_INET },
    { "wildcard", true, false, AF_INET },  { "wildcard with SO_REUSEPORT", true, true, AF_INET },
    { "IPv6", false, false, AF_INET6 },    { "IPv6 with SO_REUSEPORT", false, true, AF_INET6 },
};

static void expect_named(const struct holder *holder)
{
    struct server server;
    unsigned port;

    int fd = hold_port(holder, &port);
    const char *host = holder->family == AF_INET6 ? "[::1]" : "127.0.0.1";
    const char *log = server_expect_failure(
        &server,
        &(struct server_options){ .config = text_format(SERVER_CONTROL
                                                        "workers = 2\n"
                                                        "listen = [ \"127.0.0.1:0\", \"%s:%u\" ]\n",
                                                        host, port) },
        1);
    ck_assert_msg(strstr(log, text_format("%s:%u is already in use by process %d (", host, port,
                                          (int)getpid())) != NULL,
                  "%s", log);
    ck_assert_msg(text_matches(log, "error "), "%s", log);
    ck_assert_msg(!text_matches(log, " started in "), "%s", log);
    close(fd);
}

START_TEST(taken_port)
{
    if (holder_rows[_i].family == AF_INET6 && !has_ipv6() && suite_skip("no IPv6 here"))
        return;
    expect_named(&holder_rows[_i]);
}
END_TEST

/* As with ProcSubset=pid of the unit, where /proc/net is not there. */
START_TEST(taken_port_with_little_of_proc)
{
    if ((unshare(CLONE_NEWNS) == -1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
         mount("proc", "/proc", "proc", 0, "subset=pid") == -1) &&
        suite_skip("no mounts of our own here"))
        return;
    ck_assert_int_eq(access("/proc/net", F_OK), -1);
    expect_named(&holder_rows[0]);
}
END_TEST

START_TEST(port_of_another_hayate)
{
    struct server first, second;

    server_start_plain(&first);
    const char *log = server_expect_failure(
        &second,
        &(struct server_options){
            .name = "second",
            .config = text_format("control = \"second.control\"\nlisten = \"127.0.0.1:%u\"\n",
                                  first.port) },
        1);
    /* The master, not one of the workers, which have the socket too. */
    ck_assert_msg(strstr(log, text_format("127.0.0.1:%u is already in use by process %d (hayate",
                                          first.port, (int)first.pid)) != NULL,
                  "%s", log);
    ck_assert_uint_eq(client_get(first.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&first, SIGTERM), 0);
}
END_TEST

START_TEST(port_of_a_server_that_just_stopped)
{
    struct server server;
    struct client client;
    struct reply reply;

    server_start_plain(&server);
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    /* The server closes first, so the port is left in TIME_WAIT. */
    ck_assert_int_eq(kill(server.pid, SIGTERM), 0);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    ck_assert_int_eq(server_wait(&server), 0);
    unsigned port = server.port;
    server_start(&server,
                 &(struct server_options){
                     .config = text_format(SERVER_CONTROL "listen = \"127.0.0.1:%u\"\n", port) });
    ck_assert_uint_eq(server.port, port);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Unix sockets. */

#define UNIX_CONFIG SERVER_CONTROL "listen = [ \"unix:${DIR}/socket\" ]\nworkers = 2\n"

static int bind_unix(const char *path, bool is_listening)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert(fd >= 0);
    ck_assert_msg(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "%s: %s", path,
                  strerror(errno));
    ck_assert(!is_listening || listen(fd, 8) == 0);
    return fd;
}

START_TEST(live_unix_socket_is_not_taken)
{
    const char *path = scratch_path("socket");
    struct server server;

    int fd = bind_unix(path, true);
    const char *log =
        server_expect_failure(&server, &(struct server_options){ .config = UNIX_CONFIG }, 1);
    ck_assert_msg(strstr(log, text_format("%s is already in use by process %d (", path,
                                          (int)getpid())) != NULL,
                  "%s", log);
    ck_assert_int_eq(access(path, F_OK), 0);
    close(fd);
}
END_TEST

START_TEST(stale_unix_socket_is_replaced)
{
    const char *path = scratch_path("socket");
    struct server server;

    close(bind_unix(path, true));
    server_start(&server, &(struct server_options){ .config = UNIX_CONFIG });
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(file_in_place_of_a_unix_socket_is_kept)
{
    struct server server;

    scratch_write("socket", "precious");
    const char *log =
        server_expect_failure(&server, &(struct server_options){ .config = UNIX_CONFIG }, 1);
    ck_assert_msg(strstr(log, scratch_path("socket")) != NULL, "%s", log);
    ck_assert_str_eq(scratch_read("socket"), "precious");
}
END_TEST

START_TEST(foreign_unix_socket_is_not_unlinked)
{
    const char *path = scratch_path("socket");
    struct server server;

    server_start(&server, &(struct server_options){ .config = UNIX_CONFIG });
    ck_assert_int_eq(unlink(path), 0);
    int fd = bind_unix(path, true);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_int_eq(access(path, F_OK), 0);
    close(fd);
}
END_TEST

START_TEST(unix_socket_over_a_reload)
{
    const char *path = scratch_path("socket");
    struct stat before, after;
    struct server server;

    server_start(&server, &(struct server_options){ .config = UNIX_CONFIG });
    ck_assert_int_eq(stat(path, &before), 0);
    server_reload(&server);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);

    /* Removed from the configuration, it goes, and comes back. */
    server_rewrite(&server, SERVER_BASE);
    server_reload(&server);
    WAIT_FOR(access(path, F_OK) != 0);
    server_rewrite(&server, UNIX_CONFIG);
    server_reload(&server);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* A kernel without IPv6, as far as the server can tell: every other socket is made. */
static void have_no_ipv6(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(124);
}

START_TEST(without_ipv6)
{
    struct server server;

    if (BYTE_ORDER != LITTLE_ENDIAN && suite_skip("the filter is for little-endian machines"))
        return;
    server_start(&server, &(struct server_options){ .config = SERVER_CONTROL
                                                    "listen = \"*:0\"\nworkers = 2\n",
                                                    .prepare = have_no_ipv6 });
    ck_assert_uint_eq(server.nurls, 1);
    server_await(&server, 0, "no IPv6: \"\\*\" listens on IPv4 only");
    ck_assert_uint_eq(client_get(text_replace(server.url, "0.0.0.0", "127.0.0.1"), "/hello", NULL),
                      200);
    server_reload(&server);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    /* Asked for by name, it is an error. */
    server_spawn(&server,
                 &(struct server_options){ .config = SERVER_CONTROL "listen = \"[::1]:0\"\n",
                                           .prepare = have_no_ipv6 });
    ck_assert_int_eq(server_wait(&server), 1);
    server_await(&server, 0, "cannot bind \\[::1\\]:0: Address family not supported");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ports");
    TCase *tests = suite_case(suite, "ports");

    tcase_add_loop_test(tests, every_address_serves, 0, SUITE_ROWS(listen_rows));
    tcase_add_test(tests, without_ipv6);
    tcase_add_test(tests, port_0_is_one_port_for_all_workers);
    tcase_add_loop_test(tests, port_from_the_environment, 0, SUITE_ROWS(port_rows));
    tcase_add_test(tests, port_0_from_the_environment_serves);
    tcase_add_loop_test(tests, taken_port, 0, SUITE_ROWS(holder_rows));
    tcase_add_test(tests, taken_port_with_little_of_proc);
    tcase_add_test(tests, port_of_another_hayate);
    tcase_add_test(tests, port_of_a_server_that_just_stopped);
    tcase_add_test(tests, live_unix_socket_is_not_taken);
    tcase_add_test(tests, stale_unix_socket_is_replaced);
    tcase_add_test(tests, file_in_place_of_a_unix_socket_is_kept);
    tcase_add_test(tests, foreign_unix_socket_is_not_unlinked);
    tcase_add_test(tests, unix_socket_over_a_reload);
    return suite_run(suite);
}
