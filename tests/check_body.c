/*
 * The framing of bodies: bytes in, how many were the body's, and the section that rules. Every row
 * is also fed with a split at every byte and byte by byte.
 */

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/body.h"
#include "support/suite.h"
#include "support/text.h"

/* Outcomes: "more"; "done USED" of the bytes; or a status. */
struct row {
    const char *section;
    const char *bytes;
    size_t length;
    const char *outcome;
};
#define ROW(section, bytes, outcome)               \
    {                                              \
        section, bytes, sizeof(bytes) - 1, outcome \
    }

static const struct row chunked_rows[] = {
    ROW("9112 7.1", "0\r\n\r\n", "done 5"),
    ROW("9112 7.1", "0\r\n\r\nGET / HTTP/1.1\r\n", "done 5"),
    ROW("9112 7.1", "5\r\nHello\r\n0\r\n\r\n", "done 15"),
    ROW("9112 7.1", "5\r\nHello\r\n1\r\n!\r\n0\r\n\r\nG", "done 21"),
    ROW("9112 7.1", "a\r\n0123456789\r\n0\r\n\r\n", "done 20"),
    ROW("9112 7.1", "A\r\n0123456789\r\n0\r\n\r\n", "done 20"),
    ROW("9112 7.1", "0A\r\n\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\r\n0\r\n\r\n\r\n0\r\n\r\n", "done 15"),
    ROW("9112 7.1", "0005\r\nHello\r\n000\r\n\r\n", "done 20"),
    ROW("9112 7.1", "0000000000000005\r\nHello\r\n0\r\n\r\n", "done 30"),
    ROW("9112 7.1", "", "more"),
    ROW("9112 7.1", "5", "more"),
    ROW("9112 7.1", "5\r\nHell", "more"),
    ROW("9112 7.1", "5\r\nHello\r\n0\r\n", "more"),
    ROW("9112 7.1", "5\r\nHello\r\n0\r\n\r", "more"),
    /* sizes */
    ROW("9112 7.1", "00000000000000005\r\nHello\r\n0\r\n\r\n", "done 31"),
    ROW("9112 7.1", "5\r\nHello\r\n00000000000000000\r\n\r\n", "done 31"),
    ROW("9112 7.1", "00000000000000000;a\r\n\r\n", "done 23"),
    ROW("9112 7.1", "00000000000000003e8\r\n", "more"),
    ROW("9112 7.1", "00000000000000003e9\r\n", "413"),
    ROW("9112 7.1", "0000000000000000ffffffffffffffff\r\n", "413"),
    ROW("9112 7.1", "00000000000000010000000000000000\r\n", "400"),
    ROW("9112 7.1", "0000000000000000g\r\n", "400"),
    ROW("9112 7.1", "10000000000000000\r\n", "400"),
    ROW("9112 7.1", "10000000000000005\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "1\r\na\r\nffffffffffffffff\r\n", "413"),
    ROW("9112 7.1", "\r\n\r\n", "400"),
    ROW("9112 7.1", "\r\n5\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", ";a\r\n", "400"),
    ROW("9112 7.1", " 5\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5 \r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\t\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5 5\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "0x5\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "+5\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "-5\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "-0\r\n\r\n", "400"),
    ROW("9112 7.1", "5_0\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5.0\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5h\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "g\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\0\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5,5\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "\xef\xbc\x95\r\nHello\r\n0\r\n\r\n", "400"),
    /* line ends */
    ROW("9112 2.2", "5\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 2.2", "5\rHello\r\n0\r\n\r\n", "400"),
    ROW("9112 2.2", "5\r\r\nHello\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\r\nHello0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\r\nHello\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\r\nHello\r0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\r\nHelloxx0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\r\nHello!\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\r\nHell\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\r\nHello \r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "5\r\nHello\r\n\r\n0\r\n\r\n", "400"),
    ROW("9112 7.1", "0\n\r\n", "400"),
    ROW("9112 7.1", "0\r\n\n", "400"),
    ROW("9112 7.1", "0\r\n\rG", "400"),
    ROW("9112 7.1", "0\r\n\r\r\n", "400"),
    /* extensions */
    ROW("9112 7.1.1", "0;a\r\n\r\n", "done 7"),
    ROW("9112 7.1.1", "0;a=b\r\n\r\n", "done 9"),
    ROW("9112 7.1.1", "0;a=\"b c\"\r\n\r\n", "done 13"),
    ROW("9112 7.1.1", "0;a=\"\"\r\n\r\n", "done 10"),
    ROW("9112 7.1.1", "0;a=\";\\\"=\\\\\t\xff\"\r\n\r\n", "done 18"),
    ROW("9112 7.1.1", "0;a;b=c;d=\"e\";f\r\n\r\n", "done 19"),
    ROW("9112 7.1.1", "5;a=b\r\nHello\r\n0;c\r\n\r\n", "done 21"),
    ROW("9110 5.6.3", "0 ;a\r\n\r\n", "done 8"),
    ROW("9110 5.6.3", "0\t ; a = b ;\tc=\t\"d\" ;e\r\n\r\n", "done 26"),
    ROW("9110 5.6.3", "0;a ;b\r\n\r\n", "done 10"),
    ROW("9112 7.1.1", "0;\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0; \r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a \r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=b \r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=\"b\" \r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;;\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a;\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;=b\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=;b\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a==b\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a b\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=b c\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=\"b\"c\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=\"b\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=\"b\\\r\n\"\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=b\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=\"b\n\"\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=\"\0\"\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=\"\x7f\"\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a\0\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a=\xff\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a\rb\r\n\r\n", "400"),
    ROW("9112 7.1.1", "0;a@b\r\n\r\n", "400"),
    /* trailers */
    ROW("9112 7.1.2", "0\r\nX: y\r\n\r\n", "done 11"),
    ROW("9112 7.1.2", "0\r\nX:\r\nZ: a\tb\xff \r\n\r\nG", "done 19"),
    ROW("9112 7.1.2", "0\r\nHost: x\r\nContent-Length: 9\r\n\r\n", "done 33"),
    ROW("9112 7.1.2", "0\r\nX: y\r\n", "more"),
    ROW("9112 5", "0\r\nX y: z\r\n\r\n", "400"),
    ROW("9112 5.1", "0\r\nX : y\r\n\r\n", "400"),
    ROW("9112 5", "0\r\nX\r\n\r\n", "400"),
    ROW("9112 5", "0\r\n: y\r\n\r\n", "400"),
    ROW("9112 5.2", "0\r\nX: y\r\n z\r\n\r\n", "400"),
    ROW("9112 5.2", "0\r\n X: y\r\n\r\n", "400"),
    ROW("9112 2.2", "0\r\nX: y\n\r\n", "400"),
    ROW("9112 2.2", "0\r\nX: y\r\n\n", "400"),
    ROW("9112 2.2", "0\r\nX: y\rZ\r\n\r\n", "400"),
    ROW("9112 2.2", "0\r\nX\n: y\r\n\r\n", "400"),
    ROW("9110 5.5", "0\r\nX: \0\r\n\r\n", "400"),
    ROW("9110 5.5", "0\r\nX: \x7f\r\n\r\n", "400"),
    ROW("9110 5.5", "0\r\nX: \x1b\r\n\r\n", "400"),
    ROW("9112 7.1.2", "0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    /* the limit, 1,000 here */
    ROW("9110 15.5.14", "3e8\r\n", "more"),
    ROW("9110 15.5.14", "3e9\r\n", "413"),
    ROW("9110 15.5.14", "5\r\nHello\r\n3e3\r\n", "more"),
    ROW("9110 15.5.14", "5\r\nHello\r\n3e4\r\n", "413"),
    ROW("9110 15.5.14", "ffffffffffffffff\r\n", "413"),
    ROW("9110 15.5.14", "3e9;a", "413"),
    ROW("9110 15.5.14", "3e9x", "413"),
};

#define LIMIT 1000

static const struct row length_rows[] = {
    ROW("9112 6.2", "", "more"),
    ROW("9112 6.2", "Hell", "more"),
    ROW("9112 6.2", "Hello", "done 5"),
    ROW("9112 6.2", "HelloGET / HTTP/1.1\r\n", "done 5"),
    ROW("9112 6.2", "\0\r\n\0\n", "done 5"),
};

/* The outcome when the bytes come in two pieces, or for step = 1 byte by byte. */
static const char *outcome_of(const struct request *request, uint64_t limit, struct slice bytes,
                              size_t first, size_t step)
{
    struct body body;
    enum body_result result = body_start(&body, request, limit);
    size_t at = 0, piece = first;
    while (result == BODY_MORE && at + piece <= bytes.length) {
        size_t used = 0;
        char *copy = malloc(piece); /* no longer than it says */
        if (piece > 0)
            memcpy(copy, bytes.data + at, piece);
        result = body_feed(&body, (struct slice){ copy, piece }, &used);
        free(copy);
        ck_assert_uint_le(used, piece);
        ck_assert(result != BODY_MORE || used == piece);
        at += used;
        piece = step;
        if (at == bytes.length)
            break;
    }
    size_t more = 1;
    ck_assert(result == BODY_MORE || body_feed(&body, SLICE("more"), &more) == result);
    ck_assert(result == BODY_MORE || more == 0);
    if (result == BODY_MORE)
        return "more";
    if (result == BODY_DONE)
        return text_format("done %zu", at);
    ck_assert_uint_gt(strlen(body.reason), 0);
    return text_format("%u", body.status);
}

static void check_row(const struct row *row, const struct request *request, uint64_t limit)
{
    struct slice bytes = { row->bytes, row->length };
    const char *whole = outcome_of(request, limit, bytes, bytes.length, 1);
    ck_assert_msg(strcmp(whole, row->outcome) == 0, "%s: %s\ngives %s, not %s", row->section,
                  row->bytes, whole, row->outcome);
    for (size_t at = 0; at < bytes.length; at++) {
        const char *split = outcome_of(request, limit, bytes, at, bytes.length - at);
        ck_assert_msg(strcmp(split, whole) == 0, "%s: %s\nsplit at %zu gives %s, not %s",
                      row->section, row->bytes, at, split, whole);
    }
    const char *dripped = outcome_of(request, limit, bytes, 0, 1);
    ck_assert_msg(strcmp(dripped, whole) == 0, "%s: %s\nbyte by byte gives %s, not %s",
                  row->section, row->bytes, dripped, whole);
}

START_TEST(chunked_rows_have_their_outcomes)
{
    struct request request = { .framing = REQUEST_CHUNKED };
    check_row(&chunked_rows[_i], &request, LIMIT);
}
END_TEST

START_TEST(length_rows_have_their_outcomes)
{
    struct request request = { .framing = REQUEST_LENGTH, .content_length = 5 };
    check_row(&length_rows[_i], &request, LIMIT);
}
END_TEST

START_TEST(length_is_limited)
{
    struct request request = { .framing = REQUEST_LENGTH, .content_length = 1001 };
    struct body body;
    ck_assert_int_eq(body_start(&body, &request, 1000), BODY_REFUSED);
    ck_assert_uint_eq(body.status, 413);
    ck_assert_int_eq(body_start(&body, &request, 1001), BODY_MORE);
    ck_assert_int_eq(body_start(&body, &request, 0), BODY_MORE); /* 0: none */
    request.framing = REQUEST_NO_BODY;
    ck_assert_int_eq(body_start(&body, &request, 1000), BODY_DONE);
}
END_TEST

/* Without a limit the sum of the sizes must not wrap. */
START_TEST(sizes_do_not_overflow)
{
    struct request request = { .framing = REQUEST_CHUNKED };
    struct slice big = SLICE("1\r\na\r\nffffffffffffffff\r\n");
    ck_assert_str_eq(outcome_of(&request, 0, big, big.length, 1), "400");
    big = SLICE("1\r\na\r\nfffffffffffffffe\r\n");
    ck_assert_str_eq(outcome_of(&request, 0, big, big.length, 1), "more");
}
END_TEST

#define X64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Extensions, zeros before sizes, and trailers are bounded in all, however they are spread; the
 * former by as many bytes as there was content, and 4,096. */
static const struct {
    const char *before, *repeated, *after;
    size_t right, wrong; /* repetitions */
} bound_rows[] = {
    { "0;", "a", "\r\n\r\n", 4095, 4096 },
    { "0;a=\"", "b", "\"\r\n\r\n", 4091, 4092 },
    { "0", " ", ";a\r\n\r\n", 4094, 4095 },
    { "4\r\nabcd\r\n0;", "a", "\r\n\r\n", 4099, 4100 },
    { "4;abcd\r\nabcd\r\n0;", "a", "\r\n\r\n", 4094, 4095 },
    { "", "1;a\r\nx\r\n", "0\r\n\r\n", 4095, 4096 },
    { "", "2;a\r\nxy\r\n", "0\r\n\r\n", 9999, 0 },
    { "", "40;chunk-signature=" X64 "\r\n" X64 "\r\n", "0\r\n\r\n", 237, 238 },
    { "", "0", "\r\n\r\n", 4097, 4098 },
    { "", "0", "1\r\na\r\n0\r\n\r\n", 4096, 4097 },
    { "", "001\r\na\r\n", "0\r\n\r\n", 4095, 4096 },
    { "4\r\nabcd\r\n", "0", ";a\r\n\r\n", 4099, 4100 },
    { "0\r\nX:", "y", "\r\n\r\n", 8186, 8187 },
    { "5\r\nHello\r\n0\r\nX:", "y", "\r\n\r\n", 8186, 8187 },
    { "0\r\n", "X:y\r\n", "\r\n", 1638, 1639 },
};

START_TEST(overhead_is_bounded)
{
    struct request request = { .framing = REQUEST_CHUNKED };
    for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
        size_t count = is_wrong ? bound_rows[_i].wrong : bound_rows[_i].right;
        if (count == 0) /* no number of these is */
            continue;
        const char *all =
            text_format("%s%s%s", bound_rows[_i].before,
                        text_repeat(bound_rows[_i].repeated, count), bound_rows[_i].after);
        const char *right = text_format("done %zu", strlen(all));
        const char *outcome = outcome_of(&request, 0, slice_of(all), strlen(all), 1);
        ck_assert_str_eq(outcome, is_wrong ? "400" : right);
        ck_assert_str_eq(outcome_of(&request, 0, slice_of(all), 0, 1), outcome);
    }
}
END_TEST

START_TEST(content_is_counted)
{
    struct request request = { .framing = REQUEST_CHUNKED };
    struct body body;
    size_t used;
    struct slice bytes = SLICE("5;a\r\nHello\r\n10\r\n0123456789abcdef\r\n0\r\nX: y\r\n\r\n");
    body_start(&body, &request, 21);
    ck_assert_int_eq(body_feed(&body, bytes, &used), BODY_DONE);
    ck_assert_uint_eq(used, bytes.length);
    ck_assert_uint_eq(body.received, 21);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("body");
    TCase *tests = suite_case(suite, "body");

    tcase_add_loop_test(tests, chunked_rows_have_their_outcomes, 0, SUITE_ROWS(chunked_rows));
    tcase_add_loop_test(tests, length_rows_have_their_outcomes, 0, SUITE_ROWS(length_rows));
    tcase_add_test(tests, length_is_limited);
    tcase_add_test(tests, sizes_do_not_overflow);
    tcase_add_loop_test(tests, overhead_is_bounded, 0, SUITE_ROWS(bound_rows));
    tcase_add_test(tests, content_is_counted);
    return suite_run(suite);
}
