/* watch = true where the kernel, or the file system, gives less than is wanted. */

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf/conf.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"
#include "support/watched.h"

/* More events than the kernel keeps, then the one that counts. */
START_TEST(overflow_is_an_event)
{
    const char *text = text_read("/proc/sys/fs/inotify/max_queued_events", 0, NULL);
    int most = atoi(text);
    struct server server;

    if ((most <= 0 || most > 200000) && suite_skip("the queue of inotify is too long"))
        return;
    watched_start_settled(&server);
    server_signal(&server, SIGSTOP);
    for (int i = 0; i <= most / 2; i++) {
        const char *name = scratch_path("etc/other");
        int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert(fd >= 0);
        close(fd);
        ck_assert_int_eq(unlink(name), 0);
    }
    watched_shell("cat two >$FILE");
    server_signal(&server, SIGCONT);
    WAIT_FOR(watched_is_state(&server, "two"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* A limit of one's own, in a user namespace. */
static bool limit(const char *name)
{
    int fd = unshare(CLONE_NEWUSER) == 0
                 ? open(text_format("/proc/sys/user/%s", name), O_WRONLY | O_CLOEXEC)
                 : -1;
    return fd >= 0 && write(fd, "1", 1) == 1 && close(fd) == 0;
}

static void limit_watches(void)
{
    if (!limit("max_inotify_watches"))
        _exit(126);
}

static void limit_instances(void)
{
    if (!limit("max_inotify_instances") || inotify_init1(0) == -1)
        _exit(126);
}

/* The default file, which is not ours: a folder of our own in its place. */
static void mount_default(void)
{
    char *slash, *target = strdup(conf_default_file());
    for (int i = 0; i < 2; i++)
        if ((slash = strrchr(target, '/')) != NULL)
            *slash = '\0';
    if (unshare(CLONE_NEWNS) == -1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
        mount(scratch_path("default"), target, NULL, MS_BIND, NULL) == -1)
        _exit(126);
    free(target);
}

/* Can a process do this here? */
static bool is_possible(void (*prepare)(void))
{
    int status;
    pid_t pid = fork();
    ck_assert(pid >= 0);
    if (pid == 0) {
        prepare();
        _exit(0);
    }
    ck_assert(waitpid(pid, &status, 0) == pid);
    return status == 0;
}

static const struct {
    void (*prepare)(void);
    const char *hint;
} limits[] = {
    { limit_watches, "fs.inotify.max_user_watches" },
    { limit_instances, "fs.inotify.max_user_instances" },
};

START_TEST(limit_turns_it_off_with_a_hint)
{
    struct server server;

    if (!is_possible(limits[_i].prepare) && suite_skip("no user namespaces here"))
        return;
    watched_prepare(".");
    watched_start(&server, ".", limits[_i].prepare);
    server_await(&server, 0, text_format("warning .*watch is off.*%s", limits[_i].hint));
    ck_assert(!watched_is_on(&server));
    ck_assert(watched_is_state(&server, "one"));
    watched_shell("cat two >$FILE");
    server_reload(&server);
    WAIT_FOR(watched_is_state(&server, "two"));
    ck_assert_uint_eq(server_count(&server, 0, "watch is off"), 2);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

/* Without -c: the default file may come and go. */
START_TEST(default_file_comes_and_goes)
{
    struct server server;

    ck_assert_int_eq(mkdir(scratch_path("default"), 0755), 0);
    if (!is_possible(mount_default) && suite_skip("no mount namespaces here"))
        return;
    watched_prepare(".");
    server_start(&server,
                 &(struct server_options){
                     .arguments = LIST("-o", "listen=127.0.0.1:0", "-o", "log_level=debug", "-o",
                                       text_format("control=%s", scratch_path("hayate.control")),
                                       "-o", "watch=true"),
                     .prepare = mount_default });
    server_await(&server, 0, "runs on built-in defaults");
    ck_assert(watched_is_on(&server));
    watched_shell("mkdir default/hayate; cp one default/hayate/hayate.conf");
    WAIT_FOR(watched_is_state(&server, "one"));
    size_t mark = server_mark(&server);
    watched_shell("rm default/hayate/hayate.conf");
    server_await(&server, mark, "warning .*hayate.conf has gone, generation 2 stays");
    server_await(&server, mark, WATCHED_REFUSED);
    ck_assert(watched_is_state(&server, "one"));
    watched_shell("cat two >default/hayate/hayate.conf");
    WAIT_FOR(watched_is_state(&server, "two"));
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("watch_limits");
    TCase *tests = suite_case(suite, "watch_limits");
    tcase_add_test(tests, overflow_is_an_event);
    tcase_add_loop_test(tests, limit_turns_it_off_with_a_hint, 0, SUITE_ROWS(limits));
    tcase_add_test(tests, default_file_comes_and_goes);
    return suite_run(suite);
}
