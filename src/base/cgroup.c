#include "base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

int cgroup_read(struct buf *out, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    if (fd == -1)
        return -1;
    while (buf_reserve(out, 4096) == 0) {
        got = read(fd, out->data + out->length, 4096);
        if (got == -1 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        out->length += (size_t)got;
    }
    fd_close(&fd);
    return got == 0 ? 0 : -1;
}

/* Takes what stands before the next `end` off the front of *rest. */
static bool next_part(struct slice *rest, char end, struct slice *part)
{
    if (rest->length == 0)
        return false;
    const char *found = memchr(rest->data, end, rest->length);
    size_t length = found ? (size_t)(found - rest->data) : rest->length;
    *part = (struct slice){ rest->data, length };
    length += found != NULL;
    *rest = (struct slice){ rest->data + length, rest->length - length };
    return true;
}

static bool has_controller(struct slice list, struct slice controller)
{
    struct slice member;
    while (next_part(&list, ',', &member))
        if (slice_equal(member, controller))
            return true;
    return false;
}

/*
 * Our path in one hierarchy, from /proc/self/cgroup ("4:cpu,cpuacct:/a/b", "0::/a/b"). False: the
 * hierarchy is not there.
 */
static bool find_group(struct slice groups, bool is_v2, struct slice controller, struct slice *path)
{
    struct slice line, number, controllers;
    while (next_part(&groups, '\n', &line)) {
        if (!next_part(&line, ':', &number) || !next_part(&line, ':', &controllers))
            continue;
        bool is_it = is_v2 ? controllers.length == 0 && slice_equal(number, SLICE("0"))
                           : has_controller(controllers, controller);
        if (is_it && line.length > 0 && line.data[0] == '/') {
            *path = line;
            return true;
        }
    }
    return false;
}

/* `path` below `root`, when it lies there: "/a/b" below "/a" is "/b". */
static struct slice below(struct slice path, struct slice root)
{
    if (root.length == 1)
        root.length = 0;
    bool is_below = path.length >= root.length && memcmp(path.data, root.data, root.length) == 0 &&
                    (path.length == root.length || path.data[root.length] == '/');
    /* In a container the mount may be of our own group, whatever the path is called outside. */
    if (!is_below || memmem(path.data, path.length, "/..", 3))
        return (struct slice){ "", 0 };
    struct slice rest = { path.data + root.length, path.length - root.length };
    if (rest.length == 1)
        rest.length = 0;
    return rest;
}

/* Undoes the octal escapes of mountinfo ("\040" is a space), in place. */
static struct slice unescape(char *data, size_t length)
{
    size_t to = 0;
    for (size_t i = 0; i < length; i++, to++) {
        data[to] = data[i];
        if (data[i] == '\\' && i + 3 < length) {
            data[to] =
                (char)((data[i + 1] - '0') * 64 + (data[i + 2] - '0') * 8 + (data[i + 3] - '0'));
            i += 3;
        }
    }
    return (struct slice){ data, to };
}

struct search {
    const char *root;
    struct slice controller;
    void (*visit)(void *context, const struct cgroup *place);
    void *context;
};

/*
 * A line of /proc/self/mountinfo: "36 35 98:0 /root /mount options... - type source options".
 * See proc(5).
 */
static void take_mount(const struct search *search, struct slice line, struct slice groups)
{
    struct slice part, mount_root = { 0 }, mount = { 0 }, type, source, path;

    for (int i = 0; i < 5; i++) {
        if (!next_part(&line, ' ', &part))
            return;
        if (i == 3)
            mount_root = part;
        mount = part;
    }
    do
        if (!next_part(&line, ' ', &part))
            return;
    while (!slice_equal(part, SLICE("-")));
    if (!next_part(&line, ' ', &type) || !next_part(&line, ' ', &source))
        return;
    bool is_v2 = slice_equal(type, SLICE("cgroup2"));
    bool is_v1 = slice_equal(type, SLICE("cgroup")) && has_controller(line, search->controller);
    if ((!is_v1 && !is_v2) || !find_group(groups, is_v2, search->controller, &path))
        return;
    mount_root = unescape((char *)mount_root.data, mount_root.length);
    mount = unescape((char *)mount.data, mount.length);
    const struct cgroup place = {
        .root = search->root,
        .mount = mount,
        .mount_root = mount_root,
        .path = path,
        .below = below(path, mount_root),
        .is_v2 = is_v2,
    };
    search->visit(search->context, &place);
}

void cgroup_each(const char *root, const char *controller,
                 void (*visit)(void *context, const struct cgroup *place), void *context)
{
    const struct search search = { root, slice_of(controller), visit, context };
    struct buf path = { 0 }, groups = { 0 }, mounts = { 0 };
    struct slice line;

    if (buf_printf(&path, "%s/proc/self/cgroup", root) == -1 || !buf_string(&path) ||
        cgroup_read(&groups, path.data) == -1)
        goto out;
    path.length = 0;
    if (buf_printf(&path, "%s/proc/self/mountinfo", root) == -1 || !buf_string(&path) ||
        cgroup_read(&mounts, path.data) == -1)
        goto out;
    struct slice rest = buf_slice(&mounts);
    while (next_part(&rest, '\n', &line))
        take_mount(&search, line, buf_slice(&groups));
out:
    buf_fini(&path);
    buf_fini(&groups);
    buf_fini(&mounts);
}
