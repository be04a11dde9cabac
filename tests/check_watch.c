/* watch = true: the ways in which a configuration changes, and that each is noticed. */

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"
#include "support/server.h"
#include "support/suite.h"
#include "support/text.h"
#include "support/watched.h"

/* Afterwards the file is written in place: so it is still watched. */

static const struct {
    const char *name;
    const char *setup;  /* before the start; may be NULL */
    const char *change; /* to state two */
    const char *line;   /* that the change leads to, unless NULL, and */
    const char *after;  /* what completes it then */
    const char *file;   /* which has the state in the end; NULL: $FILE */
    bool is_gone;       /* the change leaves no state */
} ways[] = {
    { .name = "in place", .change = "cat two >$FILE" },
    { .name = "in place, in pieces",
      .change = "printf 'routes = ( { path' >$FILE; tail -c +18 two >>$FILE" },
    { .name = "rename", .change = "cp two etc/new; mv etc/new $FILE" },
    { .name = "backup of vim", .change = "mv $FILE $FILE~; cat two >$FILE; rm $FILE~" },
    { .name = "removed, made later",
      .change = "rm $FILE",
      .line = "reload failed.*cannot be read",
      .after = "cat two >$FILE" },
    { .name = "another link to the file", .setup = "ln $FILE other", .change = "cat two >other" },

    { .name = "config map",
      .setup = "mkdir etc/..1; mv $FILE etc/..1; ln -s ..1 etc/..data; "
               "ln -s ..data/hayate.conf $FILE",
      .change = "mkdir etc/..2; cp two etc/..2/hayate.conf; ln -s ..2 etc/..tmp; "
                "mv -T etc/..tmp etc/..data; rm -r etc/..1" },
    { .name = "links of links",
      .setup = "mkdir a b c; mv $FILE c; ln -s ../c/hayate.conf b/x; "
               "ln -s $PWD/a/../b/x a/y; ln -s ../a/./y $FILE",
      .change = "cp two c/z; ln -sf ../c/z b/new; mv -T b/new b/x" },
    { .name = "end of a link",
      .setup = "mv $FILE target; ln -s ../target $FILE",
      .change = "cat two >target" },
    { .name = "link to nothing",
      .setup = "mv $FILE target; ln -s ../target $FILE",
      .change = "rm target",
      .line = "reload failed.*cannot be read",
      .after = "cat two >target" },
    { .name = "folder that is a link",
      .setup = "mv etc real; ln -s real etc",
      .change = "mkdir new; cp two new/hayate.conf; ln -s new link; mv -T link etc" },

    { .name = "folder replaced",
      .change = "mkdir new; cp two new/hayate.conf; mv etc old; mv new etc" },
    { .name = "folder removed, made at once", .change = "rm -r etc; mkdir etc; cp two $FILE" },
    { .name = "folder removed, made later",
      .change = "rm -r etc",
      .line = "reload failed.*cannot be read",
      .after = "mkdir etc; cp two $FILE" },
    { .name = "folder moved away, back later",
      .change = "mv etc old; cp two old/hayate.conf",
      .line = "reload failed.*cannot be read",
      .after = "mv old etc" },
    { .name = "folder above replaced",
      .setup = "mkdir -p a/b; mv etc a/b/c; ln -s a/b/c etc",
      .change = "mkdir -p new/b/c; cp two new/b/c/hayate.conf; mv a old; mv new a" },
    { .name = "folder with a name like a pattern",
      .setup = "mv etc 'a[b]*\\'; ln -s 'a[b]*\\' etc",
      .change = "cat two >$FILE" },

    { .name = "fragment added",
      .setup = "mkdir etc/d; cp include $FILE",
      .change = "cp two etc/d/a.conf",
      .file = "etc/d/a.conf" },
    { .name = "fragment changed",
      .setup = "mkdir etc/d; cp one etc/d/a.conf; cp include $FILE",
      .change = "cat two >etc/d/a.conf",
      .file = "etc/d/a.conf" },
    { .name = "fragment removed",
      .setup = "mkdir etc/d; cp one etc/d/a.conf; cp include $FILE",
      .change = "rm etc/d/a.conf",
      .file = "etc/d/a.conf",
      .is_gone = true },
    { .name = "fragment that is a link",
      .setup = "mkdir etc/d; cp one x; ln -s ../../x etc/d/a.conf; cp include $FILE",
      .change = "cp two y; mv y x",
      .file = "x" },
    { .name = "folder of fragments added",
      .setup = "cp include $FILE",
      .change = "mkdir etc/d; cp two etc/d/a.conf",
      .file = "etc/d/a.conf" },
    { .name = "folder of fragments removed",
      .setup = "mkdir etc/d; cp one etc/d/a.conf; cp include $FILE",
      .change = "rm -r etc/d",
      .line = "reloaded in",
      .after = "mkdir etc/d; cp two etc/d/a.conf",
      .file = "etc/d/a.conf" },
    { .name = "folder of a pattern added",
      .setup = "mkdir etc/s; cp deep $FILE",
      .change = "mkdir etc/s/x; cp two etc/s/x/route.conf",
      .file = "etc/s/x/route.conf" },
    { .name = "bad fragment mended",
      .setup = "mkdir etc/d; cp include $FILE",
      .change = "echo 'wrokers = 1' >etc/d/a.conf",
      .line = "reload failed.*wrokers",
      .after = "cat two >etc/d/a.conf",
      .file = "etc/d/a.conf" },
    { .name = "missing fragment comes",
      .change = "cp plain $FILE",
      .line = "reload failed.*more.conf cannot be read",
      .after = "cp two etc/more.conf",
      .file = "etc/more.conf" },
};

/* Several at once, since each takes seconds and no work. */
#define ROUNDS 4
#define ABREAST ((SUITE_ROWS(ways) + ROUNDS - 1) / ROUNDS)

struct change {
    const char *name, *folder;
    struct server server;
    size_t mark;
};

static void start_change(struct change *change, int way)
{
    change->name = ways[way].name;
    change->folder = text_format("way%d", way);
    ck_assert_int_eq(mkdir(scratch_path(change->folder), 0755), 0);
    watched_prepare(change->folder);
    watched_shell_in(change->folder, "echo 'include = [ \"d/*.conf\" ]' >include;"
                                     "echo 'include = [ \"s/*/route.conf\" ]' >deep;"
                                     "echo 'include = [ \"more.conf\" ]' >plain");
    if (ways[way].setup != NULL)
        watched_shell_in(change->folder, ways[way].setup);
    watched_start(&change->server, change->folder, NULL);
    ck_assert(watched_is_on(&change->server));
}

static void await_state(const struct change *change, const char *state)
{
    struct deadline deadline = deadline_start();
    while (!watched_is_state(&change->server, state))
        if (!deadline_wait(&deadline))
            ck_abort_msg("%s: never in state %s:\n%s", change->name, state ? state : "none",
                         text_tail(server_log(&change->server)));
}

START_TEST(change_is_noticed)
{
    struct change changes[ABREAST];
    int count = 0;

    for (int way = _i; way < SUITE_ROWS(ways); way += ROUNDS)
        start_change(&changes[count++], way);
    for (int i = 0; i < count; i++) {
        watched_await_settled(&changes[i].server, 0);
        changes[i].mark = server_mark(&changes[i].server);
        watched_shell_in(changes[i].folder, ways[_i + i * ROUNDS].change);
    }
    for (int i = 0; i < count; i++)
        if (ways[_i + i * ROUNDS].line != NULL) {
            server_await(&changes[i].server, changes[i].mark, ways[_i + i * ROUNDS].line);
            watched_await_settled(&changes[i].server, changes[i].mark);
            watched_shell_in(changes[i].folder, ways[_i + i * ROUNDS].after);
        }
    for (int i = 0; i < count; i++) {
        const char *file = ways[_i + i * ROUNDS].file;
        await_state(&changes[i], ways[_i + i * ROUNDS].is_gone ? NULL : "two");
        server_await(&changes[i].server, changes[i].mark, WATCHED_RELOADING);
        watched_await_settled(&changes[i].server, changes[i].mark);
        watched_shell_in(changes[i].folder,
                         text_format("cat three >%s", file != NULL ? file : "$FILE"));
    }
    for (int i = 0; i < count; i++) {
        await_state(&changes[i], "three");
        ck_assert_int_eq(server_stop(&changes[i].server, SIGTERM), 0);
    }
}
END_TEST

/* The kernel does not tell the end of a folder before the last one who has it open closes it. */
START_TEST(open_folder_is_replaced)
{
    struct server server;

    watched_start_settled(&server);
    int fd = open(scratch_path("etc"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    watched_shell("rm $FILE");
    server_await(&server, 0, "reload failed");
    watched_await_settled(&server, 0);
    watched_shell("rmdir etc; mkdir etc; cp two $FILE");
    WAIT_FOR(watched_is_state(&server, "two"));
    close(fd);
    ck_assert_int_eq(server_stop(&server, SIGTERM), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("watch");
    TCase *tests = suite_case(suite, "watch");
    tcase_add_loop_test(tests, change_is_noticed, 0, ROUNDS);
    tcase_add_test(tests, open_folder_is_replaced);
    return suite_run(suite);
}
