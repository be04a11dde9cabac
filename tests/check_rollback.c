/* Reloads that fail: each changes nothing, and says why. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/client.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

#define HELLO "routes = ( { path = \"/hello\" text = \"Hello\" } )\n"

/* What a row needs beside the configuration; %PORT% stands for a port that is taken. */
static int taken_port(unsigned *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof address;

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 8) == 0);
    ck_assert(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static const struct {
    const char *name;
    const char *config; /* NULL: the file is removed */
    int status;
    const char *reason; /* pattern */
} failure_rows[] = {
    { "unknown key", SERVER_BASE "wrokers = 2\n", 78,
      "hayate\\.conf:3: .*wrokers.*did you mean \"workers\"" },
    { "syntax", SERVER_BASE "workers = = 2\n", 78, "hayate\\.conf:3: " },
    { "value out of range", SERVER_BASE "workers = 0\n", 78, "hayate\\.conf:3: " },
    { "unclosed comment", SERVER_BASE "/* workers = 2\n", 78, "hayate\\.conf:[0-9]+: " },
    { "duplicate route",
      SERVER_BASE "routes = ( { path = \"/a\" text = \"a\" },\n{ path = \"/a\" text = \"b\" } )\n",
      78, "hayate\\.conf:4: " },
    { "no file", NULL, 78, "hayate\\.conf" },
    { "missing fragment", SERVER_BASE "include = [ \"gone.conf\" ]\n", 78, "gone\\.conf" },
    { "busy port", SERVER_CONTROL "listen = [ \"127.0.0.1:0\", \"127.0.0.1:%PORT%\" ]\n", 1,
      "127\\.0\\.0\\.1:%PORT%" },
    { "busy admin port", SERVER_BASE "admin = { listen = [ \"127.0.0.1:%PORT%\" ] }\n", 1,
      "127\\.0\\.0\\.1:%PORT%" },
    { "log in no directory", SERVER_BASE "log = \"gone/log\"\n", 78,
      "hayate\\.conf:3: .*gone/log" },
    { "access log in no directory", SERVER_BASE "access_log = \"gone/log\"\n", 78,
      "hayate\\.conf:3: .*gone/log" },
    { "unix socket in no directory",
      SERVER_CONTROL "listen = [ \"127.0.0.1:0\", \"unix:${DIR}/gone/socket\" ]\n", 1,
      "gone/socket" },
};

START_TEST(failure_changes_nothing)
{
    struct server server;
    struct client client;
    struct reply reply;
    unsigned port;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE HELLO "workers = 2\n" });
    client_open(&client, server.url);
    pid_t workers[] = { server_worker(&server, 1), server_worker(&server, 2) };
    int fd = taken_port(&port);
    const char *number = text_format("%u", port);
    if (failure_rows[_i].config == NULL)
        ck_assert_int_eq(unlink(server.config), 0);
    else
        server_rewrite(&server, text_replace(failure_rows[_i].config, "%PORT%", number));
    const char *reason = text_replace(failure_rows[_i].reason, "%PORT%", number);

    size_t mark = server_mark(&server);
    const char *answer = server_expect(&server, failure_rows[_i].status, LIST("reload"));
    ck_assert_msg(text_matches(answer, reason), "%s", answer);
    server_await(&server, mark,
                 text_format("error .*reload failed, generation 1 stays: .*%s", reason));
    ck_assert_msg(text_matches(server_expect(&server, 0, LIST("status")), reason), "%s",
                  server_expect(&server, 0, LIST("status")));
    /* By signal, too. */
    mark = server_mark(&server);
    server_signal(&server, SIGHUP);
    server_await(&server, mark, "error .*reload failed, generation 1 stays: ");

    ck_assert_uint_eq(server_generation(&server), 1);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(server_worker(&server, i + 1), workers[i]);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    ck_assert_msg(!reply.is_last, "the failed reload ends connections");
    client_close(&client);
    ck_assert_int_eq(access(scratch_path("gone"), F_OK), -1);

    close(fd);
    server_rewrite(&server, SERVER_BASE HELLO "workers = 1\n");
    server_reload(&server);
    ck_assert_uint_gt(server_generation(&server), 1);
    ck_assert_uint_eq(server_ready_workers(&server), 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(unreadable_file)
{
    struct server server;

    if (geteuid() == 0 && suite_skip("root reads every file"))
        return;
    server_start_plain(&server);
    ck_assert_int_eq(chmod(server.config, 0), 0);
    const char *answer = server_expect(&server, 78, LIST("reload"));
    ck_assert_msg(text_matches(answer, "hayate\\.conf.*[Pp]ermission"), "%s", answer);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(file_that_is_a_directory)
{
    struct server server;

    server_start_plain(&server);
    ck_assert_int_eq(unlink(server.config), 0);
    ck_assert_int_eq(mkdir(server.config, 0755), 0);
    server_expect(&server, 78, LIST("reload"));
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(worker_that_cannot_start)
{
    struct server server;

    if (suite_lacks_faults())
        return;
    server_start_plain(&server);
    pid_t worker = server_worker(&server, 1);
    server_rewrite(&server, SERVER_BASE "routes = ( { path = \"/hello\" fault = \"start\" } )\n");
    const char *answer = server_expect(&server, 1, LIST("reload"));
    ck_assert_msg(text_matches(answer, "worker.*SIGABRT"), "%s", answer);
    ck_assert_uint_eq(server_generation(&server), 1);
    ck_assert_int_eq(server_worker(&server, 1), worker);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    server_rewrite(&server, SERVER_BASE HELLO);
    server_reload(&server);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rollback");
    TCase *tests = suite_case(suite, "rollback");

    tcase_add_loop_test(tests, failure_changes_nothing, 0, SUITE_ROWS(failure_rows));
    tcase_add_test(tests, unreadable_file);
    tcase_add_test(tests, file_that_is_a_directory);
    tcase_add_test(tests, worker_that_cannot_start);
    return suite_run(suite);
}
