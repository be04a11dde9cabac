/*
 * A configuration of several files: fragments, overrides, what is read and what is not, and whether
 * the disk still holds it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/load.h"
#include "support/kinds.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

#define FILES 5
#define OVERRIDES 4

/* Makes a file and the folder it lies in. A name that ends with "/" is a folder. */
static void write_file(const char *name, const char *text)
{
    const char *slash = strchr(name, '/');
    if (slash)
        mkdir(scratch_path(text_copy(name, (size_t)(slash - name))), 0755);
    if (!slash || slash[1] != '\0')
        scratch_write(name, text);
}

static struct conf *load(const char *file, const char *const *overrides, struct conf_error *error)
{
    const struct conf_request request = { file, overrides, kinds_table() };
    ck_assert_int_eq(chdir(scratch_path("")), 0);
    return conf_load(&request, error);
}

/* "workers ROUTE ROUTE ...", to compare in one go. */
static const char *summary(const struct conf *conf)
{
    const char *text = text_format("%u", conf->workers);
    for (size_t i = 0; i < conf->nroutes; i++)
        text = text_format("%s %s", text, conf->routes[i].path);
    return text;
}

struct row {
    const char *name;
    struct {
        const char *name, *text;
    } files[FILES];
    const char *overrides[OVERRIDES + 1];
    const char *outcome; /* the summary, or the error */
};

#define ROUTE(path) "routes = ( { path = \"" path "\" text = \"x\" } )\n"
#define INCLUDE "include = [ \"d/*.conf\" ]\n"

static const struct row rows[] = {
    { "a glob that matches nothing",
      { { "hayate.conf", INCLUDE } },
      { NULL },
      "0 /hello /healthz /readyz" },
    { "an empty folder",
      { { "hayate.conf", INCLUDE }, { "d/", "" } },
      { NULL },
      "0 /hello /healthz /readyz" },
    { "sorted, and routes append",
      { { "hayate.conf", INCLUDE ROUTE("/0") },
        { "d/b.conf", ROUTE("/b") },
        { "d/a.conf", ROUTE("/a") },
        { "d/10.conf", ROUTE("/10") },
        { "d/9.conf", ROUTE("/9") } },
      { NULL },
      "0 /0 /10 /9 /a /b" },
    { "a fragment's routes replace the default ones",
      { { "hayate.conf", INCLUDE }, { "d/a.conf", ROUTE("/a") } },
      { NULL },
      "0 /a" },
    { "only what the pattern matches",
      { { "hayate.conf", INCLUDE },
        { "d/a.conf~", "junk" },
        { "d/.b.conf", "junk" },
        { "d/c.conf", ROUTE("/c") } },
      { NULL },
      "0 /c" },
    { "keys not set elsewhere",
      { { "hayate.conf", INCLUDE "timeouts = { idle = \"1s\" }\n" },
        { "d/a.conf", "workers = 3 timeouts = { send = \"1s\" }" } },
      { NULL },
      "3 /hello /healthz /readyz" },
    { "a key of the file set again",
      { { "hayate.conf", INCLUDE "\nworkers = 1\n" }, { "d/a.conf", "\n\nworkers = 3" } },
      { NULL },
      "d/a.conf:3: repeated key \"workers\", also set in hayate.conf:3: keep one of them" },
    { "a key of another fragment set again",
      { { "hayate.conf", INCLUDE },
        { "d/a.conf", "timeouts = {\nidle = \"1s\" }" },
        { "d/b.conf", "timeouts = { idle = \"1s\" }" } },
      { NULL },
      "d/b.conf:1: repeated key \"timeouts.idle\", also set in d/a.conf:2: keep one of them" },
    { "a route of the file again",
      { { "hayate.conf", INCLUDE ROUTE("/a") }, { "d/a.conf", "\n" ROUTE("/a") } },
      { NULL },
      "d/a.conf:2: duplicate route \"/a\", first in hayate.conf:2: keep one of them" },
    { "a fault in a fragment",
      { { "hayate.conf", INCLUDE }, { "d/a.conf", "workers = 1\nworkers = 1\n" } },
      { NULL },
      "d/a.conf:2: repeated key \"workers\", first set in line 1: keep one of them" },
    { "an unknown key in a fragment",
      { { "hayate.conf", INCLUDE }, { "d/a.conf", "\nwrokers = 1\n" } },
      { NULL },
      "d/a.conf:2: unknown key \"wrokers\" (did you mean \"workers\"?)" },
    { "a fragment with an include",
      { { "hayate.conf", INCLUDE }, { "d/a.conf", "\ninclude = \"x\"\n" } },
      { NULL },
      "d/a.conf:2: a fragment cannot include others: name them in the include of hayate.conf" },
    { "a folder called like a fragment",
      { { "hayate.conf", INCLUDE }, { "d/", "" }, { "d/a.conf", "" } },
      { NULL },
      "0 /hello /healthz /readyz" },
    { "a plain name",
      { { "hayate.conf", "include = \"a.conf\"" }, { "a.conf", ROUTE("/a") } },
      { NULL },
      "0 /a" },
    { "a plain name that is not there",
      { { "hayate.conf", "include = [ \"*.x\",\n\"a.conf\" ]" } },
      { NULL },
      "hayate.conf:2: include: a.conf cannot be read: No such file or directory" },
    { "an empty name",
      { { "hayate.conf", "include = [ \"\" ]" } },
      { NULL },
      "hayate.conf:1: include: an empty name: wants a file or a pattern" },
    { "a name with a variable",
      { { "hayate.conf", "include = \"${WHICH:-a}.conf\"" }, { "a.conf", ROUTE("/a") } },
      { NULL },
      "0 /a" },
    { "a name with blanks and a backslash",
      { { "hayate.conf", "include = \"a b\\\\*.conf\"" }, { "a b\\*.conf", ROUTE("/a") } },
      { NULL },
      "0 /hello /healthz /readyz" },
    { "matched twice, read once",
      { { "hayate.conf", "include = [ \"a.conf\", \"a*.conf\", \"./a.conf\" ]" },
        { "a.conf", ROUTE("/a") } },
      { NULL },
      "0 /a" },
    { "the file itself",
      { { "hayate.conf", "include = [ \"*.conf\" ]" } },
      { NULL },
      "hayate.conf:1: include: hayate.conf is the file that includes it" },

    { "an override",
      { { "hayate.conf", "workers = 1" } },
      { "workers=2" },
      "2 /hello /healthz /readyz" },
    { "the last override wins",
      { { "hayate.conf", "workers = 1" } },
      { "workers=2", "workers=auto", "workers=3" },
      "3 /hello /healthz /readyz" },
    { "an override goes before fragments",
      { { "hayate.conf", INCLUDE }, { "d/a.conf", "workers = 3" } },
      { "workers=2" },
      "2 /hello /healthz /readyz" },
    { "an override mends a value",
      { { "hayate.conf", "workers = \"${NO_SUCH}\"" } },
      { "workers=2" },
      "2 /hello /healthz /readyz" },
    { "an override of routes",
      { { "hayate.conf", INCLUDE ROUTE("/a") }, { "d/a.conf", ROUTE("/b") } },
      { "routes=( { path = \"/o\", text = \"\" } )" },
      "0 /o" },
    { "an override of include",
      { { "hayate.conf", INCLUDE }, { "d/a.conf", ROUTE("/a") }, { "b.conf", ROUTE("/b") } },
      { "include=b.*" },
      "0 /b" },
    { "a group",
      { { "hayate.conf", "" } },
      { "timeouts={idle=\"1s\" send=\"2s\"}" },
      "0 /hello /healthz /readyz" },
    { "a member of a group",
      { { "hayate.conf", "" } },
      { "timeouts.idle=5s", "limits.body=1g" },
      "0 /hello /healthz /readyz" },
    { "a list of one", { { "hayate.conf", "" } }, { "listen=*:1" }, "0 /hello /healthz /readyz" },
    { "a quoted string",
      { { "hayate.conf", "" } },
      { "workers=\"\\x34\"" },
      "4 /hello /healthz /readyz" },
    { "a variable",
      { { "hayate.conf", "" } },
      { "workers=${NO_SUCH:-5}" },
      "5 /hello /healthz /readyz" },

    { "an unknown key",
      { { "hayate.conf", "" } },
      { "wrokers=2" },
      "-o wrokers: unknown key \"wrokers\" (did you mean \"workers\"?)" },
    { "an unknown member",
      { { "hayate.conf", "" } },
      { "timeouts.idel=5s" },
      "-o timeouts.idel: unknown key \"timeouts.idel\" (did you mean \"timeouts.idle\"?)" },
    { "an unknown group",
      { { "hayate.conf", "" } },
      { "timeout.idle=5s" },
      "-o timeout.idle: unknown key \"timeout.idle\" (did you mean \"timeouts.idle\"?)" },
    { "too deep",
      { { "hayate.conf", "" } },
      { "timeouts.idle.x=5s" },
      "-o timeouts.idle.x: unknown key \"timeouts.idle.x\" (did you mean \"timeouts.idle\"?)" },
    { "an unknown key in a group",
      { { "hayate.conf", "" } },
      { "timeouts={idel=\"5s\"}" },
      "-o timeouts: unknown key \"timeouts.idel\" (did you mean \"timeouts.idle\"?)" },
    { "a bad value",
      { { "hayate.conf", "" } },
      { "workers=many" },
      "-o workers: \"many\" is not a number, wants \"auto\" or a number from 1 to 1024" },
    { "an empty value",
      { { "hayate.conf", "" } },
      { "log=" },
      "-o log: \"\" is empty, wants \"stderr\" or a path" },
    { "a bad value in a group",
      { { "hayate.conf", "" } },
      { "timeouts={idle=5}" },
      "-o timeouts: timeouts.idle: 5 is a duration without a unit (ms, s, m or h), wants a "
      "duration "
      "such as \"10s\", 0 or from 10ms to 24h" },
    { "a scalar for a group",
      { { "hayate.conf", "" } },
      { "timeouts=5s" },
      "-o timeouts: got a string, wants a group { }" },
    { "a scalar for routes",
      { { "hayate.conf", "" } },
      { "routes=/x" },
      "-o routes: got a string, wants a list of groups, such as ( { path = \"/\"  text = \"Hi\" } "
      ")" },
    { "a text that is no text",
      { { "hayate.conf", "" } },
      { "listen=[ \"*:1\"" },
      "-o listen: the [ here is not closed: wants a ]" },
    { "more than a value",
      { { "hayate.conf", "" } },
      { "timeouts={} workers=2" },
      "-o timeouts: wants one value, with nothing behind it" },
    { "an IPv6 address",
      { { "hayate.conf", "" } },
      { "listen=[::1]:80" },
      "-o listen: an IPv6 address wants quotes here: listen=\"[::1]:80\"" },
    { "a quoted IPv6 address",
      { { "hayate.conf", "" } },
      { "listen=\"[::1]:80\"" },
      "0 /hello /healthz /readyz" },
    { "a string and junk",
      { { "hayate.conf", "" } },
      { "log=\"a\"x" },
      "-o log: wants a = and a value after \"x\"" },
    { "no value",
      { { "hayate.conf", "" } },
      { "workers" },
      "-o workers: wants KEY=VALUE, such as -o workers=2" },
    { "no key",
      { { "hayate.conf", "" } },
      { "=2" },
      "-o =2: wants KEY=VALUE, such as -o workers=2" },
    { "a later key",
      { { "hayate.conf", "" } },
      { "pidfile=/x" },
      "-o pidfile: \"pidfile\" is not yet supported: remove it" },
    { "a bad route",
      { { "hayate.conf", "" } },
      { "routes=( { path = \"/\", text = \"!\" } )" },
      "-o routes: route \"/\": text: cannot be prepared" },
    { "a duplicate route",
      { { "hayate.conf", "" } },
      { "routes=( { path = \"/\" text = \"\" }, { path = \"/\" text = \"\" } )" },
      "-o routes: duplicate route \"/\": keep one of them" },
};

START_TEST(several_files)
{
    const struct row *row = &rows[_i];
    struct conf_error error;

    unsetenv("NO_SUCH");
    for (size_t i = 0; i < FILES && row->files[i].name; i++)
        write_file(row->files[i].name, row->files[i].text);
    struct conf *conf = load("hayate.conf", row->overrides, &error);
    const char *outcome = conf ? summary(conf) : error.text;
    outcome = text_replace(outcome, text_format("%s/", scratch_path("")), "");
    ck_assert_msg(strcmp(outcome, row->outcome) == 0, "%s:\n%s\ninstead of\n%s", row->name, outcome,
                  row->outcome);
    conf_free(conf);
}
END_TEST

/* Relative to the file that names them, wherever it was started; errors as the user named them. */
START_TEST(paths_lie_beside_the_file)
{
    struct conf_error error;
    write_file("etc/hayate.conf", "control = \"run/c\" log = \"x.log\" listen = \"unix:s\"\n"
                                  "include = [ \"[d]/*.conf\" ]\n");
    mkdir(scratch_path("etc/d"), 0755);
    scratch_write("etc/d/a.conf", "access_log = \"a.log\"\n");
    struct conf *conf = load("etc/hayate.conf", NULL, &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert_str_eq(conf->file, scratch_path("etc/hayate.conf"));
    ck_assert_str_eq(conf->control, scratch_path("etc/run/c"));
    ck_assert_str_eq(conf->log.path, scratch_path("etc/x.log"));
    ck_assert_str_eq(conf->access_log.path, scratch_path("etc/d/a.log"));
    ck_assert_str_eq(conf->listen[0].text, text_format("unix:%s", scratch_path("etc/s")));
    ck_assert_uint_eq(conf->files.nsources, 2);
    ck_assert_str_eq(conf->files.sources[1].path, scratch_path("etc/d/a.conf"));
    conf_free(conf);

    scratch_write("etc/d/a.conf", "\nx");
    ck_assert_ptr_null(load("etc/hayate.conf", NULL, &error));
    ck_assert_str_eq(error.text, "etc/d/a.conf:2: wants a = and a value after \"x\"");
    ck_assert_ptr_null(load("./etc/hayate.conf", NULL, &error));
    ck_assert_str_eq(error.text, "./etc/d/a.conf:2: wants a = and a value after \"x\"");
    ck_assert_ptr_null(load(scratch_path("etc/hayate.conf"), NULL, &error));
    ck_assert_str_eq(error.text, text_format("%s:2: wants a = and a value after \"x\"",
                                             scratch_path("etc/d/a.conf")));

    static const char *const overrides[] = { "include=", "log=y.log", NULL };
    ck_assert_ptr_null(load("etc/hayate.conf", overrides, &error));
    ck_assert_str_eq(error.text, "-o include: an empty name: wants a file or a pattern");
    static const char *const more[] = { "include=[]", "log=y.log", NULL };
    conf = load("etc/hayate.conf", more, &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert_str_eq(conf->log.path, scratch_path("y.log"));
    conf_free(conf);
}
END_TEST

/* A folder of the file that looks like a pattern is none. */
START_TEST(folders_are_no_patterns)
{
    struct conf_error error;
    const char *changed;
    write_file("[x]*/hayate.conf", "include = [ \"?.frag\" ]\n");
    scratch_write("[x]*/a.frag", ROUTE("/a"));
    struct conf *conf = load("[x]*/hayate.conf", NULL, &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert_str_eq(summary(conf), "0 /a");
    ck_assert(!conf_has_drifted(conf, &changed));
    conf_free(conf);
}
END_TEST

static void make_socket(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

/* None of these is read, and none of them blocks. */
START_TEST(only_regular_files)
{
    struct conf_error error;
    ck_assert_int_eq(chdir(scratch_path("")), 0);
    ck_assert_int_eq(mkfifo("fifo", 0644), 0);
    ck_assert_int_eq(mkdir("folder", 0755), 0);
    make_socket("socket");
    ck_assert_int_eq(symlink("folder", "link"), 0);

    ck_assert_ptr_null(load("none", NULL, &error));
    ck_assert_str_eq(error.text, "none: cannot be read: No such file or directory");
    ck_assert_ptr_null(load("fifo", NULL, &error));
    ck_assert_str_eq(error.text, "fifo: is a FIFO, not a regular file");
    ck_assert_ptr_null(load("folder", NULL, &error));
    ck_assert_str_eq(error.text, "folder: is a directory, not a file");
    ck_assert_ptr_null(load("link", NULL, &error));
    ck_assert_str_eq(error.text, "link: is a directory, not a file");
    ck_assert_ptr_null(load("socket", NULL, &error));
    ck_assert_str_eq(error.text, "socket: is a socket or device, not a regular file");
    ck_assert_ptr_null(load("/dev/null", NULL, &error));
    ck_assert_str_eq(error.text, "/dev/null: is a device, not a regular file");
    ck_assert_ptr_null(load("", NULL, &error));
    ck_assert_str_eq(error.text, "-c: wants the name of a file");

    scratch_write("hayate.conf", "include = \"f*\"\n");
    ck_assert_ptr_null(load("hayate.conf", NULL, &error));
    ck_assert_str_eq(error.text,
                     text_format("hayate.conf:1: include: %s is a FIFO, not a regular file",
                                 scratch_path("fifo")));
    scratch_write("hayate.conf", text_repeat("# x\n", 300000));
    ck_assert_ptr_null(load("hayate.conf", NULL, &error));
    ck_assert_str_eq(error.text,
                     "hayate.conf: is larger than 1 MB: move routes into fragments (include)");
}
END_TEST

/* A relative name needs a working directory that has a path; nothing else does. */
START_TEST(no_working_directory)
{
    struct conf_error error;
    scratch_write("hayate.conf", "workers = 1\n");
    const struct conf_request request = { scratch_path("hayate.conf"), NULL, kinds_table() };
    ck_assert_int_eq(mkdir(scratch_path("gone"), 0755), 0);
    ck_assert_int_eq(chdir(scratch_path("gone")), 0);
    ck_assert_int_eq(rmdir(scratch_path("gone")), 0);
    struct conf *conf = conf_load(&request, &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    conf_free(conf);

    static const char *const overrides[] = { "log=x", NULL };
    const struct conf_request relative = { request.file, overrides, kinds_table() };
    ck_assert_ptr_null(conf_load(&relative, &error));
    ck_assert_str_eq(error.text, "-o log: the working directory has no path (No such file or "
                                 "directory): wants an absolute path");
}
END_TEST

static bool drifted(const struct conf *conf, const char *what)
{
    const char *changed = "unset";
    bool result = conf_has_drifted(conf, &changed);
    if (!result)
        ck_assert_ptr_null(changed);
    else
        ck_assert_str_eq(changed, scratch_path(what));
    return result;
}

START_TEST(drift)
{
    struct conf_error error;
    write_file("hayate.conf", "include = [ \"d/*.conf\" ]\n");
    write_file("d/a.conf", ROUTE("/a"));
    struct conf *conf = load("hayate.conf", NULL, &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert(!drifted(conf, ""));
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert(!drifted(conf, ""));

    scratch_write("hayate.conf", "include = [ \"d/*.conf\" ]\n"); /* the same bytes */
    ck_assert(!drifted(conf, ""));
    scratch_write("hayate.conf", "include = [ \"d/*.conf\" ] \n");
    ck_assert(drifted(conf, "hayate.conf"));
    scratch_write("hayate.conf", "include = [ \"d/*.conf\" ]");
    ck_assert(drifted(conf, "hayate.conf"));
    unlink(scratch_path("hayate.conf"));
    ck_assert(drifted(conf, "hayate.conf"));
    scratch_write("hayate.conf", "include = [ \"d/*.conf\" ]\n");
    ck_assert(!drifted(conf, ""));

    scratch_write("d/a.conf", ROUTE("/b"));
    ck_assert(drifted(conf, "d/a.conf"));
    unlink(scratch_path("d/a.conf"));
    ck_assert(drifted(conf, "d/a.conf"));
    ck_assert_int_eq(mkfifo(scratch_path("d/a.conf"), 0644), 0);
    ck_assert(drifted(conf, "d/a.conf"));
    unlink(scratch_path("d/a.conf"));
    scratch_write("d/a.conf", ROUTE("/a"));
    ck_assert(!drifted(conf, ""));
    scratch_write("d/b.txt", "");
    ck_assert(!drifted(conf, ""));
    scratch_write("d/b.conf", "");
    ck_assert(drifted(conf, "d/*.conf"));
    conf_free(conf);
}
END_TEST

/* What a load that failed leaves: the same mistake is known again, and its end is seen. */

static const struct {
    const char *main;
    const char *fragment;   /* d/a.conf; NULL: none */
    const char *changes[3]; /* "NAME=TEXT", each a difference; then all is as it was */
    const char *irrelevant; /* one that is none */
    unsigned sources;
} tried_rows[] = {
    { NULL, NULL, { "hayate.conf=" }, "d/a.conf=", 1 },
    { "wrokers = 1\n", ROUTE("/a"), { "hayate.conf=wrokers = 2\n" }, "d/a.conf=", 1 },
    { "include = [ \"d/*.conf\" ]\n",
      "wrokers = 1\n",
      { "hayate.conf=", "d/a.conf=", "d/b.conf=" },
      "d/b.txt=",
      2 },
    { "include = [ \"d/a.conf\" ]\n", NULL, { "d/a.conf=" }, "d/b.conf=", 2 },
};

/* NULL removes it. */
static void put(const char *name, const char *text)
{
    if (text)
        write_file(name, text);
    else
        unlink(scratch_path(name));
}

START_TEST(what_a_failed_load_has_read)
{
    struct conf_error error;
    struct files tried, copy;
    const char *changed = "unset";
    const struct conf_request request = { scratch_path("hayate.conf"), NULL, kinds_table() };
    const char *irrelevant = tried_rows[_i].irrelevant;

    write_file("d/", "");
    put("hayate.conf", tried_rows[_i].main);
    put("d/a.conf", tried_rows[_i].fragment);
    ck_assert_ptr_null(conf_load_tried(&request, &error, &tried));
    ck_assert_int_eq(files_copy(&copy, &tried), 0);
    files_fini(&tried);
    ck_assert_uint_eq(copy.nsources, tried_rows[_i].sources);
    ck_assert(!files_have_drifted(&copy, &changed));
    ck_assert_ptr_null(changed);
    for (int i = 0; i < SUITE_ROWS(tried_rows[_i].changes) && tried_rows[_i].changes[i]; i++) {
        const char *change = tried_rows[_i].changes[i], *equals = strchr(change, '=');
        const char *name = text_copy(change, (size_t)(equals - change));
        bool is_main = strcmp(name, "hayate.conf") == 0, is_a = strcmp(name, "d/a.conf") == 0;
        put(name, equals + 1);
        ck_assert_msg(files_have_drifted(&copy, &changed), "%s", name);
        put(name, is_main ? tried_rows[_i].main : is_a ? tried_rows[_i].fragment : NULL);
        ck_assert_msg(!files_have_drifted(&copy, &changed), "%s", name);
    }
    put(text_copy(irrelevant, strlen(irrelevant) - 1), "changed\n");
    ck_assert(!files_have_drifted(&copy, &changed));
    files_fini(&copy);
}
END_TEST

START_TEST(what_a_load_that_succeeds_has_tried)
{
    struct conf_error error;
    struct files tried;
    write_file("hayate.conf", "");
    const struct conf_request request = { scratch_path("hayate.conf"), NULL, kinds_table() };
    struct conf *conf = conf_load_tried(&request, &error, &tried);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert_uint_eq(tried.nsources, 0);
    ck_assert_uint_eq(conf->files.nsources, 1);
    ck_assert_ptr_nonnull(conf->files.sources[0].bytes); /* though it is empty */
    conf_free(conf);
}
END_TEST

START_TEST(from_bytes)
{
    struct conf_error error;
    const struct conf_request request = { "name", NULL, kinds_table() };
    struct conf *conf = load_bytes(&request, SLICE("workers = 5\n"), &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    ck_assert_uint_eq(conf->workers, 5);
    conf_free(conf);
    ck_assert_ptr_null(load_bytes(&request, SLICE("workers = 5\0\n"), &error));
    ck_assert_str_eq(error.text, "name:1: a NUL byte: this is not a text file, or it is damaged");
}
END_TEST

/* What an earlier load has read loads once more, whatever the disk holds by then. */
START_TEST(from_a_record)
{
    static const char *const overrides[] = { "workers=7", NULL };
    struct conf_error error;

    write_file("hayate.conf", "include = [ \"d/*.conf\", \"one.conf\" ]\n"
                              "log = \"log/a\"  access_log = \"log/b\"\n" ROUTE("/main"));
    write_file("d/b.conf", ROUTE("/b"));
    write_file("d/a.conf", ROUTE("/a"));
    write_file("one.conf", ROUTE("/one"));
    write_file("log/", "");
    struct conf *first = load("hayate.conf", overrides, &error);
    ck_assert_msg(first != NULL, "%s", error.text);
    unlink(scratch_path("d/b.conf"));
    write_file("d/c.conf", ROUTE("/c"));
    write_file("hayate.conf", "wrokers = 1\n");
    ck_assert_int_eq(rmdir(scratch_path("log")), 0);
    const struct conf_request request = { "hayate.conf", overrides, kinds_table() };
    const struct conf_record record = { &first->files, first->uid, first->gid };
    struct conf *second = conf_load_recorded(&request, &record, &error);
    ck_assert_msg(second != NULL, "%s", error.text);
    ck_assert_str_eq(summary(first), "7 /main /a /b /one");
    ck_assert_str_eq(summary(second), summary(first));
    ck_assert_str_eq(second->file, first->file);
    ck_assert(drifted(second, "hayate.conf"));
    conf_free(first);
    conf_free(second);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conf_files");
    TCase *tests = suite_case(suite, "files");
    tcase_add_loop_test(tests, several_files, 0, SUITE_ROWS(rows));
    tcase_add_test(tests, paths_lie_beside_the_file);
    tcase_add_test(tests, folders_are_no_patterns);
    tcase_add_test(tests, only_regular_files);
    tcase_add_test(tests, no_working_directory);
    tcase_add_test(tests, drift);
    tcase_add_loop_test(tests, what_a_failed_load_has_read, 0, SUITE_ROWS(tried_rows));
    tcase_add_test(tests, what_a_load_that_succeeds_has_tried);
    tcase_add_test(tests, from_bytes);
    tcase_add_test(tests, from_a_record);
    return suite_run(suite);
}
