/*
 * The access log: whatever comes from a client makes one well-formed line.
 */

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scoreboard.h"
#include "support/json.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"
#include "worker/access.h"

#define NOW (INT64_C(1796025600) * CLOCK_SECOND + 122 * CLOCK_MILLISECOND)

static struct scoreboard_peer peer_of(const char *address)
{
    struct scoreboard_peer peer;
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(1234) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    struct sockaddr_un local = { .sun_family = AF_UNIX };
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        scoreboard_peer_set(&peer, (struct sockaddr *)&v4);
    else if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        scoreboard_peer_set(&peer, (struct sockaddr *)&v6);
    else
        scoreboard_peer_set(&peer, (struct sockaddr *)&local);
    return peer;
}

static const char *format(enum conf_access_format format, const struct access_entry *entry)
{
    struct access access;
    char line[ACCESS_LINE_MAX];
    ck_assert_int_eq(access_init(&access, SINK_INIT, format, 2, 3), 0);
    size_t length = access_format(&access, line, entry, NOW);
    access_fini(&access);
    ck_assert_uint_le(length, sizeof line);
    ck_assert_int_eq(line[length - 1], '\n');
    ck_assert_ptr_null(memchr(line, '\n', length - 1));
    return text_copy(line, length);
}

START_TEST(test_combined)
{
    struct scoreboard_peer v4 = peer_of("192.0.2.1"), v6 = peer_of("2001:db8::1");
    struct scoreboard_peer local = peer_of("unix");
    struct access_entry entry = {
        .peer = &v4,
        .line = SLICE("GET /hello?a HTTP/1.1"),
        .host = SLICE("example.org"),
        .referer = SLICE("http://example.org/"),
        .user_agent = SLICE("curl/7.88.1"),
        .status = 200,
        .body = 18446744073709551615u,
        .duration = 1500000,
    };
    ck_assert_str_eq(format(CONF_ACCESS_COMBINED, &entry),
                     "192.0.2.1 - - [30/Nov/2026:08:00:00 +0000] \"GET /hello?a HTTP/1.1\" 200 "
                     "18446744073709551615 \"http://example.org/\" \"curl/7.88.1\"\n");
    struct access_entry unknown = { .peer = &v6, .status = 408 };
    ck_assert_str_eq(format(CONF_ACCESS_COMBINED, &unknown),
                     "2001:db8::1 - - [30/Nov/2026:08:00:00 +0000] \"-\" 408 - \"-\" \"-\"\n");
    unknown.peer = &local;
    unknown.line = SLICE("a\"b\\c\r\n\x1b[1m\xc3\xa9\x7f");
    ck_assert_str_eq(format(CONF_ACCESS_COMBINED, &unknown),
                     "unix - - [30/Nov/2026:08:00:00 +0000] "
                     "\"a\\x22b\\x5Cc\\x0D\\x0A\\x1B[1m\\xC3\\xA9\\x7F\" 408 - \"-\" \"-\"\n");
}
END_TEST

START_TEST(test_json)
{
    struct scoreboard_peer v4 = peer_of("192.0.2.1");
    struct access_entry entry = {
        .peer = &v4,
        .line = SLICE("GET /\"\\\x01\xff\xc3\xa9 HTTP/1.1"),
        .host = SLICE("example.org"),
        .status = 200,
        .body = 5,
        .duration = 3001500000,
    };
    const char *line = format(CONF_ACCESS_JSON, &entry);
    const struct json *json = json_parse(line);
    ck_assert_msg(json != NULL, "%s", line);
    ck_assert_str_eq(json_string(json_get(json, "time")), "2026-11-30T08:00:00.122Z");
    ck_assert_str_eq(json_string(json_get(json, "address")), "192.0.2.1");
    ck_assert_str_eq(json_string(json_get(json, "request")),
                     "GET /\"\\\x01\xef\xbf\xbd\xc3\xa9 HTTP/1.1");
    ck_assert_str_eq(json_string(json_get(json, "host")), "example.org");
    ck_assert_str_eq(json_string(json_get(json, "referer")), "-");
    ck_assert(json_number(json_get(json, "status")) == 200);
    ck_assert(json_number(json_get(json, "bytes")) == 5);
    ck_assert(json_number(json_get(json, "duration")) == 3.0015);
    ck_assert(json_number(json_get(json, "worker")) == 2);
    ck_assert(json_number(json_get(json, "generation")) == 3);
}
END_TEST

/* What terminals obey, what ends a line elsewhere, and what turns the text around: never as it is;
 * a reader of JSON gets it back. */
START_TEST(test_unfit)
{
    static const struct {
        const char *text, *combined, *json;
    } rows[] = {
        { "x\xc2\x9b"
          "31mRED",
          "x\\xC2\\x9B31mRED", "x\\u009b31mRED" },
        { "a\xc2\x85"
          "b",
          "a\\xC2\\x85b", "a\\u0085b" },
        { "a\xe2\x80\xa8"
          "b",
          "a\\xE2\\x80\\xA8b", "a\\u2028b" },
        { "\xe2\x80\xaegpj", "\\xE2\\x80\\xAEgpj", "\\u202egpj" },
        { "\xe2\x81\xa6", "\\xE2\\x81\\xA6", "\\u2066" },
        { "\xd8\x9c", "\\xD8\\x9C", "\\u061c" },
        { "\xef\xbb\xbf", "\\xEF\\xBB\\xBF", "\\ufeff" },
    };
    struct scoreboard_peer v4 = peer_of("192.0.2.1");
    struct access_entry entry = {
        .peer = &v4,
        .line = SLICE("GET / HTTP/1.1"),
        .user_agent = slice_of(rows[_i].text),
        .status = 200,
    };
    const char *line = format(CONF_ACCESS_COMBINED, &entry);
    ck_assert_msg(strstr(line, text_format("\"%s\"\n", rows[_i].combined)) != NULL, "%s", line);
    line = format(CONF_ACCESS_JSON, &entry);
    ck_assert_msg(strstr(line, text_format("\"user_agent\":\"%s\"", rows[_i].json)) != NULL, "%s",
                  line);
    ck_assert_str_eq(json_string(json_get(json_parse(line), "user_agent")), rows[_i].text);
}
END_TEST

/* Long and hostile, in both formats; a byte of each kind and then random ones. */
START_TEST(test_hostile)
{
    static char bytes[3][20000];
    struct scoreboard_peer v6 = peer_of("2001:db8:1111:2222:3333:4444:5555:6666");
    srand((unsigned)_i + 1);
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < sizeof bytes[k]; i++)
            bytes[k][i] = (char)(_i < 256 ? _i : rand() % 256);
    size_t length = _i % 2 ? sizeof bytes[0] : (size_t)rand() % 3000;
    struct access_entry entry = {
        .peer = &v6,
        .line = { bytes[0], length },
        .host = { bytes[1], length },
        .referer = { bytes[1], length },
        .user_agent = { bytes[2], length },
        .status = 4294967295u,
        .body = UINT64_MAX,
        .duration = INT64_MAX,
    };
    const char *line = format(CONF_ACCESS_COMBINED, &entry);
    ck_assert(text_matches(line, "^2001:db8:1111:2222:3333:4444:5555:6666 - - \\[[^]]*\\] "
                                 "\"[ !#-~]*\" [0-9]+ [0-9]+ \"[ !#-~]*\" \"[ !#-~]*\"\n$"));
    line = format(CONF_ACCESS_JSON, &entry);
    ck_assert_msg(json_parse(line) != NULL, "%s", line);
}
END_TEST

/* Whole lines, whatever the sink takes at once. */
START_TEST(test_flush)
{
    enum { LINES = 1000 };
    struct scoreboard_peer v4 = peer_of("192.0.2.1");
    struct access access;
    struct sink sink;
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
    if (_i == 0) {
        ck_assert_int_eq(sink_adopt(&sink, ends[1]), 0);
    } else {
        ck_assert_int_eq(sink_open_path(&sink, scratch_path("access"), 0644), 0);
    }
    ck_assert_int_eq(access_init(&access, sink, CONF_ACCESS_COMBINED, 1, 1), 0);
    ck_assert(access_is_on(&access));
    for (int i = 0; i < LINES; i++) {
        const char *line = text_format("GET /%d HTTP/1.1", i);
        access_add(&access,
                   &(struct access_entry){ .peer = &v4, .line = slice_of(line), .status = 200 });
    }
    access_flush(&access);
    ck_assert_uint_eq(access.length, 0);
    const char *all;
    if (_i == 0) { /* 64 kB fit; the rest is dropped in whole lines */
        static char taken[1 << 20];
        ssize_t length = read(ends[0], taken, sizeof taken - 1);
        ck_assert_int_gt(length, 10000);
        all = taken;
        ck_assert_uint_gt(access.sink.dropped, 0);
    } else {
        all = scratch_read("access");
    }
    unsigned lines = text_count_lines(all, ".*");
    ck_assert_uint_eq(text_count_lines(all, "^192\\.0\\.2\\.1 .*\"GET /[0-9]+ HTTP/1.1\" 200 - "
                                            "\"-\" \"-\"$"),
                      lines);
    if (_i == 1)
        ck_assert_uint_eq(lines, LINES);
    access_fini(&access);
    ck_assert(!access_is_on(&access));
}
END_TEST

/* The disk of two workers is full, then it has room again. Each line is there or told as lost, and
 * the reason is that of the disk. */
START_TEST(test_full)
{
    enum { LINES = 300 };
    struct scoreboard_peer v4 = peer_of("192.0.2.1");
    struct access workers[2];
    struct sink sink;
    struct rlimit before, limit;
    ck_assert_int_eq(sink_open_path(&sink, scratch_path("log"), 0644), 0);
    log_set_sink(sink, false);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(sink_open_path(&sink, scratch_path("access"), 0644), 0);
        ck_assert_int_eq(access_init(&workers[i], sink, CONF_ACCESS_COMBINED, i, 1), 0);
    }
    struct access_entry entry = { .peer = &v4, .line = SLICE("GET / HTTP/1.1"), .status = 200 };
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 10001;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit); /* holds for the files of Check too: no assertion now */
    for (int i = 0; i < LINES; i++) {
        access_add(&workers[i % 2], &entry);
        if (i % 10 < 2)
            access_flush(&workers[i % 2]);
    }
    setrlimit(RLIMIT_FSIZE, &before);
    for (int i = 1; i >= 0; i--) {
        access_flush(&workers[i]);
        access_add(&workers[i], &entry);
        access_fini(&workers[i]);
    }
    const char *all = scratch_read("access"), *log = scratch_read("log");
    unsigned whole =
        text_count_lines(all, "^192\\.0\\.2\\.1 - - \\[[^]]*\\] \"GET / HTTP/1\\.1\" 200 "
                              "- \"-\" \"-\"$");
    ck_assert_uint_gt(whole, 100);
    ck_assert_uint_eq(text_count_lines(all, "^$"), 0);
    ck_assert_uint_le(text_count_lines(all, ""), whole + 1); /* one fragment */
    unsigned told = 0;
    for (const char *at = log; (at = strstr(at, "access log: ")) != NULL; at++)
        told += (unsigned)strtoul(at + strlen("access log: "), NULL, 10);
    ck_assert_msg(whole + told == LINES + 2, "%u there, %u lost:\n%s", whole, told, log);
    ck_assert_uint_gt(text_count_lines(log, "lines were dropped: File too large"), 0);
    ck_assert_uint_eq(text_count_lines(log, "temporarily"), 0);
}
END_TEST

START_TEST(test_off)
{
    struct access access;
    ck_assert_int_eq(access_init(&access, SINK_INIT, CONF_ACCESS_COMBINED, 1, 1), 0);
    ck_assert(!access_is_on(&access));
    access_flush(&access);
    access_fini(&access);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("access");
    TCase *tests = suite_case(suite, "access");
    tcase_add_test(tests, test_combined);
    tcase_add_test(tests, test_json);
    tcase_add_loop_test(tests, test_unfit, 0, 7);
    tcase_add_loop_test(tests, test_hostile, 0, 300);
    tcase_add_loop_test(tests, test_flush, 0, 2);
    tcase_add_test(tests, test_full);
    tcase_add_test(tests, test_off);
    return suite_run(suite);
}
