/* Responses: the bytes of every form, prepared or not, and the set of errors. */

#include <stdlib.h>
#include <string.h>

#include "http/response.h"
#include "http/status.h"
#include "support/suite.h"
#include "support/text.h"

#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"
static const struct date date = { .second = 784111777, .text = DATE };

#define TYPE "Content-Type: text/plain\r\n"

static const struct {
    const char *section;
    unsigned status;
    const char *fields, *body;
    struct response_form form;
    const char *bytes;
} rows[] = {
    { "9112 4",
      200,
      TYPE,
      "Hello",
      { .is_persistent = true, .version = 11 },
      "HTTP/1.1 200 OK\r\nDate: " DATE "\r\n" TYPE "Content-Length: 5\r\n\r\nHello" },
    { "9110 9.3.2",
      200,
      TYPE,
      "Hello",
      { .is_head = true, .is_persistent = true, .version = 11 },
      "HTTP/1.1 200 OK\r\nDate: " DATE "\r\n" TYPE "Content-Length: 5\r\n\r\n" },
    { "9112 9.6",
      200,
      TYPE,
      "Hello",
      { .version = 11 },
      "HTTP/1.1 200 OK\r\nDate: " DATE "\r\n" TYPE
      "Content-Length: 5\r\nConnection: close\r\n\r\nHello" },
    { "9112 9.6",
      200,
      TYPE,
      "Hello",
      { .is_head = true, .version = 11 },
      "HTTP/1.1 200 OK\r\nDate: " DATE "\r\n" TYPE
      "Content-Length: 5\r\nConnection: close\r\n\r\n" },
    { "9112 9.3",
      200,
      TYPE,
      "Hello",
      { .is_persistent = true, .version = 10 },
      "HTTP/1.1 200 OK\r\nDate: " DATE "\r\n" TYPE
      "Content-Length: 5\r\nConnection: keep-alive\r\n\r\nHello" },
    { "9112 9.3",
      200,
      TYPE,
      "Hello",
      { .version = 10 },
      "HTTP/1.1 200 OK\r\nDate: " DATE "\r\n" TYPE
      "Content-Length: 5\r\nConnection: close\r\n\r\nHello" },
    { "9110 8.6",
      200,
      "",
      "",
      { .is_persistent = true, .version = 11 },
      "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nContent-Length: 0\r\n\r\n" },
    { "9110 15.3.5",
      204,
      "Allow: GET\r\n",
      "",
      { .is_persistent = true, .version = 11 },
      "HTTP/1.1 204 No Content\r\nDate: " DATE "\r\nAllow: GET\r\n\r\n" },
    { "9110 15.3.5",
      204,
      "",
      "dropped",
      { .version = 11 },
      "HTTP/1.1 204 No Content\r\nDate: " DATE "\r\nConnection: close\r\n\r\n" },
    { "9110 15.3.6",
      205,
      "",
      "dropped",
      { .is_persistent = true, .version = 11 },
      "HTTP/1.1 205 Reset Content\r\nDate: " DATE "\r\nContent-Length: 0\r\n\r\n" },
    { "9110 15.4.5",
      304,
      "ETag: \"a\"\r\n",
      "dropped",
      { .is_persistent = true, .version = 11 },
      "HTTP/1.1 304 Not Modified\r\nDate: " DATE "\r\nETag: \"a\"\r\n\r\n" },
    { "9110 15.4.9",
      308,
      "Location: /a\r\n",
      "",
      { .is_persistent = true, .version = 11 },
      "HTTP/1.1 308 Permanent Redirect\r\nDate: " DATE
      "\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n" },
    { "9112 4",
      299,
      "",
      "x",
      { .is_persistent = true, .version = 11 },
      "HTTP/1.1 299 \r\nDate: " DATE "\r\nContent-Length: 1\r\n\r\nx" },
};

START_TEST(every_form_has_its_bytes)
{
    struct response response = {
        .status = rows[_i].status,
        .fields = slice_of(rows[_i].fields),
        .body = slice_of(rows[_i].body),
    };
    for (int is_prepared = 0; is_prepared < 2; is_prepared++) {
        struct buf out = { 0 };
        if (is_prepared)
            ck_assert_int_eq(response_prepare(&response), 0);
        ck_assert_int_eq(buf_add_string(&out, "before"), 0);
        ck_assert_int_eq(response_write(&out, &response, &rows[_i].form, &date), 0);
        ck_assert_str_eq(buf_string(&out), text_format("before%s", rows[_i].bytes));
        ck_assert_uint_eq(response_body_length(&response, &rows[_i].form),
                          strlen(strstr(rows[_i].bytes, "\r\n\r\n") + 4));
        buf_fini(&out);
    }
    response_fini(&response);
    response_fini(&response); /* does no harm */
}
END_TEST

START_TEST(preparing_again_takes_what_is_new)
{
    struct response_form form = { .is_persistent = true, .version = 11 };
    struct response response = { .status = 200, .body = SLICE("a") };
    struct buf out = { 0 };
    ck_assert_int_eq(response_prepare(&response), 0);
    response.body = SLICE("bc");
    ck_assert_int_eq(response_prepare(&response), 0);
    ck_assert_int_eq(response_write(&out, &response, &form, &date), 0);
    ck_assert_str_eq(buf_string(&out) + out.length - 6, "\r\n\r\nbc");
    response_fini(&response);
    buf_fini(&out);
}
END_TEST

/* What is not text: a body may hold anything. */
START_TEST(bodies_are_bytes)
{
    char body[70000];
    struct response_form form = { .is_persistent = true, .version = 11 };
    struct response response = { .status = 200, .body = { body, sizeof body } };
    struct buf out = { 0 };
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)i;
    ck_assert_int_eq(response_prepare(&response), 0);
    ck_assert_int_eq(response_write(&out, &response, &form, &date), 0);
    ck_assert_int_eq(memcmp(out.data + out.length - sizeof body, body, sizeof body), 0);
    ck_assert_ptr_nonnull(strstr(out.data, "Content-Length: 70000\r\n"));
    response_fini(&response);
    buf_fini(&out);
}
END_TEST

START_TEST(continue_is_a_head_and_no_more)
{
    struct buf out = { 0 };
    ck_assert_int_eq(response_write_continue(&out), 0);
    ck_assert_str_eq(buf_string(&out), "HTTP/1.1 100 Continue\r\n\r\n");
    buf_fini(&out);
}
END_TEST

START_TEST(errors_have_a_text)
{
    static const struct {
        unsigned status;
        const char *text;
    } texts[] = {
        { 400, "400 Bad Request\n" },
        { 404, "404 Not Found\n" },
        { 405, "405 Method Not Allowed\n" },
        { 408, "408 Request Timeout\n" },
        { 413, "413 Content Too Large\n" },
        { 414, "414 URI Too Long\n" },
        { 417, "417 Expectation Failed\n" },
        { 431, "431 Request Header Fields Too Large\n" },
        { 500, "500 Internal Server Error\n" },
        { 501, "501 Not Implemented\n" },
        { 503, "503 Service Unavailable\n" },
        { 505, "505 HTTP Version Not Supported: only HTTP/1.1 and HTTP/1.0 are\n" },
        { 511, "511 Network Authentication Required\n" },
        { 499, "400 Bad Request\n" },
        { 599, "500 Internal Server Error\n" },
    };
    struct response_errors *errors = response_errors_new();
    struct response_form form = { .version = 11 };
    ck_assert_ptr_nonnull(errors);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct buf out = { 0 };
        const struct response *response = response_errors_find(errors, texts[i].status);
        ck_assert_int_eq(response_write(&out, response, &form, &date), 0);
        const char *bytes = buf_string(&out);
        ck_assert_str_eq(bytes, text_format("HTTP/1.1 %.*s\r\nDate: " DATE "\r\n" TYPE
                                            "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                                            (int)strcspn(texts[i].text, ":\n"), texts[i].text,
                                            strlen(texts[i].text), texts[i].text));
        buf_fini(&out);
    }
    response_errors_free(errors);
    response_errors_free(NULL);
}
END_TEST

static const struct {
    const char *name, *value;
    bool is_right;
} field_rows[] = {
    { "X-Frame-Options", "DENY", true },
    { "Cache-Control", "max-age=60, public", true },
    { "X", "", true },
    { "X", "a\tb \xc3\xa9", true },
    { "Content-Type", "text/html", true },
    { "", "a", false },
    { "X y", "a", false },
    { "X:", "a", false },
    { "X\xc3\xa9", "a", false },
    { "X\r\nY", "a", false },
    { "X", "a\r\nY: b", false },
    { "X", "a\nb", false },
    { "X", "a\rb", false },
    { "X", "\x01", false },
    { "X", "\x7f", false },
    { "X", "0123456789abcdef\x1b", false },
    { "X", " a", false },
    { "X", "a\t", false },
    { "X", " ", false },
    { "Date", "a", false },
    { "date", "a", false },
    { "CONNECTION", "close", false },
    { "Content-Length", "1", false },
    { "Transfer-Encoding", "chunked", false },
    { "Keep-Alive", "timeout=5", false },
    { "Trailer", "X", false },
    { "Upgrade", "h2c", false },
};

START_TEST(configured_fields_are_checked)
{
    const char *fault =
        response_field_fault(slice_of(field_rows[_i].name), slice_of(field_rows[_i].value));
    ck_assert_int_eq(fault == NULL, field_rows[_i].is_right);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("response");
    TCase *tests = suite_case(suite, "response");

    tcase_add_loop_test(tests, every_form_has_its_bytes, 0, SUITE_ROWS(rows));
    tcase_add_test(tests, preparing_again_takes_what_is_new);
    tcase_add_test(tests, bodies_are_bytes);
    tcase_add_test(tests, continue_is_a_head_and_no_more);
    tcase_add_test(tests, errors_have_a_text);
    tcase_add_loop_test(tests, configured_fields_are_checked, 0, SUITE_ROWS(field_rows));
    return suite_run(suite);
}
