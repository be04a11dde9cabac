/*
 * What the look at the raw text refuses before libconfig parses it, and what it lets through.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/text.h"
#include "conf/token.h"
#include "support/suite.h"
#include "support/text.h"

struct fault_row {
    struct slice text;
    int line;
    const char *fault;
};

#define ROW(literal, line, fault)                     \
    {                                                 \
        { literal, sizeof(literal) - 1 }, line, fault \
    }

static const struct fault_row fault_rows[] = {
    /* Bytes. */
    ROW("\xef\xbb\xbfworkers = 2\n", 1,
        "begins with a byte order mark: save it as UTF-8 without BOM"),
    ROW("workers = 2\n\0\n", 2, "a NUL byte: this is not a text file, or it is damaged"),
    ROW("# caf\xe9\n", 1,
        "the byte 0xE9 is not UTF-8: save the file as UTF-8, or write \\xE9 in a string"),
    ROW("a = \"\xc0\x80\"\n", 1,
        "the byte 0xC0 is not UTF-8: save the file as UTF-8, or write \\xC0 in a string"),
    ROW("\n\na = \"\x1b[0m\"\n", 3, "the control byte 0x1B: write \\x1B in a string"),
    ROW("a = \"\x7f\"\n", 1, "the control byte 0x7F: write \\x7F in a string"),
    ROW("a = 1\rb = 2\n", 1, "a carriage return alone: lines end with a line feed"),
    ROW("a = 1\n\f", 2, "the control byte 0x0C: write \\x0C in a string"),

    /* What libconfig lets vanish, wrap or go around. */
    ROW("a = 1\n/* b = 2\nc = 3\n", 2, "a comment is not closed: wants a */ at its end"),
    ROW("/*/", 1, "a comment is not closed: wants a */ at its end"),
    ROW("a = \"\\x00\"\n", 1, "\\x00 in a string: no value can hold a NUL byte"),
    ROW("a = \"\\q\"\n", 1,
        "unknown escape \\q in a string: there are \\n \\r \\t \\f \\\\ \\\" and \\xHH"),
    ROW("a = \"\\u00e9\"\n", 1,
        "unknown escape \\u in a string: there are \\n \\r \\t \\f \\\\ \\\" and \\xHH"),
    ROW("a = \"\\x1\"\n", 1,
        "unknown escape \\x in a string: there are \\n \\r \\t \\f \\\\ \\\" and \\xHH"),
    ROW("a = \"\\\xc3\xa9\"\n", 1,
        "unknown escape \\\xc3\xa9 in a string: there are \\n \\r \\t \\f \\\\ \\\" and \\xHH"),
    ROW("a = 2147483648\n", 1, "the number 2147483648 does not fit 32 bits: write 2147483648L"),
    ROW("a = 4294967298\n", 1, "the number 4294967298 does not fit 32 bits: write 4294967298L"),
    ROW("a = -2147483649\n", 1, "the number -2147483649 does not fit 32 bits: write -2147483649L"),
    ROW("a = 9223372036854775808\n", 1, "the number 9223372036854775808 does not fit 64 bits"),
    ROW("a = 9223372036854775808L\n", 1, "the number 9223372036854775808L does not fit 64 bits"),
    ROW("a = -9223372036854775809LL\n", 1,
        "the number -9223372036854775809LL does not fit 64 bits"),
    ROW("a = 0x80000000\n", 1, "the number 0x80000000 does not fit 32 bits: write 0x80000000L"),
    ROW("a = 0x1FFFFFFFF\n", 1, "the number 0x1FFFFFFFF does not fit 32 bits: write 0x1FFFFFFFFL"),
    ROW("a = 0x8000000000000000L\n", 1, "the number 0x8000000000000000L does not fit 64 bits"),
    ROW("a = 0x10000000000000000L\n", 1, "the number 0x10000000000000000L does not fit 64 bits"),
    ROW("a = 1e999\n", 1, "the number 1e999 is too large"),
    ROW("a = -1.0E+400\n", 1, "the number -1.0E+400 is too large"),
    ROW("a = 00000000000000000000000000000000000000000000000000000000000000000000000000000000001\n",
        1, "the number 0000000000000000000000000000000000000000... is too long"),
    ROW("@include \"x.conf\"\n", 1,
        "libconfig's own @include is not used here: write include = [ \"FILE\" ]"),
    ROW("a = 1\n  @include \"x.conf\"\n", 2,
        "libconfig's own @include is not used here: write include = [ \"FILE\" ]"),

    /* Strings. */
    ROW("a = \"b\nc = \"d\"\n", 1,
        "a string is not closed on its line: wants a \" at its end (\\n is a line break, and "
        "\"a\" \"b\" is one string)"),
    ROW("a = \"b", 1,
        "a string is not closed on its line: wants a \" at its end (\\n is a line break, and "
        "\"a\" \"b\" is one string)"),
    ROW("a = \"b\\", 1,
        "unknown escape \\ in a string: there are \\n \\r \\t \\f \\\\ \\\" and \\xHH"),
    ROW("a = 'b'\n", 1, "a string stands in double quotes, not in '"),
    ROW("a = stderr\n", 1, "stderr wants quotes: \"stderr\""),
    ROW("a = 5s\n", 1, "5s wants quotes: \"5s\""),
    ROW("a = [ 1, 16k ]\n", 1, "16k wants quotes: \"16k\""),
    ROW("a = 127.0.0.1:80\n", 1, "127.0.0.1:80 wants quotes: \"127.0.0.1:80\""),
    ROW("a = 1.5.2\n", 1, "1.5.2 wants quotes: \"1.5.2\""),
    ROW("a = ${PORT}\n", 1, "${...} stands inside a string: \"${...}\""),
    ROW("a = /var/log/x\n", 1,
        "a stray /: a value is a number, true, false, or a string in double quotes"),

    /* Structure. */
    ROW("a\n", 1, "wants a = and a value after \"a\""),
    ROW("a\nb = 1\n", 1, "wants a = and a value after \"a\""),
    ROW("a = \nb = 1\n", 2, "b wants quotes: \"b\""),
    ROW("a = ", 1, "the file ends where a value is missing"),
    ROW("a = ;\n", 1, "wants a value before \";\""),
    ROW("a = = 1\n", 1, "wants a value before \"=\""),
    ROW("= 1\n", 1, "wants KEY = VALUE, not \"=\""),
    ROW("\"a\" = 1\n", 1, "wants KEY = VALUE: a key stands without quotes"),
    ROW("a = 1;; b = 2\n", 1, "wants KEY = VALUE, not \";\""),
    ROW("; a = 1\n", 1, "wants KEY = VALUE, not \";\""),
    ROW("true = 1\n", 1, "wants KEY = VALUE, not \"true\""),
    ROW("a = 1 2\n", 1, "wants KEY = VALUE, not \"2\""),
    ROW("a = 1\nb = 2 junk\n", 2, "wants a = and a value after \"junk\""),
    ROW("a = 1 \"x\"\n", 1, "wants KEY = VALUE: a key stands without quotes"),
    ROW("a = {\n b = 1\n", 1, "the { here is not closed: wants a }"),
    ROW("a = 1\nb = ( {\n c = [ 1,\n 2\n", 3, "the [ here is not closed: wants a ]"),
    ROW("a = 1 }\n", 1, "a } that closes nothing: remove it"),
    ROW("a = (\n 1 ]\n", 2, "a ] where the ( of line 1 wants a )"),
    ROW("a = [ 1, 2, ]\n", 1, "a comma before ]: wants one more value, or no comma"),
    ROW("a = ( 1,\n)\n", 1, "a comma before ): wants one more value, or no comma"),
    ROW("a = [ , ]\n", 1, "wants a value before \",\""),
    ROW("a = [ 1 2 ]\n", 1, "wants a comma between the values of an array [ ]"),
    ROW("a = ( {} {} )\n", 1, "wants a comma between the values of a list ( )"),
    ROW("a = [ b = 1 ]\n", 1, "b wants quotes: \"b\""),
    ROW("a = { b = }\n", 1, "wants a value before \"}\""),
    ROW("a = { b }\n", 1, "wants a = and a value after \"b\""),
    ROW("a = [ {} ]\n", 1,
        "an array [ ] holds plain values only: write a list ( ) around groups { }"),
    ROW("a = [ [ 1 ] ]\n", 1, "an array [ ] holds plain values only: write a list ( ) around this"),
    ROW("a = [ 1,\n \"2\" ]\n", 2,
        "the values of an array [ ] are all of one type: write a list ( ), or the same type"),
    ROW("a = [ 1, 2L ]\n", 1,
        "the values of an array [ ] are all of one type: write a list ( ), or the same type"),
    ROW("((((1))))", 1, "wants KEY = VALUE, not \"(\""),
    ROW("a = (((((((((((((((((1)))))))))))))))))\n", 1, "more than 16 sections within each other"),

    /* Repeats. */
    ROW("a = 1\n\na = 2\n", 3, "repeated key \"a\", first set in line 1: keep one of them"),
    ROW("a = {\n b = 1\n c = 2\n b = 3 }\n", 4,
        "repeated key \"b\", first set in line 2: keep one of them"),
    ROW("a = ( { b = 1 }, { b = 1\n b = 1 } )\n", 2,
        "repeated key \"b\", first set in line 1: keep one of them"),
};

START_TEST(faults)
{
    const struct fault_row *row = &fault_rows[_i];
    struct text_lines lines = { 0 };
    struct text_fault fault = { 0 };

    ck_assert_msg(!text_check(row->text, &fault, &lines), "passed: %s", row->text.data);
    free(lines.lines);
    ck_assert_msg(fault.line == row->line && strcmp(fault.text, row->fault) == 0,
                  "%s\n%d: %s\ninstead of\n%d: %s", row->text.data, fault.line, fault.text,
                  row->line, row->fault);
}
END_TEST

static const char *const good_rows[] = {
    "",
    "\n",
    "# a comment without an end of line",
    "// the same",
    "/* a /* comment */ a = 1",
    "a = 1",
    "a = 1\r\nb = 2\r\n",
    "a : 1; b = 2, c = 3 d = 4\n",
    "a = { b = 1, c = { d = ( 1, \"2\", [ 3 ], { e = 4 } ) } };",
    "a = { b = 1 } b = { b = 1 }",
    "a = \"b\" \"c\"\n \"d\" e = 1",
    "a = [ \"b\" \"c\", \"d\" ]",
    "a = \"\\n\\r\\t\\f\\\\\\\"\\x01\\xfF\\X41\"",
    "a = \"/* no comment # nor here // nor here\"",
    "a = \"\ttab\"",
    "a = \"\xc3\xa9 \xe7\x96\xbe\xe9\xa2\xa8 \xf0\x9f\x92\xa8\"",
    "a = 2147483647 b = -2147483648 c = 9223372036854775807L d = -9223372036854775808LL",
    "a = 0x7fffffff b = 0X7FFFFFFFFFFFFFFFL c = +5 d = -0",
    "a = 1.5 b = .5 c = 5. d = 1e5 e = -1.5E-5",
    "a = TRUE b = False true_1 = 1",
    "a = [] b = () c = {}",
    "a-b_c*d = 1 *x = 2",
    "a = ((((((((((((((((1))))))))))))))))",
};

START_TEST(good)
{
    struct text_lines lines = { 0 };
    struct text_fault fault = { 0 };
    const char *text = good_rows[_i];
    bool is_good = text_check(slice_of(text), &fault, &lines);
    free(lines.lines);
    ck_assert_msg(is_good, "%s\n%d: %s", text, fault.line, fault.text);
}
END_TEST

/* The lines that libconfig gets wrong: of plain values in arrays and lists. */
START_TEST(lines_of_values)
{
    static const char text[] = "a = 1\n"
                               "b = [ \"x\",\n"
                               "  \"y\"\n"
                               "  \"z\"\n"
                               "]\n"
                               "c = ( 1, { d = 2 },\n"
                               "  [ 3,\n"
                               "    4 ]\n"
                               ")\n";
    static const int wanted[] = { 2, 3, 6, 7, 8 };
    struct text_lines lines = { 0 };
    struct text_fault fault = { 0 };

    ck_assert(text_check(slice_of(text), &fault, &lines));
    ck_assert_uint_eq(lines.count, sizeof(wanted) / sizeof(wanted[0]));
    for (size_t i = 0; i < lines.count; i++)
        ck_assert_int_eq(lines.lines[i], wanted[i]);
    free(lines.lines);
}
END_TEST

START_TEST(size_has_a_limit)
{
    struct text_lines lines = { 0 };
    struct text_fault fault = { 0 };
    const char *text = text_repeat("\n", TEXT_SIZE_MAX + 1);
    ck_assert(text_check((struct slice){ text, TEXT_SIZE_MAX }, &fault, &lines));
    ck_assert(!text_check((struct slice){ text, TEXT_SIZE_MAX + 1 }, &fault, &lines));
    ck_assert_str_eq(fault.text, "is larger than 1 MB: move routes into fragments (include)");
    free(lines.lines);
}
END_TEST

/* Whatever stands in a text, the reader gets to its end. */
START_TEST(reader_passes_faults)
{
    const struct fault_row *row = &fault_rows[_i];
    struct token_reader reader;
    size_t count = 0;
    token_reader_init(&reader, row->text);
    while (token_next(&reader).kind != TOKEN_END)
        ck_assert_uint_le(++count, row->text.length);
    ck_assert_ptr_eq(reader.at, reader.end);
}
END_TEST

START_TEST(escapes_are_undone)
{
    struct token_reader reader;
    struct buf out = { 0 };
    token_reader_init(&reader, SLICE("\"a\\n\\r\\t\\f\\\\\\\"\\x41\\Xe9z\""));
    struct token token = token_next(&reader);
    ck_assert_int_eq(token.kind, TOKEN_STRING);
    ck_assert_int_eq(token_add_string(&out, &token), 0);
    ck_assert_str_eq(buf_string(&out), "a\n\r\t\f\\\"A\xe9z");
    buf_fini(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conf_text");
    TCase *tests = suite_case(suite, "text");
    tcase_add_loop_test(tests, faults, 0, SUITE_ROWS(fault_rows));
    tcase_add_loop_test(tests, good, 0, SUITE_ROWS(good_rows));
    tcase_add_test(tests, lines_of_values);
    tcase_add_test(tests, size_has_a_limit);
    tcase_add_loop_test(tests, reader_passes_faults, 0, SUITE_ROWS(fault_rows));
    tcase_add_test(tests, escapes_are_undone);
    return suite_run(suite);
}
