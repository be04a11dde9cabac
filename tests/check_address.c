/*
 * What can be listened on, from text and back.
 */
#include <net/if.h>
#include <string.h>

#include "conf/address.h"
#include "support/suite.h"
#include "support/text.h"

struct row {
    const char *text;
    const char *first, *second; /* as address_text says it; NULL: none */
    const char *fault;
};

static const char shape[] = "wants HOST:PORT, [IPV6]:PORT, *:PORT or unix:/PATH";
static const char port[] = "the port is wrong: wants a number from 0 to 65535";
static const char named[] = "names are not looked up: wants a numeric address, or * for every one";
static const char four[] = "the host is not an IPv4 address: wants four numbers from 0 to 255";
static const char six[] = "what stands in [ ] is not an IPv6 address";
static const char bare[] = "wants HOST:PORT alone, without http:// or a path";

static const struct row rows[] = {
    { "127.0.0.1:80", "127.0.0.1:80", NULL, NULL },
    { "0.0.0.0:0", "0.0.0.0:0", NULL, NULL },
    { "255.255.255.255:65535", "255.255.255.255:65535", NULL, NULL },
    { "127.0.0.1:00080", "127.0.0.1:80", NULL, NULL },
    { "*:8080", "0.0.0.0:8080", "[::]:8080", NULL },
    { "[::]:80", "[::]:80", NULL, NULL },
    { "[::1]:80", "[::1]:80", NULL, NULL },
    { "[2001:DB8:0:0::1]:80", "[2001:db8::1]:80", NULL, NULL },
    { "unix:/run/x", "unix:/run/x", NULL, NULL },
    { "unix:/a:80", "unix:/a:80", NULL, NULL },

    { "", NULL, NULL, shape },
    { "8080", NULL, NULL, shape },
    { "*", NULL, NULL, shape },
    { "127.0.0.1", NULL, NULL, shape },
    { "[::1]", NULL, NULL, shape },
    { "[::1]80", NULL, NULL, shape },
    { "[::1]x:80", NULL, NULL, shape },
    { "x[::1]:80", NULL, NULL, shape },
    { "[::1]]:80", NULL, NULL, six },
    { "[]:80", NULL, NULL, six },
    { "[1]:80", NULL, NULL, six },
    { "[*]:80", NULL, NULL, six },
    { "[127.0.0.1]:80", NULL, NULL, six },
    { "[1:2:3:4:5:6:7:8:9:a:b:c:d:e:f:10:11:12:13:14]:80", NULL, NULL, six },
    { "[::ffff:127.0.0.1]:80", NULL, NULL,
      "an IPv4 address stands without brackets and ::ffff:, such as 127.0.0.1:8080" },
    { "[fe80::1]:80", NULL, NULL,
      "a link-local address needs its interface, such as [fe80::1%eth0]:8080" },
    { "[fe80::1%]:80", NULL, NULL,
      "wants the name of a network interface after %, such as [fe80::1%eth0]:8080" },
    { "[fe80::1%a-name-that-is-far-too-long]:80", NULL, NULL,
      "wants the name of a network interface after %, such as [fe80::1%eth0]:8080" },
    { "[fe80::1%nosuch]:80", NULL, NULL, "there is no network interface of the name after %" },
    { "[::1%lo]:80", NULL, NULL,
      "only a link-local address (fe80::) takes an interface: leave out % and its name" },
    { "*:", NULL, NULL, port },
    { "*:-1", NULL, NULL, port },
    { "*:+1", NULL, NULL, port },
    { "*:65536", NULL, NULL, port },
    { "*:000080", NULL, NULL, port },
    { "*:80 ", NULL, NULL, port },
    { "*:http", NULL, NULL, port },
    { "*:0x50", NULL, NULL, port },
    { ":80", NULL, NULL,
      "the host is missing: *:PORT is every address, 127.0.0.1:PORT this machine only" },
    { "::1:80", NULL, NULL, "an IPv6 address stands in brackets, such as [::1]:8080" },
    { "localhost:80", NULL, NULL, "names are not looked up: write 127.0.0.1:PORT or [::1]:PORT" },
    { "example.com:80", NULL, NULL, named },
    { " 127.0.0.1:80", NULL, NULL, named },
    { "**:80", NULL, NULL, named },
    { "a-host-name-that-is-longer-than-any-address:80", NULL, NULL, named },
    { "127.0.0:80", NULL, NULL, four },
    { "256.0.0.1:80", NULL, NULL, four },
    { "127.1:80", NULL, NULL, four },
    { "1.2.3.4.5:80", NULL, NULL, four },
    { "http://127.0.0.1:80", NULL, NULL, bare },
    { "http://127.0.0.1:80/", NULL, NULL, bare },
    { "http://127.0.0.1", NULL, NULL, bare },
    { "unix:", NULL, NULL, "wants an absolute path after unix:, such as unix:/run/hayate/http" },
    { "unix:x", NULL, NULL, "wants an absolute path after unix:, such as unix:/run/hayate/http" },
};

START_TEST(parse)
{
    const struct row *row = &rows[_i];
    struct address addresses[2];
    const char *fault = "unset";
    char text[ADDRESS_TEXT_SIZE];

    unsigned count = address_parse(addresses, row->text, &fault);
    if (row->fault) {
        ck_assert_msg(count == 0 && fault && strcmp(fault, row->fault) == 0, "%s: %u, %s",
                      row->text, count, fault);
        return;
    }
    ck_assert_msg(count == (row->second ? 2 : 1) && !fault, "%s: %u, %s", row->text, count, fault);
    for (unsigned i = 0; i < count; i++) {
        address_text(text, sizeof(text), &addresses[i]);
        ck_assert_str_eq(text, i == 0 ? row->first : row->second);
        ck_assert_int_eq(addresses[i].is_wildcard, row->text[0] == '*');
    }
}
END_TEST

START_TEST(unix_paths_have_a_limit)
{
    struct address addresses[2];
    const char *fault;
    char text[ADDRESS_TEXT_SIZE];
    const char *fits = text_format("unix:/%s", text_repeat("x", 106));

    ck_assert_uint_eq(address_parse(addresses, fits, &fault), 1);
    ck_assert_uint_eq(addresses[0].length, sizeof(struct sockaddr_un));
    address_text(text, sizeof(text), &addresses[0]);
    ck_assert_str_eq(text, fits);
    address_url(text, sizeof(text), &addresses[0]);
    ck_assert_str_eq(text, text_format("http+%s", fits));
    ck_assert_uint_eq(address_parse(addresses, text_format("%sx", fits), &fault), 0);
    ck_assert_str_eq(fault,
                     "the path of a unix socket has at most 107 bytes: choose a shorter one");
}
END_TEST

START_TEST(interfaces)
{
    struct address addresses[2];
    const char *fault;
    char text[ADDRESS_TEXT_SIZE];

    if (if_nametoindex("lo") == 0 && suite_skip("there is no interface lo"))
        return;
    ck_assert_uint_eq(address_parse(addresses, "[fe80::1%lo]:80", &fault), 1);
    ck_assert_uint_eq(addresses[0].v6.sin6_scope_id, if_nametoindex("lo"));
    address_text(text, sizeof(text), &addresses[0]);
    ck_assert_str_eq(text, "[fe80::1%lo]:80");
    addresses[0].v6.sin6_scope_id = 999999;
    address_text(text, sizeof(text), &addresses[0]);
    ck_assert_str_eq(text, "[fe80::1%999999]:80");
}
END_TEST

struct pair {
    const char *a, *b;
    bool is_equal, overlaps;
};

static const struct pair pairs[] = {
    { "127.0.0.1:80", "127.0.0.1:80", true, true },
    { "127.0.0.1:80", "127.0.0.1:81", false, false },
    { "127.0.0.1:80", "127.0.0.2:80", false, false },
    { "0.0.0.0:80", "127.0.0.1:80", false, true },
    { "0.0.0.0:80", "127.0.0.1:81", false, false },
    { "0.0.0.0:80", "[::1]:80", false, false },
    { "[::]:80", "[::1]:80", false, true },
    { "[::]:80", "0.0.0.0:80", false, false },
    { "[::1]:80", "[::2]:80", false, false },
    { "unix:/a", "unix:/a", true, true },
    { "unix:/a", "unix:/ab", false, false },
    { "unix:/a", "127.0.0.1:80", false, false },
};

START_TEST(compare)
{
    const struct pair *pair = &pairs[_i];
    struct address a[2], b[2];
    const char *fault;
    ck_assert_uint_eq(address_parse(a, pair->a, &fault), 1);
    ck_assert_uint_eq(address_parse(b, pair->b, &fault), 1);
    ck_assert_int_eq(address_equal(a, b), pair->is_equal);
    ck_assert_int_eq(address_equal(b, a), pair->is_equal);
    ck_assert_int_eq(address_overlaps(a, b), pair->overlaps);
    ck_assert_int_eq(address_overlaps(b, a), pair->overlaps);
}
END_TEST

START_TEST(ports)
{
    struct address addresses[2];
    const char *fault;
    char text[ADDRESS_TEXT_SIZE];
    ck_assert_uint_eq(address_parse(addresses, "*:0", &fault), 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(address_port(&addresses[i]), 0);
        address_set_port(&addresses[i], 54321);
        ck_assert_uint_eq(address_port(&addresses[i]), 54321);
        address_url(text, sizeof(text), &addresses[i]);
        ck_assert_str_eq(text, i == 0 ? "http://0.0.0.0:54321" : "http://[::]:54321");
    }
    ck_assert_uint_eq(address_parse(addresses, "unix:/x", &fault), 1);
    address_set_port(&addresses[0], 1);
    ck_assert_uint_eq(address_port(&addresses[0]), 0);
    ck_assert_str_eq(addresses[0].local.sun_path, "/x");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("address");
    TCase *tests = suite_case(suite, "address");
    tcase_add_loop_test(tests, parse, 0, SUITE_ROWS(rows));
    tcase_add_test(tests, unix_paths_have_a_limit);
    tcase_add_test(tests, interfaces);
    tcase_add_loop_test(tests, compare, 0, SUITE_ROWS(pairs));
    tcase_add_test(tests, ports);
    return suite_run(suite);
}
