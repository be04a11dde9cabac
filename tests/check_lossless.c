/* Nothing is lost while the server changes: 500 new connections a second, clients that keep theirs
 * and pause, and clients that are idle all the while. check_load has the same without a pause, for
 * every kind of reload. */

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "support/client.h"
#include "support/load.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

/* What is idle stays until it asks again. */
#define PATIENT "timeouts = { drain = \"1h\" idle = \"1h\" }\n"
#define ROUNDS 20
#define IDLE 30

static void reload(const struct server *server, unsigned round)
{
    (void)round;
    server_reload(server);
}

static void change_worker_count(const struct server *server, unsigned round)
{
    static const unsigned counts[] = { 3, 1, 4, 2, 1, 6 };

    server_rewrite(server, text_format(SERVER_BASE PATIENT "workers = %u\n",
                                       counts[round % SUITE_ROWS(counts)]));
    server_reload(server);
    ck_assert_uint_eq(server_ready_workers(server), counts[round % SUITE_ROWS(counts)]);
}

static void upgrade(const struct server *server, unsigned round)
{
    (void)round;
    server_expect(server, 0, LIST("upgrade"));
}

static const struct {
    const char *name;
    void (*change)(const struct server *server, unsigned round);
} rows[] = {
    { "reloads", reload },
    { "worker counts up and down", change_worker_count },
    { "upgrades", upgrade },
};

static bool is_skipped(int row)
{
    return rows[row].change == upgrade && suite_has_valgrind() &&
           suite_skip("the program that runs is that of valgrind");
}

static void start(struct server *server)
{
    server_start(server, &(struct server_options){ .config = SERVER_BASE PATIENT "workers = 2\n" });
}

/* The figures, for whoever reads the log of the test. */
static void tell(const char *name, const struct load_result *result)
{
    const char *line =
        text_format("# %d %s: %lu connections, %lu requests: %lu refused, %lu "
                    "reset, %lu failed; %lu connections were told to end\n",
                    ROUNDS, name, result->connections, result->right + result->failed,
                    result->refused, result->reset, result->failed, result->lasts);
    ssize_t written = write(STDOUT_FILENO, line, strlen(line));
    (void)written;
}

START_TEST(no_request_fails)
{
    struct server server;
    struct load_result result;

    if (is_skipped(_i))
        return;
    start(&server);
    struct load *load = load_start_plan(&(struct load_plan){ .url = server.url,
                                                             .path = "/hello",
                                                             .body = "Hello",
                                                             .persistent = 20,
                                                             .pause = 50,
                                                             .fresh = 10,
                                                             .rate = 500 });
    for (unsigned round = 0; round < ROUNDS; round++) {
        load_await(load, 3);
        rows[_i].change(&server, round);
        ck_assert_uint_eq(server_generation(&server), round + 2);
    }
    load_await(load, 3);
    load_stop(load, &result);
    tell(rows[_i].name, &result);
    ck_assert_msg(result.failed == 0, "%lu of %lu failed: %s", result.failed,
                  result.right + result.failed, result.failure);
    /* Each had an answer in each round, so each was told at least once every other round. */
    ck_assert_uint_ge(result.lasts, 20 * ROUNDS / 2);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Connections that slept through all of it have an answer, are told that it is the last, and end
 * in order. */
START_TEST(idle_clients_get_one_more_answer)
{
    struct server server;
    struct client clients[IDLE];
    struct reply reply;

    if (is_skipped(_i))
        return;
    start(&server);
    for (unsigned i = 0; i < IDLE; i++) {
        client_open(&clients[i], server.url);
        client_send_get(&clients[i], "/hello");
        client_expect(&clients[i], &reply, 200);
        ck_assert(!reply.is_last);
    }
    for (unsigned round = 0; round < 3; round++)
        rows[_i].change(&server, round);
    for (unsigned i = 0; i < IDLE; i++) {
        struct deadline deadline = deadline_start();
        ck_assert(client_is_silent(&clients[i]));
        /* A worker may hear of the change only after the next request. */
        do {
            client_send_get(&clients[i], "/hello");
            client_expect(&clients[i], &reply, 200);
            ck_assert_str_eq(reply_body(&reply), "Hello");
        } while (!reply.is_last && deadline_wait(&deadline));
        ck_assert(reply.is_last);
        ck_assert_msg(client_read_end(&clients[i]), "%s", clients[i].fault);
        client_close(&clients[i]);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lossless");
    TCase *tests = suite_case(suite, "lossless");

    tcase_add_loop_test(tests, no_request_fails, 0, SUITE_ROWS(rows));
    tcase_add_loop_test(tests, idle_clients_get_one_more_answer, 0, SUITE_ROWS(rows));
    return suite_run(suite);
}
