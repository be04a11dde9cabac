/* Binary upgrades: another program in the place of the master, or the old one that goes on. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/load.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/site.h"
#include "support/suite.h"
#include "support/text.h"

#define PATIENT "timeouts = { header = \"1h\" drain = \"1h\" }\n"
#define HELLO "routes = ( { path = \"/hello\" text = \"Hello\" } )\n"

/* The binary of the server: a copy, so that it can be replaced. */
#define BINARY "program"

static void copy_file(const char *from, const char *to, size_t most, mode_t mode)
{
    size_t length;
    const char *temporary = scratch_path("copy.tmp"), *data = text_read(from, 0, &length);

    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    ck_assert_int_ge(fd, 0);
    length = length < most ? length : most;
    for (size_t done = 0; done < length;) {
        ssize_t written = write(fd, data + done, length - done);
        ck_assert_int_gt(written, 0);
        done += (size_t)written;
    }
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
    ck_assert_int_eq(rename(temporary, to), 0);
}

static void install(void)
{
    copy_file(getenv("HAYATE"), scratch_path(BINARY), SIZE_MAX, 0755);
}

/* Starts the copy; commands are those of the original. */
static void start_with(struct server *server, const struct server_options *options)
{
    const char *original = text_format("%s", getenv("HAYATE"));

    install();
    setenv("HAYATE", scratch_path(BINARY), 1);
    server_spawn(server, options);
    setenv("HAYATE", original, 1);
    server->started = server_await(server, 0, " started in ");
    server->url = text_extract(server->started, "(http[^ ]*)");
}

static void start(struct server *server, const char *config)
{
    start_with(server, &(struct server_options){ .config = config });
}

static ino_t inode_of(const char *path)
{
    struct stat status;

    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_ino;
}

static ino_t running_inode(const struct server *server)
{
    return inode_of(text_format("/proc/%d/exe", (int)server->pid));
}

static const char *upgrade(const struct server *server, int status)
{
    return server_expect(server, status, LIST("upgrade"));
}

/* The master and that many workers, and nobody else, are there. */
static void await_processes(const struct server *server, unsigned workers)
{
    WAIT_FOR(process_group(server->pid, NULL, 0) == workers + 1);
}

static double number(const struct server *server, const char *name)
{
    return json_number(json_get(server_status(server), name));
}

/* The descriptors of a master that has buried all but so many children. */
static unsigned count_files(const struct server *server, unsigned children)
{
    WAIT_FOR(json_count(json_get(server_status(server), "children")) == children);
    server_status(server); /* so the turn of its loop that buried the last one is over */
    return process_count_files(server->pid);
}

/* Those that go well. */

START_TEST(new_binary_serves)
{
    struct deadline deadline = deadline_start();
    struct server server;
    struct client client;
    struct reply reply;

    start(&server, SERVER_BASE PATIENT "workers = 2\n");
    ino_t old = running_inode(&server);
    const char *since = json_string(json_get(server_status(&server), "started"));
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);

    install();
    const char *answer = upgrade(&server, 0);
    ck_assert_msg(text_matches(answer, "^upgraded from .* to .* in .* ms: generation 2 serves"),
                  "%s", answer);
    ck_assert(running_inode(&server) != old);
    ck_assert_uint_eq(running_inode(&server), inode_of(scratch_path(BINARY)));
    const struct json *status = server_status(&server);
    ck_assert_int_eq((pid_t)json_number(json_get(status, "pid")), server.pid);
    ck_assert_uint_eq(server_generation(&server), 2);
    ck_assert_uint_eq(server_ready_workers(&server), 2);
    ck_assert_str_eq(json_string(json_get(status, "started")), since);
    ck_assert_int_eq((int)json_number(json_get(status, "upgrades")), 1);
    ck_assert(text_matches(server_expect(&server, 0, LIST("status")),
                           "last upgrade: succeeded at .*: upgraded from"));
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);

    /* The old connection gets an answer more, and is told that it is the last. */
    do {
        client_send_get(&client, "/hello");
        client_expect(&client, &reply, 200);
    } while (!reply.is_last && deadline_wait(&deadline));
    ck_assert(reply.is_last);
    ck_assert_msg(client_read_end(&client), "%s", client.fault);
    client_close(&client);
    await_processes(&server, 2);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(by_a_signal)
{
    struct server server;

    start(&server, SERVER_BASE "workers = 1\n");
    install();
    server_signal(&server, SIGUSR2);
    server_await(&server, 0, "info .*upgraded from .*generation 2 serves");
    ck_assert_uint_eq(running_inode(&server), inode_of(scratch_path(BINARY)));
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The configuration of the new one is that on disk. */
START_TEST(configuration_changes_too)
{
    struct server server;

    start_with(&server, &(struct server_options){ .config = SERVER_BASE "workers = 2\n",
                                                  .arguments = LIST("-o", "limits.requests=77") });
    server_rewrite(&server, SERVER_BASE "workers = 3\n");
    const char *answer = upgrade(&server, 0);
    ck_assert_msg(text_matches(answer, "workers 2 -> 3"), "%s", answer);
    ck_assert_uint_eq(server_ready_workers(&server), 3);
    ck_assert(
        text_matches(server_expect(&server, 0, LIST("config", "--running")), "requests = 77"));
    await_processes(&server, 3);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Admin listener, unix socket, logs, counters. */
START_TEST(all_that_it_holds_survives)
{
    struct server server;

    start(&server, SERVER_CONTROL SERVER_ADMIN
          "listen = [ \"127.0.0.1:0\", \"unix:${DIR}/socket\" ]\nworkers = 2\n"
          "access_log = \"access\"\nlimits = { per_address = 1000 }\n" HELLO);
    const char *local = text_format("http+unix:%s", scratch_path("socket"));
    const char *admin = server_admin(&server);
    ino_t socket_inode = inode_of(scratch_path("socket"));
    for (int round = 1; round <= 3; round++) {
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
        ck_assert_uint_eq(client_get(local, "/hello", NULL), 200);
        ck_assert_uint_eq(client_get(local, "/none", NULL), 404);
        ck_assert_uint_eq(client_get(admin, "/readyz", NULL), 200);
        ck_assert_uint_eq(inode_of(scratch_path("socket")), socket_inode);
        WAIT_FOR(number(&server, "requests") == 3. * round);
        const struct json *status = server_status(&server);
        const struct json *route = json_at(json_get(status, "routes"), 0);
        ck_assert_str_eq(json_string(json_get(route, "path")), "/hello");
        ck_assert_int_eq((int)json_number(json_get(json_get(route, "responses"), "2xx")),
                         2 * round);
        ck_assert_int_eq((int)json_number(json_get(json_get(status, "latency"), "count")),
                         3 * round);
        WAIT_FOR(text_count_lines(scratch_read("access"), "GET /hello") == 2U * (unsigned)round);
        install();
        upgrade(&server, 0);
        /* One of the old may still be there when the next upgrade comes. */
    }
    await_processes(&server, 3);
    ck_assert_int_eq(rename(scratch_path("access"), scratch_path("access.1")), 0);
    server_expect(&server, 0, LIST("reopen"));
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    server_await_file(&server, "access", 0, "GET /hello");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_int_eq(access(scratch_path("socket"), F_OK), -1);
}
END_TEST

/* A request of the first generation ends under the fourth binary. */
START_TEST(generations_drain_across_upgrades)
{
    struct server server;
    struct client half;
    struct reply reply;

    start(&server, SERVER_BASE PATIENT "workers = 1\n" HELLO);
    client_open(&half, server.url);
    client_send(&half, "GET /hello HTTP/1.1\r\nHo");
    WAIT_FOR(number(&server, "connections_accepted") == 1);
    server_rewrite(&server, SERVER_BASE PATIENT "workers = 1\n");
    server_reload(&server);
    for (int i = 0; i < 3; i++)
        upgrade(&server, 0);
    ck_assert_uint_eq(server_generation(&server), 5);
    await_processes(&server, 2);
    client_send(&half, "st: a\r\n\r\n");
    client_expect(&half, &reply, 200);
    ck_assert_str_eq(reply_body(&reply), "Hello");
    client_close(&half);
    await_processes(&server, 1);
    ck_assert_int_eq((int)number(&server, "requests"), 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* What it says of addresses is of the old binary: the line tells whose worker it was. */
START_TEST(old_worker_crashes)
{
    struct server server;
    struct client half;

    start(&server, SERVER_BASE PATIENT "workers = 1\n" HELLO);
    client_open(&half, server.url);
    client_send(&half, "GET /hello HTTP/1.1\r\nHo");
    WAIT_FOR(number(&server, "connections_accepted") == 1);
    pid_t old = server_worker(&server, 1);
    upgrade(&server, 0);
    ck_assert_int_eq(kill(old, SIGKILL), 0);
    const char *line = text_format("worker 1 \\(pid %d\\) of generation 1 killed by SIGKILL ", old);
    server_await(&server, 0, line);
    ck_assert(text_matches(
        json_string(json_get(json_get(server_status(&server), "last_crash"), "text")), line));
    client_close(&half);
    pid_t worker = server_worker(&server, 1);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    server_await(&server, 0, text_format("worker 1 \\(pid %d\\) killed by SIGKILL ", worker));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The worker that has accepted `count` connections; 0: none has. */
static unsigned worker_of(const struct server *server, unsigned generation, unsigned count)
{
    const struct json *list = json_get(server_status(server), "children");
    for (unsigned i = 0; i < json_count(list); i++) {
        const struct json *entry = json_at(list, i);
        if ((unsigned)json_number(json_get(entry, "generation")) == generation &&
            (unsigned)json_number(json_get(entry, "connections_accepted")) == count)
            return (unsigned)json_number(json_get(entry, "worker"));
    }
    return 0;
}

/* With limits.per_address the worker of an address stays the same. */
START_TEST(addresses_keep_their_worker)
{
    struct server server;

    start(&server, SERVER_BASE "workers = 8\nlimits = { per_address = 100 }\n" HELLO);
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    WAIT_FOR(worker_of(&server, 1, 20) > 0);
    unsigned worker = worker_of(&server, 1, 20);
    for (unsigned generation = 2; generation < 4; generation++) {
        upgrade(&server, 0);
        for (int i = 0; i < 20; i++)
            ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
        WAIT_FOR(worker_of(&server, generation, 20) == worker);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* What the new master has taken over it supervises as its own. */
START_TEST(workers_are_replaced_after_it)
{
    struct server server;

    start(&server, SERVER_BASE "workers = 2\n");
    upgrade(&server, 0);
    pid_t worker = server_worker(&server, 2);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    site_await_successor(&server, 2, worker);
    server_await(&server, 0, "worker 2 .*killed by SIGKILL");
    upgrade(&server, 0);
    server_reload(&server);
    await_processes(&server, 2);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(nothing_leaks)
{
    struct server server;

    start(&server, SERVER_BASE SERVER_ADMIN "workers = 2\naccess_log = \"access\"\n");
    upgrade(&server, 0);
    unsigned before = count_files(&server, 3);
    for (int i = 0; i < 5; i++) {
        install();
        upgrade(&server, 0);
        server_rewrite(&server, "wrokers = 1\n");
        upgrade(&server, 78);
        server_rewrite(&server, SERVER_BASE SERVER_ADMIN "workers = 2\naccess_log = \"access\"\n");
    }
    await_processes(&server, 3);
    ck_assert_uint_eq(count_files(&server, 3), before);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

static const char *const load_rows[] = {
    SERVER_BASE "workers = 2\n",
    SERVER_CONTROL "listen = \"unix:${DIR}/socket\"\nworkers = 2\n",
};

START_TEST(under_load_no_request_fails)
{
    struct server server;
    struct load_result result;

    start(&server, load_rows[_i]);
    struct load *load = load_start(server.url, "/hello", "Hello", 6, 3);
    for (unsigned round = 0; round < 5; round++) {
        load_await(load, 20);
        install();
        upgrade(&server, 0);
    }
    load_await(load, 20);
    load_stop(load, &result);
    ck_assert_msg(result.failed == 0, "%lu of %lu failed: %s", result.failed,
                  result.right + result.failed, result.failure);
    ck_assert_uint_ge(result.lasts, 6);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Trials that fail. */

static void put_nothing(void)
{
    ck_assert_int_eq(unlink(scratch_path(BINARY)), 0);
}

static void put_directory(void)
{
    put_nothing();
    ck_assert_int_eq(mkdir(scratch_path(BINARY), 0755), 0);
}

static void put_false(void)
{
    copy_file("/bin/false", scratch_path(BINARY), SIZE_MAX, 0755);
}

static void put_true(void)
{
    copy_file("/bin/true", scratch_path(BINARY), SIZE_MAX, 0755);
}

static void put_truncated(void)
{
    copy_file(getenv("HAYATE"), scratch_path(BINARY), 5000, 0755);
}

static void put_not_executable(void)
{
    copy_file(getenv("HAYATE"), scratch_path(BINARY), SIZE_MAX, 0644);
}

/* Its child holds on to all that it got, too. */
static void put_sleeper(void)
{
    scratch_write("sleeper", "#!/bin/sh\nsleep 3600\n");
    copy_file(scratch_path("sleeper"), scratch_path(BINARY), SIZE_MAX, 0755);
}

static const struct {
    const char *name;
    void (*put)(void);
    const char *config; /* NULL: as it was */
    int status;
    const char *reason;
} trial_rows[] = {
    { "no file", put_nothing, NULL, 1, "cannot open .*program: No such file" },
    { "a directory", put_directory, NULL, 1, "cannot be executed: " },
    { "/bin/false", put_false, NULL, 1, "exited with status 1 without a word" },
    { "/bin/true", put_true, NULL, 1, "exited with status 0 without a word" },
    { "a truncated file", put_truncated, NULL, 1, "killed by signal|cannot be executed" },
    { "not executable", put_not_executable, NULL, 1, "cannot be executed: Permission denied" },
    { "a script that sleeps", put_sleeper, NULL, 1, "did not answer its own first request within" },
    { "a bad configuration", install, "wrokers = 2\n", 78,
      "hayate\\.conf:1: unknown key \"wrokers\"" },
};

START_TEST(failing_trial_changes_nothing)
{
    struct server server;
    struct client client;
    struct reply reply;
    static const char config[] = SERVER_BASE "workers = 2\n";

    start(&server, config);
    pid_t workers[] = { server_worker(&server, 1), server_worker(&server, 2) };
    unsigned files = process_count_files(server.pid);
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);

    trial_rows[_i].put();
    if (trial_rows[_i].config != NULL)
        server_rewrite(&server, trial_rows[_i].config);
    const char *answer = upgrade(&server, trial_rows[_i].status);
    ck_assert_msg(text_matches(answer, "^upgrade failed, hayate .* goes on: ") &&
                      text_matches(answer, trial_rows[_i].reason),
                  "%s: %s", trial_rows[_i].name, answer);
    server_await(&server, 0, "error .*upgrade failed, hayate .* goes on: ");
    ck_assert(text_matches(server_expect(&server, 0, LIST("status")), "last upgrade: failed at"));
    ck_assert_int_eq((int)number(&server, "upgrade_failures"), 1);
    ck_assert_uint_eq(server_generation(&server), 1);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(server_worker(&server, i + 1), workers[i]);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    ck_assert_msg(!reply.is_last, "the failed upgrade ends connections");
    client_close(&client);
    await_processes(&server, 2);
    WAIT_FOR(process_count_files(server.pid) == files);

    rmdir(scratch_path(BINARY));
    install();
    server_rewrite(&server, config);
    upgrade(&server, 0);
    ck_assert_uint_gt(server_generation(&server), 1);
    ck_assert_uint_eq(running_inode(&server), inode_of(scratch_path(BINARY)));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* A trial that ends in the worker's part of it, which gives no exit status. */
START_TEST(wrong_answer_in_the_trial)
{
    struct server server;

    if (suite_lacks_faults())
        return;
    start(&server, SERVER_BASE "workers = 1\n");
    server_rewrite(&server, SERVER_BASE "routes = ( { path = \"/hello\" fault = \"wrong\" } )\n");
    const char *answer = upgrade(&server, 1);
    ck_assert_msg(text_matches(answer, "its own first request got the wrong status"), "%s", answer);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* What is being served can be taken over, whatever has become of the places it names. */
START_TEST(folder_of_the_log_has_gone)
{
    struct server server;

    ck_assert_int_eq(mkdir(scratch_path("logs"), 0755), 0);
    start(&server, SERVER_BASE "workers = 1\naccess_log = \"logs/access\"\n");
    ck_assert_int_eq(rename(scratch_path("logs"), scratch_path("moved")), 0);
    ck_assert(text_matches(upgrade(&server, 78), "logs/access cannot be created"));
    server_rewrite(&server, SERVER_BASE "workers = 1\n");
    ck_assert(text_matches(upgrade(&server, 0), "access_log .* -> off"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Going back, after the exec. */

#define NO_FOLDER                                                                \
    SERVER_CONTROL "listen = [ \"127.0.0.1:0\", \"unix:${DIR}/none/socket\" ]\n" \
                   "workers = 2\n"

static const struct {
    const char *name;
    const char *config; /* %u: a port that is taken */
    const char *reason;
    bool needs_faults;
} back_rows[] = {
    { "an address that is taken", SERVER_CONTROL "listen = [ \"127.0.0.1:0\", \"127.0.0.1:%u\" ]\n",
      "already in use", false },
    { "a folder that is missing", NO_FOLDER "# %u\n", "cannot bind unix:.*No such file", false },
    { "workers that crash",
      SERVER_BASE "# %u\nroutes = ( { path = \"/hello\" fault = \"late\" } )\n", "worker .*SIGABRT",
      true },
    { "workers that say nothing",
      SERVER_BASE "# %u\nroutes = ( { path = \"/hello\" fault = \"mute\" } )\n",
      "worker .*said nothing", true },
};

START_TEST(goes_back)
{
    struct server server, other;
    struct client client;
    struct reply reply;
    static const char config[] = SERVER_BASE SERVER_ADMIN "workers = 2\n" HELLO;

    if (back_rows[_i].needs_faults && suite_lacks_faults())
        return;
    server_start(&other, &(struct server_options){ .config = "listen = [ \"127.0.0.1:0\" ]\n"
                                                             "control = \"off\"\n",
                                                   .name = "other" });
    start(&server, config);
    pid_t workers[] = { server_worker(&server, 1), server_worker(&server, 2) };
    ino_t old = running_inode(&server);
    client_open(&client, server.url);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);

    install();
    server_rewrite(&server,
                   text_replace(back_rows[_i].config, "%u", text_format("%u", other.port)));
    unsigned files = process_count_files(server.pid);
    for (int i = 1; i <= 2; i++) {
        const char *answer = upgrade(&server, 1);
        ck_assert_msg(text_matches(answer, "^upgrade failed, hayate .* goes on: ") &&
                          text_matches(answer, back_rows[_i].reason),
                      "%s: %s", back_rows[_i].name, answer);
        ck_assert_int_eq((int)number(&server, "upgrade_failures"), i);
        ck_assert_uint_eq(running_inode(&server), old);
        ck_assert_uint_eq(server_generation(&server), 1);
        for (unsigned k = 0; k < 2; k++)
            ck_assert_int_eq(server_worker(&server, k + 1), workers[k]);
    }
    await_processes(&server, 3);
    WAIT_FOR(process_count_files(server.pid) == files);
    client_send_get(&client, "/hello");
    client_expect(&client, &reply, 200);
    ck_assert_msg(!reply.is_last, "the failed upgrade ends connections");
    client_close(&client);
    ck_assert_uint_eq(client_get(server_admin(&server), "/readyz", NULL), 200);
    ck_assert(text_matches(server_expect(&server, 0, LIST("status")), "differs on disk"));

    /* It replaces a worker by the configuration that it serves, and is as able as before. */
    ck_assert_int_eq(kill(workers[0], SIGKILL), 0);
    site_await_successor(&server, 1, workers[0]);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    server_rewrite(&server, config);
    server_reload(&server);
    upgrade(&server, 0);
    ck_assert_uint_eq(running_inode(&server), inode_of(scratch_path(BINARY)));
    await_processes(&server, 3);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_int_eq(server_stop(&other, SIGTERM), 0);
}
END_TEST

/* What the new one cannot take over it gives back untouched. */
START_TEST(gives_back)
{
    struct server server;
    static const char config[] = SERVER_BASE SERVER_ADMIN "workers = 2\n";

    if (suite_lacks_faults())
        return;
    start_with(&server, &(struct server_options){ .config = config,
                                                  .environment = LIST("HAYATE_FAULT_ADOPT=1") });
    pid_t worker = server_worker(&server, 1);
    unsigned files = process_count_files(server.pid);
    for (int i = 1; i <= 2; i++) {
        const char *answer = upgrade(&server, 1);
        ck_assert_msg(text_matches(answer, "^upgrade failed, hayate .* goes on: a fault"), "%s",
                      answer);
        ck_assert_int_eq(server_worker(&server, 1), worker);
    }
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    WAIT_FOR(process_count_files(server.pid) == files);
    server_reload(&server);
    ck_assert_uint_eq(server_generation(&server), 2);
    await_processes(&server, 3);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* It sees what changes from then on. */
START_TEST(goes_back_to_watching)
{
    struct server server;

    start(&server, SERVER_BASE "workers = 1\nwatch = true\n");
    server_rewrite(&server, NO_FOLDER);
    upgrade(&server, 1);
    ck_assert(json_get(server_status(&server), "watching")->type == JSON_TRUE);
    server_rewrite(&server, SERVER_BASE "workers = 2\nwatch = true\n");
    server_await(&server, 0, "reloaded in .*: generation .* serves; changed: workers 1 -> 2");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(going_back_under_load)
{
    struct server server;
    struct load_result result;

    start(&server, SERVER_BASE "workers = 2\n");
    server_rewrite(&server, NO_FOLDER);
    struct load *load = load_start(server.url, "/hello", "Hello", 6, 3);
    for (unsigned round = 0; round < 5; round++) {
        load_await(load, 20);
        upgrade(&server, 1);
    }
    load_await(load, 20);
    load_stop(load, &result);
    ck_assert_msg(result.failed == 0, "%lu of %lu failed: %s", result.failed,
                  result.right + result.failed, result.failure);
    ck_assert_uint_eq(result.lasts, 0);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Several things at once. */

static const char *read_answer(int fd)
{
    char text[2048] = "";
    size_t length = 0;

    for (ssize_t got = 1; got > 0 && length < sizeof text - 1; length += (size_t)got)
        ck_assert_int_ge(got = read(fd, text + length, sizeof text - 1 - length), 0);
    close(fd);
    return text_format("%s", text);
}

static void ask(int fd, const char *command)
{
    ck_assert_int_eq(send(fd, command, strlen(command), MSG_NOSIGNAL), (ssize_t)strlen(command));
}

/* Where the old binary may not be executed any more, the new one goes on with the old workers. */
START_TEST(no_way_back)
{
    struct server server;

    if (suite_lacks_faults())
        return;
    start(&server, SERVER_BASE "workers = 1\nwatch = true\n");
    pid_t worker = server_worker(&server, 1);
    ck_assert_int_eq(link(scratch_path(BINARY), scratch_path("old")), 0);
    install();
    server_rewrite(&server, SERVER_BASE "workers = 1\nwatch = true\n"
                                        "routes = ( { path = \"/hello\" fault = \"mute\" } )\n");
    int waiting = server_connect_control(&server);
    ask(waiting, "upgrade\n");
    server_await(&server, 0, "worker 1 .*started, generation 2");
    ck_assert_int_eq(chmod(scratch_path("old"), 0644), 0);
    const char *answer = read_answer(waiting);
    ck_assert_msg(text_matches(answer,
                               "^1\nupgrade failed, .*said nothing.*; and it cannot go back "
                               "to the old binary: Permission denied\n"),
                  "%s", answer);
    ck_assert_uint_eq(running_inode(&server), inode_of(scratch_path(BINARY)));
    ck_assert_int_eq(server_worker(&server, 1), worker);
    ck_assert_uint_eq(client_get(server.url, "/hello", NULL), 200);
    ck_assert(json_get(server_status(&server), "watching")->type == JSON_TRUE);
    server_rewrite(&server, SERVER_BASE "workers = 2\nwatch = true\n");
    server_reload(&server);
    upgrade(&server, 0);
    ck_assert_uint_eq(server_ready_workers(&server), 2);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Who has said nothing yet, or half of it, is not lost by the exec. */
START_TEST(control_clients_survive)
{
    struct server server;

    start(&server, SERVER_BASE "workers = 1\n");
    int silent = server_connect_control(&server), half = server_connect_control(&server);
    ask(half, "sta");
    upgrade(&server, 0);
    ask(half, "tus\n");
    ask(silent, "status\n");
    ck_assert_msg(text_matches(read_answer(half), "^0\nhayate .*generation 2"), "half");
    ck_assert_msg(text_matches(read_answer(silent), "^0\nhayate .*generation 2"), "silent");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Asked for in one turn of the loop, in this order. */
static const struct {
    const char *first, *second, *answer_first, *answer_second;
    unsigned generation;
} pair_rows[] = {
    { "upgrade\n", "reload\n", "^0\nupgraded .*generation 2", "^0\ngeneration 3 serves", 3 },
    { "reload\n", "upgrade\n", "^0\ngeneration 2 serves", "^0\nupgraded .*generation 3", 3 },
    { "upgrade\n", "upgrade\n", "^0\nupgraded .*generation 2", "^1\nrefused: another upgrade", 2 },
    { "upgrade\n", "reopen\n", "^0\nupgraded .*generation 2", "^0\nreopened", 2 },
    { "reopen\n", "upgrade\n", "^0\nreopened", "^0\nupgraded .*generation 2", 2 },
};

START_TEST(two_at_once)
{
    struct server server;

    start(&server, SERVER_BASE "workers = 2\naccess_log = \"access\"\n");
    int first = server_connect_control(&server), second = server_connect_control(&server);
    server_expect(&server, 0, LIST("status")); /* both are accepted by now */
    ck_assert_int_eq(kill(server.pid, SIGSTOP), 0);
    ask(first, pair_rows[_i].first);
    ck_assert_int_eq(kill(server.pid, SIGCONT), 0);
    server_await(&server, 0, "control: |logs reopened");
    ask(second, pair_rows[_i].second);
    const char *answer = read_answer(first);
    ck_assert_msg(text_matches(answer, pair_rows[_i].answer_first), "%s", answer);
    answer = read_answer(second);
    ck_assert_msg(text_matches(answer, pair_rows[_i].answer_second), "%s", answer);
    ck_assert_uint_eq(server_generation(&server), pair_rows[_i].generation);
    await_processes(&server, 2);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* A reload that is asked for while a trial runs comes after it, although it fails. */
START_TEST(reload_after_a_failing_trial)
{
    struct server server;

    start(&server, SERVER_BASE "workers = 2\n");
    put_sleeper();
    int first = server_connect_control(&server), second = server_connect_control(&server);
    ask(first, "upgrade\n");
    server_await(&server, 0, "control: upgrading");
    ask(second, "reload\n");
    server_signal(&server, SIGHUP);
    ck_assert(text_matches(read_answer(first), "^1\nupgrade failed"));
    ck_assert(text_matches(read_answer(second), "^0\ngeneration 2 serves"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Reloads that follow one another do not put an upgrade off: it comes after the one that ran. */
START_TEST(upgrade_comes_before_the_next_reload)
{
    struct server server;

    if (suite_lacks_faults())
        return;
    start(&server, SERVER_BASE "workers = 1\n");
    int clients[3];
    for (int i = 0; i < 3; i++)
        clients[i] = server_connect_control(&server);
    server_rewrite(&server, SERVER_BASE "workers = 1\n"
                                        "routes = ( { path = \"/hello\" fault = \"mute\" } )\n");
    ask(clients[0], "reload\n"); /* takes its time */
    server_await(&server, 0, "worker 1 .*started, generation 2");
    server_rewrite(&server, SERVER_BASE "workers = 1\n");
    size_t mark = server_mark(&server);
    ask(clients[1], "reload\n");
    server_await(&server, mark, "control: reloading");
    ask(clients[2], "upgrade\n");
    ck_assert(text_matches(read_answer(clients[0]), "^1\nreload failed"));
    const char *answer = read_answer(clients[2]);
    ck_assert_msg(text_matches(answer, "^0\nupgraded .*generation 3"), "%s", answer);
    answer = read_answer(clients[1]);
    ck_assert_msg(text_matches(answer, "^0\ngeneration 4 serves"), "%s", answer);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(stop_ends_a_trial)
{
    struct server server;

    start(&server, SERVER_BASE "workers = 2\n");
    put_sleeper();
    int waiting = server_connect_control(&server);
    ask(waiting, "upgrade\n");
    server_await(&server, 0, "control: upgrading");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
    ck_assert_str_eq(read_answer(waiting), "1\nrefused: a stop is in progress\n");
}
END_TEST

/* At any moment of an upgrade a stop is a stop. */
START_TEST(stop_beside_an_upgrade)
{
    struct server server;

    start(&server, SERVER_BASE "workers = 2\n");
    server_signal(&server, SIGUSR2);
    if (_i > 0)
        server_await(&server, 0, _i == 1 ? "SIGUSR2: upgrading" : "worker . .*generation 2");
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(legacy_of_nobody)
{
    struct server server;
    static const char *const values[] = { "0", "99", "x" };

    for (int i = 0; i < SUITE_ROWS(values); i++) {
        const char *variable = text_format("HAYATE_LEGACY_FD=%s", values[i]);
        const char *trial = text_format("HAYATE_TRIAL_FD=%s", values[i]);
        const char *log = server_expect_failure(
            &server,
            &(struct server_options){ .config = SERVER_BASE, .environment = LIST(variable) }, 1);
        ck_assert_msg(text_matches(log, "cannot take over"), "%s", log);
        server_expect_failure(
            &server, &(struct server_options){ .config = SERVER_BASE, .environment = LIST(trial) },
            1);
    }
}
END_TEST

int main(void)
{
    if (getenv("HAYATE_VALGRIND") != NULL) {
        puts("1..0 # SKIP the program that runs is that of valgrind");
        return EXIT_SUCCESS;
    }
    Suite *suite = suite_create("upgrade");
    TCase *tests = suite_case(suite, "upgrade");

    tcase_add_test(tests, new_binary_serves);
    tcase_add_test(tests, by_a_signal);
    tcase_add_test(tests, configuration_changes_too);
    tcase_add_test(tests, all_that_it_holds_survives);
    tcase_add_test(tests, generations_drain_across_upgrades);
    tcase_add_test(tests, old_worker_crashes);
    tcase_add_test(tests, addresses_keep_their_worker);
    tcase_add_test(tests, workers_are_replaced_after_it);
    tcase_add_test(tests, nothing_leaks);
    tcase_add_loop_test(tests, under_load_no_request_fails, 0, SUITE_ROWS(load_rows));
    tcase_add_loop_test(tests, failing_trial_changes_nothing, 0, SUITE_ROWS(trial_rows));
    tcase_add_test(tests, wrong_answer_in_the_trial);
    tcase_add_test(tests, folder_of_the_log_has_gone);
    tcase_add_loop_test(tests, goes_back, 0, SUITE_ROWS(back_rows));
    tcase_add_test(tests, gives_back);
    tcase_add_test(tests, goes_back_to_watching);
    tcase_add_test(tests, going_back_under_load);
    tcase_add_test(tests, no_way_back);
    tcase_add_test(tests, control_clients_survive);
    tcase_add_loop_test(tests, two_at_once, 0, SUITE_ROWS(pair_rows));
    tcase_add_test(tests, reload_after_a_failing_trial);
    tcase_add_test(tests, upgrade_comes_before_the_next_reload);
    tcase_add_test(tests, stop_ends_a_trial);
    tcase_add_loop_test(tests, stop_beside_an_upgrade, 0, 3);
    tcase_add_test(tests, legacy_of_nobody);
    return suite_run(suite);
}
