/* The notify protocol of systemd (sd_notify(3)), seen from a socket of our own. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "support/client.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

/* The service manager: every message must come from the master. */
struct manager {
    int fd;
    const char *variable; /* NOTIFY_SOCKET=... */
    pid_t sender;         /* of the first message */
};

static void manager_open(struct manager *manager, bool is_abstract)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *name =
        is_abstract ? text_format("@hayate-test-%d", (int)getpid()) : scratch_path("notify");
    size_t length = strlen(name);
    int on = 1;

    ck_assert_uint_lt(length, sizeof address.sun_path);
    memcpy(address.sun_path, name, length);
    if (is_abstract)
        address.sun_path[0] = '\0';
    manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(manager->fd, 0);
    ck_assert_int_eq(setsockopt(manager->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    ck_assert_msg(bind(manager->fd, (struct sockaddr *)&address,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0,
                  "%s", strerror(errno));
    manager->variable = text_format("NOTIFY_SOCKET=%s", name);
    manager->sender = 0;
}

/* The next message, or NULL when there is none now; its sender is checked. */
static const char *manager_take(struct manager *manager)
{
    char text[4096];
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec bytes = { text, sizeof text - 1 };
    struct msghdr message = { .msg_iov = &bytes,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    struct ucred credentials;

    ssize_t length = recvmsg(manager->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0)
        return NULL;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    ck_assert(header != NULL && header->cmsg_type == SCM_CREDENTIALS);
    memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
    if (manager->sender == 0)
        manager->sender = credentials.pid;
    ck_assert_int_eq(credentials.pid, manager->sender);
    return text_copy(text, (size_t)length);
}

/* Waits for a message with this line; those before it are dropped, unless they have `never`. */
static const char *manager_await(struct manager *manager, const char *line, const char *never)
{
    struct deadline deadline = deadline_start();
    struct pollfd waited = { .fd = manager->fd, .events = POLLIN };

    while (poll(&waited, 1, deadline_left(&deadline)) == 1) {
        const char *message = manager_take(manager);
        const char *lines = text_format("%s\n", message != NULL ? message : "");
        if (text_find_line(lines, text_format("^%s$", line)) != NULL)
            return lines;
        ck_assert_msg(never == NULL || text_find_line(lines, never) == NULL, "%s", lines);
    }
    ck_abort_msg("no message with %s", line);
    return NULL;
}

/* As above, of what has arrived already. */
static const char *manager_find(struct manager *manager, const char *line)
{
    for (const char *message; (message = manager_take(manager)) != NULL;) {
        const char *lines = text_format("%s\n", message);
        if (text_find_line(lines, text_format("^%s$", line)) != NULL)
            return lines;
    }
    ck_abort_msg("no message with %s has come", line);
    return NULL;
}

#define CONFIG SERVER_CONTROL "listen = [ \"unix:${DIR}/socket\" ]\nworkers = 2\n"

static void spawn(struct server *server, const struct manager *manager)
{
    server_spawn(server, &(struct server_options){ .config = CONFIG,
                                                   .environment = LIST(manager->variable) });
}

static unsigned long long now_usec(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long long)time.tv_sec * 1000000 + (unsigned long long)time.tv_nsec / 1000;
}

START_TEST(start_reload_and_stop)
{
    struct manager manager;
    struct server server;

    manager_open(&manager, _i == 1);
    spawn(&server, &manager);
    const char *message = manager_await(&manager, "READY=1", "STOPPING|RELOADING");
    const char *url = text_format("http+unix:%s", scratch_path("socket"));
    ck_assert_uint_eq(client_get(url, "/hello", NULL), 200);
    ck_assert_int_eq(manager.sender, server.pid);
    ck_assert_msg(text_find_line(message, "^STATUS=.") != NULL, "%s", message);

    static const char *const commands[] = { "reload", NULL, "upgrade", "reload" };
    for (int i = 0; i < SUITE_ROWS(commands); i++) {
        unsigned long long before = now_usec();
        if (suite_has_valgrind() && commands[i] != NULL && strcmp(commands[i], "upgrade") == 0)
            continue;
        if (commands[i] != NULL)
            server_expect(&server, 0, LIST(commands[i]));
        else
            server_signal(&server, SIGHUP);
        message = manager_await(&manager, "RELOADING=1", "READY");
        const char *stamp = text_extract(message, "(^|\n)MONOTONIC_USEC=");
        ck_assert_msg(stamp != NULL, "%s", message);
        unsigned long long time =
            strtoull(text_extract(message, "MONOTONIC_USEC=([0-9]+)\n"), NULL, 10);
        ck_assert(time >= before && time <= now_usec());
        /* When the command has ended, the message is there. */
        if (commands[i] != NULL)
            manager_find(&manager, "READY=1");
        else
            manager_await(&manager, "READY=1", "STOPPING");
    }

    server_signal(&server, SIGTERM);
    message = manager_await(&manager, "STOPPING=1", "READY");
    /* timeouts.drain and 5 s. */
    ck_assert_msg(text_find_line(message, "^EXTEND_TIMEOUT_USEC=35000000$") != NULL, "%s", message);
    ck_assert_int_eq(server_wait(&server), 0);
    close(manager.fd);
}
END_TEST

/* Both parts say how long the rest may take. */
START_TEST(stop_with_a_delay)
{
    struct manager manager;
    struct server server;

    manager_open(&manager, false);
    server_spawn(&server,
                 &(struct server_options){
                     .config = CONFIG "drain_delay = \"300ms\"\ntimeouts = { drain = \"1m\" }\n",
                     .environment = LIST(manager.variable) });
    manager_await(&manager, "READY=1", NULL);
    server_signal(&server, SIGTERM);
    const char *message = manager_await(&manager, "STOPPING=1", "READY");
    ck_assert_msg(text_find_line(message, "^EXTEND_TIMEOUT_USEC=65300000$") != NULL &&
                      text_find_line(message, "^STATUS=stopping, still serving$") != NULL,
                  "%s", message);
    message = manager_await(&manager, "STOPPING=1", "READY");
    ck_assert_msg(text_find_line(message, "^EXTEND_TIMEOUT_USEC=65000000$") != NULL &&
                      text_find_line(message, "^STATUS=stopping$") != NULL,
                  "%s", message);
    ck_assert_int_eq(server_wait(&server), 0);
    close(manager.fd);
}
END_TEST

START_TEST(failed_reload_is_ready_again)
{
    struct manager manager;
    struct server server;

    manager_open(&manager, false);
    spawn(&server, &manager);
    manager_await(&manager, "READY=1", NULL);
    server_rewrite(&server, SERVER_BASE "wrokers = 2\n");
    server_expect(&server, 78, LIST("reload"));
    manager_find(&manager, "RELOADING=1");
    const char *message = manager_find(&manager, "READY=1");
    ck_assert_msg(text_find_line(message, "^STATUS=.*wrokers") != NULL, "%s", message);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    close(manager.fd);
}
END_TEST

/* Also when it went as far as to the new binary. */
START_TEST(failed_upgrade_is_ready_again)
{
    static const char *const configs[] = {
        "wrokers = 2\n",
        SERVER_CONTROL "listen = [ \"unix:${DIR}/socket\", \"unix:${DIR}/none/socket\" ]\n",
    };
    struct manager manager;
    struct server server;

    if (suite_has_valgrind() && suite_skip("the program that runs is that of valgrind"))
        return;
    manager_open(&manager, true);
    spawn(&server, &manager);
    manager_await(&manager, "READY=1", NULL);
    for (int i = 0; i < SUITE_ROWS(configs); i++) {
        server_rewrite(&server, configs[i]);
        server_expect(&server, i == 0 ? 78 : 1, LIST("upgrade"));
        manager_find(&manager, "RELOADING=1");
        manager_find(&manager, "READY=1");
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    manager_find(&manager, "STOPPING=1");
    close(manager.fd);
}
END_TEST

START_TEST(failed_start_is_never_ready)
{
    struct manager manager;
    struct server server;

    manager_open(&manager, false);
    server_expect_failure(&server,
                          &(struct server_options){ .config = SERVER_BASE "wrokers = 2\n",
                                                    .environment = LIST(manager.variable) },
                          78);
    for (const char *message; (message = manager_take(&manager)) != NULL;)
        ck_assert_msg(strstr(message, "READY") == NULL, "%s", message);
    close(manager.fd);
}
END_TEST

/* Workers come and go; the master alone speaks, as manager_take checks. */
START_TEST(status_is_sent_on_events)
{
    struct manager manager;
    struct server server;

    manager_open(&manager, false);
    spawn(&server, &manager);
    manager_await(&manager, "READY=1", NULL);
    server_kill_worker(&server, 1, SIGKILL);
    manager_await(&manager, "STATUS=.*1 of 2 workers.*", "READY|STOPPING");
    manager_await(&manager, "STATUS=.*2 of 2 workers.*", "READY|STOPPING");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    manager_find(&manager, "STOPPING=1");
    close(manager.fd);
}
END_TEST

static const char *const variable_rows[] = { "NOTIFY_SOCKET=", "NOTIFY_SOCKET=relative",
                                             "NOTIFY_SOCKET=/gone/gone", "NOTIFY_SOCKET=@",
                                             "NOTIFY_SOCKET=@nobody-listens-here" };

START_TEST(no_manager_there)
{
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE,
                                                    .environment = LIST(variable_rows[_i]) });
    server_reload(&server);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* A manager that reads nothing blocks nobody. */
START_TEST(manager_that_does_not_read)
{
    struct manager manager;
    struct server server;

    manager_open(&manager, false);
    server_start(&server, &(struct server_options){ .config = SERVER_BASE,
                                                    .environment = LIST(manager.variable) });
    for (int i = 0; i < 20; i++)
        server_reload(&server);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    close(manager.fd);
}
END_TEST

/* To the journal, each line carries its priority. */
START_TEST(journal_priorities)
{
    struct server server;
    struct stat status;

    int fd = open(scratch_path("journal"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ck_assert_int_eq(fstat(fd, &status), 0);
    const char *variable =
        text_format("JOURNAL_STREAM=%llu:%llu", (unsigned long long)status.st_dev,
                    (unsigned long long)status.st_ino);
    server_spawn(&server, &(struct server_options){
                              .config = SERVER_BASE, .environment = LIST(variable), .output = fd });
    server_await_file(&server, "journal", 0, "^<6>.* info .* started in ");
    WAIT_FOR(server_worker(&server, 1) != 0);
    server_kill_worker(&server, 1, SIGTERM);
    server_await_file(&server, "journal", 0, "^<4>.* warning .*told to stop");
    server_rewrite(&server, "wrokers = 2\n");
    server_expect(&server, 78, LIST("reload"));
    server_await_file(&server, "journal", 0, "^<3>.* error ");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    const char *log = scratch_read("journal");
    ck_assert_uint_eq(text_count_lines(log, "^<[3467]>"), text_count_lines(log, ""));
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("systemd");
    TCase *tests = suite_case(suite, "systemd");

    tcase_add_loop_test(tests, start_reload_and_stop, 0, 2);
    tcase_add_test(tests, stop_with_a_delay);
    tcase_add_test(tests, failed_reload_is_ready_again);
    tcase_add_test(tests, failed_upgrade_is_ready_again);
    tcase_add_test(tests, failed_start_is_never_ready);
    tcase_add_test(tests, status_is_sent_on_events);
    tcase_add_loop_test(tests, no_manager_there, 0, SUITE_ROWS(variable_rows));
    tcase_add_test(tests, manager_that_does_not_read);
    tcase_add_test(tests, journal_priorities);
    return suite_run(suite);
}
