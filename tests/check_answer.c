/*
 * Kinds of answers: what a route may say, and what its answers are.
 */

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "base/scoreboard.h"
#include "conf/schema.h"
#include "http/request.h"
#include "http/response.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

/* Loads a configuration with one route. NULL with the error. */
static struct conf *load(const char *route, struct conf_error *error)
{
    scratch_write("answer.conf", text_format("routes = (\n  { %s }\n)\n", route));
    const struct conf_request request = {
        .file = scratch_path("answer.conf"),
        .kinds = answer_kinds(),
    };
    return conf_load(&request, error);
}

/* What is wrong, and what is said of it. */
static const struct {
    const char *route;
    const char *error;
} fault_rows[] = {
    { "path = \"/a\" text = \"a\" status = 199", "status must be 200 to 599|range|at least" },
    { "path = \"/a\" text = \"a\" status = 600", "status must be 200 to 599|range|at most" },
    { "path = \"/a\" text = \"a\" status = 204", "no body" },
    { "path = \"/a\" text = \"a\" status = 205", "no body" },
    { "path = \"/a\" text = \"a\" status = 304", "no body" },
    { "path = \"/a\" text = \"a\" type = \"html\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"/html\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"text/\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"text/a\\r\\nX: y\"", "media type|control" },
    { "path = \"/a\" text = \"a\" type = \"te xt/html\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"a//\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"text/html;;;\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"text/html;\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"text/html; a\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"text/html; a=\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"text/html; a=\\\"b\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"text/html; a=\\\"b\\\\\"", "media type" },
    { "path = \"/a\" text = \"a\" type = \"text/html \"", "media type" },
    { "path = \"/a\" text = \"a\" methods = [ \"GET\", \"GET\" ]", "\"GET\" stands there twice" },
    { "path = \"/a\" text = \"a\" status = 401",
      "status 401 needs a field: headers = \\{ WWW-Authenticate = \"Basic realm=" },
    { "path = \"/a\" text = \"a\" status = 401 headers = { X-A = \"b\" }", "WWW-Authenticate" },
    { "path = \"/a\" text = \"a\" status = 407", "Proxy-Authenticate" },
    { "path = \"/a\" text = \"a\" status = 206", "Content-Range = \"bytes 0-4/10\"" },
    { "path = \"/a\" text = \"a\" status = 426", "status 426 needs a protocol" },
    { "path = \"/a\" text = \"a\" headers = { ETag = [ \"\\\"a\\\"\", \"\\\"b\\\"\" ] }",
      "ETag: has one value" },
    { "path = \"/a\" text = \"a\" headers = { location = [ \"/b\", \"/c\" ] }",
      "location: has one value" },
    { "path = \"/a\" text = \"a\" headers = { ETag = \"abc\" }",
      "headers: ETag: must have quotes .*ETag = \"\\\\\"abc\\\\\"\", or weak" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"\" }", "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"\\\"\" }", "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"w/\\\"a\\\"\" }", "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"W/\" }", "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"W/\\\"\" }", "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"\\\"a b\\\"\" }", "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"\\\"a\\\"b\\\"\" }",
      "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"\\\"a\\tb\\\"\" }",
      "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"*\" }", "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"\\\"a\" }", "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"'a'\" }", "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { etag = \"\\\"a\\\", \\\"b\\\"\" }",
      "etag: must have quotes" },
    { "path = \"/a\" text = \"a\" headers = { Last-Modified = \"0\" }",
      "Last-Modified: must be a date: .Sun, 06 Nov 1994 08:49:37 GMT" },
    { "path = \"/a\" text = \"a\" headers = { Last-Modified = \"yesterday\" }",
      "Last-Modified: must be a date: .Sun, 06 Nov 1994 08:49:37 GMT" },
    { "path = \"/a\" text = \"a\" headers = { Last-Modified = \"Mon, 06 Nov 1994 08:49:37 GMT\" }",
      "Last-Modified: must be a date: .Sun, 06 Nov 1994 08:49:37 GMT" },
    { "path = \"/a\" text = \"a\" headers = { Last-Modified = \"Sunday, 06-Nov-94 08:49:37 GMT\" }",
      "Last-Modified: must be a date: .Sun, 06 Nov 1994 08:49:37 GMT" },
    { "path = \"/a\" text = \"a\" headers = { Last-Modified = \"Sun Nov  6 08:49:37 1994\" }",
      "Last-Modified: must be a date: .Sun, 06 Nov 1994 08:49:37 GMT" },
    { "path = \"/a\" text = \"a\" headers = { Last-Modified = \"Sun, 6 Nov 1994 08:49:37 GMT\" }",
      "Last-Modified: must be a date: .Sun, 06 Nov 1994 08:49:37 GMT" },
    { "path = \"/a\" text = \"a\" headers = { Last-Modified = \"Sun, 06 Nov 1994 08:49:37 UTC\" }",
      "Last-Modified: must be a date: .Sun, 06 Nov 1994 08:49:37 GMT" },
    { "path = \"/a\" text = \"a\" headers = { Last-Modified = \"1994-11-06T08:49:37Z\" }",
      "Last-Modified: must be a date: .Sun, 06 Nov 1994 08:49:37 GMT" },
    { "path = \"/a\" text = \"a\" headers = { Expires = \"0\" }",
      "Expires: must be a date, one in the past" },
    { "path = \"/a\" text = \"a\" headers = { Expires = \"-1\" }",
      "Expires: must be a date, one in the past" },
    { "path = \"/a\" text = \"a\" headers = { Expires = \"Sun, 06 Nov 1994 08:49:37\" }",
      "Expires: must be a date, one in the past" },
    { "path = \"/a\" text = \"a\" headers = { Retry-After = \"\" }",
      "Retry-After: must be a number of seconds" },
    { "path = \"/a\" text = \"a\" headers = { Retry-After = \"soon\" }",
      "Retry-After: must be a number of seconds" },
    { "path = \"/a\" text = \"a\" headers = { Retry-After = \"-1\" }",
      "Retry-After: must be a number of seconds" },
    { "path = \"/a\" text = \"a\" headers = { Retry-After = \"1.5\" }",
      "Retry-After: must be a number of seconds" },
    { "path = \"/a\" text = \"a\" headers = { Retry-After = \"2m\" }",
      "Retry-After: must be a number of seconds" },
    { "path = \"/a\" text = \"a\" headers = { Retry-After = \"Sun, 6 Nov 1994 08:49:37 GMT\" }",
      "Retry-After: must be a number of seconds" },
    { "path = \"/a\" text = \"a\" headers = { Age = \"1m\" }", "Age: must be a number of seconds" },
    { "path = \"/a\" text = \"a\" headers = { Location = \"/a b\" }",
      "Location: must be a path or a URL" },
    { "path = \"/a\" text = \"a\" headers = { Location = \"/\xc3\xa9\" }",
      "Location: must be a path or a URL" },
    { "path = \"/a\" text = \"a\" headers = { Location = \"/%\" }",
      "Location: must be a path or a URL" },
    { "path = \"/a\" text = \"a\" headers = { Location = \"/a%2g\" }",
      "Location: must be a path or a URL" },
    { "path = \"/a\" text = \"a\" headers = { Location = \"<a>\" }",
      "Location: must be a path or a URL" },
    { "path = \"/a\" text = \"a\" headers = { Content-Location = \"/a b\" }",
      "Content-Location: must be a path" },
    { "path = \"/a\" text = \"a\" headers = { X-A = \"b\"  Retry-After = \"soon\" }",
      "Retry-After: must" },
    { "path = \"/a\" redirect = \"/b\" headers = { ETag = \"b\" }", "ETag: must have quotes" },
    { "path = \"/a\" text = \"a\" methods = [ \"get\" ]", "\"get\" is none of" },
    { "path = \"/a\" text = \"a\" methods = [ \"CONNECT\" ]", "\"CONNECT\" is none of" },
    { "path = \"/a\" text = \"a\" methods = [ \"TRACE\" ]", "\"TRACE\" is none of" },
    { "path = \"/a\" text = \"a\" methods = [ \"PROPFIND\" ]", "\"PROPFIND\" is none of" },
    { "path = \"/a\" text = \"a\" methods = [ ]", "methods" },
    { "path = \"/a\" text = \"a\" headers = { Date = \"x\" }", "server makes this field" },
    { "path = \"/a\" text = \"a\" headers = { Content-Length = \"1\" }",
      "server makes this field" },
    { "path = \"/a\" text = \"a\" headers = { Content-Type = \"text/a\" }", "\"type\" sets it" },
    { "path = \"/a\" text = \"a\" headers = { X-A = \"b\\r\\nX-B: c\" }", "control" },
    { "path = \"/a\" redirect = \"\"", "must be a path" },
    { "path = \"/a\" redirect = \"b\"", "must be a path" },
    { "path = \"/a\" redirect = \"//evil.example/\"", "another host" },
    { "path = \"/a\" redirect = \"/\\\\evil.example\"", "character" },
    { "path = \"/a\" redirect = \"/a b\"", "character" },
    { "path = \"/a\" redirect = \"/a\\r\\nX: y\"", "character|control" },
    { "path = \"/a\" redirect = \"/%2\"", "character" },
    { "path = \"/a\" redirect = \"javascript:alert(1)\"", "must be a path" },
    { "path = \"/a\" redirect = \"ftp://a/\"", "must be a path" },
    { "path = \"/a\" redirect = \"http://\"", "must be a path" },
    { "path = \"/a\" redirect = \"https:///a\"", "must be a path" },
    { "path = \"/a\" redirect = \"http://@/\"", "no valid host" },
    { "path = \"/a\" redirect = \"http://u@a/\"", "no valid host" },
    { "path = \"/a\" redirect = \"http://[zz/\"", "no valid host" },
    { "path = \"/a\" redirect = \"http://a:65536/\"", "no valid host" },
    { "path = \"/a\" redirect = \"/#a#b\"", "more than one #" },
    { "path = \"/a\" redirect = \"/b\" status = 200", "301, 302, 303, 307 or 308, not 200" },
    { "path = \"/a\" redirect = \"/b\" status = 304", "301, 302, 303, 307 or 308, not 304" },
    { "path = \"/a\" redirect = \"/b\" type = \"text/a\"", "\"type\" does not go with" },
    { "path = \"/a\" redirect = \"/b\" headers = { location = \"/c\" }", "\"redirect\" sets it" },
    { "path = \"/a\" health = \"well\"", "live|ready" },
    { "path = \"/a\" health = \"live\" status = 200", "\"status\" does not go with" },
    { "path = \"/a\" health = \"live\" methods = [ \"GET\" ]", "\"methods\" does not go with" },
    { "path = \"/a\" health = \"live\" type = \"text/a\"", "\"type\" does not go with" },
};

START_TEST(test_faults)
{
    struct conf_error error;
    struct conf *conf = load(fault_rows[_i].route, &error);
    ck_assert_msg(!conf, "%s is taken", fault_rows[_i].route);
    ck_assert_msg(text_matches(error.text, "answer\\.conf:2: "), "%s", error.text);
    ck_assert_msg(text_matches(error.text, fault_rows[_i].error), "%s: %s", fault_rows[_i].route,
                  error.text);
}
END_TEST

/* Room for one exchange. */
struct fixture {
    struct conf *conf;
    struct scoreboard *scoreboard;
    struct response_errors *errors;
    struct answer_context context;
    struct request request;
    struct exchange exchange;
    int done;
};

static void done(struct exchange *exchange)
{
    struct fixture *fixture =
        (struct fixture *)((char *)exchange - offsetof(struct fixture, exchange));
    fixture->done++;
}

static const struct answer *start(struct fixture *fixture, const char *route)
{
    struct conf_error error;
    int fd;
    *fixture = (struct fixture){ .conf = load(route, &error) };
    ck_assert_msg(fixture->conf != NULL, "%s: %s", route, error.text);
    fixture->errors = response_errors_new();
    fixture->scoreboard = scoreboard_new(&fd);
    fixture->context = (struct answer_context){
        .scoreboard = fixture->scoreboard,
        .errors = fixture->errors,
    };
    fixture->exchange = (struct exchange){
        .request = &fixture->request,
        .route = &fixture->conf->routes[0],
        .context = &fixture->context,
        .done = done,
    };
    return fixture->conf->routes[0].answer;
}

static const struct response *serve(struct fixture *fixture)
{
    const struct answer *answer = fixture->exchange.route->answer;
    fixture->exchange.text.length = 0;
    fixture->done = 0;
    answer->kind->serve(answer, &fixture->exchange);
    ck_assert_int_eq(fixture->done, 1);
    return fixture->exchange.response;
}

static void stop(struct fixture *fixture)
{
    buf_fini(&fixture->exchange.text);
    response_errors_free(fixture->errors);
    scoreboard_free(fixture->scoreboard);
    conf_free(fixture->conf);
}

static const char *copy(struct slice slice)
{
    return text_copy(slice.data, slice.length);
}

/* The fixed answer of a route, and what it says of itself. */
static const struct {
    const char *route;
    unsigned status;
    const char *fields, *body;
    const char *allow;
    bool is_harmless, is_late;
} answer_rows[] = {
    { "path = \"/a\" text = \"a\"", 200, "Content-Type: text/plain\r\n", "a", "GET, HEAD, OPTIONS",
      true, false },
    { "path = \"/a\" text = \"\" status = 204", 204, "", "", "GET, HEAD, OPTIONS", true, false },
    { "path = \"/a\" text = \"<p>\" type = \"text/html; charset=utf-8\" status = 599"
      " headers = { X-A = \"b\", X-C = [ \"d\", \"e\" ] }",
      599, "Content-Type: text/html; charset=utf-8\r\nX-A: b\r\nX-C: d\r\nX-C: e\r\n", "<p>",
      "GET, HEAD, OPTIONS", true, false },
    { "path = \"/a\" text = \"a\" methods = [ \"POST\", \"DELETE\" ]", 200,
      "Content-Type: text/plain\r\n", "a", "POST, DELETE, OPTIONS", false, false },
    { "path = \"/a\" text = \"a\" methods = \"HEAD\"", 200, "Content-Type: text/plain\r\n", "a",
      "HEAD, OPTIONS", false, false },
    { "path = \"/a/*\" text = \"a\"", 200, "Content-Type: text/plain\r\n", "a",
      "GET, HEAD, OPTIONS", false, false },
    { "path = \"/a\" text = \"a\" delay = \"1s\"", 200, "Content-Type: text/plain\r\n", "a",
      "GET, HEAD, OPTIONS", false, true },
    { "path = \"/a\" redirect = \"/b?c#d\"", 308,
      "Content-Type: text/plain\r\nLocation: /b?c#d\r\n", "308 Permanent Redirect\n",
      "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH", true, false },
    { "path = \"/a\" redirect = \"/b\" methods = [ \"GET\" ]", 308,
      "Content-Type: text/plain\r\nLocation: /b\r\n", "308 Permanent Redirect\n",
      "GET, HEAD, OPTIONS", true, false },
    { "path = \"/a\" text = \"no\" status = 405 methods = [ \"GET\", \"HEAD\", \"POST\" ]", 405,
      "Content-Type: text/plain\r\nAllow: GET, HEAD, POST, OPTIONS\r\n", "no",
      "GET, HEAD, POST, OPTIONS", true, false },
    { "path = \"/a\" text = \"a\" type = \"a/b ;\tc=d; e=\\\"f;\\\\\\\"g\\\"\" status = 401"
      " headers = { www-authenticate = \"Basic\" }",
      401, "Content-Type: a/b ;\tc=d; e=\"f;\\\"g\"\r\nwww-authenticate: Basic\r\n", "a",
      "GET, HEAD, OPTIONS", true, false },
    { "path = \"/a\" text = \"a\" status = 503"
      " headers = { etag = \"W/\\\"\\xc3\\xa9\\\\,\\\"\", Age = \"60\","
      " Last-Modified = \"Sun, 06 Nov 1994 08:49:37 GMT\","
      " Expires = \"Thu, 01 Jan 1970 00:00:00 GMT\", Retry-After = \"120\","
      " Location = \"../b?c=%20[d]#e\" }",
      503,
      "Content-Type: text/plain\r\netag: W/\"\xc3\xa9\\,\"\r\nAge: 60\r\n"
      "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
      "Expires: Thu, 01 Jan 1970 00:00:00 GMT\r\nRetry-After: 120\r\n"
      "Location: ../b?c=%20[d]#e\r\n",
      "a", "GET, HEAD, OPTIONS", true, false },
    { "path = \"/a\" text = \"a\" headers = { ETag = \"\\\"\\\"\","
      " Retry-After = \"Sun, 06 Nov 1994 08:49:37 GMT\" }",
      200,
      "Content-Type: text/plain\r\nETag: \"\"\r\n"
      "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
      "a", "GET, HEAD, OPTIONS", true, false },
    { "path = \"/a\" redirect = \"HTTPS://b.example:8443\" status = 301"
      " headers = { Cache-Control = \"no-cache\" }",
      301,
      "Content-Type: text/plain\r\nCache-Control: no-cache\r\n"
      "Location: HTTPS://b.example:8443\r\n",
      "301 Moved Permanently\n", "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH", true, false },
    { "path = \"/a\" health = \"live\"", 200,
      "Content-Type: text/plain\r\nCache-Control: no-store\r\n", "ok\n", "GET, HEAD, OPTIONS", true,
      false },
};

START_TEST(test_answers)
{
    struct fixture fixture;
    const struct answer *answer = start(&fixture, answer_rows[_i].route);
    const struct response *response = serve(&fixture);
    ck_assert_uint_eq(response->status, answer_rows[_i].status);
    ck_assert_str_eq(copy(response->fields), answer_rows[_i].fields);
    ck_assert_str_eq(copy(response->body), answer_rows[_i].body);
    ck_assert(response->bytes != NULL);
    ck_assert_int_eq(answer->is_harmless, answer_rows[_i].is_harmless);
    ck_assert_int_eq(answer->is_late, answer_rows[_i].is_late);

    const char *allow = text_format("Allow: %s\r\n", answer_rows[_i].allow);
    ck_assert_uint_eq(answer->options.status, 204);
    ck_assert_str_eq(copy(answer->options.fields), allow);
    ck_assert_uint_eq(answer->not_allowed.status, 405);
    ck_assert(strstr(copy(answer->not_allowed.fields), allow) != NULL);
    ck_assert(strstr(copy(answer->not_allowed.fields), "Content-Type: text/plain\r\n") != NULL);
    stop(&fixture);
}
END_TEST

/* Where the client is sent with a query. */
static const struct {
    const char *target, *query, *location;
} query_rows[] = {
    { "/b", NULL, "/b" },
    { "/b", "", "/b" },
    { "/b", "c=d", "/b?c=d" },
    { "/b?x", "c=d", "/b?x&c=d" },
    { "/b#y?z", "c=d", "/b?c=d#y?z" },
    { "/b?x#y", "c=d&e", "/b?x&c=d&e#y" },
    { "https://b.example", "c=d", "https://b.example?c=d" },
    { "/b", "//evil.example", "/b?//evil.example" },
};

START_TEST(test_query)
{
    struct fixture fixture;
    start(&fixture, text_format("path = \"/a\" redirect = \"%s\"", query_rows[_i].target));
    if (query_rows[_i].query)
        fixture.request.query = slice_of(query_rows[_i].query);
    for (int i = 0; i < 2; i++) { /* nothing is left of the first */
        const struct response *response = serve(&fixture);
        ck_assert_uint_eq(response->status, 308);
        ck_assert_str_eq(
            copy(response->fields),
            text_format("Content-Type: text/plain\r\nLocation: %s\r\n", query_rows[_i].location));
        ck_assert_str_eq(copy(response->body), "308 Permanent Redirect\n");
    }
    stop(&fixture);
}
END_TEST

START_TEST(test_ready)
{
    struct fixture fixture;
    start(&fixture, "path = \"/a\" health = \"ready\"");
    struct scoreboard_master *master = &fixture.scoreboard->master;

    const struct response *response = serve(&fixture);
    ck_assert_uint_eq(response->status, 503);
    ck_assert_str_eq(copy(response->body), "not ready: starting\n");
    ck_assert_str_eq(copy(response->fields),
                     "Content-Type: text/plain\r\nCache-Control: no-store\r\n");

    strcpy(master->reason, "no worker is left\r\n\"");
    ck_assert_str_eq(copy(serve(&fixture)->body), "not ready: no worker is left\\x0D\\x0A\\x22\n");
    memset(master->reason, 'x', sizeof master->reason); /* not terminated: it is being written */
    ck_assert_uint_eq(serve(&fixture)->body.length, sizeof master->reason + 12);

    atomic_store(&master->is_ready, 1);
    response = serve(&fixture);
    ck_assert_uint_eq(response->status, 200);
    ck_assert_str_eq(copy(response->body), "ready\n");

    atomic_store(&master->is_draining, 1);
    master->reason[0] = '\0';
    response = serve(&fixture);
    ck_assert_uint_eq(response->status, 503);
    ck_assert_str_eq(copy(response->body), "not ready: stopping\n");
    stop(&fixture);
}
END_TEST

START_TEST(test_admin)
{
    size_t count = 0;
    struct conf_route *routes = answer_admin_routes(&count);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(routes[0].path, "/healthz");
    ck_assert_str_eq(routes[1].path, "/readyz");
    answer_admin_routes_free(routes, count);
    answer_admin_routes_free(NULL, 0);
}
END_TEST

/* The table is whole: the man page and the hints are made from it. */
START_TEST(test_table)
{
    const struct conf_kinds *kinds = answer_kinds();
    size_t count = 0;
    for (const struct conf_kind *const *kind = kinds->kinds; *kind; kind++, count++) {
        ck_assert_uint_ge((*kind)->nrows, 1);
        ck_assert_str_eq((*kind)->rows[0].key, (*kind)->key);
        for (size_t i = 0; i < (*kind)->nrows; i++) {
            ck_assert(strlen((*kind)->rows[i].purpose) > 0);
            ck_assert((*kind)->rows[i].offset < (*kind)->options_size);
        }
        ck_assert((*kind)->prepare && (*kind)->release);
    }
    ck_assert_uint_ge(count, 3);
    ck_assert_ptr_null(kinds->path_fault("/a"));
    ck_assert_ptr_nonnull(kinds->path_fault("a"));
    ck_assert(kinds->path_equal("/a", "/%61"));
    ck_assert(kinds->path_equal("/b/../a", "/./a"));
    ck_assert(kinds->path_equal("/a", "/a"));
    ck_assert(!kinds->path_equal("/a", "/a/"));
    ck_assert(!kinds->path_equal("/a/*", "/a"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("answer");
    TCase *tests = suite_case(suite, "answer");
    tcase_add_loop_test(tests, test_faults, 0, SUITE_ROWS(fault_rows));
    tcase_add_loop_test(tests, test_answers, 0, SUITE_ROWS(answer_rows));
    tcase_add_loop_test(tests, test_query, 0, SUITE_ROWS(query_rows));
    tcase_add_test(tests, test_ready);
    tcase_add_test(tests, test_admin);
    tcase_add_test(tests, test_table);
    return suite_run(suite);
}
