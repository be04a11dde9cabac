/* Who died of what the kernel counts, from trees of files as kernels lay them out. */

#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "master/oom.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

#define V2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1                                                                       \
    "31 23 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"                 \
    "32 31 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n" \
    "33 31 0:29 / /sys/fs/cgroup/cpu rw shared:10 - cgroup cgroup rw,cpu\n"

#define EVENTS "low 0\nhigh 7\nmax 9\noom 3\noom_kill %d\noom_group_kill 5\n"
#define CONTROL "oom_kill_disable 0\nunder_oom 0\noom_kill %d\n"
#define VMSTAT "pgfree 12\noom_kill %d\nnuma_hit 3\n"

#define OURS "by the kernel, out of memory: oom_kill of the cgroup rose to %d"
#define SYSTEM "perhaps by the kernel, out of memory: oom_kill of the system rose to %d"

static const struct row {
    const char *name;
    const char *groups, *mounts; /* of /proc/self */
    const char *path, *format;   /* the file that counts */
    const char *other, *text;    /* another one, which stays; NULL: none */
    const char *explanation;     /* NULL: none */
} rows[] = {
    { "v2", "0::/a\n", V2, "sys/fs/cgroup/a/memory.events", EVENTS, NULL, NULL, OURS },
    { "v2, local", "0::/a\n", V2, "sys/fs/cgroup/a/memory.events.local", EVENTS,
      "sys/fs/cgroup/a/memory.events", "oom_kill 99\n", OURS },
    { "v2, of a group below", "0::/a\n", V2, "sys/fs/cgroup/a/memory.events", EVENTS,
      "sys/fs/cgroup/a/memory.events.local", "oom_kill 0\n", NULL },
    { "v2, of a group above", "0::/a/b\n", V2, "sys/fs/cgroup/a/memory.events", EVENTS,
      "sys/fs/cgroup/a/b/memory.events", "oom_kill 0\n", NULL },
    { "v1", "4:memory:/a\n3:cpu:/b\n", V1, "sys/fs/cgroup/memory/a/memory.oom_control", CONTROL,
      NULL, NULL, OURS },
    { "hybrid", "4:memory:/a\n0::/c\n",
      V1 "34 31 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
      "sys/fs/cgroup/memory/a/memory.oom_control", CONTROL, NULL, NULL, OURS },
    { "v1 of an old kernel", "4:memory:/a\n", V1, "proc/vmstat", VMSTAT,
      "sys/fs/cgroup/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", SYSTEM },
    { "the root of v2", "0::/\n", V2, "proc/vmstat", VMSTAT, NULL, NULL, SYSTEM },
    { "no group", NULL, NULL, "proc/vmstat", VMSTAT, NULL, NULL, SYSTEM },
    { "no file", NULL, NULL, "proc/other", VMSTAT, NULL, NULL, NULL },
    { "no number", NULL, NULL, "proc/vmstat", "oom_kill x%d\n", NULL, NULL, NULL },
    { "another name", NULL, NULL, "proc/vmstat", "oom_killer %d\n", NULL, NULL, NULL },
    { "too large", NULL, NULL, "proc/vmstat", "oom_kill 9999999999999999999%d\n", NULL, NULL,
      NULL },
};

/* Makes the folders of a file, then the file. */
static void write_file(const char *path, const char *text)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        mkdir(scratch_path(text_copy(path, (size_t)(slash - path))), 0755);
    scratch_write(path, text);
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void set_count(const struct row *row, int count)
{
    write_file(row->path, text_format(row->format, count));
}

static void set_up(const struct row *row)
{
    if (row->groups)
        write_file("proc/self/cgroup", row->groups);
    if (row->mounts)
        write_file("proc/self/mountinfo", row->mounts);
    if (row->other)
        write_file(row->other, row->text);
    set_count(row, 4);
}

static void expect(struct oom *oom, int64_t after, const char *expected)
{
    char text[OOM_TEXT_SIZE];
    oom_explain(oom, clock_monotonic() + after * CLOCK_SECOND, text);
    ck_assert_str_eq(text, expected);
}

START_TEST(every_layout)
{
    const struct row *row = &rows[_i];
    struct oom oom = { .root = scratch_path("") };

    set_up(row);
    oom_begin(&oom);
    expect(&oom, 0, "");
    set_count(row, 5);
    expect(&oom, 0, row->explanation ? text_format(row->explanation, 5) : "");
    expect(&oom, 0, "");
}
END_TEST

/* Those that die together are seen one after the other. */
START_TEST(several_at_once)
{
    struct oom oom = { .root = scratch_path("") };

    set_up(&rows[0]);
    oom_begin(&oom);
    oom_begin(&oom);
    set_count(&rows[0], 6);
    expect(&oom, 0, text_format(OURS, 6));
    expect(&oom, 1, text_format(OURS, 6));
    expect(&oom, 2, "");
    set_count(&rows[0], 7);
    expect(&oom, 3, text_format(OURS, 7));
    expect(&oom, 4, "");
}
END_TEST

/* What was left over is not about one that dies much later. */
START_TEST(those_of_others_are_forgotten)
{
    struct oom oom = { .root = scratch_path("") };

    set_up(&rows[0]);
    oom_begin(&oom);
    set_count(&rows[0], 9);
    expect(&oom, 0, text_format(OURS, 9));
    expect(&oom, 60, "");
    set_count(&rows[0], 8); /* another kernel's idea of a count */
    expect(&oom, 61, "");
    set_count(&rows[0], 9);
    expect(&oom, 62, text_format(OURS, 9));
}
END_TEST

START_TEST(before_the_start_was_over)
{
    struct oom oom = { .root = scratch_path("") };

    set_up(&rows[0]);
    expect(&oom, 0, "perhaps by the kernel, out of memory: oom_kill of the cgroup is 4");
    expect(&oom, 0, "");
}
END_TEST

START_TEST(moved_to_another_group)
{
    struct oom oom = { .root = scratch_path("") };

    set_up(&rows[0]);
    oom_begin(&oom);
    write_file("proc/self/cgroup", "0::/z\n");
    write_file("sys/fs/cgroup/z/memory.events", "oom_kill 2\n");
    expect(&oom, 0, "perhaps by the kernel, out of memory: oom_kill of the cgroup is 2");
    expect(&oom, 0, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oom");
    TCase *tests = suite_case(suite, "oom");
    tcase_add_loop_test(tests, every_layout, 0, SUITE_ROWS(rows));
    tcase_add_test(tests, several_at_once);
    tcase_add_test(tests, those_of_others_are_forgotten);
    tcase_add_test(tests, before_the_start_was_over);
    tcase_add_test(tests, moved_to_another_group);
    return suite_run(suite);
}
