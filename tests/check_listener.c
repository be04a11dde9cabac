/*
 * The sockets of an address, in this process: what is exclusive, what is kept, what is undone.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf/conf.h"
#include "master/listener.h"
#include "support/suite.h"

static struct conf_listen entry_of(const char *text)
{
    struct conf_listen entry = { .text = (char *)text };
    const char *fault = NULL;
    entry.naddresses = address_parse(entry.addresses, text, &fault);
    ck_assert_msg(entry.naddresses > 0, "%s: %s", text, fault ? fault : "");
    return entry;
}

static int prepare(struct listener_set *set, const char *text, unsigned slots,
                   const struct listener_set *held, struct listener_error *error)
{
    struct conf_listen entry = entry_of(text);
    const struct listener_set *others[] = { held, NULL };
    unsigned skipped = 0;
    *set = (struct listener_set){ .slots = slots, .unix_mode = 0666 };
    return listener_set_prepare(set, &entry, 1, others, &skipped, error);
}

static int commit(struct listener_set *set, int backlog, struct listener_error *error)
{
    if (listener_set_place(set, error) == -1 || listener_set_listen(set, backlog, error) == -1)
        return -1;
    listener_set_keep(set);
    return 0;
}

/* A socket of somebody else on a port the kernel picks. */
static int foreign(bool has_reuseport, bool listens, unsigned *port)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    if (has_reuseport)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    if (listens)
        ck_assert_int_eq(listen(fd, 5), 0);
    getsockname(fd, (struct sockaddr *)&address, &length);
    *port = ntohs(address.sin_port);
    return fd;
}

START_TEST(a_taken_port_is_an_error)
{
    struct listener_set set;
    struct listener_error error;
    unsigned port;
    char text[32], want[96];
    int fd = foreign(_i & 1, true, &port);
    snprintf(text, sizeof(text), _i & 2 ? "0.0.0.0:%u" : "127.0.0.1:%u", port);
    snprintf(want, sizeof(want), "%s is already in use by process %d (", text, (int)getpid());
    ck_assert_int_eq(prepare(&set, text, 2, NULL, &error), -1);
    ck_assert_msg(strncmp(error.text, want, strlen(want)) == 0, "%s", error.text);
    close(fd);
    ck_assert_int_eq(prepare(&set, text, 2, NULL, &error), 0);
    listener_set_free(&set);
}
END_TEST

/* Nobody can bind beside us, neither before we listen nor after. */
START_TEST(ours_is_exclusive)
{
    struct listener_set set, other;
    struct listener_error error;
    char text[32];
    ck_assert_int_eq(prepare(&set, "127.0.0.1:0", 3, NULL, &error), 0);
    if (_i)
        ck_assert_int_eq(commit(&set, 16, &error), 0);
    snprintf(text, sizeof(text), "127.0.0.1:%u", address_port(&set.items[0]->address));
    ck_assert_int_eq(prepare(&other, text, 1, NULL, &error), -1);
    listener_set_free(&set);
}
END_TEST

/* Connects, and tells whether anybody took it. */
static bool connects(unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons((in_port_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool is_connected = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return is_connected;
}

START_TEST(bound_is_not_listening)
{
    struct listener_set set;
    struct listener_error error;
    ck_assert_int_eq(prepare(&set, "127.0.0.1:0", 2, NULL, &error), 0);
    unsigned port = address_port(&set.items[0]->address);
    ck_assert_int_ne(port, 0);
    ck_assert(!connects(port));
    ck_assert_int_eq(commit(&set, 16, &error), 0);
    ck_assert(connects(port));
    listener_set_free(&set);
    ck_assert(!connects(port));
}
END_TEST

static unsigned queued(int fd)
{
    unsigned count = 0;
    for (int one; (one = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) != -1; count++)
        close(one);
    return count;
}

/* More workers, then fewer: the sockets stay, and new connections keep to the first ones. */
START_TEST(surplus_sockets_get_nothing_new)
{
    struct listener_set one, two;
    struct listener_error error;
    ck_assert_int_eq(prepare(&one, "127.0.0.1:0", 4, NULL, &error), 0);
    ck_assert_int_eq(commit(&one, 256, &error), 0);
    ck_assert_int_eq(prepare(&two, "127.0.0.1:0", _i, &one, &error), 0);
    ck_assert_int_eq(commit(&two, 256, &error), 0);
    struct listener *listener = two.items[0];
    ck_assert_ptr_eq(listener, one.items[0]);
    listener_set_free(&one);
    ck_assert_uint_eq(listener->nfds, _i > 4 ? (unsigned)_i : 4);
    for (int i = 0; i < 200; i++)
        ck_assert(connects(address_port(&listener->address)));
    unsigned used = 0, total = 0;
    for (unsigned i = 0; i < listener->nfds; i++) {
        unsigned count = queued(listener->fds[i]);
        total += count;
        used += count > 0;
        ck_assert_msg(i < (unsigned)_i || count == 0, "socket %u got %u", i, count);
    }
    ck_assert_uint_eq(total, 200);
    ck_assert_uint_eq(used, (unsigned)_i);
    listener_set_free(&two);
}
END_TEST

/* What a failed reload prepared goes; what serves stays, with its queue. */
START_TEST(a_dropped_set_leaves_no_trace)
{
    struct listener_set one, two;
    struct listener_error error;
    ck_assert_int_eq(prepare(&one, "127.0.0.1:0", 2, NULL, &error), 0);
    ck_assert_int_eq(commit(&one, 16, &error), 0);
    ck_assert(connects(address_port(&one.items[0]->address)));
    ck_assert_int_eq(prepare(&two, "127.0.0.1:0", 5, &one, &error), 0);
    ck_assert_uint_eq(one.items[0]->nfds, 5);
    listener_set_free(&two);
    ck_assert_uint_eq(one.items[0]->nfds, 2);
    ck_assert_uint_eq(queued(one.items[0]->fds[0]) + queued(one.items[0]->fds[1]), 1);
    listener_set_free(&one);
}
END_TEST

/* "127.0.0.1:0" to serve and for admin: two ports, and each keeps its own over a reload. */
START_TEST(the_same_entry_in_two_roles)
{
    struct listener_set serve[2], admin[2];
    struct listener_error error = { "" };
    struct conf_listen entry = entry_of("127.0.0.1:0");
    unsigned skipped = 0;
    for (int round = 0; round < 2; round++) {
        const struct listener_set *held[] = { round ? &serve[0] : NULL, &admin[0], NULL };
        const struct listener_set *held_admin[] = { round ? &admin[0] : NULL, &serve[0], NULL };
        serve[round] = (struct listener_set){ .slots = 2 };
        admin[round] = (struct listener_set){ .slots = 1, .beside = &serve[round] };
        ck_assert_int_eq(listener_set_prepare(&serve[round], &entry, 1, held, &skipped, &error), 0);
        ck_assert_int_eq(
            listener_set_prepare(&admin[round], &entry, 1, held_admin, &skipped, &error), 0);
        ck_assert_int_eq(commit(&serve[round], 16, &error), 0);
        ck_assert_int_eq(commit(&admin[round], 16, &error), 0);
    }
    ck_assert_ptr_ne(serve[0].items[0], admin[0].items[0]);
    ck_assert_ptr_eq(serve[0].items[0], serve[1].items[0]);
    ck_assert_ptr_eq(admin[0].items[0], admin[1].items[0]);
    for (int round = 0; round < 2; round++) {
        listener_set_free(&serve[round]);
        listener_set_free(&admin[round]);
    }
}
END_TEST

START_TEST(a_wildcard_has_one_port)
{
    struct listener_set set;
    struct listener_error error;
    ck_assert_int_eq(prepare(&set, "*:0", 2, NULL, &error), 0);
    for (size_t i = 1; i < set.count; i++)
        ck_assert_uint_eq(address_port(&set.items[i]->address),
                          address_port(&set.items[0]->address));
    listener_set_free(&set);
}
END_TEST

/* "*:P" beside "127.0.0.1:P" in one configuration: our own, not a conflict. */
START_TEST(our_own_overlap_is_none)
{
    unsigned port, skipped = 0;
    char wild[32], local[32];
    close(foreign(false, false, &port));
    snprintf(wild, sizeof(wild), "0.0.0.0:%u", port);
    snprintf(local, sizeof(local), "127.0.0.1:%u", port);
    struct conf_listen entries[] = { entry_of(_i ? wild : local), entry_of(_i ? local : wild) };
    struct listener_set set = { .slots = 2 };
    struct listener_error error = { "" };
    int result = listener_set_prepare(&set, entries, 2, NULL, &skipped, &error);
    ck_assert_msg(result == 0, "%s", error.text);
    ck_assert_int_eq(commit(&set, 16, &error), 0);
    listener_set_free(&set);
}
END_TEST

static void make_path(char path[64], char text[80])
{
    static char directory[] = "/tmp/hayate-listen-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, 64, "%s/socket", directory);
    snprintf(text, 80, "unix:%s", path);
}

START_TEST(unix_sockets_appear_at_commit)
{
    struct listener_set set;
    struct listener_error error;
    struct stat status;
    char path[64], text[80];
    make_path(path, text);
    umask(077);
    ck_assert_int_eq(prepare(&set, text, 3, NULL, &error), 0);
    ck_assert_uint_eq(set.items[0]->nfds, 1);
    ck_assert_int_eq(stat(path, &status), -1);
    if (_i == 0) {
        ck_assert_int_eq(commit(&set, 16, &error), 0);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_int_eq(status.st_mode & 07777, 0666);
    }
    listener_set_free(&set);
    ck_assert_int_eq(stat(path, &status), -1);
    ck_assert_int_eq(rmdir(dirname(path)), 0); /* nothing is left beside it */
}
END_TEST

START_TEST(what_is_there_is_respected)
{
    struct listener_set set;
    struct listener_error error;
    struct stat status;
    char path[64], text[80];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    make_path(path, text);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (_i == 0) { /* a live server's */
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(fd, 5), 0);
        ck_assert_int_eq(prepare(&set, text, 1, NULL, &error), -1);
        ck_assert_ptr_nonnull(strstr(error.text, "already in use"));
    } else if (_i == 1) { /* a file */
        FILE *file = fopen(path, "w");
        fclose(file);
        ck_assert_int_eq(prepare(&set, text, 1, NULL, &error), -1);
        ck_assert_ptr_nonnull(strstr(error.text, "not a socket"));
    } else { /* left by a dead server; then a stranger takes the name over */
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        close(fd);
        ck_assert_int_eq(prepare(&set, text, 1, NULL, &error), 0);
        ck_assert_int_eq(commit(&set, 16, &error), 0);
        unlink(path);
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        listener_set_free(&set);
    }
    ck_assert_int_eq(stat(path, &status), 0);
    unlink(path);
    rmdir(dirname(path));
}
END_TEST

/* Widening or renaming an address takes over the sockets that there are. */
START_TEST(another_text_for_the_same_address)
{
    struct listener_set one, two;
    struct listener_error error;
    char text[32];
    unsigned port;
    close(foreign(false, false, &port));
    snprintf(text, sizeof(text), _i ? "0.0.0.0:%u" : "*:%u", port);
    ck_assert_int_eq(prepare(&one, text, 2, NULL, &error), 0);
    ck_assert_int_eq(commit(&one, 16, &error), 0);
    snprintf(text, sizeof(text), _i ? "*:%u" : "0.0.0.0:%u", port);
    ck_assert_int_eq(prepare(&two, text, 2, &one, &error), 0);
    ck_assert_ptr_eq(one.items[0], two.items[0]);
    listener_set_free(&two);
    listener_set_free(&one);
}
END_TEST

/* A commit that fails in one set leaves the others as they were. */
START_TEST(failed_commit_leaves_no_trace)
{
    struct listener_set one, two;
    struct listener_error error;
    ck_assert_int_eq(prepare(&one, "127.0.0.1:0", 1, NULL, &error), 0);
    ck_assert_int_eq(commit(&one, 64, &error), 0);
    ck_assert_int_eq(prepare(&two, "127.0.0.1:0", 4, &one, &error), 0);
    ck_assert_int_eq(listener_set_place(&two, &error), 0);
    ck_assert_int_eq(listener_set_listen(&two, 64, &error), 0);
    listener_set_free(&two); /* another set of the generation failed */
    ck_assert_uint_eq(one.items[0]->nfds, 1);
    for (int i = 0; i < 20; i++)
        ck_assert(connects(address_port(&one.items[0]->address)));
    ck_assert_uint_eq(queued(one.items[0]->fds[0]), 20);
    listener_set_free(&one);
}
END_TEST

/* A connection that we closed stays in TIME_WAIT, and must not keep the next start from binding. */
START_TEST(time_wait_does_not_block_the_next_start)
{
    struct listener_set set;
    struct listener_error error = { "" };
    char text[32], byte;
    ck_assert_int_eq(prepare(&set, "127.0.0.1:0", 2, NULL, &error), 0);
    ck_assert_int_eq(commit(&set, 16, &error), 0);
    struct sockaddr_in address = set.items[0]->address.v4;
    snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(address.sin_port));
    int client = socket(AF_INET, SOCK_STREAM, 0), server = -1;
    ck_assert_int_eq(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    for (unsigned i = 0; server == -1 && i < 2; i++)
        server = accept(set.items[0]->fds[i], NULL, NULL);
    ck_assert_int_ne(server, -1);
    close(server);
    ck_assert_int_eq(read(client, &byte, 1), 0);
    close(client);
    listener_set_free(&set);
    int result = prepare(&set, text, 2, NULL, &error);
    ck_assert_msg(result == 0, "%s", error.text);
    listener_set_free(&set);
}
END_TEST

/* What a worker of another user has accepted must not keep us from binding a sibling. */
START_TEST(connections_of_workers_are_no_conflict)
{
    struct listener_set one, two;
    struct listener_error error = { "" };
    if (suite_lacks_root())
        return;
    ck_assert_int_eq(prepare(&one, "127.0.0.1:0", 1, NULL, &error), 0);
    ck_assert_int_eq(commit(&one, 16, &error), 0);
    struct sockaddr_in address = one.items[0]->address.v4;
    int client = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    int said[2];
    ck_assert_int_eq(pipe(said), 0);
    pid_t worker = fork();
    if (worker == 0) {
        bool is_bad =
            setresuid(65534, 65534, 65534) == -1 || accept(one.items[0]->fds[0], NULL, NULL) == -1;
        close(one.items[0]->fds[0]);
        ssize_t written = write(said[1], is_bad ? "-" : "+", 1);
        pause();
        _exit((int)written);
    }
    char byte;
    ck_assert_int_eq(read(said[0], &byte, 1), 1);
    ck_assert_int_eq(byte, '+');
    char text[32];
    int result;
    if (_i == 0) {
        result = prepare(&two, "127.0.0.1:0", 4, &one, &error); /* more workers */
    } else {
        snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(address.sin_port));
        listener_set_free(&one);
        result = prepare(&two, text, 4, NULL, &error); /* the master was killed, and starts again */
    }
    if (result == 0)
        result = commit(&two, 16, &error);
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    ck_assert_msg(result == 0, "%s", error.text);
    listener_set_free(&two);
    if (_i == 0)
        listener_set_free(&one);
}
END_TEST

/* A socket whose owner does not let us connect may be alive. */
START_TEST(what_cannot_be_asked_is_not_replaced)
{
    struct listener_set set;
    struct listener_error error;
    char path[64], text[80];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (suite_lacks_root())
        return;
    make_path(path, text);
    char folder[64];
    strcpy(folder, path);
    ck_assert_int_eq(chmod(dirname(folder), 0777), 0);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(listen(fd, 5), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_int_eq(prepare(&set, text, 1, NULL, &error), -1);
    ck_assert_int_eq(seteuid(0), 0);
    unlink(path);
    rmdir(dirname(path));
}
END_TEST

/* Two servers that start at once: one of them gets the name. */
START_TEST(one_of_two_gets_the_name)
{
    struct listener_set set[2];
    struct listener_error error;
    char path[64], text[80];
    make_path(path, text);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(prepare(&set[i], text, 1, NULL, &error), 0);
    ck_assert_int_eq(commit(&set[0], 16, &error), 0);
    ck_assert_int_eq(commit(&set[1], 16, &error), -1);
    ck_assert_ptr_nonnull(strstr(error.text, "already in use"));
    listener_set_free(&set[1]);
    ck_assert_int_eq(access(path, F_OK), 0);
    listener_set_free(&set[0]);
    ck_assert_int_eq(rmdir(dirname(path)), 0);
}
END_TEST

/* Whoever's role changes, the control socket is for its owner alone; undone if it fails. */
START_TEST(mode_follows_the_role)
{
    struct listener_set one, two;
    struct listener_error error;
    struct stat status;
    char path[64], text[80];
    make_path(path, text);
    ck_assert_int_eq(prepare(&one, text, 1, NULL, &error), 0);
    ck_assert_int_eq(commit(&one, 16, &error), 0);
    struct conf_listen entry = entry_of(text);
    const struct listener_set *held[] = { &one, NULL };
    unsigned skipped = 0;
    two = (struct listener_set){ .slots = 1, .unix_mode = 0600 };
    ck_assert_int_eq(listener_set_prepare(&two, &entry, 1, held, &skipped, &error), 0);
    ck_assert_int_eq(listener_set_place(&two, &error), 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0600);
    if (_i == 0)
        listener_set_keep(&two);
    listener_set_free(_i == 0 ? &one : &two);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, _i == 0 ? 0600 : 0666);
    listener_set_free(_i == 0 ? &two : &one);
    rmdir(dirname(path));
}
END_TEST

/* A file that somebody removed comes back with the next set. */
START_TEST(removed_names_come_back)
{
    struct listener_set one, two;
    struct listener_error error;
    char path[64], text[80];
    make_path(path, text);
    ck_assert_int_eq(prepare(&one, text, 1, NULL, &error), 0);
    ck_assert_int_eq(commit(&one, 16, &error), 0);
    unlink(path);
    ck_assert_int_eq(prepare(&two, text, 1, &one, &error), 0);
    ck_assert_int_eq(commit(&two, 16, &error), 0);
    listener_set_free(&one);
    ck_assert_int_eq(access(path, F_OK), 0);
    listener_set_free(&two);
    rmdir(dirname(path));
}
END_TEST

/* Every path that check takes must be one that a start can bind: there and gone again. */
START_TEST(long_unix_paths)
{
    struct listener_set set;
    struct listener_error error = { "" };
    char folder[120] = "/tmp/hayate-long-XXXXXX", text[140];
    struct stat status;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    size_t length = strlen(folder);
    if (_i > 0) { /* so long a folder that no temporary name fits */
        snprintf(folder + length, sizeof(folder) - length, "/%0*d", 105 - 1 - (int)length, 0);
        ck_assert_int_eq(mkdir(folder, 0700), 0);
    }
    int rest = 107 - 1 - (int)strlen(folder);
    snprintf(text, sizeof(text), "unix:%s/%0*d", folder, rest, 0);
    ck_assert_uint_eq(strlen(text), 5 + 107);
    int result = prepare(&set, text, 1, NULL, &error);
    ck_assert_msg(result == 0, "%s", error.text);
    ck_assert_int_eq(commit(&set, 16, &error), 0);
    ck_assert_int_eq(stat(text + 5, &status), 0);
    listener_set_free(&set);
    ck_assert_int_eq(stat(text + 5, &status), -1);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("listener");
    TCase *tests = suite_case(suite, "listener");
    tcase_add_loop_test(tests, a_taken_port_is_an_error, 0, 4);
    tcase_add_loop_test(tests, ours_is_exclusive, 0, 2);
    tcase_add_test(tests, bound_is_not_listening);
    tcase_add_loop_test(tests, surplus_sockets_get_nothing_new, 1, 7);
    tcase_add_test(tests, a_dropped_set_leaves_no_trace);
    tcase_add_test(tests, the_same_entry_in_two_roles);
    tcase_add_test(tests, a_wildcard_has_one_port);
    tcase_add_loop_test(tests, our_own_overlap_is_none, 0, 2);
    tcase_add_loop_test(tests, another_text_for_the_same_address, 0, 2);
    tcase_add_test(tests, failed_commit_leaves_no_trace);
    tcase_add_test(tests, time_wait_does_not_block_the_next_start);
    tcase_add_loop_test(tests, connections_of_workers_are_no_conflict, 0, 2);
    tcase_add_test(tests, what_cannot_be_asked_is_not_replaced);
    tcase_add_test(tests, one_of_two_gets_the_name);
    tcase_add_loop_test(tests, mode_follows_the_role, 0, 2);
    tcase_add_test(tests, removed_names_come_back);
    tcase_add_loop_test(tests, long_unix_paths, 0, 2);
    tcase_add_loop_test(tests, unix_sockets_appear_at_commit, 0, 2);
    tcase_add_loop_test(tests, what_is_there_is_respected, 0, 3);
    return suite_run(suite);
}
