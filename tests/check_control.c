/* The control socket, and the commands that use it. */

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

START_TEST(status_tells)
{
    struct server server;

    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE "workers = 2\n" SERVER_ADMIN });
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    const struct json *status = server_status(&server);
    ck_assert_int_eq((int)json_number(json_get(status, "pid")), server.pid);
    ck_assert_int_eq((int)json_number(json_get(status, "generation")), 1);
    ck_assert(json_number(json_get(status, "uptime_seconds")) > 0);
    ck_assert_int_eq((int)json_number(json_get(status, "requests")), 5);
    ck_assert_int_eq((int)json_number(json_get(status, "connections_accepted")), 5);
    ck_assert_int_eq((int)json_get(status, "ready")->type, JSON_TRUE);
    ck_assert_int_eq((int)json_get(status, "drift")->type, JSON_FALSE);
    ck_assert_str_eq(json_string(json_at(json_get(status, "listening"), 0)), server.url);
    ck_assert_str_eq(json_string(json_at(json_get(status, "admin"), 0)), server_admin(&server));
    ck_assert_str_eq(json_string(json_get(json_get(status, "last_reload"), "outcome")), "none");
    const struct json *children = json_get(status, "children");
    ck_assert_uint_eq(json_count(children), 3);
    for (unsigned i = 0; i < 3; i++) {
        const struct json *child = json_at(children, i);
        ck_assert_str_eq(json_string(json_get(child, "role")), i < 2 ? "worker" : "admin");
        ck_assert(process_is_alive((pid_t)json_number(json_get(child, "pid"))));
        ck_assert_str_eq(json_string(json_get(child, "state")), "ready");
        ck_assert(json_number(json_get(child, "restarts")) == 0);
        ck_assert(json_number(json_get(child, "connections")) == 0);
    }
    const char *text = server_expect(&server, 0, LIST("status"));
    ck_assert_msg(
        text_matches(text, text_format("pid %d.*generation 1.*2 of 2 workers", server.pid)), "%s",
        text);
    server_rewrite(&server, SERVER_BASE "wrokers = 1\n");
    ck_assert_int_eq((int)json_get(server_status(&server), "drift")->type, JSON_TRUE);
    server_expect(&server, 78, LIST("reload"));
    const struct json *last = json_get(server_status(&server), "last_reload");
    ck_assert_str_eq(json_string(json_get(last, "outcome")), "failed");
    ck_assert_msg(text_matches(json_string(json_get(last, "text")), "hayate\\.conf:3: "), "%s",
                  json_string(json_get(last, "text")));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(stop_is_acknowledged)
{
    struct server server;

    server_start_plain(&server);
    const char *answer = server_expect(&server, 0, LIST("stop"));
    /* It has stopped when the command returns: the next one may start. */
    struct client client;
    ck_assert_msg(client_try_open(&client, server.url) == -1, "still listening: %s", answer);
    server_expect(&server, 3, LIST("status"));
    ck_assert_int_eq(server_wait(&server), 0);
}
END_TEST

START_TEST(stop_waits_for_what_is_in_flight)
{
    struct server server;
    struct process stop;
    struct client client;
    struct reply reply;

    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE
                                           "timeouts = { header = \"1h\" drain = \"1h\" }\n" });
    client_open(&client, server.url);
    client_send(&client, "GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\nHo");
    client_expect(&client, &reply, 200);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    process_start(&stop, &(struct launch){ .arguments = LIST("stop", "--control", server.control),
                                           .out = null,
                                           .err = null });
    server_await(&server, 0, "stopping");
    const char *status = server_expect(&server, 0, LIST("status"));
    ck_assert_msg(text_matches(status, "stopping"), "%s", status);
    server_expect(&server, 1, LIST("reload"));
    ck_assert(!process_has_ended(&stop));
    client_send(&client, "st: a\r\n\r\n");
    client_expect(&client, &reply, 200);
    client_close(&client);
    ck_assert_int_eq(process_wait(&stop), 0);
    ck_assert_int_eq(server_wait(&server), 0);
    close(null);
}
END_TEST

/* With a broken file, whoever is asked finds the socket, and the server. */
START_TEST(commands_work_beside_a_broken_file)
{
    struct server server;
    struct outcome outcome;

    server_start_plain(&server);
    server_rewrite(&server, SERVER_BASE "workers = = 2\nroutes = (\n");
    process_run(&outcome, LIST("status", "-c", server.config));
    ck_assert_msg(outcome.status == 0, "%s", outcome.err);
    process_run(&outcome, LIST("reload", "-c", server.config));
    ck_assert_int_eq(outcome.status, 78);
    ck_assert_msg(text_matches(outcome.err, "hayate\\.conf:3: "), "%s", outcome.err);
    process_run(&outcome, LIST("stop", "-c", server.config));
    ck_assert_msg(outcome.status == 0, "%s", outcome.err);
    ck_assert_int_eq(server_wait(&server), 0);
}
END_TEST

START_TEST(control_from_the_environment)
{
    struct server server;
    struct outcome outcome;

    /* It is for clients alone: the master does what its file says. */
    server_start(&server, &(struct server_options){ .config = SERVER_BASE,
                                                    .environment = LIST("HAYATE_CONTROL=/gone") });
    server_expect(&server, 0, LIST("status"));
    const char *variable = text_format("HAYATE_CONTROL=%s", server.control);
    struct launch launch = { .arguments = LIST("status"), .environment = LIST(variable) };
    process_run_with(&outcome, &launch);
    ck_assert_msg(outcome.status == 0, "%s", outcome.err);
    /* --control comes first. */
    launch.arguments = LIST("status", "--control", scratch_path("gone"));
    process_run_with(&outcome, &launch);
    ck_assert_int_eq(outcome.status, 3);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* As root it would be /run/hayate/control, which is the machine's. */
START_TEST(control_by_default)
{
    const char *const config = "listen = [ \"127.0.0.1:0\" ]\n";
    struct server server;
    struct outcome outcome;

    if ((geteuid() == 0 || access("/run/hayate", W_OK) == 0) &&
        suite_skip("needs a user who cannot write to /run/hayate"))
        return;
    const char *variable = text_format("XDG_RUNTIME_DIR=%s", scratch_path(""));
    server_start(&server,
                 &(struct server_options){ .config = config, .environment = LIST(variable) });
    struct launch launch = { .arguments = LIST("status", "-c", server.config),
                             .environment = LIST(variable) };
    process_run_with(&outcome, &launch);
    ck_assert_msg(outcome.status == 0, "%s", outcome.err);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    /* With nowhere to put it, it is off. */
    server_start(&server, &(struct server_options){ .config = config });
    server_await(&server, 0, "warning .*control");
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(control_off)
{
    struct server server;

    server_start(&server, &(struct server_options){
                              .config = "listen = [ \"127.0.0.1:0\" ]\ncontrol = \"off\"\n" });
    struct outcome outcome;
    process_run(&outcome, LIST("status", "-c", server.config));
    ck_assert_msg(outcome.status == 1 || outcome.status == 3, "%d", outcome.status);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(silent_clients_block_nobody)
{
    struct server server;
    int fds[100];

    server_start_plain(&server);
    for (int i = 0; i < SUITE_ROWS(fds); i++) {
        fds[i] = server_connect_control(&server);
        if (i % 2 == 0)
            ck_assert_int_eq(send(fds[i], "stat", 4, MSG_NOSIGNAL), 4);
    }
    server_reload(&server);
    ck_assert_uint_eq(server_generation(&server), 2);
    server_expect(&server, 0, LIST("stop"));
    ck_assert_int_eq(server_wait(&server), 0);
    for (int i = 0; i < SUITE_ROWS(fds); i++)
        close(fds[i]);
}
END_TEST

static const char *const nonsense_rows[] = { "xyzzy\n",    "\n",
                                             "status",     "status \n",
                                             "STATUS\n",   "status\r\n",
                                             "\x80\xff\n", "status jsonjsonjson\n" };

START_TEST(nonsense_on_the_control_socket)
{
    struct server server;
    char answer[64];

    server_start_plain(&server);
    int fd = server_connect_control(&server);
    ck_assert(send(fd, nonsense_rows[_i], strlen(nonsense_rows[_i]), MSG_NOSIGNAL) > 0);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    while (read(fd, answer, sizeof answer) > 0)
        ;
    close(fd);
    const char *flood = text_repeat("x", 100000);
    fd = server_connect_control(&server);
    (void)!send(fd, flood, strlen(flood), MSG_NOSIGNAL);
    while (read(fd, answer, sizeof answer) > 0)
        ;
    close(fd);
    ck_assert_uint_eq(server_generation(&server), 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(second_master_disturbs_nobody)
{
    struct server first, second;
    struct stat status;

    server_start_plain(&first);
    server_start(&second,
                 &(struct server_options){
                     .name = "second",
                     .config = "listen = \"127.0.0.1:0\"\ncontrol = \"second.control\"\n" });
    server_reload(&second);
    ck_assert_uint_eq(server_generation(&first), 1);
    ck_assert_uint_eq(server_generation(&second), 2);
    server_expect(&second, 0, LIST("stop"));
    ck_assert_int_eq(server_wait(&second), 0);

    /* With the first one's socket, it does not start, and the first keeps it. */
    const char *log = server_expect_failure(
        &second, &(struct server_options){ .name = "second", .config = SERVER_BASE }, 1);
    ck_assert_msg(strstr(log, first.control) != NULL, "%s", log);
    ck_assert_int_eq(stat(first.control, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
    ck_assert_uint_eq(server_generation(&first), 1);
    ck_assert_int_eq(server_stop(&first, SIGTERM), 0);
}
END_TEST

START_TEST(control_socket_moves_with_a_reload)
{
    struct server server;
    struct outcome outcome;

    server_start_plain(&server);
    server_rewrite(&server, "listen = \"127.0.0.1:0\"\ncontrol = \"moved.control\"\n");
    server_reload(&server);
    process_run(&outcome, LIST("status", "--control", scratch_path("moved.control")));
    ck_assert_msg(outcome.status == 0, "%s", outcome.err);
    server_expect(&server, 3, LIST("status"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_int_ne(access(scratch_path("moved.control"), F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("control");
    TCase *tests = suite_case(suite, "control");

    tcase_add_test(tests, status_tells);
    tcase_add_test(tests, stop_is_acknowledged);
    tcase_add_test(tests, stop_waits_for_what_is_in_flight);
    tcase_add_test(tests, commands_work_beside_a_broken_file);
    tcase_add_test(tests, control_from_the_environment);
    tcase_add_test(tests, control_by_default);
    tcase_add_test(tests, control_off);
    tcase_add_test(tests, silent_clients_block_nobody);
    tcase_add_loop_test(tests, nonsense_on_the_control_socket, 0, SUITE_ROWS(nonsense_rows));
    tcase_add_test(tests, second_master_disturbs_nobody);
    tcase_add_test(tests, control_socket_moves_with_a_reload);
    return suite_run(suite);
}
