/*
 * Counting the connections of each address.
 */

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/scoreboard.h"
#include "support/suite.h"
#include "worker/peers.h"

static struct scoreboard_peer v4(uint32_t address, uint16_t port)
{
    struct sockaddr_in from = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(address),
    };
    struct scoreboard_peer peer;
    scoreboard_peer_set(&peer, (struct sockaddr *)&from);
    return peer;
}

static struct scoreboard_peer v6(const char *address)
{
    struct sockaddr_in6 from = { .sin6_family = AF_INET6 };
    struct scoreboard_peer peer;
    ck_assert_int_eq(inet_pton(AF_INET6, address, &from.sin6_addr), 1);
    scoreboard_peer_set(&peer, (struct sockaddr *)&from);
    return peer;
}

START_TEST(test_limit)
{
    struct peers peers = { 0 };
    struct scoreboard_peer a = v4(0x7f000001, 1), same = v4(0x7f000001, 2), b = v4(0x7f000002, 1);
    struct scoreboard_peer six = v6("::ffff:127.0.0.1"), other = v6("2001:db8::1");
    ck_assert_int_eq(peers_add(&peers, &a, 2), PEERS_COUNTED);
    ck_assert_int_eq(peers_add(&peers, &same, 2), PEERS_COUNTED);
    ck_assert_int_eq(peers_add(&peers, &a, 2), PEERS_LIMIT);
    ck_assert_int_eq(peers_add(&peers, &b, 2), PEERS_COUNTED);
    ck_assert_int_eq(peers_add(&peers, &six, 2), PEERS_COUNTED);
    ck_assert_int_eq(peers_add(&peers, &other, 2), PEERS_COUNTED);
    ck_assert_uint_eq(peers.count, 4);
    peers_remove(&peers, &same);
    ck_assert_int_eq(peers_add(&peers, &same, 2), PEERS_COUNTED);
    ck_assert_int_eq(peers_add(&peers, &same, 2), PEERS_LIMIT);
    peers_remove(&peers, &a);
    peers_remove(&peers, &a);
    peers_remove(&peers, &a); /* more than there are */
    ck_assert_uint_eq(peers.count, 3);
    peers_fini(&peers);
}
END_TEST

/* Of IPv6 a /64 is one client; an IPv4 address in IPv6 is one of its own. */
START_TEST(test_site)
{
    struct peers peers = { 0 };
    static const struct {
        const char *address;
        enum peers_result result;
    } rows[] = {
        { "2001:db8:1:2::1", PEERS_COUNTED },  { "2001:db8:1:2:ffff::1", PEERS_LIMIT },
        { "2001:db8:1:3::1", PEERS_COUNTED },  { "2001:db8:1:3::2", PEERS_LIMIT },
        { "::ffff:192.0.2.1", PEERS_COUNTED }, { "::ffff:192.0.2.2", PEERS_COUNTED },
        { "::ffff:192.0.2.1", PEERS_LIMIT },   { "::1", PEERS_COUNTED },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scoreboard_peer peer = v6(rows[i].address);
        ck_assert_msg(peers_add(&peers, &peer, 1) == rows[i].result, "%s", rows[i].address);
    }
    struct scoreboard_peer second = v6("2001:db8:1:2:ffff::1");
    peers_remove(&peers, &second);
    ck_assert_int_eq(peers_add(&peers, &second, 1), PEERS_COUNTED);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scoreboard_peer peer = v6(rows[i].address);
        peers_remove(&peers, &peer);
    }
    ck_assert_uint_eq(peers.count, 0);
    peers_fini(&peers);
}
END_TEST

START_TEST(test_exempt)
{
    struct peers peers = { 0 };
    struct sockaddr_un from = { .sun_family = AF_UNIX };
    struct scoreboard_peer peer;
    scoreboard_peer_set(&peer, (struct sockaddr *)&from);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(peers_add(&peers, &peer, 1), PEERS_EXEMPT);
    ck_assert_uint_eq(peers.count, 0);
    peers_remove(&peers, &peer);
    peers_fini(&peers);
}
END_TEST

/* Many addresses come and go, and the table does not degenerate. */
START_TEST(test_many)
{
    enum { ADDRESSES = 5000 };
    static unsigned counts[ADDRESSES];
    struct peers peers = { 0 };
    size_t present = 0;
    srand(1);
    for (int i = 0; i < 200000; i++) {
        unsigned k = (unsigned)rand() % ADDRESSES;
        struct scoreboard_peer peer = v4(0x0a000000 + k * 256, 1);
        if (rand() % 2) {
            ck_assert_int_eq(peers_add(&peers, &peer, 3),
                             counts[k] < 3 ? PEERS_COUNTED : PEERS_LIMIT);
            present += counts[k] == 0;
            counts[k] += counts[k] < 3;
        } else if (counts[k] > 0) {
            peers_remove(&peers, &peer);
            present -= --counts[k] == 0;
        }
        ck_assert_uint_eq(peers.count, present);
    }
    ck_assert_uint_ge(peers.nbuckets * 2, present);
    peers_fini(&peers);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("peers");
    TCase *tests = suite_case(suite, "peers");
    tcase_add_test(tests, test_limit);
    tcase_add_test(tests, test_site);
    tcase_add_test(tests, test_exempt);
    tcase_add_test(tests, test_many);
    return suite_run(suite);
}
