/*
 * What a configuration needs of the machine: accounts, places to log to and for the control
 * socket, permissions.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf/conf.h"
#include "support/kinds.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

/* For good, if we are root. The leak checker of the sanitizers needs a process it may trace. */
static void drop_root(void)
{
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
    ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1), 0);
}

static struct conf *load(const char *file, const char *const *overrides, struct conf_error *error)
{
    const struct conf_request request = { file, overrides, kinds_table() };
    ck_assert_int_eq(chdir(scratch_path("")), 0);
    return conf_load(&request, error);
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

START_TEST(unreadable_files)
{
    struct conf_error error;
    scratch_write("hayate.conf", "include = \"d/*\"\n");
    scratch_write("secret.conf", "\n");
    ck_assert_int_eq(mkdir(scratch_path("d"), 0), 0);
    ck_assert_int_eq(chmod(scratch_path("secret.conf"), 0), 0);
    ck_assert_int_eq(chmod(scratch_path(""), 0755), 0);
    drop_root();
    ck_assert_ptr_null(load("secret.conf", NULL, &error));
    ck_assert_str_eq(error.text, "secret.conf: cannot be read: Permission denied");
    ck_assert_ptr_null(load("hayate.conf", NULL, &error));
    ck_assert_str_eq(error.text, "hayate.conf:1: include: d/* cannot be read: Permission denied");
}
END_TEST

/* What may be logged to, with what the sink will need of it; nothing is created. */
START_TEST(sinks)
{
    struct conf_error error;
    ck_assert_int_eq(chdir(scratch_path("")), 0);
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    ck_assert_int_eq(symlink("nowhere", "dangling"), 0);
    ck_assert_int_eq(symlink("file", "link"), 0);
    make_socket("socket");
    scratch_write("file", "");
    scratch_write("hayate.conf", "");

    static const struct {
        const char *override, *fault;
    } cases[] = {
        { "log=file", NULL },
        { "log=link", NULL },
        { "log=new", NULL },
        { "log=./new", NULL },
        { "log=./stdout", NULL },
        { "log=fifo", NULL },
        { "log=/dev/null", NULL },
        { "log=socket", "-o log: DIR/socket is neither a file, a FIFO nor a terminal" },
        { "log=dangling", "-o log: DIR/dangling is a symbolic link to nothing" },
        { "log=none/x", "-o log: DIR/none/x cannot be created: No such file or directory" },
        { "log=none/", "-o log: DIR/none/ cannot be written: No such file or directory" },
        { "log=file/x", "-o log: DIR/file/x cannot be written: Not a directory" },
        { "access_log=.", "-o access_log: DIR/. is a directory, not a file" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const overrides[] = { cases[i].override, NULL };
        struct conf *conf = load("hayate.conf", overrides, &error);
        if (!cases[i].fault)
            ck_assert_msg(conf != NULL, "%s", error.text);
        else
            ck_assert_str_eq(error.text, text_replace(cases[i].fault, "DIR", scratch_path("")));
        conf_free(conf);
    }
    ck_assert_int_ne(access("new", F_OK), 0);
}
END_TEST

START_TEST(sinks_need_permission)
{
    struct conf_error error;
    ck_assert_int_eq(chdir(scratch_path("")), 0);
    scratch_write("hayate.conf", "log = \"file\"\n");
    scratch_write("file", "");
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    ck_assert_int_eq(chmod("file", 0444), 0);
    drop_root();
    ck_assert_ptr_null(load("hayate.conf", NULL, &error));
    ck_assert_str_eq(error.text, text_format("hayate.conf:1: log: %s cannot be written: "
                                             "Permission denied",
                                             scratch_path("file")));
    if (access(".", W_OK) == -1) {
        static const char *const overrides[] = { "log=new", NULL };
        ck_assert_ptr_null(load("hayate.conf", overrides, &error));
        ck_assert_str_eq(error.text, text_format("-o log: %s cannot be created: "
                                                 "Permission denied",
                                                 scratch_path("new")));
    }
}
END_TEST

struct user_row {
    const char *user;
    const char *fault;   /* as root */
    const char *name;    /* as root */
    long uid, gid;       /* as root */
    const char *warning; /* as another */
};

static const struct user_row user_rows[] = {
    { "\"root\"", NULL, "root", 0, 0, "user = \"root\" is ignored: not started as root" },
    { "\"daemon\"", NULL, "daemon", 1, 1, "user = \"daemon\" is ignored: not started as root" },
    { "1", NULL, "1", 1, 1, "user = \"1\" is ignored: not started as root" },
    { "\"12345\"", NULL, "12345", 12345, 12345,
      "user = \"12345\" is ignored: not started as root" },
    { "\"65534\"", NULL, "65534", 65534, 65534, NULL },
    { "\"no-such-account\"",
      "hayate.conf:1: user: \"no-such-account\" is not an account in /etc/passwd, wants the name "
      "or "
      "number of an account",
      NULL, 0, 0, "user = \"no-such-account\" is ignored: not started as root" },
    { "\"\"", "hayate.conf:1: user: \"\" is empty, wants the name or number of an account", NULL, 0,
      0, NULL },
    { "\"a:b\"",
      "hayate.conf:1: user: \"a:b\" is not the name of an account, wants the name or number of an "
      "account",
      NULL, 0, 0, NULL },
    { "-1", "hayate.conf:1: user: -1 is out of range, wants the name or number of an account", NULL,
      0, 0, NULL },
    { "\"4294967295\"",
      "hayate.conf:1: user: \"4294967295\" is out of range, wants the name or number of an account",
      NULL, 0, 0, NULL },
    { "[ ]", "hayate.conf:1: user: got an array [ ], wants the name or number of an account", NULL,
      0, 0, NULL },
};

START_TEST(users)
{
    const struct user_row *row = &user_rows[_i % SUITE_ROWS(user_rows)];
    const bool is_root = _i < SUITE_ROWS(user_rows);
    struct conf_error error;

    if (suite_lacks_root())
        return;
    scratch_write("hayate.conf", text_format("user = %s control = \"off\"", row->user));
    if (!is_root)
        drop_root();
    struct conf *conf = load("hayate.conf", NULL, &error);
    if (row->fault && (is_root || !row->warning)) {
        ck_assert_ptr_null(conf);
        ck_assert_str_eq(error.text, row->fault);
        return;
    }
    ck_assert_msg(conf != NULL, "%s", error.text);
    if (is_root) {
        ck_assert_str_eq(conf->user, row->name);
        ck_assert_int_eq(conf->uid, row->uid);
        ck_assert_int_eq(conf->gid, row->gid);
        ck_assert_uint_eq(conf->nwarnings, row->uid == 0);
    } else {
        ck_assert_ptr_null(conf->user);
        ck_assert_uint_eq(conf->nwarnings, row->warning != NULL);
        if (row->warning)
            ck_assert_str_eq(conf->warnings[0], row->warning);
    }
    conf_free(conf);
}
END_TEST

/* The default of control, for root and others, with and without a runtime directory. */
START_TEST(control_default)
{
    struct conf_error error;
    scratch_write("hayate.conf", "user = \"0\"\n");
    ck_assert_int_eq(mkdir(scratch_path("run"), 0777), 0);
    ck_assert_int_eq(chmod(scratch_path("run"), 0777), 0);
    setenv("XDG_RUNTIME_DIR", scratch_path("run"), 1);
    if (geteuid() == 0) {
        struct conf *conf = load("hayate.conf", NULL, &error);
        ck_assert_msg(conf != NULL, "%s", error.text);
        ck_assert_str_eq(conf->control, "/run/hayate/control");
        ck_assert(conf->control_is_default);
        conf_free(conf);
        drop_root();
    }
    if (access("/run/hayate", F_OK) == 0 && suite_skip("there is a /run/hayate"))
        return;
    struct conf *conf = load("hayate.conf", NULL, &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert_str_eq(conf->control, scratch_path("run/hayate/control"));
    ck_assert(conf->control_is_default);
    conf_free(conf);

    const char *const bad[] = { NULL, "", "relative", "/nowhere" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        bad[i] ? setenv("XDG_RUNTIME_DIR", bad[i], 1) : unsetenv("XDG_RUNTIME_DIR");
        conf = load("hayate.conf", NULL, &error);
        ck_assert_msg(conf != NULL, "%s", error.text);
        ck_assert_ptr_null(conf->control);
        ck_assert_ptr_nonnull(strstr(conf->warnings[conf->nwarnings - 1], "control socket is off"));
        conf_free(conf);
    }
}
END_TEST

struct find_row {
    const char *text;
    const char *found; /* below the scratch directory unless absolute; "": off; NULL: default */
};

static const struct find_row find_rows[] = {
    { "", NULL },
    { "control = \"/a/b\"", "/a/b" },
    { "control = \"run/c\"", "run/c" },
    { "control : \"run/\" \"c\";", "run/c" },
    { "control = \"off\"", "" },
    { "control = \"\"", NULL },
    { "control = 5", NULL },
    { "control", NULL },
    { "control = \"${NO_SUCH}\"", NULL },
    { "control = \"${NO_SUCH:-/x}\"", "/x" },
    { "# control = \"/a\"\ncontrol = \"/b\"", "/b" },
    { "x = \"control = \\\"/a\\\"\"\ncontrol = \"/b\"", "/b" },
    { "timeouts = { idle = \n\ncontrol = \"/b\"", "/b" },
    { "log = \"unclosed\ncontrol = \"/b\"", "/b" },
    { "log = 'x' $ @ ! 5s 99999999999999999999 \\ \x01\xff\ncontrol = \"/b\"", "/b" },
    { "/* control = \"/b\"", NULL },
    { "include = \"frag/a\"", "frag/run/f" },
    { "include = [ \"none\", \"frag/*\" ]", "frag/run/f" },
    { "include = ( \"none\" )", NULL },
    { "include = [ \"frag/*\" ] control = \"/own\"", "/own" },
};

START_TEST(find_control)
{
    const struct find_row *row = &find_rows[_i];
    char *found = NULL;

    unsetenv("NO_SUCH");
    unsetenv("XDG_RUNTIME_DIR");
    mkdir(scratch_path("frag"), 0755);
    scratch_write("frag/a", "control = \"run/f\"");
    scratch_write("hayate.conf", row->text);
    ck_assert_int_eq(chdir(scratch_path("")), 0);
    ck_assert_int_eq(conf_find_control("hayate.conf", &found), 0);
    if (!row->found) {
        if (geteuid() == 0)
            ck_assert_str_eq(found, "/run/hayate/control");
    } else if (row->found[0] == '\0') {
        ck_assert_ptr_null(found);
    } else {
        ck_assert_ptr_nonnull(found);
        ck_assert_str_eq(found, row->found[0] == '/' ? row->found : scratch_path(row->found));
    }
    free(found);
}
END_TEST

START_TEST(find_control_without_a_file)
{
    char *found = NULL;
    unsetenv("XDG_RUNTIME_DIR");
    ck_assert_int_eq(conf_find_control("/nowhere", &found), 0);
    if (geteuid() == 0)
        ck_assert_str_eq(found, "/run/hayate/control");
    free(found);
    drop_root();
    if (access("/run/hayate", F_OK) == 0 && suite_skip("there is a /run/hayate"))
        return;
    ck_assert_int_eq(conf_find_control("/nowhere", &found), 0);
    ck_assert_ptr_null(found);
    setenv("XDG_RUNTIME_DIR", "/tmp", 1);
    ck_assert_int_eq(conf_find_control("/nowhere", &found), 0);
    ck_assert_str_eq(found, "/tmp/hayate/control");
    free(found);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conf_place");
    TCase *tests = suite_case(suite, "place");
    tcase_add_test(tests, unreadable_files);
    tcase_add_test(tests, sinks);
    tcase_add_test(tests, sinks_need_permission);
    tcase_add_loop_test(tests, users, 0, 2 * SUITE_ROWS(user_rows));
    tcase_add_test(tests, control_default);
    tcase_add_loop_test(tests, find_control, 0, SUITE_ROWS(find_rows));
    tcase_add_test(tests, find_control_without_a_file);
    return suite_run(suite);
}
