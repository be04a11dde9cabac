/* The commands: what each prints, and its exit status. */

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

/* Without a server. */

static const struct {
    const char *const arguments[5];
    int status;
    const char *out, *err; /* patterns; NULL: nothing is printed */
} usage_rows[] = {
    { { "--help" }, 0, "usage: hayate", NULL },
    { { "-h" }, 0, "usage: hayate", NULL },
    { { "--version" }, 0, "^hayate [0-9]+\\.[0-9]+\\.[0-9]+.*libev.*http-parser.*libconfig", NULL },
    { { "relaod" }, 2, NULL, "relaod.*did you mean \"?reload" },
    { { "statsu" }, 2, NULL, "statsu.*did you mean \"?status" },
    { { "xyzzy" }, 2, NULL, "unknown command.*xyzzy" },
    { { "stat" }, 2, NULL, "did you mean \"status\"" },
    { { "status", "--control=" }, 2, NULL, "--control wants the path of a socket" },
    { { "config", "--running", "-o", "workers=9" }, 2, NULL, "^hayate: -o goes with" },
    { { "--contorl", "/x" }, 2, NULL, "--contorl.*did you mean \"?--control" },
    { { "--xyzzy" }, 2, NULL, "unknown option.*--xyzzy" },
    { { "-x" }, 2, NULL, "unknown option.*-x" },
    { { "-c" }, 2, NULL, "-c" },
    { { "-o", "workers" }, 2, NULL, "workers.*KEY=VALUE" },
    { { "-o", "=2" }, 2, NULL, "KEY=VALUE" },
    { { "reload", "now" }, 2, NULL, "now" },
    { { "reload", "--json" }, 2, NULL, "--json" },
    { { "check", "--running" }, 2, NULL, "--running" },
    { { "-t", "reload" }, 2, NULL, "-t" },
    { { "status", "--control", "%DIR%/gone" }, 3, NULL, "not running.*/gone" },
    { { "reload", "--control", "%DIR%/gone" }, 3, NULL, "not running" },
    { { "stop", "--control", "%DIR%/gone" }, 3, NULL, "not running" },
    { { "reopen", "--control", "%DIR%/gone" }, 3, NULL, "not running" },
    { { "status", "--control", "%DIR%/gone/gone" }, 3, NULL, "not running" },
    { { "config", "--running", "--control", "%DIR%/gone" }, 3, NULL, "not running" },
    { { "-c", "%DIR%/gone.conf" }, 78, NULL, "gone\\.conf" },
    { { "check", "-c", "%DIR%/gone.conf" }, 78, NULL, "gone\\.conf" },
    { { "config", "-c", "%DIR%/gone.conf" }, 78, NULL, "gone\\.conf" },
    { { "check", "-o", "wrokers=2" }, 78, NULL, "^-o wrokers: .*did you mean \"workers\"" },
    { { "check", "-o", "workers=many" }, 78, NULL, "^-o workers: " },
    { { "check", "-o", "timeouts.idle=5x" }, 78, NULL, "^-o timeouts\\.idle: " },
    { { "-o", "workers=0" }, 78, NULL, "-o workers: " },
    { { "probe", "http://localhost/" }, 2, NULL, "localhost" },
    { { "probe", "ftp://127.0.0.1/" }, 2, NULL, "ftp" },
    { { "probe", "http://127.0.0.1:1/a b" }, 2, NULL, "write it as %XX, a blank as %20" },
    { { "probe", "http://127.0.0.1:1?a\tb" }, 2, NULL, "write it as %XX" },
    { { "probe", "http://127.0.0.1:1/a HTTP/1.1\r\nX: y" }, 2, NULL, "write it as %XX" },
    { { "probe", "http://127.0.0.1:1/\x7f" }, 2, NULL, "write it as %XX" },
    { { "probe", "http://127.0.0.1:1/%2" }, 2, NULL, "write it as %XX" },
    { { "probe", "/a b" }, 2, NULL, "write it as %XX" },
    { { "probe", "/\xc3\xa9" }, 2, NULL, "write it as %XX" },
};

START_TEST(usage)
{
    const char *arguments[6] = { NULL };
    struct outcome outcome;

    for (int i = 0; i < 5 && usage_rows[_i].arguments[i] != NULL; i++)
        arguments[i] = text_replace(usage_rows[_i].arguments[i], "%DIR%", scratch_path(""));
    process_run(&outcome, arguments);
    ck_assert_msg(outcome.status == usage_rows[_i].status, "exit %d: %s%s", outcome.status,
                  outcome.out, outcome.err);
    const char *out = usage_rows[_i].out, *err = usage_rows[_i].err;
    /* The newlines of several lines match any character. */
    ck_assert_msg(text_matches(outcome.out, out != NULL ? out : "^$"), "%s", outcome.out);
    ck_assert_msg(text_matches(outcome.err, err != NULL ? err : "^$"), "%s", outcome.err);
}
END_TEST

START_TEST(output_that_cannot_be_written)
{
    struct process process;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    if (full < 0 && suite_skip("no /dev/full here"))
        return;
    process_start(&process,
                  &(struct launch){ .arguments = LIST("--version"), .out = full, .err = full });
    ck_assert_int_eq(process_wait(&process), 1);
    close(full);
}
END_TEST

/* check and config. */

static const struct {
    const char *config;
    int status;
    const char *err; /* pattern */
} check_rows[] = {
    { SERVER_BASE, 0, NULL },
    { "", 0, NULL },
    { SERVER_BASE "wrokers = 2\n", 78,
      "^/.*/hayate\\.conf:3: .*wrokers.*did you mean \"workers\"" },
    { SERVER_BASE "workers = 2\nworkers = 3\n", 78, "hayate\\.conf:4: " },
    { SERVER_BASE "workers = \"two\"\n", 78, "hayate\\.conf:3: " },
    { SERVER_BASE "timeouts = { idle = 5 }\n", 78, "hayate\\.conf:3: " },
    { SERVER_BASE "listen = [ \"127.0.0.1\" ]\n", 78, "hayate\\.conf:3: " },
    { SERVER_BASE "watch = true\n", 0, NULL },
    { SERVER_BASE "sandbox = true\n", 78, "hayate\\.conf:3: .*sandbox.*not yet supported" },
    { SERVER_BASE "}\n", 78, "hayate\\.conf:3: " },
    { SERVER_BASE "routes = ( { path = \"/a\" } )\n", 78, "hayate\\.conf:3: " },
    { SERVER_BASE "user = \"nobody-of-this-name\"\n", -1, "hayate\\.conf:3: " },
};

START_TEST(check_and_start_agree)
{
    static const char *const commands[] = { "check", "-t" };
    struct outcome outcome;
    struct server server;
    int status = check_rows[_i].status;

    if (status == -1)
        status = geteuid() == 0 ? 78 : 0;
    scratch_write("hayate.conf", check_rows[_i].config);
    for (int i = 0; i < 2; i++) {
        process_run(&outcome, LIST(commands[i], "-c", scratch_path("hayate.conf")));
        ck_assert_msg(outcome.status == status, "exit %d: %s", outcome.status, outcome.err);
        ck_assert_msg(status == 0 || text_matches(outcome.err, check_rows[_i].err), "%s",
                      outcome.err);
    }
    if (status == 78) {
        const char *log = server_expect_failure(
            &server, &(struct server_options){ .config = check_rows[_i].config }, 78);
        ck_assert_msg(text_matches(log, text_replace(check_rows[_i].err, "^", "")), "%s", log);
    }
}
END_TEST

static const char *const print_rows[] = {
    "",
    SERVER_BASE,
    SERVER_BASE
    "workers = 3\nlog = \"a.log\"\naccess_log = \"b.log\"\naccess_log_format = \"json\"\n"
    "log_format = \"json\"\nlog_level = \"debug\"\n",
    SERVER_BASE "timeouts = { header = \"1500ms\" idle = 0 drain = \"2h\" watchdog = \"90s\" }\n"
                "limits = { connections = 7 header = \"1m\" body = 1000 requests = 5 }\n",
    SERVER_BASE "include = [ \"conf.d/*.conf\" ]\n" SERVER_ADMIN,
    "listen = [ \"*:8080\", \"[::1]:81\", \"unix:/a b/c\" ]\ncontrol = \"off\"\n",
    "listen = ( \"*:8080\", { address = \"127.0.0.1:81\" } )\n",
    SERVER_BASE "routes = ( { path = \"/a\" text = \"line\\n\\t\\\"quoted\\\" \\\\ \xc3\xa9 $${X} "
                "${DIR}\" type = \"text/html\" status = 404 headers = { X-A = \"1\" X-B = [ \"2\", "
                "\"3\" ] } methods = [ \"GET\", \"POST\" ] delay = \"10ms\" },\n"
                "{ path = \"/b\" redirect = \"/a\" status = 301 },\n"
                "{ path = \"/c\" health = \"ready\" } )\n",
};

START_TEST(print_load_print_is_the_same)
{
    ck_assert_int_eq(mkdir(scratch_path("conf.d"), 0755), 0);
    scratch_write("conf.d/a.conf", "routes = ( { path = \"/a\" text = \"a\" } )\n");
    scratch_write("conf.d/b.conf", "workers = 2\nroutes = ( { path = \"/b\" text = \"b\" } )\n");
    scratch_write("hayate.conf", print_rows[_i]);
    const char *first = process_expect(0, LIST("config", "-c", scratch_path("hayate.conf")));
    ck_assert_ptr_nonnull(strstr(first, "include = [ ]"));
    ck_assert_ptr_nonnull(strstr(first, "watchdog = "));
    /* In another directory: what was relative is not any more. */
    ck_assert_int_eq(mkdir(scratch_path("other"), 0755), 0);
    scratch_write("other/printed.conf", first);
    const char *second =
        process_expect(0, LIST("config", "-c", scratch_path("other/printed.conf")));
    ck_assert_str_eq(first, second);
    process_expect(0, LIST("check", "-c", scratch_path("other/printed.conf")));
}
END_TEST

START_TEST(overrides)
{
    scratch_write("hayate.conf", SERVER_BASE "workers = 1\n");
    const char *file = scratch_path("hayate.conf");
    const char *out = process_expect(0, LIST("config", "-c", file, "-o", "workers=4", "-o",
                                             "timeouts.idle=5s", "-o", "listen=127.0.0.1:81", "-o",
                                             "routes=( { path = \"/x\" text = \"X\" } )"));
    ck_assert_msg(text_matches(out, "workers = 4"), "%s", out);
    ck_assert_msg(text_matches(out, "idle = \"5s\""), "%s", out);
    ck_assert_msg(text_matches(out, "\"127\\.0\\.0\\.1:81\""), "%s", out);
    ck_assert_msg(text_matches(out, "path = \"/x\"") && strstr(out, "/hello") == NULL, "%s", out);
    out = process_expect(
        0, LIST("config", "-c", file, "-o", "listen=[ \"127.0.0.1:81\", \"127.0.0.1:82\" ]"));
    ck_assert_msg(text_matches(out, "127\\.0\\.0\\.1:81.*127\\.0\\.0\\.1:82"), "%s", out);
}
END_TEST

START_TEST(running_configuration)
{
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE "workers = 1\n",
                                                    .arguments = LIST("-o", "workers=2") });
    const char *served = server_expect(&server, 0, LIST("config", "--running"));
    ck_assert_msg(text_matches(served, "workers = 2"), "%s", served);
    const char *before = process_expect(0, LIST("config", "-c", server.config, "-o", "workers=2"));
    ck_assert_str_eq(served, before);
    server_rewrite(&server, SERVER_BASE "workers = 1\nlog_level = \"debug\"\n");
    ck_assert_str_eq(server_expect(&server, 0, LIST("config", "--running")), served);
    server_reload(&server);
    ck_assert_msg(text_matches(server_expect(&server, 0, LIST("config", "--running")),
                               "log_level = \"debug\""),
                  "not the new one");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* probe */

static const struct {
    const char *target; /* %URL% is the server's */
    int status;
} probe_rows[] = {
    { "%URL%/healthz", 0 }, { "%URL%/hello", 0 },         { "%URL%", 1 },     { "%URL%/gone", 1 },
    { "%URL%/old", 1 },     { "http://127.0.0.1:1/", 1 }, { "%URL%/503", 1 },
};

START_TEST(probe)
{
    struct server server;

    server_start(&server,
                 &(struct server_options){ .config = SERVER_BASE
                                           "routes = ( { path = \"/hello\" text = \"Hello\" },\n"
                                           "{ path = \"/healthz\" health = \"live\" },\n"
                                           "{ path = \"/503\" text = \"\" status = 503 },\n"
                                           "{ path = \"/old\" redirect = \"/hello\" } )\n" });
    process_expect(probe_rows[_i].status,
                   LIST("probe", text_replace(probe_rows[_i].target, "%URL%", server.url)));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

#define OK "HTTP/1.1 200 OK\r\n"
#define HINTS "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

/* What a server sees of it, and what it makes of that server's answer. */
static const struct {
    const char *rest;   /* of the URL, behind the port */
    const char *target; /* of the request */
    const char *answer;
    int status;
} wire_rows[] = {
    { "/a", "/a", OK, 0 },
    { "/a#f", "/a", OK, 0 },
    { "/a?b#c?d", "/a?b", OK, 0 },
    { "/#", "/", OK, 0 },
    { "#f", "/", OK, 0 },
    { "", "/", OK, 0 },
    { "?x=y", "/?x=y", OK, 0 },
    { "?x#y", "/?x", OK, 0 },
    { "/%20//b?c=[d]&e?", "/%20//b?c=[d]&e?", OK, 0 },
    { "/", "/", "HTTP/1.1 100 Continue\r\n\r\n" OK, 0 },
    { "/", "/", HINTS OK, 0 },
    { "/", "/", HINTS HINTS "HTTP/1.1 204 No Content\r\n\r\n", 0 },
    { "/", "/", HINTS "HTTP/1.1 503 Service Unavailable\r\n", 1 },
    { "/", "/", HINTS, 1 },
    { "/", "/", "HTTP/1.1 103 Early Hints\r\nX: HTTP/1.1 200 OK\r\n", 1 },
    { "/", "/", "HTTP/1.1 103 Early Hints\r\nX: %LONG%\r\n\r\n" OK, 0 },
    { "/", "/", "HTTP/1.1 101 Switching Protocols\r\n\r\n" OK, 1 },
    { "/", "/", "HTTP/1.0 200 \n", 0 },
    { "/", "/", "HTTP/1.1 200", 1 },
    { "/", "/", "HTTP/1.1 2000 OK\r\n", 1 },
    { "/", "/", "HTTP/1.1 199 \r\n\r\nHTTP/1.1 299 \r\n", 0 },
    { "/", "/", "200 OK\r\n", 1 },
    { "/", "/", "", 1 },
};

static int listen_anywhere(unsigned *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* Fails the test when nothing comes, as when the probe has given up before it connects. */
static void await_input(int fd)
{
    struct deadline deadline = deadline_start();
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    ck_assert_int_eq(poll(&ready, 1, deadline_left(&deadline)), 1);
}

/* Answers one request; returns what it was. */
static const char *answer_once(int listener, const char *answer)
{
    char bytes[4096];
    struct buf request = { 0 };
    await_input(listener);
    int fd = accept(listener, NULL, NULL);
    while (!request.data || !strstr(buf_string(&request), "\r\n\r\n")) {
        await_input(fd);
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        ck_assert_int_gt(got, 0);
        buf_add(&request, bytes, (size_t)got);
    }
    ck_assert_int_eq(send(fd, answer, strlen(answer), MSG_NOSIGNAL), (ssize_t)strlen(answer));
    close(fd);
    const char *text = text_copy(request.data, request.length);
    buf_fini(&request);
    return text;
}

START_TEST(probe_on_the_wire)
{
    unsigned port;
    struct process process;
    int listener = listen_anywhere(&port);
    const char *url = text_format("http://127.0.0.1:%u%s", port, wire_rows[_i].rest);
    const char *answer = text_replace(wire_rows[_i].answer, "%LONG%", text_repeat("x", 5000));

    process_start(&process, &(struct launch){ .arguments = LIST("probe", url) });
    const char *request = answer_once(listener, answer);
    const char *start =
        text_format("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n", wire_rows[_i].target, port);
    ck_assert_msg(strncmp(request, start, strlen(start)) == 0, "%s", request);
    ck_assert_int_eq(process_wait(&process), wire_rows[_i].status);
    close(listener);
}
END_TEST

START_TEST(probe_of_the_first_listener)
{
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_CONTROL
                                                    "listen = \"unix:${DIR}/socket\"\n" });
    process_expect(0, LIST("probe", "-c", server.config));
    process_expect(0, LIST("probe", "-c", server.config, "/readyz"));
    process_expect(0, LIST("probe", "-c", server.config, "/readyz#now"));
    process_expect(1, LIST("probe", "-c", server.config, "/gone"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    process_expect(1, LIST("probe", "-c", server.config));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("command");
    TCase *tests = suite_case(suite, "command");

    tcase_add_loop_test(tests, usage, 0, SUITE_ROWS(usage_rows));
    tcase_add_test(tests, output_that_cannot_be_written);
    tcase_add_loop_test(tests, check_and_start_agree, 0, SUITE_ROWS(check_rows));
    tcase_add_loop_test(tests, print_load_print_is_the_same, 0, SUITE_ROWS(print_rows));
    tcase_add_test(tests, overrides);
    tcase_add_test(tests, running_configuration);
    tcase_add_loop_test(tests, probe, 0, SUITE_ROWS(probe_rows));
    tcase_add_loop_test(tests, probe_on_the_wire, 0, SUITE_ROWS(wire_rows));
    tcase_add_test(tests, probe_of_the_first_listener);
    return suite_run(suite);
}
