/*
 * A reload covers every key: each row of the schema is changed by a reload and changed back. The
 * log says so with the old and the new value, the configuration that is served has the new one,
 * and it takes effect. A key of the schema that has no row here fails the test.
 */

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conf/schema.h"
#include "support/client.h"
#include "support/json.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

/* Keys that a row's configuration has unless it is about them. */
#define LISTEN "listen = [ \"127.0.0.1:0\" ]\n"
#define WORKERS "workers = 1\n"
#define ROUTES                                                       \
    "routes = ( { path = \"/hello\" text = \"Hello\" },\n"           \
    "{ path = \"/post\" text = \"Post\" methods = [ \"POST\" ] },\n" \
    "{ path = \"/never\" text = \"Never\" delay = \"1h\" } )\n"
#define BASE LISTEN SERVER_CONTROL WORKERS ROUTES

/* Effects: each is called after the reload to the second value. */

static const char *listed_url(const struct server *server, const char *key, unsigned index)
{
    return json_string(json_at(json_get(server_status(server), key), index));
}

static void listens(struct server *server)
{
    ck_assert_uint_eq(client_get(listed_url(server, "listening", 1), "/hello", NULL), 200);
}

static void has_two_workers(struct server *server)
{
    ck_assert_uint_eq(server_ready_workers(server), 2);
}

static void runs_as(struct server *server)
{
    if (geteuid() == 0)
        ck_assert(text_matches(process_status(server_worker(server, 1), "Uid"), "^65533"));
}

static void is_controlled_elsewhere(struct server *server)
{
    ck_assert_int_eq(access(server->control, F_OK), -1);
    server->control = scratch_path("other.control");
    ck_assert_uint_eq(server_generation(server), 2);
}

static void logs_elsewhere(struct server *server)
{
    server_await_file(server, "new.log", 0, "generation 2 serves; changed: log ");
}

static void logs_json(struct server *server)
{
    server_await(server, 0, "^\\{.*generation 2 serves");
}

static void logs_details(struct server *server)
{
    server_await(server, 0, " debug .*generation 1 has ended");
}

static void logs_requests(struct server *server)
{
    ck_assert_uint_eq(client_get(server->url, "/hello", NULL), 200);
    server_await_file(server, "access", 0, "\"GET /hello HTTP/1\\.1\" 200");
}

static void logs_requests_as_json(struct server *server)
{
    ck_assert_uint_eq(client_get(server->url, "/hello", NULL), 200);
    server_await_file(server, "access", 0, "^\\{.*/hello");
}

static void times_out_in_a_head(struct server *server)
{
    struct client client;
    struct reply reply;

    client_open(&client, server->url);
    client_send(&client, "GET /hello HTTP/1.1\r\n");
    client_expect(&client, &reply, 408);
    client_close(&client);
}

static void times_out_in_a_body(struct server *server)
{
    struct client client;
    struct reply reply;

    client_open(&client, server->url);
    client_send(&client, "POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
    client_expect(&client, &reply, 408);
    client_close(&client);
}

static void times_out_when_idle(struct server *server)
{
    struct client client;
    struct reply reply;

    client_open(&client, server->url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
}

/* Requests without end, and no answer is read. */
static void gives_up_sending(struct server *server)
{
    static const char request[] = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
    const char *many = text_repeat(request, 1000);
    size_t sent = 0, length = strlen(many);
    struct client client;

    client_open(&client, server->url);
    struct deadline deadline = deadline_start();
    while (json_number(json_get(server_status(server), "timeouts")) < 1) {
        ssize_t some;
        while ((some = send(client.fd, many + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT)) >
               0)
            sent = (sent + (size_t)some) % length;
        if (!deadline_wait(&deadline))
            ck_abort_msg("it waits for a client that takes nothing");
    }
    client_close(&client);
}

/* Until the loop of its worker has read the request. */
static void ask_in_vain(struct server *server, struct client *client)
{
    double before = json_number(json_get(server_status(server), "connections_accepted"));

    client_open(client, server->url);
    client_send_get(client, "/never");
    WAIT_FOR(json_number(json_get(server_status(server), "connections_accepted")) > before);
}

static void cuts_soon(struct server *server)
{
    struct client client;
    struct reply reply;

    ask_in_vain(server, &client);
    server_reload(server);
    enum client_result result = client_receive(&client, &reply, false);
    ck_assert(result == CLIENT_END || result == CLIENT_BROKEN);
    client_close(&client);
}

static void kills_what_hangs(struct server *server)
{
    pid_t pid = server_kill_worker(server, 1, SIGSTOP);
    server_await(server, 0, text_format("\\(pid %d\\) killed by SIGKILL \\(stopped ", pid));
    server_await_worker(server, 1, pid);
}

static void has_room_for_one(struct server *server)
{
    struct client first, second;
    struct reply reply;

    client_open(&first, server->url);
    client_send_get(&first, "/hello");
    client_expect(&first, &reply, 200);
    client_open(&second, server->url);
    client_send_get(&second, "/hello");
    client_expect(&second, &reply, 200);
    ck_assert_msg(client_read_end(&first), "%s", first.fault);
    client_close(&first);
    client_close(&second);
}

static void has_room_for_one_of_an_address(struct server *server)
{
    struct client first, second;
    struct reply reply;

    client_open(&first, server->url);
    client_send_get(&first, "/hello");
    client_expect(&first, &reply, 200);
    client_open(&second, server->url);
    client_send_get(&second, "/hello");
    ck_assert(client_receive(&second, &reply, false) != CLIENT_REPLY || reply.status != 200);
    client_send_get(&first, "/hello");
    client_expect(&first, &reply, 200);
    client_close(&first);
    client_close(&second);
}

static void takes_short_heads(struct server *server)
{
    ck_assert_uint_eq(client_get(server->url, text_format("/%s", text_repeat("a", 300)), NULL),
                      414);
}

static void takes_short_bodies(struct server *server)
{
    struct client client;
    struct reply reply;

    client_open(&client, server->url);
    client_send(&client, "POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n123456789");
    client_expect(&client, &reply, 413);
    client_close(&client);
}

static void answers_one_request(struct server *server)
{
    struct client client;
    struct reply reply;

    client_open(&client, server->url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    ck_assert(reply.is_last);
    client_close(&client);
}

/* The most that wait on a listening socket: what TCP_INFO has of one in tcpi_sacked. Only TCP
 * sockets have it. */
static unsigned backlog_of(const struct server *server, int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    int copy = pidfd_getfd(server->process.handle, fd, 0);

    if (copy < 0)
        return 0;
    if (getsockopt(copy, IPPROTO_TCP, TCP_INFO, &info, &size) == -1 ||
        info.tcpi_state != TCP_LISTEN)
        info.tcpi_sacked = 0;
    close(copy);
    return info.tcpi_sacked;
}

static void queues_few(struct server *server)
{
    unsigned found = 0;
    DIR *directory = opendir(text_format("/proc/%d/fd", (int)server->pid));

    ck_assert(directory != NULL);
    if (pidfd_getfd(server->process.handle, 2, 0) < 0 && suite_skip("no descriptor can be had")) {
        closedir(directory);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.' && backlog_of(server, atoi(entry->d_name)) > 0) {
            ck_assert_uint_eq(backlog_of(server, atoi(entry->d_name)), 7);
            found++;
        }
    closedir(directory);
    ck_assert_uint_eq(found, 1);
}

static void answers_b(struct server *server)
{
    ck_assert_uint_eq(client_get(server->url, "/b", NULL), 200);
    ck_assert_uint_eq(client_get(server->url, "/hello", NULL), 404);
}

static void has_an_admin(struct server *server)
{
    ck_assert_uint_eq(client_get(listed_url(server, "admin", 0), "/healthz", NULL), 200);
}

static void watches(struct server *server)
{
    ck_assert(json_get(server_status(server), "watching")->type == JSON_TRUE);
}

/* The table. */

#define GROUP(group, key, value) group " = { " key " = " value " }\n"
#define TIMEOUT(key, value) BASE GROUP("timeouts", key, "\"" value "\"")
#define LIMIT(key, value) BASE GROUP("limits", key, value)

static const struct row {
    const char *key;
    const char *before, *after; /* configurations */
    const char *old, *new;      /* patterns: the values in the log; new NULL: it says "changed" */
    void (*effect)(struct server *server);
    const char *running; /* of `hayate config --running`; NULL: "KEY = NEW" */
} rows[] = {
    { "listen", BASE,
      "listen = [ \"127.0.0.1:0\", \"127.0.0.3:0\" ]\n" SERVER_CONTROL WORKERS ROUTES,
      "\\[ \"127.0.0.1:0\" \\]", "\\[ \"127.0.0.1:0\", \"127.0.0.3:0\" \\]", listens, NULL },
    { "workers", BASE, LISTEN SERVER_CONTROL ROUTES "workers = 2\n", "1", "2", has_two_workers,
      NULL },
    { "user", BASE "user = \"65534\"\n", BASE "user = \"65533\"\n", "65534", "65533", runs_as,
      "user = \"65533\"" },
    { "control", BASE, LISTEN WORKERS ROUTES "control = \"other.control\"\n",
      "[^ ]*/hayate\\.control", "[^ ]*/other\\.control", is_controlled_elsewhere, NULL },
    { "log", BASE, BASE "log = \"new.log\"\n", "stderr", "[^ ]*/new\\.log", logs_elsewhere, NULL },
    { "log_format", BASE, BASE "log_format = \"json\"\n", "text", "json", logs_json, NULL },
    { "log_level", BASE, BASE "log_level = \"debug\"\n", "info", "debug", logs_details, NULL },
    { "access_log", BASE, BASE "access_log = \"access\"\n", "off", "[^ ]*/access", logs_requests,
      NULL },
    { "access_log_format", BASE "access_log = \"access\"\n",
      BASE "access_log = \"access\"\naccess_log_format = \"json\"\n", "combined", "json",
      logs_requests_as_json, NULL },
    { "timeouts.header", TIMEOUT("header", "1h"), TIMEOUT("header", "50ms"), "1h", "50ms",
      times_out_in_a_head, NULL },
    { "timeouts.body", TIMEOUT("body", "1h"), TIMEOUT("body", "50ms"), "1h", "50ms",
      times_out_in_a_body, NULL },
    { "timeouts.idle", TIMEOUT("idle", "1h"), TIMEOUT("idle", "50ms"), "1h", "50ms",
      times_out_when_idle, NULL },
    { "timeouts.send", TIMEOUT("send", "1h"), TIMEOUT("send", "50ms"), "1h", "50ms",
      gives_up_sending, NULL },
    { "timeouts.drain", TIMEOUT("drain", "1h"), TIMEOUT("drain", "50ms"), "1h", "50ms", cuts_soon,
      NULL },
    { "timeouts.watchdog", TIMEOUT("watchdog", "0s"), TIMEOUT("watchdog", "200ms"), "0", "200ms",
      kills_what_hangs, NULL },
    { "limits.connections", LIMIT("connections", "100"), LIMIT("connections", "1"), "100", "1",
      has_room_for_one, NULL },
    { "limits.per_address", LIMIT("per_address", "0"), LIMIT("per_address", "1"), "0", "1",
      has_room_for_one_of_an_address, NULL },
    { "limits.header", LIMIT("header", "\"8k\""), LIMIT("header", "256"), "8k", "256",
      takes_short_heads, NULL },
    { "limits.body", LIMIT("body", "\"1k\""), LIMIT("body", "1"), "1k", "1", takes_short_bodies,
      NULL },
    { "limits.requests", LIMIT("requests", "0"), LIMIT("requests", "1"), "0", "1",
      answers_one_request, NULL },
    { "limits.backlog", LIMIT("backlog", "9"), LIMIT("backlog", "7"), "9", "7", queues_few, NULL },
    { "routes", BASE, LISTEN SERVER_CONTROL WORKERS "routes = ( { path = \"/b\" text = \"b\" } )\n",
      NULL, NULL, answers_b, "path = \"/b\"" },
    { "admin.listen", BASE, BASE SERVER_ADMIN, "\\[ \\]", "\\[ \"127.0.0.2:0\" \\]", has_an_admin,
      NULL },
    /* Its value is what is in the files that it names. */
    { "include", BASE, BASE "include = [ \"more.conf\" ]\n", NULL, NULL, times_out_when_idle,
      "idle = \"50ms\"" },
    { "watch", BASE, BASE "watch = true\n", "false", "true", watches, NULL },
    /* What it does at a stop is in check_stop. */
    { "drain_delay", BASE, BASE "drain_delay = \"50ms\"\n", "0", "50ms", NULL, NULL },
};

START_TEST(every_key_has_a_row)
{
    for (size_t i = 0; i < schema_nrows; i++) {
        bool is_found = schema_rows[i].type == SCHEMA_GROUP || schema_rows[i].type == SCHEMA_LATER;
        for (int k = 0; k < SUITE_ROWS(rows) && !is_found; k++)
            is_found = strcmp(rows[k].key, schema_rows[i].key) == 0;
        ck_assert_msg(is_found, "%s has no row", schema_rows[i].key);
    }
}
END_TEST

/* How the log tells of the change: this key and no other. */
static const char *change_of(const struct row *row, bool is_back)
{
    const char *old = is_back ? row->new : row->old, *new = is_back ? row->old : row->new;

    if (strcmp(row->key, "include") == 0)
        return is_back ? "timeouts\\.idle 50ms -> 60s" : "timeouts\\.idle 60s -> 50ms";
    if (new == NULL)
        return text_format("%s changed", row->key);
    return text_format("%s %s -> %s", row->key, old, new);
}

static void change(struct server *server, const struct row *row, bool is_back)
{
    const char *answer = server_expect(server, 0, LIST("reload"));
    const char *pattern =
        text_format("generation [0-9]+ serves; changed: %s\n?$", change_of(row, is_back));
    ck_assert_msg(text_matches(answer, pattern), "%s: %s, not %s", row->key, answer, pattern);
}

static void expect_running(const struct server *server, const struct row *row)
{
    const char *leaf = strrchr(row->key, '.') != NULL ? strrchr(row->key, '.') + 1 : row->key;
    const char *pattern =
        row->running != NULL ? row->running : text_format("%s = \"?%s\"?\n", leaf, row->new);
    const char *running = server_expect(server, 0, LIST("config", "--running"));
    ck_assert_msg(text_matches(running, pattern), "no %s in:\n%s", pattern, running);
}

START_TEST(key_is_reloaded)
{
    const struct row *row = &rows[_i];
    struct server server;

    scratch_write("more.conf", "timeouts = { idle = \"50ms\" }\n");
    server_start(&server, &(struct server_options){ .config = row->before });
    server_rewrite(&server, row->after);
    change(&server, row, false);
    if (strcmp(row->key, "log") != 0)
        server_await(&server, 0,
                     text_format("generation 2 serves; changed: %s",
                                 text_replace(change_of(row, false), "\"", ".*")));
    if (row->effect != NULL)
        row->effect(&server);
    expect_running(&server, row);
    server_rewrite(&server, row->before);
    if (strcmp(row->key, "watch") == 0) /* it comes by itself, once more */
        server_await(&server, 0, "generation 3 serves; changed: watch true -> false");
    else
        change(&server, row, true);
    server.control = scratch_path("hayate.control");
    ck_assert(text_matches(server_expect(&server, 0, LIST("reload")), "has not changed"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reload_keys");
    TCase *tests = suite_case(suite, "reload_keys");

    tcase_add_test(tests, every_key_has_a_row);
    tcase_add_loop_test(tests, key_is_reloaded, 0, SUITE_ROWS(rows));
    return suite_run(suite);
}
