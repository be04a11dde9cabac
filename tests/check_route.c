/* Routes and the normal form of paths; and the small tables: methods, statuses, dates. */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "http/date.h"
#include "http/method.h"
#include "http/route.h"
#include "http/status.h"
#include "support/suite.h"
#include "support/text.h"

/* RFC 3986, 5.2.4 and 6.2.2. */
static const struct {
    const char *path, *normal;
} path_rows[] = {
    { "/", "/" },
    { "/a", "/a" },
    { "/a/", "/a/" },
    { "//", "//" },
    { "//a//b//", "//a//b//" },
    { "/.", "/" },
    { "/./", "/" },
    { "/..", "/" },
    { "/../", "/" },
    { "/../..", "/" },
    { "/../../a", "/a" },
    { "/a/.", "/a/" },
    { "/a/./", "/a/" },
    { "/a/..", "/" },
    { "/a/../", "/" },
    { "/a/../b", "/b" },
    { "/a/b/..", "/a/" },
    { "/a/b/../", "/a/" },
    { "/a/b/../c", "/a/c" },
    { "/a/b/../../c", "/c" },
    { "/a/b/../../../c", "/c" },
    { "/a/b/c/./../../g", "/a/g" },
    { "/mid/content=5/../6", "/mid/6" },
    { "/a//../b", "/a/b" },
    { "/a/b//..", "/a/b/" },
    { "//..", "/" },
    { "//../a", "/a" },
    { "/...", "/..." },
    { "/.../a", "/.../a" },
    { "/.a", "/.a" },
    { "/..a", "/..a" },
    { "/a.", "/a." },
    { "/a..", "/a.." },
    { "/a./..b", "/a./..b" },
    { "/.a/../b", "/b" },
    { "/%41", "/A" },
    { "/%7E%2d%5f%2E", "/~-_." },
    { "/%61%62%63", "/abc" },
    { "/%2f", "/%2F" },
    { "/%2F", "/%2F" },
    { "/a%2fb", "/a%2Fb" },
    { "/%3f%23%25", "/%3F%23%25" },
    { "/%2541", "/%2541" },
    { "/%c3%a9", "/%C3%A9" },
    { "/%00", "/%00" },
    { "/%2a", "/%2A" },
    { "/*", "/*" },
    { "/a/%2e", "/a/" },
    { "/a/%2E%2e/b", "/b" },
    { "/a/.%2e/b", "/b" },
    { "/a/%2e./b", "/b" },
    { "/a/%2e%2e", "/" },
    { "/%2e%2e/%2e%2e/a", "/a" },
    { "/a%2f../b", "/a%2F../b" },
    { "/a%2f..%2fb", "/a%2F..%2Fb" },
    { "/%2e%2e%2f", "/..%2F" },
    { "/;a/../b", "/b" },
    { "/..;/b", "/..;/b" },
};

START_TEST(paths_have_a_normal_form)
{
    struct slice path = slice_of(path_rows[_i].path);
    struct buf out = { 0 };
    char *copy = malloc(path.length); /* no longer than it says */
    memcpy(copy, path.data, path.length);
    buf_add_string(&out, "/before");
    enum path_result result = path_normalise(&out, (struct slice){ copy, path.length });
    bool is_same = strcmp(path_rows[_i].path, path_rows[_i].normal) == 0;
    ck_assert_int_eq(result, is_same ? PATH_SAME : PATH_CHANGED);
    ck_assert_str_eq(buf_string(&out),
                     text_format("/before%s", is_same ? "" : path_rows[_i].normal));
    free(copy);

    /* Once normal, always normal. */
    out.length = 0;
    ck_assert_int_eq(path_normalise(&out, slice_of(path_rows[_i].normal)), PATH_SAME);
    buf_fini(&out);
}
END_TEST

static const char *const configured[] = {
    "/hello",   "/",       "/a/*",  "/a/b/*",   "/a/b/c",   "/a/b/", "/deep/./er/../*",
    "/%7euser", "/%c3%a9", "/x//y", "/folder/", "/a/b/d/*", "/zz/*",
};
static const struct {
    const char *path;
    int index;
} find_rows[] = {
    { "/hello", 0 },   { "/hello/", -1 },    { "/hell", -1 },    { "/hello1", -1 },
    { "/Hello", -1 },  { "//hello", -1 },    { "/", 1 },         { "//", -1 },
    { "", -1 },        { "*", -1 },          { "/a", -1 },       { "/a/", 2 },
    { "/a/x", 2 },     { "/a/x/y/z", 2 },    { "/a//b/c", 2 },   { "/a/b", 2 },
    { "/a/b/", 5 }, /* exact over a prefix of the same length */
    { "/a/b/x", 3 },   { "/a/b/c", 4 },      { "/a/b/c/", 3 },   { "/a/b/d", 3 },
    { "/a/b/d/", 11 }, { "/a/b/d/e/f", 11 }, { "/a/b/de", 3 },   { "/deep/", 6 },
    { "/deep/x", 6 },  { "/deep", -1 },      { "/~user", 7 },    { "/%C3%A9", 8 },
    { "/x//y", 9 },    { "/x/y", -1 },       { "/folder/", 10 }, { "/folder", -1 },
    { "/a/b/*", 3 },
};

START_TEST(longest_match_wins)
{
    struct slice paths[SUITE_ROWS(configured)];
    for (int i = 0; i < SUITE_ROWS(configured); i++)
        paths[i] = slice_of(configured[i]);
    struct routes *routes = routes_new(paths, SUITE_ROWS(configured));
    ck_assert_ptr_nonnull(routes);
    for (int i = 0; i < SUITE_ROWS(find_rows); i++)
        ck_assert_msg(routes_find(routes, slice_of(find_rows[i].path)) == find_rows[i].index,
                      "%s gives %d, not %d", find_rows[i].path,
                      routes_find(routes, slice_of(find_rows[i].path)), find_rows[i].index);
    routes_free(routes);
    routes_free(NULL);
}
END_TEST

START_TEST(few_and_many_routes)
{
    enum { MANY = 2000 };
    struct slice paths[MANY] = { 0 };
    for (int count = 0; count <= MANY; count = count * 3 + 1) {
        for (int i = 0; i < count; i++)
            paths[i] = slice_of(text_format(i % 2 ? "/folder/%d/*" : "/file/%d", i));
        struct routes *routes = routes_new(paths, (size_t)count);
        ck_assert_ptr_nonnull(routes);
        for (int i = 0; i < count; i++) {
            const char *path = text_format(i % 2 ? "/folder/%d/x" : "/file/%d", i);
            ck_assert_int_eq(routes_find(routes, slice_of(path)), i);
        }
        ck_assert_int_eq(routes_find(routes, SLICE("/file/1")), -1);
        ck_assert_int_eq(routes_find(routes, SLICE("/folder/0/")), -1);
        routes_free(routes);
    }
}
END_TEST

START_TEST(all_can_be_caught)
{
    struct slice path = SLICE("/*");
    struct routes *routes = routes_new(&path, 1);
    ck_assert_int_eq(routes_find(routes, SLICE("/")), 0);
    ck_assert_int_eq(routes_find(routes, SLICE("/a/b")), 0);
    ck_assert_int_eq(routes_find(routes, SLICE("*")), -1);
    ck_assert_int_eq(routes_find(routes, SLICE("")), -1);
    routes_free(routes);
}
END_TEST

static const struct {
    const char *path;
    bool is_right;
} fault_rows[] = {
    { "/", true },      { "/hello", true },  { "/a/*", true },       { "/*", true },
    { "/a//b/", true }, { "/%41%2f", true }, { "/a/../b", true },    { "/a:@!$&'()+,;=-._~", true },
    { "", false },      { "hello", false },  { "*", false },         { "http://a/b", false },
    { "/a*", false },   { "/*/a", false },   { "/a/**", false },     { "/a?b", false },
    { "/a#b", false },  { "/a b", false },   { "/\xc3\xa9", false }, { "/%", false },
    { "/%4", false },   { "/%4g", false },   { "/a\"", false },      { "/a\n", false },
    { "/[a]", false },  { "/a\\b", false },  { "/{id}", false },     { "/a%2", false },
};

START_TEST(configured_paths_are_checked)
{
    const char *fault = route_path_fault(slice_of(fault_rows[_i].path));
    ck_assert_msg((fault == NULL) == fault_rows[_i].is_right, "%s: %s", fault_rows[_i].path,
                  fault ? fault : "accepted");
}
END_TEST

START_TEST(methods_are_found)
{
    for (int i = METHOD_GET; i < METHOD_OTHER; i++)
        ck_assert_int_eq(method_find(slice_of(method_names[i])), i);
    ck_assert_int_eq(method_find(SLICE("PROPFIND")), METHOD_OTHER);
    ck_assert_int_eq(method_find(SLICE("M-SEARCH")), METHOD_OTHER);
    static const char *const unknown[] = { "", "get", "GE", "GETS", "Get", "FOO", "PROPFINDS" };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        ck_assert_int_eq(method_find(slice_of(unknown[i])), METHOD_UNKNOWN);
}
END_TEST

START_TEST(sets_of_methods_have_a_text)
{
    char text[128];
    method_set all = ~UINT32_C(0);
    ck_assert_uint_eq(method_set_text(text, sizeof text, 0), 0);
    ck_assert_str_eq(text, "");
    method_set_text(text, sizeof text,
                    METHOD_BIT(METHOD_OPTIONS) | METHOD_BIT(METHOD_GET) | METHOD_BIT(METHOD_HEAD));
    ck_assert_str_eq(text, "GET, HEAD, OPTIONS");
    size_t length = method_set_text(text, sizeof text, all);
    ck_assert_str_eq(text, "GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH");
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_uint_eq(method_set_text(text, 9, all), 3);
    ck_assert_str_eq(text, "GET");
}
END_TEST

START_TEST(statuses_have_names)
{
    ck_assert_str_eq(status_reason(200), "OK");
    ck_assert_str_eq(status_reason(404), "Not Found");
    ck_assert_str_eq(status_reason(511), "Network Authentication Required");
    ck_assert_str_eq(status_reason(299), "");
    ck_assert_str_eq(status_reason(0), "");
    ck_assert_str_eq(status_reason(4000000000U), "");
    static const unsigned without[] = { 100, 101, 199, 204, 304 };
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        ck_assert(!status_has_body(without[i]));
    ck_assert(status_has_body(200) && status_has_body(404) && status_has_body(301));
}
END_TEST

/* IMF-fixdate (RFC 9110, 5.6.7), against the C library over ten thousand years. */
START_TEST(dates_are_right)
{
    char text[DATE_LENGTH + 1], expected[64];
    date_format(text, 784111777);
    ck_assert_str_eq(text, "Sun, 06 Nov 1994 08:49:37 GMT");
    date_format(text, 0);
    ck_assert_str_eq(text, "Thu, 01 Jan 1970 00:00:00 GMT");
    date_format(text, -1);
    ck_assert_str_eq(text, "Wed, 31 Dec 1969 23:59:59 GMT");
    date_format(text, 951782400);
    ck_assert_str_eq(text, "Tue, 29 Feb 2000 00:00:00 GMT");
    for (int64_t second = INT64_C(-62135596800); second <= INT64_C(253402300799);
         second += 86400 * 17 + 12345) {
        time_t when = (time_t)second;
        struct tm tm;
        gmtime_r(&when, &tm);
        strftime(expected, sizeof expected, "%a, %d %b ", &tm);
        strcat(expected, text_format("%04d", tm.tm_year + 1900));
        strftime(expected + strlen(expected), 16, " %T GMT", &tm);
        date_format(text, when);
        ck_assert_str_eq(text, expected);
    }
}
END_TEST

START_TEST(dates_are_refreshed)
{
    struct date date = { 0 };
    char before[DATE_LENGTH + 1], after[DATE_LENGTH + 1];
    date_format(before, time(NULL));
    date_refresh(&date);
    date_format(after, time(NULL));
    ck_assert(strcmp(date.text, before) == 0 || strcmp(date.text, after) == 0);
    date.second += 3600; /* the clock was set back */
    strcpy(date.text, "stale");
    date_refresh(&date);
    ck_assert_uint_eq(strlen(date.text), DATE_LENGTH);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route");
    TCase *tests = suite_case(suite, "route");

    tcase_add_loop_test(tests, paths_have_a_normal_form, 0, SUITE_ROWS(path_rows));
    tcase_add_test(tests, longest_match_wins);
    tcase_add_test(tests, few_and_many_routes);
    tcase_add_test(tests, all_can_be_caught);
    tcase_add_loop_test(tests, configured_paths_are_checked, 0, SUITE_ROWS(fault_rows));
    tcase_add_test(tests, methods_are_found);
    tcase_add_test(tests, sets_of_methods_have_a_text);
    tcase_add_test(tests, statuses_have_names);
    tcase_add_test(tests, dates_are_right);
    tcase_add_test(tests, dates_are_refreshed);
    return suite_run(suite);
}
