#include "support/process.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

extern char **environ;

/* Variables of the caller that would change what the program does. */
static const char *const dropped[] = { "HAYATE_CONTROL", "PORT",           "NOTIFY_SOCKET",
                                       "JOURNAL_STREAM", "LIBEV_FLAGS",    "XDG_RUNTIME_DIR",
                                       "LISTEN_FDS",     "LISTEN_PID",     "DIR",
                                       "WATCHDOG_USEC",  "LISTEN_FDNAMES", NULL };

/* Is `entry` ("NAME=VALUE") a variable that one of the list ("NAME" or "NAME=...") names? */
static bool is_named(const char *entry, const char *const *list)
{
    size_t length = strcspn(entry, "=");

    for (; list != NULL && *list != NULL; list++)
        if (strcspn(*list, "=") == length && strncmp(entry, *list, length) == 0)
            return true;
    return false;
}

static char **make_environment(const char *const *changes)
{
    size_t count = 2;

    for (char **entry = environ; *entry != NULL; entry++)
        count++;
    for (const char *const *change = changes; change != NULL && *change != NULL; change++)
        count++;
    char **result = text_allocate(count * sizeof *result);
    count = 0;
    for (char **entry = environ; *entry != NULL; entry++)
        if (!is_named(*entry, dropped) && !is_named(*entry, changes))
            result[count++] = *entry;
    for (const char *const *change = changes; change != NULL && *change != NULL; change++)
        if (strchr(*change, '=') != NULL)
            result[count++] = (char *)(uintptr_t)*change;
    if (!is_named("DIR", changes))
        result[count++] = (char *)(uintptr_t)text_format("DIR=%s", scratch_path(""));
    return result;
}

static char **make_arguments(const char *program, const char *const *arguments)
{
    size_t count = 0;

    while (arguments != NULL && arguments[count] != NULL)
        count++;
    char **result = text_allocate((count + 2) * sizeof *result);
    result[0] = (char *)(uintptr_t)program;
    for (size_t i = 0; i < count; i++)
        result[i + 1] = (char *)(uintptr_t)arguments[i];
    return result;
}

/* In the new process. Says on standard error why it could not. */
static _Noreturn void execute(const struct launch *launch, const char *program, char **arguments,
                              char **environment, pid_t parent)
{
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(125);
    if (launch->is_group)
        setpgid(0, 0);
    dup2(null, 0);
    dup2(launch->out != 0 ? launch->out : null, 1);
    dup2(launch->err != 0 ? launch->err : null, 2);
    close_range(3, ~0U, 0);
    if (launch->prepare != NULL)
        launch->prepare();
    execve(program, arguments, environment);
    dprintf(2, "%s: %s\n", program, strerror(errno));
    _exit(125);
}

void process_start(struct process *process, const struct launch *launch)
{
    const char *program = getenv("HAYATE");

    ck_assert_msg(program != NULL && *program == '/',
                  "set HAYATE to the absolute path of the program");
    char **arguments = make_arguments(program, launch->arguments);
    char **environment = make_environment(launch->environment);
    pid_t parent = getpid();
    process->pid = fork();
    ck_assert(process->pid >= 0);
    if (process->pid == 0)
        execute(launch, program, arguments, environment, parent);
    if (launch->is_group) {
        setpgid(process->pid, process->pid);
        scratch_guard(process->pid);
    }
    process->handle = pidfd_open(process->pid, 0);
    ck_assert(process->handle >= 0);
}

static bool wait_end(const struct process *process, int milliseconds)
{
    struct pollfd waited = { .fd = process->handle, .events = POLLIN };

    return poll(&waited, 1, milliseconds) == 1;
}

bool process_has_ended(const struct process *process)
{
    return wait_end(process, 0);
}

int process_wait(struct process *process)
{
    struct deadline deadline = deadline_start();
    int status;

    ck_assert_msg(wait_end(process, deadline_left(&deadline)), "process %d does not end",
                  (int)process->pid);
    ck_assert(waitpid(process->pid, &status, 0) == process->pid);
    close(process->handle);
    process->handle = -1;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* The state letter and the process group of /proc/PID/stat; false when it has gone. */
static bool read_stat(pid_t pid, char *state, pid_t *group)
{
    char path[64], text[512];
    int parent, leader;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *rest = strrchr(text, ')');
    if (rest == NULL || sscanf(rest, ") %c %d %d", state, &parent, &leader) != 3)
        return false;
    *group = leader;
    return true;
}

bool process_is_alive(pid_t pid)
{
    char state;
    pid_t group;

    return read_stat(pid, &state, &group) && state != 'Z' && state != 'X';
}

unsigned process_group(pid_t group, pid_t *members, unsigned size)
{
    DIR *proc = opendir("/proc");
    unsigned count = 0;

    ck_assert(proc != NULL);
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        char state;
        pid_t pid = (pid_t)atoi(entry->d_name), its_group;
        if (pid <= 0 || !read_stat(pid, &state, &its_group) || its_group != group || state == 'Z' ||
            state == 'X')
            continue;
        if (count < size)
            members[count] = pid;
        count++;
    }
    closedir(proc);
    return count;
}

const char *process_status(pid_t pid, const char *name)
{
    const char *text = text_read(text_format("/proc/%d/status", (int)pid), 0, NULL);
    const char *line = text_find_line(text, text_format("^%s:", name));

    return line != NULL ? line + strlen(name) + 1 + strspn(line + strlen(name) + 1, " \t") : "";
}

unsigned process_count_files(pid_t pid)
{
    DIR *directory = opendir(text_format("/proc/%d/fd", (int)pid));
    unsigned count = 0;

    ck_assert(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static const char *read_back(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = text_allocate((size_t)size + 1);

    ck_assert(pread(fd, text, (size_t)size, 0) == size);
    close(fd);
    return text;
}

void process_run_with(struct outcome *outcome, const struct launch *launch)
{
    struct launch own = *launch;
    struct process process;

    own.out = memfd_create("out", MFD_CLOEXEC);
    own.err = memfd_create("err", MFD_CLOEXEC);
    own.is_group = true;
    ck_assert(own.out >= 0 && own.err >= 0);
    process_start(&process, &own);
    pid_t group = process.pid;
    outcome->status = process_wait(&process);
    scratch_unguard(group);
    outcome->out = read_back(own.out);
    outcome->err = read_back(own.err);
}

void process_run(struct outcome *outcome, const char *const *arguments)
{
    process_run_with(outcome, &(struct launch){ .arguments = arguments });
}

const char *process_expect(int status, const char *const *arguments)
{
    struct outcome outcome;

    process_run(&outcome, arguments);
    ck_assert_msg(outcome.status == status, "hayate %s: exit %d, not %d\n%s%s", arguments[0],
                  outcome.status, status, outcome.out, outcome.err);
    return outcome.out;
}
