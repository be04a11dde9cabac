#include "support/server.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/json.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

#define LIST_MAX 32

/* One list behind the other. */
static const char *const *concatenate(const char *const *first, const char *const *second)
{
    const char **list = text_allocate(LIST_MAX * sizeof *list);
    size_t count = 0;

    for (; first != NULL && *first != NULL; first++)
        list[count++] = *first;
    for (; second != NULL && *second != NULL; second++)
        list[count++] = *second;
    ck_assert(count < LIST_MAX);
    return list;
}

static int create(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);

    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    return fd;
}

void server_spawn(struct server *server, const struct server_options *options)
{
    *server = (struct server){ .name = options->name != NULL ? options->name : "hayate" };
    server->config = scratch_path(text_format("%s.conf", server->name));
    server->err = scratch_path(text_format("%s.err", server->name));
    server->control = scratch_path(text_format("%s.control", server->name));

    const char *const *arguments = options->arguments;
    if (options->config != NULL) {
        server_rewrite(server, options->config);
        arguments = concatenate(LIST("-c", server->config), arguments);
    }
    int out = create(scratch_path(text_format("%s.out", server->name)));
    int err = create(server->err);
    struct launch launch = {
        .arguments = arguments,
        .environment = options->environment,
        .prepare = options->prepare,
        .out = options->output != 0 ? options->output : out,
        .err = options->output != 0 ? options->output : err,
        .is_group = true,
    };
    process_start(&server->process, &launch);
    server->pid = server->process.pid;
    close(out);
    close(err);
}

/* "hayate 0.1.0 started in 1.3 ms: 2 workers, generation 1, http://0.0.0.0:8080 ..." */
static void read_start_line(struct server *server)
{
    const char *rest = text_extract(server->started, " started in [^:]*: (.*)$");

    ck_assert_msg(rest != NULL && sscanf(rest, "%u worker%*[s,] generation %u", &server->workers,
                                         &server->generation) == 2,
                  "start line: %s", server->started);
    /* In JSON, the text ends with a quote. */
    for (const char *url; (url = strstr(rest, "http")) != NULL && server->nurls < SERVER_URLS;) {
        size_t length = strcspn(url, " ,\"");
        server->urls[server->nurls++] = text_copy(url, length);
        rest = url + length;
    }
    ck_assert_msg(server->nurls > 0, "start line: %s", server->started);
    server->url = server->urls[0];
    const char *port = text_extract(server->url, ":([0-9]+)$");
    server->port = port != NULL ? (unsigned)atoi(port) : 0;
}

void server_start(struct server *server, const struct server_options *options)
{
    server_spawn(server, options);
    server->started = server_await(server, 0, " started in ");
    read_start_line(server);
}

void server_start_plain(struct server *server)
{
    server_start(server, &(struct server_options){ .config = SERVER_BASE "workers = 2\n" });
}

int server_wait(struct server *server)
{
    struct deadline deadline = deadline_start();
    int status = process_wait(&server->process);

    while (process_group(server->pid, NULL, 0) > 0)
        if (!deadline_wait(&deadline))
            ck_abort_msg("the master ended with %d, but left children:\n%s", status,
                         text_tail(server_log(server)));
    scratch_unguard(server->pid);
    return status;
}

int server_stop(struct server *server, int signal)
{
    server_signal(server, signal);
    return server_wait(server);
}

const char *server_expect_failure(struct server *server, const struct server_options *options,
                                  int status)
{
    server_spawn(server, options);
    int ended = server_wait(server);
    ck_assert_msg(ended == status, "exit %d, not %d:\n%s", ended, status,
                  text_tail(server_log(server)));
    return server_log(server);
}

void server_signal(const struct server *server, int signal)
{
    ck_assert_msg(kill(server->pid, signal) == 0, "kill: %s", strerror(errno));
}

void server_rewrite(const struct server *server, const char *config)
{
    scratch_write(text_format("%s.conf", server->name), config);
}

const char *server_log(const struct server *server)
{
    return text_read(server->err, 0, NULL);
}

size_t server_mark(const struct server *server)
{
    struct stat status;

    ck_assert(stat(server->err, &status) == 0);
    return (size_t)status.st_size;
}

const char *server_await_file(const struct server *server, const char *file, size_t mark,
                              const char *pattern)
{
    struct deadline deadline = deadline_start();
    const char *path = scratch_path(file);

    for (;;) {
        bool is_last_look = server->process.handle < 0 || process_has_ended(&server->process) ||
                            deadline_left(&deadline) == 0;
        const char *line = text_find_line(text_read(path, mark, NULL), pattern);
        if (line != NULL)
            return line;
        if (is_last_look) {
            struct process process = server->process;
            bool has_ended = process.handle >= 0 && process_has_ended(&process);
            int status = has_ended ? process_wait(&process) : 0;
            ck_abort_msg(
                "no line \"%s\" in %s (%s %d), where there is:\n%s\non standard error:\n%s",
                pattern, file, has_ended ? "ended:" : "runs:", status,
                text_tail(text_read(path, mark, NULL)), text_tail(text_read(server->err, 0, NULL)));
        }
        deadline_wait(&deadline);
    }
}

const char *server_await(const struct server *server, size_t mark, const char *pattern)
{
    return server_await_file(server, text_format("%s.err", server->name), mark, pattern);
}

unsigned server_count(const struct server *server, size_t mark, const char *pattern)
{
    return text_count_lines(text_read(server->err, mark, NULL), pattern);
}

void server_command(const struct server *server, struct outcome *outcome,
                    const char *const *arguments)
{
    process_run(outcome, concatenate(arguments, LIST("--control", server->control)));
}

const char *server_expect(const struct server *server, int status, const char *const *arguments)
{
    struct outcome outcome;

    server_command(server, &outcome, arguments);
    ck_assert_msg(outcome.status == status, "hayate %s: exit %d, not %d: %s%s\nlog:\n%s",
                  arguments[0], outcome.status, status, outcome.out, outcome.err,
                  text_tail(server_log(server)));
    return text_format("%s%s", outcome.out, outcome.err);
}

void server_reload(const struct server *server)
{
    server_expect(server, 0, LIST("reload"));
}

void server_replace(const struct server *server, unsigned workers)
{
    server_reload(server);
    WAIT_FOR(process_group(server->pid, NULL, 0) == workers + 1);
}

int server_connect_control(const struct server *server)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    strncpy(address.sun_path, server->control, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert(fd >= 0);
    ck_assert_msg(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "%s: %s",
                  server->control, strerror(errno));
    return fd;
}

const char *server_admin(const struct server *server)
{
    return text_extract(server_await(server, 0, "admin on "), "admin on (http[^ ]*)");
}

const struct json *server_status(const struct server *server)
{
    const char *text = server_expect(server, 0, LIST("status", "--json"));
    const struct json *status = json_parse(text);

    ck_assert_msg(status != NULL, "no JSON: %s", text);
    return status;
}

/* A process of this worker that is ready; 0 counts all. Returns their number. */
static unsigned find_workers(const struct server *server, unsigned worker, pid_t *pid)
{
    const struct json *list = json_get(server_status(server), "children");
    unsigned count = 0;

    for (unsigned i = 0; i < json_count(list); i++) {
        const struct json *entry = json_at(list, i);
        double number = json_number(json_get(entry, "worker"));
        if (strcmp(json_string(json_get(entry, "state")), "ready") != 0 || number < 1 ||
            (worker != 0 && number != worker))
            continue;
        *pid = (pid_t)json_number(json_get(entry, "pid"));
        count++;
    }
    return count;
}

pid_t server_worker(const struct server *server, unsigned worker)
{
    pid_t pid = 0;

    find_workers(server, worker, &pid);
    return pid;
}

pid_t server_await_worker(const struct server *server, unsigned worker, pid_t dead)
{
    pid_t pid;

    WAIT_FOR((pid = server_worker(server, worker)) > 0 && pid != dead);
    return pid;
}

pid_t server_kill_worker(const struct server *server, unsigned worker, int signal)
{
    pid_t pid = server_worker(server, worker);

    ck_assert_int_gt(pid, 0); /* else it would be for the whole process group */
    ck_assert_int_eq(kill(pid, signal), 0);
    return pid;
}

unsigned server_ready_workers(const struct server *server)
{
    pid_t pid;

    return find_workers(server, 0, &pid);
}

unsigned server_generation(const struct server *server)
{
    return (unsigned)json_number(json_get(server_status(server), "generation"));
}
