/* Reloads under load: not one request fails. */

#include <signal.h>

#include "support/load.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"

/* Under load. */

static void count_up_and_down(const struct server *server, unsigned round)
{
    static const unsigned counts[] = { 3, 1, 4, 2, 1, 6, 2 };

    server_rewrite(server,
                   text_format(SERVER_BASE "workers = %u\n", counts[round % SUITE_ROWS(counts)]));
}

static void change_routes(const struct server *server, unsigned round)
{
    server_rewrite(server, text_format(SERVER_BASE "workers = 2\nroutes = ( { path = \"/hello\" "
                                                   "text = \"Hello\" },\n{ path = \"/%u\" "
                                                   "text = \"%u\" } )\n",
                                       round, round));
}

static void add_and_remove_addresses(const struct server *server, unsigned round)
{
    server_rewrite(server,
                   text_format(SERVER_CONTROL "workers = 2\nlisten = [ \"127.0.0.1:0\"%s ]\n",
                               round % 2 == 0 ? ", \"127.0.0.2:0\"" : ""));
}

static void break_every_other(const struct server *server, unsigned round)
{
    server_rewrite(server,
                   text_format(SERVER_BASE "%s = 2\n", round % 2 == 0 ? "wrokers" : "workers"));
}

static const struct {
    const char *name;
    const char *config;
    void (*change)(const struct server *server, unsigned round);
    bool may_fail;
} load_rows[] = {
    { "the same file", SERVER_BASE "workers = 2\n", NULL, false },
    { "one worker", SERVER_BASE "workers = 1\n", NULL, false },
    { "worker count up and down", SERVER_BASE "workers = 2\n", count_up_and_down, false },
    { "routes", SERVER_BASE "workers = 2\n", change_routes, false },
    { "addresses", SERVER_BASE "workers = 2\n", add_and_remove_addresses, false },
    { "every other one fails", SERVER_BASE "workers = 2\n", break_every_other, true },
    { "a unix socket", SERVER_CONTROL "listen = \"unix:${DIR}/socket\"\nworkers = 2\n", NULL,
      false },
};

START_TEST(under_load_no_request_fails)
{
    struct server server;
    struct load_result result;
    struct outcome outcome;

    server_start(&server, &(struct server_options){ .config = load_rows[_i].config });
    struct load *load = load_start(server.url, "/hello", "Hello", 6, 3);
    for (unsigned round = 0; round < 20; round++) {
        load_await(load, 5);
        if (load_rows[_i].change != NULL)
            load_rows[_i].change(&server, round);
        server_command(&server, &outcome, LIST("reload"));
        ck_assert_msg(outcome.status == 0 || load_rows[_i].may_fail, "%s%s", outcome.out,
                      outcome.err);
    }
    load_await(load, 5);
    load_stop(load, &result);
    ck_assert_msg(result.failed == 0, "%lu of %lu failed: %s", result.failed,
                  result.right + result.failed, result.failure);
    /* The connections were told that they end, rather than cut. */
    ck_assert_uint_ge(result.lasts, 6);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("load");
    TCase *tests = suite_case(suite, "load");

    tcase_add_loop_test(tests, under_load_no_request_fails, 0, SUITE_ROWS(load_rows));
    return suite_run(suite);
}
