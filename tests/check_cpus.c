/*
 * How many CPUs we may use, from trees of files as kernels and container engines lay them out.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpus.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

#define V2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1                                                                       \
    "31 23 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"                 \
    "32 31 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n" \
    "33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"
#define HYBRID V1 "34 31 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

#define FILES 6

struct row {
    const char *name;
    const char *groups; /* /proc/self/cgroup */
    const char *mounts; /* /proc/self/mountinfo */
    struct {
        const char *path, *text;
    } files[FILES]; /* below /sys/fs/cgroup */
    unsigned affinity;
    unsigned count;
    const char *why;
};

static const struct row rows[] = {
    { "neither file", NULL, NULL, { { 0 } }, 4, 4, "4 CPUs by affinity" },
    { "one", "0::/\n", V2, { { 0 } }, 1, 1, "1 CPU by affinity" },
    { "v2 without a limit",
      "0::/a\n",
      V2,
      { { "a/cpu.max", "max 100000\n" } },
      4,
      4,
      "4 CPUs by affinity" },
    { "v2, half a CPU",
      "0::/a\n",
      V2,
      { { "a/cpu.max", "50000 100000\n" } },
      4,
      1,
      "1 by the cgroup quota of 50000/100000 us in /a" },
    { "v2, exactly two",
      "0::/a\n",
      V2,
      { { "a/cpu.max", "200000 100000\n" } },
      4,
      2,
      "2 by the cgroup quota of 200000/100000 us in /a" },
    { "v2, rounded up",
      "0::/a\n",
      V2,
      { { "a/cpu.max", "200001 100000\n" } },
      4,
      3,
      "3 by the cgroup quota of 200001/100000 us in /a" },
    { "v2, more than the affinity",
      "0::/a\n",
      V2,
      { { "a/cpu.max", "900000 100000\n" } },
      4,
      4,
      "4 CPUs by affinity" },
    { "v2, an ancestor is tighter",
      "0::/a/b/c\n",
      V2,
      { { "a/b/c/cpu.max", "300000 100000\n" },
        { "a/cpu.max", "100000 50000\n" },
        { "a/b/cpu.max", "max 100000\n" } },
      8,
      2,
      "2 by the cgroup quota of 100000/50000 us in /a" },
    { "v2, the root of a container's name space",
      "0::/\n",
      V2,
      { { "cpu.max", "150000 100000\n" } },
      8,
      2,
      "2 by the cgroup quota of 150000/100000 us in /" },
    { "v2, the mount is our own group",
      "0::/docker/abc\n",
      "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
      { { "cpu.max", "150000 100000\n" } },
      8,
      2,
      "2 by the cgroup quota of 150000/100000 us in /docker/abc" },
    { "v2, below the mount's own group",
      "0::/docker/abc/x\n",
      "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
      { { "x/cpu.max", "150000 100000\n" }, { "cpu.max", "max 100000\n" } },
      8,
      2,
      "2 by the cgroup quota of 150000/100000 us in /docker/abc/x" },
    { "v2, a mount that is not above us",
      "0::/\n",
      "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
      { { "cpu.max", "150000 100000\n" } },
      8,
      2,
      "2 by the cgroup quota of 150000/100000 us in /docker/abc" },
    { "v2, a name that begins alike",
      "0::/docker/abcd\n",
      "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
      { { "d/cpu.max", "50000 100000\n" }, { "cpu.max", "150000 100000\n" } },
      8,
      2,
      "2 by the cgroup quota of 150000/100000 us in /docker/abc" },
    { "v2, outside of the name space",
      "0::/../other\n",
      V2,
      { { "cpu.max", "150000 100000\n" } },
      8,
      2,
      "2 by the cgroup quota of 150000/100000 us in /" },
    { "v2, a mount point with a space",
      "0::/a\n",
      "30 23 0:26 / /sys/fs/cgroup/my\\040groups rw - cgroup2 cgroup2 rw\n",
      { { "my groups/a/cpu.max", "50000 100000\n" } },
      4,
      1,
      "1 by the cgroup quota of 50000/100000 us in /a" },
    { "v1 without a limit",
      "4:cpu,cpuacct:/a\n",
      V1,
      { { "cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n" },
        { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" } },
      4,
      4,
      "4 CPUs by affinity" },
    { "v1",
      "5:memory:/m\n4:cpu,cpuacct:/a\n",
      V1,
      { { "cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n" },
        { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" } },
      4,
      2,
      "2 by the cgroup quota of 150000/100000 us in /a" },
    { "v1, an ancestor is tighter",
      "4:cpuacct,cpu:/a/b\n",
      V1,
      { { "cpu,cpuacct/a/b/cpu.cfs_quota_us", "300000\n" },
        { "cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n" },
        { "cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n" },
        { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" } },
      4,
      1,
      "1 by the cgroup quota of 50000/100000 us in /a" },
    { "v1, in a container",
      "4:cpu,cpuacct:/docker/abc\n",
      "33 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro master:10 - cgroup cgroup "
      "rw,cpu,cpuacct\n",
      { { "cpu,cpuacct/cpu.cfs_quota_us", "150000\n" },
        { "cpu,cpuacct/cpu.cfs_period_us", "100000\n" } },
      4,
      2,
      "2 by the cgroup quota of 150000/100000 us in /docker/abc" },
    { "v1, cpuset and cpuacct are other controllers",
      "3:cpuset:/a\n2:cpuacct:/a\n",
      V1,
      { { "cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n" },
        { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" } },
      4,
      4,
      "4 CPUs by affinity" },
    { "hybrid, v1 is tighter",
      "4:cpu,cpuacct:/a\n0::/a\n",
      HYBRID,
      { { "cpu,cpuacct/a/cpu.cfs_quota_us", "100000\n" },
        { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" },
        { "unified/a/cpu.max", "200000 100000\n" } },
      4,
      1,
      "1 by the cgroup quota of 100000/100000 us in /a" },
    { "hybrid, v2 is tighter",
      "4:cpu,cpuacct:/a\n0::/b\n",
      HYBRID,
      { { "cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n" },
        { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" },
        { "unified/b/cpu.max", "200000 100000\n" } },
      4,
      2,
      "2 by the cgroup quota of 200000/100000 us in /b" },
    { "the period is missing",
      "4:cpu,cpuacct:/a\n",
      V1,
      { { "cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n" } },
      4,
      4,
      "4 CPUs by affinity" },
    { "no sense at all",
      "0::/a\n::\n:\n0:\nx\n",
      "30\n30 23 0:26 / /x rw\n - \n" V2,
      { { "a/cpu.max", "many of them\n" } },
      4,
      4,
      "4 CPUs by affinity" },
    { "numbers that mean nothing",
      "0::/a\n",
      V2,
      { { "a/cpu.max", "0 100000\n" }, { "cpu.max", "99999999999999999999999 1\n" } },
      4,
      4,
      "4 CPUs by affinity" },
    { "a period of nothing",
      "0::/a\n",
      V2,
      { { "a/cpu.max", "50000 0\n" } },
      4,
      4,
      "4 CPUs by affinity" },
};

/* Makes the folders of a file, then the file. */
static void write_file(const char *path, const char *text)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        mkdir(scratch_path(text_copy(path, (size_t)(slash - path))), 0755);
    scratch_write(path, text);
}

START_TEST(every_layout)
{
    const struct row *row = &rows[_i];
    char why[256] = "";

    if (row->groups)
        write_file("proc/self/cgroup", row->groups);
    if (row->mounts)
        write_file("proc/self/mountinfo", row->mounts);
    for (size_t i = 0; i < FILES && row->files[i].path; i++)
        write_file(text_format("sys/fs/cgroup/%s", row->files[i].path), row->files[i].text);
    unsigned count = cpus_count(scratch_path(""), row->affinity, why, sizeof(why));
    ck_assert_msg(count == row->count && strcmp(why, row->why) == 0, "%s: %u, \"%s\"", row->name,
                  count, why);
}
END_TEST

START_TEST(this_machine)
{
    char why[256] = "";
    unsigned count = cpus_count("", 0, why, sizeof(why));
    ck_assert_uint_ge(count, 1);
    ck_assert_ptr_nonnull(strchr(why, ' '));
}
END_TEST

START_TEST(real_affinity)
{
    char why[256] = "";
    cpu_set_t set;
    ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
    ck_assert_uint_eq(cpus_count(scratch_path(""), 0, why, sizeof(why)), 1);
    ck_assert_str_eq(why, "1 CPU by affinity");
}
END_TEST

static bool write_number(const char *path, long number)
{
    char text[32];
    int length = snprintf(text, sizeof(text), "%ld\n", number);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd != -1 && write(fd, text, (size_t)length) == length;
    close(fd);
    return is_written;
}

/* A group of our own below the one we are in, where the machine lets us make one. */
START_TEST(real_quota)
{
    char why[256] = "";
    const char *own = text_extract(text_read("/proc/self/cgroup", 0, NULL), ":cpu:(/[^\n]*)");
    const char *parent = text_format("/sys/fs/cgroup/cpu%s", own ? own : "");
    const char *group = text_format("%s/hayate-test-%d", parent, (int)getpid());
    if ((!own || mkdir(group, 0755) == -1) && suite_skip("no v1 cgroup of ours to be had"))
        return;

    bool is_set = write_number(text_format("%s/cpu.cfs_period_us", group), 100000) &&
                  write_number(text_format("%s/cpu.cfs_quota_us", group), 150000) &&
                  write_number(text_format("%s/cgroup.procs", group), (long)getpid());
    unsigned count = cpus_count("", 64, why, sizeof(why));
    write_number(text_format("%s/cgroup.procs", parent), (long)getpid());
    rmdir(group);
    if (!is_set && suite_skip("no quota to be had"))
        return;
    ck_assert_uint_eq(count, 2);
    ck_assert_msg(strstr(why, "2 by the cgroup quota of 150000/100000 us in ") == why, "%s", why);
    ck_assert_msg(strstr(why, "/hayate-test-") != NULL, "%s", why);
}
END_TEST

START_TEST(reason_is_cut_to_fit)
{
    char why[8] = "";
    cpus_count(scratch_path(""), 64, why, sizeof(why));
    ck_assert_str_eq(why, "64 CPUs");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpus");
    TCase *tests = suite_case(suite, "count");
    tcase_add_loop_test(tests, every_layout, 0, SUITE_ROWS(rows));
    tcase_add_test(tests, this_machine);
    tcase_add_test(tests, real_affinity);
    tcase_add_test(tests, real_quota);
    tcase_add_test(tests, reason_is_cut_to_fit);
    return suite_run(suite);
}
