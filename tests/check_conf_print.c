/*
 * A configuration printed, loaded and printed again; and two of them compared.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "conf/conf.h"
#include "conf/expand.h"
#include "conf/print.h"
#include "conf/value.h"
#include "support/kinds.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

static struct conf *load_text(const char *text)
{
    const struct conf_request request = { "hayate.conf", NULL, kinds_table() };
    struct conf_error error;
    ck_assert_int_eq(chdir(scratch_path("")), 0);
    scratch_write("hayate.conf", text);
    struct conf *conf = conf_load(&request, &error);
    ck_assert_msg(conf != NULL, "%s\n%s", text, error.text);
    return conf;
}

static const char *print(const struct conf *conf)
{
    struct buf out = { 0 };
    ck_assert_int_eq(conf_print(&out, conf), 0);
    const char *text = text_copy(out.data, out.length);
    buf_fini(&out);
    return text;
}

static const char *const texts[] = {
    "",
    "routes = ( )\n",
    "listen = [ \"unix:x\\\"\\\\y\", \"*:0\" ] workers = 7\n",
    "control = \"off\" access_log = \"a b\" log = \"l\"\n",
    "limits = { connections = 0 per_address = 10000000 header = \"257\" body = \"1024g\"\n"
    "  requests = 2147483647 }\n",
    "timeouts = { header = \"61s\" body = \"120s\" idle = \"3600s\" send = \"1500ms\" drain = 0 "
    "}\n",
    "user = \"0\"\n",
    "admin = { listen = ( { address = \"127.0.0.1:9\" } ) }\n",
    "routes = ( { path = \"/a\" text = \"a\\n\\r\\t\\f\\\\\\\"\\x01\\x7f\\xff\\xc3\\xa9 \xc3\xa9\" "
    "},\n"
    "  { path = \"/b\" text = \"$${X} $$${X} $ $$ ${HOME}\" headers = { A = [ \"1\", \"2\" ]\n"
    "    B = \"3\" } methods = [ \"GET\", \"HEAD\" ] type = \"\" delay = \"90s\" status = 404 } "
    ")\n",
    "routes = ( { path = \"/\" sample = \"\" file = \"f\" flag = false number = -5 size = 1 wait = "
    "0\n"
    "  code = 3 colour = \"red\" words = [ \"\", \"${NONE:-}\" ] fields = { } },\n"
    "  { path = \"/2\" sample = \"\" number = 1000000000000L } )\n",
};

START_TEST(round_trips)
{
    setenv("HOME", "/a$${b}\"\\\n", 1);
    struct conf *conf = load_text(texts[_i]);
    const char *first = print(conf);
    conf_free(conf);
    conf = load_text(first);
    ck_assert_str_eq(print(conf), first);
    conf_free(conf);
}
END_TEST

START_TEST(everything_is_printed)
{
    unsetenv("PORT");
    struct conf *conf = load_text("control = \"off\" user = \"0\" workers = 2\n"
                                  "routes = ( { path = \"/\" text = \"\\xC3x$${\"\n"
                                  "  headers = { A = [ \"1\", \"2\" ] } delay = \"5s\" } )\n");
    const char *text = print(conf);
    ck_assert_str_eq(text, text_format("listen = [ \"*:8080\" ]\n"
                                       "workers = 2\n"
                                       "%s"
                                       "control = \"off\"\n"
                                       "log = \"stderr\"\n"
                                       "log_format = \"text\"\n"
                                       "log_level = \"info\"\n"
                                       "access_log = \"off\"\n"
                                       "access_log_format = \"combined\"\n"
                                       "timeouts = {\n"
                                       "    header = \"10s\"\n"
                                       "    body = \"30s\"\n"
                                       "    idle = \"60s\"\n"
                                       "    send = \"30s\"\n"
                                       "    drain = \"30s\"\n"
                                       "    watchdog = \"10s\"\n"
                                       "}\n"
                                       "limits = {\n"
                                       "    connections = 10000\n"
                                       "    per_address = 0\n"
                                       "    header = \"16k\"\n"
                                       "    body = \"1m\"\n"
                                       "    requests = 0\n"
                                       "    backlog = 4096\n"
                                       "}\n"
                                       "routes = (\n"
                                       "    { path = \"/\"  text = \"\\xC3x$${\"  "
                                       "headers = { A = [ \"1\", \"2\" ] }  delay = \"5s\" }\n"
                                       ")\n"
                                       "admin = {\n"
                                       "    listen = [ ]\n"
                                       "}\n"
                                       "include = [ ]\n"
                                       "watch = false\n"
                                       "drain_delay = \"0\"\n",
                                       geteuid() == 0 ? "user = \"0\"\n" : ""));
    conf_free(conf);
}
END_TEST

struct diff_row {
    const char *before, *after, *diff;
};

static const struct diff_row diff_rows[] = {
    { "workers = 2", "workers = 2 # still", "" },
    { "workers = 2", "workers = 4", "workers 2 -> 4" },
    { "workers = 2", "", "workers 2 -> auto" },
    { "listen = \"*:80\" log_level = \"info\"", "listen = \"*:81\" log_level = \"debug\"",
      "listen [ \"*:80\" ] -> [ \"*:81\" ], log_level info -> debug" },
    { "timeouts = { idle = \"5s\" }", "timeouts = { idle = \"1h\" send = 0 }",
      "timeouts.idle 5s -> 1h, timeouts.send 30s -> 0" },
    { "control = \"off\"", "control = \"/x\"", "control off -> /x" },
    { "routes = ( { path = \"/\" text = \"x\" } )", "routes = ( { path = \"/\" text = \"y\" } )",
      "routes changed" },
    { "admin = { listen = \"*:80\" }", "", "admin.listen [ \"*:80\" ] -> [ ]" },
};

START_TEST(differences)
{
    const struct diff_row *row = &diff_rows[_i];
    struct conf *before = load_text(row->before);
    struct conf *after = load_text(row->after);
    struct buf out = { 0 };
    ck_assert_int_eq(conf_diff(&out, before, after), 0);
    ck_assert_str_eq(buf_string(&out), row->diff);
    buf_fini(&out);
    conf_free(before);
    conf_free(after);
}
END_TEST

struct expand_row {
    const char *text, *expanded;
};

/* X is "x", EMPTY is empty, NONE is unset. What is refused is in check_conf. */
static const struct expand_row expand_rows[] = {
    { "", "" },
    { "plain", "plain" },
    { "${X}", "x" },
    { "a${X}b${X}c", "axbxc" },
    { "${X:-y}", "x" },
    { "${EMPTY:-y}", "y" },
    { "${NONE:-y}", "y" },
    { "${NONE:-}", "" },
    { "${NONE:-a:b-c d$}", "a:b-c d$" },
    { "$X $ $$ {X}", "$X $ $$ {X}" },
    { "$${X}", "${X}" },
    { "$$${X}", "$${X}" },
    { "$$$${X}", "$$${X}" },
    { "$${", "${" },
    { "${X}$${X}${X}", "x${X}x" },
    { "${X}}", "x}" },
};

START_TEST(expansions)
{
    const struct expand_row *row = &expand_rows[_i];
    char fault[EXPAND_FAULT_SIZE];
    struct buf out = { 0 };
    setenv("X", "x", 1);
    setenv("EMPTY", "", 1);
    unsetenv("NONE");
    ck_assert_int_eq(expand(&out, row->text, fault), EXPAND_DONE);
    ck_assert_str_eq(buf_string(&out), row->expanded);
    buf_fini(&out);
}
END_TEST

struct value_row {
    char type; /* n, s, d */
    int64_t value;
    const char *text;
};

static const struct value_row value_rows[] = {
    { 'n', 0, "0" },
    { 'n', -5, "-5" },
    { 'n', 2147483647, "2147483647" },
    { 'n', 2147483648, "2147483648L" },
    { 'n', -2147483649, "-2147483649L" },
    { 's', 0, "\"0\"" },
    { 's', 1, "\"1\"" },
    { 's', 1023, "\"1023\"" },
    { 's', 1024, "\"1k\"" },
    { 's', 1536, "\"1536\"" },
    { 's', 1 << 20, "\"1m\"" },
    { 's', INT64_C(5) << 30, "\"5g\"" },
    { 'd', 0, "\"0\"" },
    { 'd', CLOCK_MILLISECOND, "\"1ms\"" },
    { 'd', 1500 * CLOCK_MILLISECOND, "\"1500ms\"" },
    { 'd', CLOCK_SECOND, "\"1s\"" },
    { 'd', 60 * CLOCK_SECOND, "\"60s\"" },
    { 'd', 90 * CLOCK_SECOND, "\"90s\"" },
    { 'd', 120 * CLOCK_SECOND, "\"2m\"" },
    { 'd', 3600 * CLOCK_SECOND, "\"1h\"" },
    { 'd', 5400 * CLOCK_SECOND, "\"90m\"" },
};

START_TEST(values)
{
    const struct value_row *row = &value_rows[_i];
    struct buf out = { 0 };
    int64_t value = -1;
    const char *fault;
    const char *bare = text_replace(text_replace(row->text, "\"", ""), "L", "");

    if (row->type == 'n') {
        ck_assert_int_eq(value_print_number(&out, row->value), 0);
        fault = value_parse_number(&value, bare);
    } else if (row->type == 's') {
        ck_assert_int_eq(value_print_size(&out, row->value), 0);
        fault = value_parse_size(&value, bare);
    } else {
        ck_assert_int_eq(value_print_duration(&out, row->value), 0);
        fault = value_parse_duration(&value, bare);
    }
    ck_assert_str_eq(buf_string(&out), row->text);
    ck_assert_ptr_null(fault);
    ck_assert_int_eq(value, row->value);
    buf_fini(&out);
}
END_TEST

START_TEST(quotes)
{
    char room[VALUE_QUOTE_SIZE];
    ck_assert_str_eq(value_quote(room, ""), "\"\"");
    ck_assert_str_eq(value_quote(room, "a\x1b\xff\xc3\xa9\""), "\"a\\x1B\\xFF\xc3\xa9\\\"\"");
    const char *cut = value_quote(room, text_repeat("\xc3\xa9", 100));
    ck_assert_uint_lt(strlen(cut), VALUE_QUOTE_SIZE);
    ck_assert(text_matches(cut, "^\"(\xc3\xa9)+\\.\\.\\.\"$"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conf_print");
    TCase *tests = suite_case(suite, "print");
    tcase_add_loop_test(tests, round_trips, 0, SUITE_ROWS(texts));
    tcase_add_test(tests, everything_is_printed);
    tcase_add_loop_test(tests, differences, 0, SUITE_ROWS(diff_rows));
    tcase_add_loop_test(tests, expansions, 0, SUITE_ROWS(expand_rows));
    tcase_add_loop_test(tests, values, 0, SUITE_ROWS(value_rows));
    tcase_add_test(tests, quotes);
    return suite_run(suite);
}
