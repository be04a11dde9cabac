/*
 * Preconditions: the fields of a request, those of the answer, what comes of both, and the section
 * that rules (RFC 9110, 13); and the dates in them (5.6.7).
 */

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "http/condition.h"
#include "http/date.h"
#include "http/request.h"
#include "support/suite.h"
#include "support/text.h"

#define NOW 1764460800 /* 2025-11-30 */
#define OLD "Sun, 06 Nov 1994 08:49:36 GMT"
#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"
#define NEW "Sun, 06 Nov 1994 08:49:38 GMT"

#define TAG "ETag: \"a\"\r\n"
#define WEAK "ETag: W/\"a\"\r\n"
#define TIME "Last-Modified: " DATE "\r\n"
#define SINCE "If-Modified-Since: "
#define UNTIL "If-Unmodified-Since: "

static const struct {
    const char *section, *asked; /* field lines of the request */
    const char *fields;          /* of the answer */
    const char *outcome;         /* of GET and of PUT: "met", or the status */
} rows[] = {
    { "13.1.1", "If-Match: *\r\n", "", "met met" },
    { "13.1.1", "If-Match: \"a\"\r\n", TAG, "met met" },
    { "13.1.1", "If-Match: \"b\"\r\n", TAG, "412 412" },
    { "13.1.1", "If-Match: \"A\"\r\n", TAG, "412 412" },
    { "13.1.1", "If-Match: a\r\n", TAG, "412 412" },
    { "13.1.1", "If-Match:\r\n", TAG, "412 412" },
    { "13.1.1", "If-Match: \"a\"\r\n", "", "412 412" },
    { "13.1.1", "If-Match: \"b\", \"a\"\r\n", TAG, "met met" },
    { "13.1.1", "If-Match: , ,\"b\"\t,\t\"a\",\r\n", TAG, "met met" },
    { "13.1.1", "If-Match: \"b\"\r\nIf-Match: \"a\"\r\n", TAG, "met met" },
    { "8.8.3", "If-Match: \"b,\", \"a\"\r\n", TAG, "met met" },
    { "8.8.3", "If-Match: \"x, \"a\"\r\n", TAG, "412 412" },
    { "8.8.3", "If-Match: \"\"\r\n", "ETag: \"\"\r\n", "met met" },
    { "8.8.3", "If-Match: \"a\r\n", TAG, "412 412" },
    { "8.8.3.2", "If-Match: W/\"a\"\r\n", TAG, "412 412" },
    { "8.8.3.2", "If-Match: \"a\"\r\n", WEAK, "412 412" },
    { "8.8.3.2", "If-Match: W/\"a\"\r\n", WEAK, "412 412" },
    { "13.1.2", "If-None-Match: *\r\n", "", "304 412" },
    { "13.1.2", "If-None-Match: \"a\"\r\n", TAG, "304 412" },
    { "13.1.2", "If-None-Match: \"b\"\r\n", TAG, "met met" },
    { "13.1.2", "If-None-Match: \"a\"\r\n", "", "met met" },
    { "13.1.2", "If-None-Match: \"*\"\r\n", TAG, "met met" },
    { "13.1.2", "If-None-Match: \"b\", W/\"a\"\r\n", TAG, "304 412" },
    { "13.1.2", "if-none-match: \"a\"\r\n", "etag: \"a\"\r\n", "304 412" },
    { "13.1.2", "If-None-Match: \"a\"\r\n", "X: y\r\nE: f\r\n" TAG, "304 412" },
    { "13.1.2", "If-None-Match:\r\n", TAG, "met met" },
    { "8.8.3.2", "If-None-Match: \"a\"\r\n", WEAK, "304 412" },
    { "8.8.3.2", "If-None-Match: w/\"a\"\r\n", TAG, "met met" },
    { "13.1.3", SINCE DATE "\r\n", TIME, "304 met" },
    { "13.1.3", SINCE NEW "\r\n", TIME, "304 met" },
    { "13.1.3", SINCE OLD "\r\n", TIME, "met met" },
    { "13.1.3", SINCE DATE "\r\n", "", "met met" },
    { "13.1.3", SINCE DATE "\r\n", "Last-Modified: yesterday\r\n", "met met" },
    { "13.1.3", SINCE "yesterday\r\n", TIME, "met met" },
    { "13.1.3", SINCE DATE "\r\n" SINCE DATE "\r\n", TIME, "met met" },
    { "13.1.3", SINCE "Sunday, 06-Nov-94 08:49:37 GMT\r\n", TIME, "304 met" },
    { "13.1.3", SINCE "Sun Nov  6 08:49:37 1994\r\n", TIME, "304 met" },
    { "13.1.3", "If-None-Match: \"b\"\r\n" SINCE DATE "\r\n", TAG TIME, "met met" },
    { "13.1.4", UNTIL DATE "\r\n", TIME, "met met" },
    { "13.1.4", UNTIL NEW "\r\n", TIME, "met met" },
    { "13.1.4", UNTIL OLD "\r\n", TIME, "412 412" },
    { "13.1.4", UNTIL OLD "\r\n", "", "met met" },
    { "13.1.4", UNTIL "yesterday\r\n", TIME, "met met" },
    { "13.1.4", UNTIL OLD "\r\n" UNTIL OLD "\r\n", TIME, "met met" },
    { "13.1.4", "If-Match: \"a\"\r\n" UNTIL OLD "\r\n", TAG TIME, "met met" },
    { "13.2.2", "If-Match: \"a\"\r\nIf-None-Match: \"a\"\r\n", TAG, "304 412" },
    { "13.2.2", "If-Match: \"b\"\r\nIf-None-Match: \"a\"\r\n", TAG, "412 412" },
    { "13.2.2", UNTIL NEW "\r\n" SINCE NEW "\r\n", TIME, "304 met" },
    { "13.1.5", "If-Range: \"a\"\r\nRange: bytes=0-0\r\n", TAG, "met met" },
};

static const char *outcome_of(const char *method, const char *asked, const char *fields,
                              bool exists)
{
    static const char *const names[] = {
        [CONDITION_MET] = "met",
        [CONDITION_NOT_MODIFIED] = "304",
        [CONDITION_FAILED] = "412",
    };
    const struct request_limits limits = { .header = 16384 };
    struct request request = { 0 };
    struct request_scan scan = { 0 };
    const char *head = text_format("%s / HTTP/1.1\r\nHost: a\r\n%s\r\n", method, asked);
    ck_assert_int_eq(request_feed(&request, &scan, slice_of(head), &limits), REQUEST_DONE);
    ck_assert_int_eq(request.is_conditional, strncasecmp(asked, "If-Range", 8) != 0);
    enum condition condition = condition_judge(&request, slice_of(fields), exists, NOW);
    request_fini(&request);
    return names[condition];
}

START_TEST(rows_have_their_outcomes)
{
    const char *outcome =
        text_format("%s %s", outcome_of("GET", rows[_i].asked, rows[_i].fields, 1),
                    outcome_of("PUT", rows[_i].asked, rows[_i].fields, 1));
    ck_assert_msg(strcmp(outcome, rows[_i].outcome) == 0, "%s: %s with %s: %s, not %s",
                  rows[_i].section, rows[_i].asked, rows[_i].fields, outcome, rows[_i].outcome);
    ck_assert_str_eq(outcome_of("HEAD", rows[_i].asked, rows[_i].fields, 1),
                     outcome_of("GET", rows[_i].asked, rows[_i].fields, 1));
}
END_TEST

/* A target that is only posted to has no representation. */
START_TEST(nothing_matches_nothing)
{
    ck_assert_str_eq(outcome_of("POST", "If-Match: *\r\n", "", false), "412");
    ck_assert_str_eq(outcome_of("POST", "If-None-Match: *\r\n", "", false), "met");
}
END_TEST

static const struct {
    const char *text;
    const char *same; /* the first form; NULL: no date */
} date_rows[] = {
    { DATE, DATE },
    { "Sunday, 06-Nov-94 08:49:37 GMT", DATE },
    { "Sun Nov  6 08:49:37 1994", DATE },
    { "Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:00 GMT" },
    { "Thu, 29 Feb 2024 23:59:59 GMT", "Thu, 29 Feb 2024 23:59:59 GMT" },
    /* two digits: at most 50 years ahead of 2025 */
    { "Wednesday, 01-Jan-70 00:00:00 GMT", "Wed, 01 Jan 2070 00:00:00 GMT" },
    { "Thursday, 01-Jan-76 00:00:00 GMT", "Thu, 01 Jan 1976 00:00:00 GMT" },
    { "Monday, 01-Jan-24 00:00:00 GMT", "Mon, 01 Jan 2024 00:00:00 GMT" },
    { "", NULL },
    { "0", NULL },
    { "784111777", NULL },
    { "Mon, 06 Nov 1994 08:49:37 GMT", NULL },
    { "Sun, 6 Nov 1994 08:49:37 GMT", NULL },
    { "Sun,  06 Nov 1994 08:49:37 GMT", NULL },
    { "sun, 06 nov 1994 08:49:37 gmt", NULL },
    { "Sun, 06 Nov 1994 08:49:37 UTC", NULL },
    { "Sun, 06 Nov 1994 08:49:37", NULL },
    { "Sun, 06 Nov 1994 08:49:37 GMT ", NULL },
    { "Sun, 06 Nov 1994 08:49:37 +0000", NULL },
    { "Sun, 06 Nov 1994 24:00:00 GMT", NULL },
    { "Sat, 31 Feb 2024 00:00:00 GMT", NULL },
    { "Sun Nov 6 08:49:37 1994", NULL },
    { "Sunday, 06-Nov-1994 08:49:37 GMT", NULL },
    { "Sunday, 06 November 1994 08:49:37 GMT", NULL },
    { "1994-11-06T08:49:37Z", NULL },
};

START_TEST(dates_are_read)
{
    time_t second;
    char text[DATE_LENGTH + 1];
    bool is_date = date_parse(&second, slice_of(date_rows[_i].text), NOW);
    ck_assert_msg(is_date == (date_rows[_i].same != NULL), "%s", date_rows[_i].text);
    if (is_date) {
        date_format(text, second);
        ck_assert_str_eq(text, date_rows[_i].same);
    }
}
END_TEST

START_TEST(what_is_no_text_is_no_date)
{
    time_t second;
    ck_assert(!date_parse(&second, (struct slice){ 0 }, NOW));
    ck_assert(!date_parse(&second, SLICE(DATE "\0"), NOW));
    ck_assert(!date_parse(&second, slice_of(text_repeat("S", 5000)), NOW));
}
END_TEST

/* What a cache may need of the 200 that it has. */
START_TEST(some_fields_are_kept)
{
    struct buf kept = { 0 };
    ck_assert_int_eq(condition_keep(&kept, SLICE("Content-Type: text/plain\r\netag: \"a\"\r\n"
                                                 "X-Y: z\r\nVary: A\r\nLast-Modified: x\r\n"
                                                 "Vary: B\r\nCache-Control: c\r\nExpires: 0\r\n"
                                                 "Content-Location: /d\r\n")),
                     0);
    ck_assert(slice_equal(buf_slice(&kept),
                          SLICE("etag: \"a\"\r\nVary: A\r\nVary: B\r\nCache-Control: c\r\n"
                                "Expires: 0\r\nContent-Location: /d\r\n")));
    buf_fini(&kept);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("condition");
    TCase *tests = suite_case(suite, "condition");

    tcase_add_loop_test(tests, rows_have_their_outcomes, 0, SUITE_ROWS(rows));
    tcase_add_test(tests, nothing_matches_nothing);
    tcase_add_loop_test(tests, dates_are_read, 0, SUITE_ROWS(date_rows));
    tcase_add_test(tests, what_is_no_text_is_no_date);
    tcase_add_test(tests, some_fields_are_kept);
    return suite_run(suite);
}
