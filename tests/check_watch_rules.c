/* watch = true: what makes a reload and what does not, and what is told. */

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/client.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"
#include "support/watched.h"

/* What makes no reload. */

static const char *const unchanged[] = {
    "cp one etc/new; mv etc/new $FILE",
    "cat two >$FILE; cat one >$FILE",
    "touch $FILE; chmod 600 $FILE",
    "mv $FILE $FILE~; cp one $FILE",
};

START_TEST(same_bytes_make_no_reload)
{
    struct server server;

    watched_start_settled(&server);
    for (int i = 0; i < SUITE_ROWS(unchanged); i++) {
        size_t mark = server_mark(&server);
        /* Stopped, so that it cannot look in the middle, however slow we are. */
        server_signal(&server, SIGSTOP);
        watched_shell(unchanged[i]);
        server_signal(&server, SIGCONT);
        server_await(&server, mark, WATCHED_SAME);
    }
    ck_assert_uint_eq(server_count(&server, 0, WATCHED_RELOADING), 0);
    ck_assert_uint_eq(server_generation(&server), 1);
    /* It had been watched all the time. */
    watched_shell("cat two >$FILE");
    WAIT_FOR(watched_is_state(&server, "two"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

static int64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Writes the file many times. Was it quick enough to be taken for one change? */
static bool write_often(const char *last)
{
    int64_t first = milliseconds(), before = first, longest = 0;
    for (int i = 0; i <= 100; i++) {
        scratch_write("etc/hayate.conf", i < 100 ? text_format(WATCHED_STATE("%d"), i) : last);
        int64_t now = milliseconds();
        longest = now - before > longest ? now - before : longest;
        before = now;
    }
    return longest < 900 && before - first < 9000;
}

/* A machine that holds us up for long is asked again. */
START_TEST(many_writes_make_one_reload)
{
    struct server server;
    bool was_quick = false;

    watched_start_settled(&server);
    for (int i = 0; i < 10 && !was_quick; i++) {
        const char *last = text_format("last %d", i);
        size_t mark = server_mark(&server);
        was_quick = write_often(text_format(WATCHED_STATE("%s"), last));
        WAIT_FOR(watched_is_state(&server, last));
        server_await(&server, mark, WATCHED_SAME);
        unsigned reloads = server_count(&server, mark, WATCHED_RELOADING);
        ck_assert_uint_ge(reloads, 1);
        ck_assert(!was_quick || reloads == 1);
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Whoever writes all the time is not waited for. */
START_TEST(quiet_is_not_waited_for_without_end)
{
    struct deadline deadline = deadline_start();
    struct server server;

    watched_start_settled(&server);
    size_t mark = server_mark(&server);
    for (int i = 0; server_count(&server, mark, WATCHED_RELOADING) == 0; i++) {
        ck_assert(deadline_wait(&deadline));
        scratch_write("etc/hayate.conf", text_format(WATCHED_STATE("%d"), i));
    }
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* What is refused. */

START_TEST(bad_content_is_told_once)
{
    struct server server;

    watched_start_settled(&server);
    size_t mark = server_mark(&server);
    watched_shell("echo 'wrokers = 1' >etc/new; mv etc/new $FILE");
    server_await(&server, mark, "reload failed, generation 1 stays: .*wrokers");
    const char *status = server_expect(&server, 0, LIST("status"));
    ck_assert_msg(text_matches(status, "last reload: failed.*wrokers"), "%s", status);
    server_await(&server, mark, WATCHED_REFUSED);
    /* The same once more is no news; */
    size_t again = server_mark(&server);
    watched_shell("echo 'wrokers = 1' >etc/new; mv etc/new $FILE");
    server_await(&server, again, WATCHED_REFUSED);
    ck_assert_uint_eq(server_count(&server, mark, "reload failed"), 1);
    /* what was told to someone else is none; */
    again = server_mark(&server);
    server_signal(&server, SIGSTOP);
    watched_shell("echo 'wrokers = 2' >etc/new; mv etc/new $FILE");
    server_signal(&server, SIGHUP);
    server_signal(&server, SIGCONT);
    server_await(&server, again, "reload failed");
    server_await(&server, again, WATCHED_REFUSED);
    ck_assert_uint_eq(server_count(&server, mark, "reload failed"), 2);
    /* another mistake is; */
    again = server_mark(&server);
    watched_shell("echo 'wrokers = 3' >etc/new; mv etc/new $FILE");
    server_await(&server, again, "reload failed, generation 1 stays: .*wrokers");
    /* and so is the end of it. */
    again = server_mark(&server);
    watched_shell("cp one etc/new; mv etc/new $FILE");
    server_await(&server, again, "watch: the files are again as they are served");
    ck_assert_uint_eq(server_generation(&server), 1);
    ck_assert(watched_is_state(&server, "one"));
    watched_shell("cp two etc/new; mv etc/new $FILE");
    WAIT_FOR(watched_is_state(&server, "two"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* An empty file is valid, and nearly always one that is being written. */
START_TEST(empty_file_is_not_taken)
{
    struct server server;

    watched_start_settled(&server);
    size_t mark = server_mark(&server);
    watched_shell(": >$FILE");
    server_await(&server, mark, "warning .*hayate.conf is empty, generation 1 stays");
    server_await(&server, mark, WATCHED_REFUSED);
    ck_assert(watched_is_state(&server, "one"));
    watched_shell("cat two >$FILE");
    WAIT_FOR(watched_is_state(&server, "two"));
    ck_assert_uint_eq(server_count(&server, mark, "is empty"), 1);
    server_await(&server, mark, WATCHED_SAME);
    /* By hand it counts. */
    server_signal(&server, SIGSTOP);
    watched_shell(": >$FILE");
    server_signal(&server, SIGHUP);
    server_signal(&server, SIGCONT);
    WAIT_FOR(watched_is_state(&server, NULL));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* On and off. */

static unsigned count_inotify(const struct server *server)
{
    const char *path = text_format("/proc/%d/fd", (int)server->pid);
    char target[64];
    unsigned count = 0;
    DIR *directory = opendir(path);
    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        count += length > 0 && memmem(target, (size_t)length, "inotify", 7) != NULL;
    }
    closedir(directory);
    return count;
}

START_TEST(is_turned_on_and_off_by_reloads)
{
    struct server server;

    server_start(&server, &(struct server_options){ .config = SERVER_BASE WATCHED_STATE("one") });
    ck_assert(!watched_is_on(&server));
    ck_assert_uint_eq(count_inotify(&server), 0);
    server_rewrite(&server, SERVER_BASE WATCHED_STATE("two") "watch = true\n");
    const char *answer = server_expect(&server, 0, LIST("reload"));
    ck_assert_msg(text_matches(answer, "watch false -> true"), "%s", answer);
    ck_assert(watched_is_on(&server));
    ck_assert_uint_eq(count_inotify(&server), 1);
    const char *status = server_expect(&server, 0, LIST("status"));
    ck_assert_msg(text_matches(status, "config: .*hayate.conf, watched"), "%s", status);
    server_rewrite(&server, SERVER_BASE WATCHED_STATE("three") "watch = true\n");
    WAIT_FOR(watched_is_state(&server, "three"));
    /* The last change that is noticed. */
    server_rewrite(&server, SERVER_BASE WATCHED_STATE("four"));
    WAIT_FOR(watched_is_state(&server, "four"));
    ck_assert(!watched_is_on(&server));
    ck_assert_uint_eq(count_inotify(&server), 0);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

START_TEST(reloads_leak_no_descriptor)
{
    struct server server;

    watched_start_settled(&server);
    WAIT_FOR(process_group(server.pid, NULL, 0) == 2);
    unsigned before = process_count_files(server.pid);
    for (int i = 0; i < 10; i++) {
        scratch_write("etc/hayate.conf", text_format(WATCHED_STATE("%d"), i));
        server_reload(&server);
    }
    WAIT_FOR(process_group(server.pid, NULL, 0) == 2 && process_count_files(server.pid) == before);
    ck_assert_uint_eq(count_inotify(&server), 1);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* The drain takes longer than the wait for quiet. */
START_TEST(stop_is_not_disturbed)
{
    struct server server;
    struct client client;
    struct reply reply;

    watched_prepare(".");
    scratch_write("etc/hayate.conf", "routes = ( { path = \"/state\" text = \"one\" },"
                                     "{ path = \"/slow\" text = \"slow\" delay = \"3s\" } )\n");
    watched_start(&server, ".", NULL);
    client_open(&client, server.url);
    client_send(&client,
                "GET /state HTTP/1.1\r\nHost: a\r\n\r\nGET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    client_expect(&client, &reply, 200);
    server_signal(&server, SIGTERM);
    server_await(&server, 0, "SIGTERM: stopping");
    size_t mark = server_mark(&server);
    watched_shell("cat two >$FILE");
    client_expect(&client, &reply, 200);
    client_close(&client);
    ck_assert_int_eq(server_wait(&server), 0);
    ck_assert_uint_eq(server_count(&server, mark, "watch:|reload"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("watch_rules");
    TCase *tests = suite_case(suite, "watch_rules");
    tcase_add_test(tests, same_bytes_make_no_reload);
    tcase_add_test(tests, many_writes_make_one_reload);
    tcase_add_test(tests, quiet_is_not_waited_for_without_end);
    tcase_add_test(tests, bad_content_is_told_once);
    tcase_add_test(tests, empty_file_is_not_taken);
    tcase_add_test(tests, is_turned_on_and_off_by_reloads);
    tcase_add_test(tests, reloads_leak_no_descriptor);
    tcase_add_test(tests, stop_is_not_disturbed);
    return suite_run(suite);
}
