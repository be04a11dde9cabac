/*
 * A whole configuration: what is refused and in which words, and what the values become.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "conf/conf.h"
#include "support/kinds.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

#define ROUTE(more) "routes = (\n  { path = \"/\"  text = \"x\"\n    " more " } )\n"
#define SAMPLE(more) "routes = (\n  { path = \"/\"  sample = \"x\"\n    " more " } )\n"

/* In the directory of the file, so that errors name it as a user there does. */
static struct conf *load_text(const char *text, struct conf_error *error)
{
    const struct conf_request request = { "hayate.conf", NULL, kinds_table() };
    ck_assert_int_eq(chdir(scratch_path("")), 0);
    scratch_write("hayate.conf", text);
    return conf_load(&request, error);
}

struct fault_row {
    const char *text;
    const char *fault;
};

static const struct fault_row fault_rows[] = {
    /* Keys. */
    { "\n\n\nwrokers = 2\n", "hayate.conf:4: unknown key \"wrokers\" (did you mean \"workers\"?)" },
    { "Listen = \"*:80\"\n", "hayate.conf:1: unknown key \"Listen\" (did you mean \"listen\"?)" },
    { "idle = \"5s\"\n", "hayate.conf:1: unknown key \"idle\" (did you mean \"timeouts.idle\"?)" },
    { "timeouts_idle = \"5s\"\n",
      "hayate.conf:1: unknown key \"timeouts_idle\" (did you mean \"timeouts.idle\"?)" },
    { "timeouts = {\n idel = \"5s\" }\n",
      "hayate.conf:2: unknown key \"timeouts.idel\" (did you mean \"timeouts.idle\"?)" },
    { "timeouts = { backlog = 5 }\n",
      "hayate.conf:1: unknown key \"timeouts.backlog\" (did you mean \"limits.backlog\"?)" },
    { "limits = { workers = 5 }\n",
      "hayate.conf:1: unknown key \"limits.workers\" (did you mean \"workers\"?)" },
    { "limits = { headers = 5 }\n",
      "hayate.conf:1: unknown key \"limits.headers\" (did you mean \"limits.header\"?)" },
    { "admin = { }\nlimit = { }\n",
      "hayate.conf:2: unknown key \"limit\" (did you mean \"limits\"?)" },
    { "path = \"/\"\n",
      "hayate.conf:1: unknown key \"path\" (it belongs in a route: routes = ( { ... } ))" },
    { "quux = 1\n", "hayate.conf:1: unknown key \"quux\" (hayate.conf(5) has them all)" },
    { "error = 1\n", "hayate.conf:1: unknown key \"error\" (hayate.conf(5) has them all)" },
    { "a_key_that_is_far_too_long_to_be_any_of_ours = 1\n",
      "hayate.conf:1: unknown key \"a_key_that_is_far_too_long_to_be_any_of_ours\" "
      "(hayate.conf(5) has them all)" },
    { "limits = { "
      "a_key_that_is_far_too_long_to_be_any_of_ours_and_goes_on_and_on_and_on_and_on_and= 1 }\n",
      "hayate.conf:1: unknown key "
      "\"limits.a_key_that_is_far_too_long_to_be_any_of_ours_and_goes_on_and_on_and_on_and_on_"
      "and\" (hayate.conf(5) has them all)" },
    { "workers = 1\nworkers = 1\n",
      "hayate.conf:2: repeated key \"workers\", first set in line 1: keep one of them" },
    { "/* workers = 1\n", "hayate.conf:1: a comment is not closed: wants a */ at its end" },

    /* Keys that come later. */
    { "pidfile = \"/x\"\n", "hayate.conf:1: \"pidfile\" is not yet supported: remove it" },
    { "sandbox = true\n", "hayate.conf:1: \"sandbox\" is not yet supported: remove it" },
    { "idle_exit = \"5s\"\n", "hayate.conf:1: \"idle_exit\" is not yet supported: remove it" },
    { "access_log_sample = 5\n",
      "hayate.conf:1: \"access_log_sample\" is not yet supported: remove it" },
    { "proxy_protocol = true\n",
      "hayate.conf:1: \"proxy_protocol\" is not yet supported: remove it" },
    { "trusted_proxies = [ ]\n",
      "hayate.conf:1: \"trusted_proxies\" is not yet supported: remove it" },
    { "errors = { }\n", "hayate.conf:1: \"errors\" is not yet supported: remove it" },
    { "listen = ( { address = \"*:80\"\n proxy_protocol = true } )\n",
      "hayate.conf:2: \"proxy_protocol of listen\" is not yet supported: remove it" },

    /* Types. */
    { "timeouts = 5\n", "hayate.conf:1: timeouts: got a number, wants a group { }" },
    { "workers = [ 1 ]\n",
      "hayate.conf:1: workers: got an array [ ], wants \"auto\" or a number from 1 to 1024" },
    { "workers = 1.5\n", "hayate.conf:1: workers: got a number with a point, wants \"auto\" or a "
                         "number from 1 to 1024" },
    { "workers = true\n",
      "hayate.conf:1: workers: got true, wants \"auto\" or a number from 1 to 1024" },
    { "workers = { }\n",
      "hayate.conf:1: workers: got a group { }, wants \"auto\" or a number from 1 to 1024" },
    { "log = ( )\n", "hayate.conf:1: log: got a list ( ), wants \"stderr\" or a path" },
    { "log_format = 1\n", "hayate.conf:1: log_format: got a number, wants \"text\" or \"json\"" },
    { "routes = \"/\"\n", "hayate.conf:1: routes: got a string, wants a list of groups, such as ( "
                          "{ path = \"/\"  text = \"Hi\" } )" },
    { "routes = ( \"/\" )\n", "hayate.conf:1: routes: got a string, wants a list of groups, such "
                              "as ( { path = \"/\"  text = \"Hi\" } )" },
    { "watch = 1\n", "hayate.conf:1: watch: got a number, wants true or false" },
    { "watch = \"yes\"\n", "hayate.conf:1: watch: \"yes\" is neither, wants true or false" },
    { "include = 5\n", "hayate.conf:1: include: got a number, wants an array of files, such as [ "
                       "\"conf.d/*.conf\" ]" },
    { "include = [\n 5 ]\n", "hayate.conf:2: include: got a number, wants a string" },

    /* Numbers, sizes and durations. */
    { "workers = 0\n",
      "hayate.conf:1: workers: 0 is out of range, wants \"auto\" or a number from 1 to 1024" },
    { "workers = 1025\n",
      "hayate.conf:1: workers: 1025 is out of range, wants \"auto\" or a number from 1 to 1024" },
    { "workers = -1\n",
      "hayate.conf:1: workers: -1 is out of range, wants \"auto\" or a number from 1 to 1024" },
    { "workers = \"\"\n",
      "hayate.conf:1: workers: \"\" is not a number, wants \"auto\" or a number from 1 to 1024" },
    { "workers = \"4 \"\n", "hayate.conf:1: workers: \"4 \" is not a number alone, wants \"auto\" "
                            "or a number from 1 to 1024" },
    { "workers = \"99999999999999999999\"\n",
      "hayate.conf:1: workers: \"99999999999999999999\" does not fit 64 bits, wants \"auto\" or a "
      "number from 1 to 1024" },
    { "limits = { backlog = 0 }\n",
      "hayate.conf:1: limits.backlog: 0 is out of range, wants a number from 1 to 65535" },
    { "limits = { connections = \"many\" }\n",
      "hayate.conf:1: limits.connections: \"many\" is not a number, wants a number, 0 or from 1 to "
      "10000000" },
    { "limits = { requests = 99999999999L }\n",
      "hayate.conf:1: limits.requests: 99999999999 is out of range, wants a number, 0 or from 1 to "
      "2147483647" },
    { "limits = { header = \"16K\" }\n",
      "hayate.conf:1: limits.header: \"16K\" is not a size (the units are k, m and g, or none for "
      "bytes), wants a size such as \"16k\", from 256 to 16m" },
    { "limits = { header = 0 }\n", "hayate.conf:1: limits.header: 0 is out of range, wants a "
                                   "size such as \"16k\", from 256 to 16m" },
    { "limits = { header = 100 }\n", "hayate.conf:1: limits.header: 100 is out of range, wants a "
                                     "size such as \"16k\", from 256 to 16m" },
    { "limits = { body = \"-1\" }\n", "hayate.conf:1: limits.body: \"-1\" is negative, wants a "
                                      "size such as \"16k\", 0 or from 1 to 1024g" },
    { "limits = { body = \"9999999999999999g\" }\n",
      "hayate.conf:1: limits.body: \"9999999999999999g\" does not fit 64 bits, wants a size such "
      "as \"16k\", 0 or from 1 to 1024g" },
    { "timeouts = { idle = 5 }\n",
      "hayate.conf:1: timeouts.idle: 5 is a duration without a unit (ms, s, m or h), wants a "
      "duration such as \"10s\", 0 or from 10ms to 24h" },
    { "timeouts = { idle = \"5\" }\n",
      "hayate.conf:1: timeouts.idle: \"5\" is a duration without a unit (ms, s, m or h), wants a "
      "duration such as \"10s\", 0 or from 10ms to 24h" },
    { "timeouts = { idle = \"5 s\" }\n",
      "hayate.conf:1: timeouts.idle: \"5 s\" is not a duration (the units are ms, s, m and h), "
      "wants a duration such as \"10s\", 0 or from 10ms to 24h" },
    { "timeouts = { idle = \"1d\" }\n",
      "hayate.conf:1: timeouts.idle: \"1d\" is not a duration (the units are ms, s, m and h), "
      "wants a duration such as \"10s\", 0 or from 10ms to 24h" },
    { "timeouts = { idle = \"25h\" }\n",
      "hayate.conf:1: timeouts.idle: \"25h\" is out of range, wants a duration such as \"10s\", 0 "
      "or from 10ms to 24h" },
    { "timeouts = { idle = \"9999999999h\" }\n",
      "hayate.conf:1: timeouts.idle: \"9999999999h\" does not fit 64 bits of nanoseconds, wants a "
      "duration such as \"10s\", 0 or from 10ms to 24h" },
    { "drain_delay = 5\n", "hayate.conf:1: drain_delay: 5 is a duration without a unit "
                           "(ms, s, m or h), wants a duration such as \"10s\", from 0 to 24h" },
    { "drain_delay = \"25h\"\n", "hayate.conf:1: drain_delay: \"25h\" is out of range, wants a "
                                 "duration such as \"10s\", from 0 to 24h" },
    { "timeouts = { drain_delay = \"5s\" }\n",
      "hayate.conf:1: unknown key \"timeouts.drain_delay\" (did you mean \"drain_delay\"?)" },
    { "timeouts = { drain = \"-1s\" }\n", "hayate.conf:1: timeouts.drain: \"-1s\" is negative, "
                                          "wants a duration such as \"10s\", from 0 to 24h" },
    { "timeouts = { watchdog = \"\" }\n",
      "hayate.conf:1: timeouts.watchdog: \"\" is not a duration, wants a duration such as \"10s\", "
      "0 or from 100ms to 24h" },

    /* Words. */
    { "log_level = \"loud\"\n", "hayate.conf:1: log_level: \"loud\" is none of its words, wants "
                                "\"debug\", \"info\", \"warning\" or \"error\"" },
    { "access_log_format = \"JSON\"\n", "hayate.conf:1: access_log_format: \"JSON\" is none of its "
                                        "words, wants \"combined\" or \"json\"" },
    { "log_level = \"a\\nb\\x1b\\\"\"\n",
      "hayate.conf:1: log_level: \"a\\nb\\x1B\\\"\" is none of its words, wants \"debug\", "
      "\"info\", \"warning\" or \"error\"" },

    /* Variables. */
    { "listen = \"*:${NO_SUCH}\"\n",
      "hayate.conf:1: listen: ${NO_SUCH} is not set: set it, or write ${NO_SUCH:-DEFAULT}" },
    { "listen = \"*:${EMPTY}\"\n",
      "hayate.conf:1: listen: ${EMPTY} is empty: set it, or write ${EMPTY:-DEFAULT}" },
    { "listen = \"*:${PORT\"\n",
      "hayate.conf:1: listen: ${PORT has no }: write ${NAME}, or $${ for a literal ${" },
    { "listen = \"*:${}\"\n", "hayate.conf:1: listen: ${}: the name of a variable is letters, "
                              "digits and _, no digit first ($${ is a literal ${)" },
    { "listen = \"*:${1X}\"\n", "hayate.conf:1: listen: ${1X}: the name of a variable is letters, "
                                "digits and _, no digit first ($${ is a literal ${)" },
    { "listen = \"*:${A B:-1}\"\n", "hayate.conf:1: listen: ${A B:-1}: the name of a variable is "
                                    "letters, digits and _, no digit first ($${ is a literal ${)" },
    { "listen = \"*:${A:=1}\"\n",
      "hayate.conf:1: listen: ${A:=1}: only ${NAME} and ${NAME:-DEFAULT} are known" },
    { "listen = \"*:${A:}\"\n",
      "hayate.conf:1: listen: ${A:}: only ${NAME} and ${NAME:-DEFAULT} are known" },
    { "listen = \"*:${A:-${B}}\"\n",
      "hayate.conf:1: listen: ${A:-${B}: a default cannot hold another ${" },

    /* Addresses: the rest is in check_address. */
    { "listen = [ ]\n",
      "hayate.conf:1: listen: is empty: wants at least one address, such as [ \"*:8080\" ]" },
    { "listen = 8080\n",
      "hayate.conf:1: listen: got a number, wants an array of addresses, such as [ \"*:8080\" ]" },
    { "listen = [ \"*:1\",\n  \"8080\"\n]\n",
      "hayate.conf:2: listen: \"8080\": wants HOST:PORT, [IPV6]:PORT, *:PORT or unix:/PATH" },
    { "listen = [ \"*:70000\" ]\n",
      "hayate.conf:1: listen: \"*:70000\": the port is wrong: wants a number from 0 to 65535" },
    { "listen = [ \"127.0.0.1:80\",\n\"127.0.0.1:80\" ]\n",
      "hayate.conf:2: listen: \"127.0.0.1:80\" is listened on already, by \"127.0.0.1:80\": keep "
      "one of them" },
    { "listen = [ \"*:80\",\n\"0.0.0.0:80\" ]\n",
      "hayate.conf:2: listen: \"0.0.0.0:80\" is listened on already, by \"*:80\": keep one of "
      "them" },
    { "listen = [ \"[::1]:80\", \"[0:0::1]:80\" ]\n",
      "hayate.conf:1: listen: \"[0:0::1]:80\" is listened on already, by \"[::1]:80\": keep one of "
      "them" },
    { "listen = [ \"unix:/a\", \"unix:/a\" ]\n", "hayate.conf:1: listen: \"unix:/a\" is listened "
                                                 "on already, by \"unix:/a\": keep one of them" },
    { "listen = \"unix:/x/a\"\ncontrol = \"/x/a\"\n",
      "hayate.conf:2: control: \"/x/a\" is listened on for HTTP already: wants a path of its own" },
    { "control = \"/x/a\"\nadmin = { listen = \"unix:/x/a\" }\n",
      "hayate.conf:1: control: \"/x/a\" is listened on for HTTP already: wants a path of its own" },
    { "listen = \"*:80\"\nadmin = { listen = \"*:80\" }\n",
      "hayate.conf:2: admin.listen: \"*:80\" is listened on already, by \"*:80\": keep one of "
      "them" },
    { "listen = ( { addres = \"*:80\" } )\n",
      "hayate.conf:1: unknown key \"addres\" in a group of listen (it has \"address\")" },
    { "listen = ( \"*:1\",\n { } )\n",
      "hayate.conf:2: listen: a group without an address: wants { address = \"*:8080\" }" },
    { "listen = ( { address = 80 } )\n", "hayate.conf:1: listen: got a number, wants a string" },
    { "listen = ( ( \"*:80\" ) )\n", "hayate.conf:1: listen: got a list ( ), wants a string" },

    /* Places. */
    { "control = \"\"\n", "hayate.conf:1: control: \"\" is empty, wants a path or \"off\"" },
    { "control = "
      "\"/"
      "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"
      "234567890123456\"\n",
      "hayate.conf:1: control: the path of a socket has at most 107 bytes, not 108: wants a "
      "shorter one" },
    { "log = \"\"\n", "hayate.conf:1: log: \"\" is empty, wants \"stderr\" or a path" },
    { "log = \"off\"\n",
      "hayate.conf:1: log: \"off\" is no place for it, wants \"stderr\" or a path" },
    { "log = \"stdout\"\n",
      "hayate.conf:1: log: \"stdout\" is no place for it, wants \"stderr\" or a path" },
    { "access_log = \"stderr\"\n", "hayate.conf:1: access_log: \"stderr\" is no place for it, "
                                   "wants \"off\", \"stdout\" or a path" },
    { "log = \"/\"\n", "hayate.conf:1: log: / is a directory, not a file" },
    { "log = \"/nowhere/at/all\"\n",
      "hayate.conf:1: log: /nowhere/at/all cannot be created: No such file or directory" },
    { "log = \"/dev/null/x\"\n",
      "hayate.conf:1: log: /dev/null/x cannot be written: Not a directory" },
    { "log = \"/dev/zero\"\n",
      "hayate.conf:1: log: /dev/zero is neither a file, a FIFO nor a terminal" },

    /* Routes. */
    { "routes = (\n  { path = \"/\" } )\n",
      "hayate.conf:2: a route without an answer: wants one of text, redirect, health, sample" },
    { "routes = ( { path = \"/\"  txet = \"x\" } )\n",
      "hayate.conf:1: unknown key \"txet\" in a route (did you mean \"text\"?)" },
    { "routes = ( { path = \"/\"  files = \"/srv\" } )\n",
      "hayate.conf:1: unknown key \"files\" in a route (did you mean \"file\"?)" },
    { "routes = ( { path = \"/\"  text = \"x\"\n redirect = \"/y\" } )\n",
      "hayate.conf:1: a route with both \"text\" and \"redirect\": keep one of them" },
    { "routes = ( { text = \"x\" } )\n",
      "hayate.conf:1: a route without a path: wants path = \"/...\"" },
    { "routes = (\n{ text = \"x\"\npath = \"y\" } )\n",
      "hayate.conf:3: path: \"y\": wants a / first" },
    { "routes = ( { path = 5  text = \"x\" } )\n",
      "hayate.conf:1: path: got a number, wants a string" },
    { ROUTE("pth = \"/\""),
      "hayate.conf:3: unknown key \"pth\" in a route (did you mean \"path\"?)" },
    { ROUTE("stauts = 200"),
      "hayate.conf:3: unknown key \"stauts\" in a route (did you mean \"status\"?)" },
    { ROUTE("workers = 2"),
      "hayate.conf:3: unknown key \"workers\" in a route (\"workers\" belongs outside of routes)" },
    { ROUTE("quux = 2"),
      "hayate.conf:3: unknown key \"quux\" in a route (hayate.conf(5) has them all)" },
    { ROUTE("colour = \"red\""),
      "hayate.conf:3: \"colour\" goes with a route's \"sample\", not with \"text\"" },
    { ROUTE("status = 99"),
      "hayate.conf:3: status: 99 is out of range, wants a number from 200 to 599" },
    { ROUTE("status = \"600\""),
      "hayate.conf:3: status: \"600\" is out of range, wants a number from 200 to 599" },
    { ROUTE("delay = 1"), "hayate.conf:3: delay: 1 is a duration without a unit (ms, s, m or h), "
                          "wants a duration such as \"10s\", from 0 to 24h" },
    { ROUTE("methods = [ ]"), "hayate.conf:3: methods: an empty array [ ], wants an array of "
                              "strings, such as [ \"a\", \"b\" ]" },
    { ROUTE("methods = [ \"GET\",\n 5L ]"), "hayate.conf:4: the values of an array [ ] are all of "
                                            "one type: write a list ( ), or the same type" },
    { ROUTE("methods = ( \"GET\",\n 5 )"), "hayate.conf:4: methods: got a number, wants a string" },
    { ROUTE("headers = [ \"A: b\" ]"), "hayate.conf:3: headers: got an array [ ], wants a group of "
                                       "fields, such as { X-Name = \"value\" }" },
    { ROUTE("headers = { A = 5 }"),
      "hayate.conf:3: headers: got a number, wants an array of strings, such as [ \"a\", \"b\" ]" },
    { ROUTE("headers = { A = \"b\"\n a = \"c\" }"),
      "hayate.conf:4: headers: repeated field \"a\": write [ \"a\", \"b\" ] for several values" },
    { "routes = (\n  { path = \"/x\"  text = \"1\" },\n  { path = \"/x\"  text = \"2\" } )\n",
      "hayate.conf:3: duplicate route \"/x\", first in hayate.conf:2: keep one of them" },
    { "routes = (\n  { path = \"/A\"  text = \"1\" },\n  { path = \"/%41\"  text = \"2\" } )\n",
      "hayate.conf:3: duplicate route \"/%41\", first in hayate.conf:2: keep one of them" },
    { "routes = (\n  { path = \"/\"  text = \"x\" },\n  { path = \"/x\"  text = \"!\" } )\n",
      "hayate.conf:3: text: cannot be prepared" },
    { "routes = (\n  { path = \"/\"  health = \"dead\" } )\n",
      "hayate.conf:2: health: \"dead\" is none of its words, wants \"live\" or \"ready\"" },
    { SAMPLE("flag = 1"), "hayate.conf:3: flag: got a number, wants true or false" },
    { SAMPLE("flag = \"maybe\""),
      "hayate.conf:3: flag: \"maybe\" is neither, wants true or false" },
    { SAMPLE("number = -6"),
      "hayate.conf:3: number: -6 is out of range, wants a number from -5 to 1000000000000" },
    { SAMPLE("code = 10"), "hayate.conf:3: code: 10 is out of range, wants a number from 1 to 9" },
    { SAMPLE("file = \"\""), "hayate.conf:3: file: \"\" is empty, wants a path" },
    { SAMPLE("someday = 1"), "hayate.conf:3: \"someday\" is not yet supported: remove it" },
};

START_TEST(faults)
{
    const struct fault_row *row = &fault_rows[_i];
    struct conf_error error;

    unsetenv("NO_SUCH");
    setenv("EMPTY", "", 1);
    setenv("PORT", "8080", 1);
    struct conf *conf = load_text(row->text, &error);
    ck_assert_msg(!conf, "loaded: %s", row->text);
    ck_assert_msg(strcmp(error.text, row->fault) == 0, "%s\n%s\ninstead of\n%s", row->text,
                  error.text, row->fault);
    ck_assert_int_eq(kinds_alive(), 0);
}
END_TEST

/* PORT and what comes of it, without a file and with one. */
struct port_row {
    const char *port;
    const char *fault;
    unsigned bound;
};

static const struct port_row port_rows[] = {
    { NULL, NULL, 8080 },
    { "", NULL, 8080 },
    { "0", NULL, 0 },
    { "80", NULL, 80 },
    { "65535", NULL, 65535 },
    { "abc",
      "built-in defaults: listen: \"*:abc\": the port is wrong: wants a number from 0 to "
      "65535",
      0 },
    { "70000",
      "built-in defaults: listen: \"*:70000\": the port is wrong: wants a number from 0 to "
      "65535",
      0 },
    { "-1",
      "built-in defaults: listen: \"*:-1\": the port is wrong: wants a number from 0 to "
      "65535",
      0 },
    { " 80",
      "built-in defaults: listen: \"*: 80\": the port is wrong: wants a number from 0 to "
      "65535",
      0 },
};

START_TEST(ports)
{
    const struct port_row *row = &port_rows[_i % SUITE_ROWS(port_rows)];
    const bool has_file = _i >= SUITE_ROWS(port_rows);
    const struct conf_request request = { NULL, NULL, kinds_table() };
    struct conf_error error;

    if (!has_file && access(conf_default_file(), F_OK) == 0)
        return;
    row->port ? setenv("PORT", row->port, 1) : unsetenv("PORT");
    struct conf *conf = has_file ? load_text("workers = 2\n", &error) : conf_load(&request, &error);
    if (row->fault) {
        ck_assert_ptr_null(conf);
        ck_assert_str_eq(error.text, row->fault);
        return;
    }
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert_uint_eq(conf->nlisten, 1);
    ck_assert_uint_eq(conf->listen[0].naddresses, 2);
    ck_assert_int_eq(conf->listen[0].addresses[0].any.sa_family, AF_INET);
    ck_assert_int_eq(conf->listen[0].addresses[1].any.sa_family, AF_INET6);
    ck_assert_uint_eq(address_port(&conf->listen[0].addresses[0]), row->bound);
    ck_assert_uint_eq(address_port(&conf->listen[0].addresses[1]), row->bound);
    conf_free(conf);
}
END_TEST

static bool has_warning(const struct conf *conf, const char *part)
{
    for (size_t i = 0; i < conf->nwarnings; i++)
        if (strstr(conf->warnings[i], part))
            return true;
    return false;
}

START_TEST(built_in_defaults)
{
    const struct conf_request request = { NULL, NULL, kinds_table() };
    struct conf_error error;

    if (access(conf_default_file(), F_OK) == 0 && suite_skip("the default file is installed"))
        return;
    unsetenv("PORT");
    struct conf *conf = conf_load(&request, &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert(has_warning(conf, "runs on built-in defaults"));
    ck_assert_ptr_null(conf->file);
    ck_assert_uint_eq(conf->files.nsources, 0);
    ck_assert_uint_eq(conf->workers, 0);
    ck_assert_int_eq(conf->log.kind, CONF_SINK_STDERR);
    ck_assert_int_eq(conf->log_format, LOG_FORMAT_TEXT);
    ck_assert_int_eq(conf->log_level, LOG_LEVEL_INFO);
    ck_assert_int_eq(conf->access_log.kind, CONF_SINK_OFF);
    ck_assert_int_eq(conf->access_log_format, CONF_ACCESS_COMBINED);
    ck_assert_int_eq(conf->timeouts.header, 10 * CLOCK_SECOND);
    ck_assert_int_eq(conf->timeouts.body, 30 * CLOCK_SECOND);
    ck_assert_int_eq(conf->timeouts.idle, 60 * CLOCK_SECOND);
    ck_assert_int_eq(conf->timeouts.send, 30 * CLOCK_SECOND);
    ck_assert_int_eq(conf->timeouts.drain, 30 * CLOCK_SECOND);
    ck_assert_int_eq(conf->timeouts.watchdog, 10 * CLOCK_SECOND);
    ck_assert_int_eq(conf->limits.connections, 10000);
    ck_assert_int_eq(conf->limits.per_address, 0);
    ck_assert_int_eq(conf->limits.header, 16384);
    ck_assert_int_eq(conf->limits.body, 1048576);
    ck_assert_int_eq(conf->limits.requests, 0);
    ck_assert_int_eq(conf->limits.backlog, 4096);
    ck_assert_uint_eq(conf->nadmin_listen, 0);
    ck_assert_uint_eq(conf->nroutes, 3);
    ck_assert_str_eq(conf->routes[0].path, "/hello");
    ck_assert_str_eq(((struct kinds_text *)conf->routes[0].options)->text, "Hello");
    ck_assert_str_eq(conf->routes[1].path, "/healthz");
    ck_assert_str_eq(conf->routes[2].path, "/readyz");
    ck_assert_int_eq(kinds_alive(), 1);
    conf_free(conf);
    ck_assert_int_eq(kinds_alive(), 0);
}
END_TEST

START_TEST(values)
{
    static const char text[] =
        "listen = ( \"127.0.0.1:1\", { address = \"[::1]:2\" }, \"unix:run/http\" )\n"
        "workers = \"${N}\" log_format = \"json\" log_level = \"error\"\n"
        "control = \"run/control\" log = \"a.log\" access_log = \"stdout\"\n"
        "access_log_format = \"json\"\n"
        "timeouts = { header = \"250ms\", body = 0 idle = \"0\" send = \"2m\" drain = \"1h\"\n"
        "             watchdog = \"0s\" }\n"
        "limits = { connections = \"0\" per_address = 7 header = 300 body = \"3g\"\n"
        "           requests = 0x10 backlog = \"128\" }\n"
        "routes = ( { path = \"/a\" text = \"$${X} $ $$ ${X}-${Y:-a:b}\" \"!\" status = \"201\"\n"
        "             type = \"text/html\" methods = \"GET\" delay = \"5ms\"\n"
        "             headers = { B = \"1\" A = [ \"2\", \"3\" ] } } )\n"
        "admin = { listen = [ \"127.0.0.1:3\" ] }\n";
    struct conf_error error;

    setenv("N", "3", 1);
    setenv("X", "${Y}", 1);
    unsetenv("Y");
    struct conf *conf = load_text(text, &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert_uint_eq(conf->nlisten, 3);
    ck_assert_str_eq(conf->listen[1].text, "[::1]:2");
    ck_assert_str_eq(conf->listen[2].text, text_format("unix:%s", scratch_path("run/http")));
    ck_assert_str_eq(conf->listen[2].addresses[0].local.sun_path, scratch_path("run/http"));
    ck_assert_uint_eq(conf->workers, 3);
    ck_assert_str_eq(conf->control, scratch_path("run/control"));
    ck_assert(!conf->control_is_default);
    ck_assert_int_eq(conf->log.kind, CONF_SINK_PATH);
    ck_assert_str_eq(conf->log.path, scratch_path("a.log"));
    ck_assert_int_ne(access("a.log", F_OK), 0);
    ck_assert_int_eq(conf->access_log.kind, CONF_SINK_STDOUT);
    ck_assert_ptr_null(conf->access_log.path);
    ck_assert_int_eq(conf->log_format, LOG_FORMAT_JSON);
    ck_assert_int_eq(conf->log_level, LOG_LEVEL_ERROR);
    ck_assert_int_eq(conf->access_log_format, CONF_ACCESS_JSON);
    ck_assert_int_eq(conf->timeouts.header, 250 * CLOCK_MILLISECOND);
    ck_assert_int_eq(conf->timeouts.body, 0);
    ck_assert_int_eq(conf->timeouts.idle, 0);
    ck_assert_int_eq(conf->timeouts.send, 120 * CLOCK_SECOND);
    ck_assert_int_eq(conf->timeouts.drain, 3600 * CLOCK_SECOND);
    ck_assert_int_eq(conf->timeouts.watchdog, 0);
    ck_assert_int_eq(conf->limits.connections, 0);
    ck_assert_int_eq(conf->limits.per_address, 7);
    ck_assert_int_eq(conf->limits.header, 300);
    ck_assert_int_eq(conf->limits.body, INT64_C(3) << 30);
    ck_assert_int_eq(conf->limits.requests, 16);
    ck_assert_int_eq(conf->limits.backlog, 128);
    ck_assert_uint_eq(conf->nadmin_listen, 1);
    ck_assert_str_eq(conf->file, scratch_path("hayate.conf"));
    ck_assert_uint_eq(conf->files.nsources, 1);
    ck_assert_uint_eq(conf->files.sources[0].length, sizeof(text) - 1);

    ck_assert_uint_eq(conf->nroutes, 1);
    const struct conf_route *route = &conf->routes[0];
    ck_assert_str_eq(route->kind->key, "text");
    /* What a variable holds is not looked into once more. */
    ck_assert_str_eq(route->answer, "${X} $ $$ ${Y}-a:b!");
    ck_assert_int_eq(route->status, 201);
    ck_assert_str_eq(route->type, "text/html");
    ck_assert_int_eq(route->delay, 5 * CLOCK_MILLISECOND);
    ck_assert_uint_eq(route->nmethods, 1);
    ck_assert_str_eq(route->methods[0], "GET");
    ck_assert_uint_eq(route->nheaders, 3);
    ck_assert_str_eq(route->headers[0].name, "B");
    ck_assert_str_eq(route->headers[2].name, "A");
    ck_assert_str_eq(route->headers[2].value, "3");
    ck_assert_str_eq(route->file, "hayate.conf");
    ck_assert_int_eq(route->line, 9);
    conf_free(conf);
}
END_TEST

START_TEST(values_of_kinds)
{
    struct conf_error error;
    struct conf *conf = load_text("routes = (\n"
                                  "{ path = \"/a\" sample = \"\" },\n"
                                  "{ path = \"/b\" sample = \"x\" file = \"./f\" flag = \"false\"\n"
                                  "  number = 1000000000000L size = \"5\" wait = 0 code = 9\n"
                                  "  colour = \"blue\" words = ( \"a\", \"b\" )\n"
                                  "  fields = { a = \"b\" } } )\n",
                                  &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    const struct kinds_sample *sample = conf->routes[0].options;
    ck_assert_str_eq(sample->sample, "");
    ck_assert_ptr_null(sample->file);
    ck_assert(sample->flag);
    ck_assert_int_eq(sample->number, 0);
    ck_assert_int_eq(sample->size, 2048);
    ck_assert_int_eq(sample->wait, CLOCK_SECOND);
    ck_assert_int_eq(sample->colour, 1);
    sample = conf->routes[1].options;
    ck_assert_str_eq(sample->file, scratch_path("f"));
    ck_assert(!sample->flag);
    ck_assert_int_eq(sample->number, 1000000000000);
    ck_assert_int_eq(sample->size, 5);
    ck_assert_int_eq(sample->wait, 0);
    ck_assert_int_eq(sample->code, 9);
    ck_assert_int_eq(sample->colour, 2);
    ck_assert_uint_eq(sample->words.count, 2);
    ck_assert_uint_eq(sample->nfields, 1);
    conf_free(conf);
}
END_TEST

START_TEST(routes_replace_the_defaults)
{
    struct conf_error error;
    struct conf *conf = load_text("routes = ( )\n", &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert_uint_eq(conf->nroutes, 0);
    conf_free(conf);
    conf = load_text("workers = 1", &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert_uint_eq(conf->nroutes, 3);
    conf_free(conf);
}
END_TEST

/* What the kernel lets us share is no fault. */
START_TEST(overlapping_addresses)
{
    struct conf_error error;
    struct conf *conf = load_text("listen = [ \"*:80\", \"127.0.0.1:80\", \"[::1]:80\" ]\n"
                                  "admin = { listen = [ \"127.0.0.2:80\", \"127.0.0.3:0\",\n"
                                  "  \"*:0\", \"0.0.0.0:0\", \"*:0\" ] }\n",
                                  &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    conf_free(conf);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conf");
    TCase *tests = suite_case(suite, "conf");
    tcase_add_loop_test(tests, faults, 0, SUITE_ROWS(fault_rows));
    tcase_add_loop_test(tests, ports, 0, 2 * SUITE_ROWS(port_rows));
    tcase_add_test(tests, built_in_defaults);
    tcase_add_test(tests, values);
    tcase_add_test(tests, values_of_kinds);
    tcase_add_test(tests, routes_replace_the_defaults);
    tcase_add_test(tests, overlapping_addresses);
    return suite_run(suite);
}
