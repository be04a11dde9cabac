#include "master/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "master/bequeath.h"
#include "master/child.h"
#include "master/control.h"
#include "master/legacy.h"
#include "master/master.h"
#include "master/notify.h"
#include "master/reload.h"
#include "master/watch.h"

/* The kernel says so of a file that was replaced since its exec. */
#define DELETED " (deleted)"

static char *find_binary(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length <= 0)
        return NULL;
    path[length] = '\0';
    size_t suffix = strlen(DELETED);
    if ((size_t)length > suffix && strcmp(path + length - suffix, DELETED) == 0 &&
        access(path, F_OK) == -1)
        path[(size_t)length - suffix] = '\0';
    return strdup(path);
}

void upgrade_init(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;
    upgrade->old_binary = upgrade->new_binary = -1;
    upgrade->path = find_binary();
    tryout_init(master);
}

/* Closes what only the upgrade that ends here needs. */
static void release(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;
    tryout_stop(master);
    fd_close(&upgrade->old_binary);
    fd_close(&upgrade->new_binary);
    free(upgrade->from);
    upgrade->from = NULL;
    upgrade->state = UPGRADE_NONE;
}

void upgrade_fini(struct master *master)
{
    release(master);
    free(master->upgrade.path);
}

bool upgrade_is_running(const struct master *master)
{
    return master->upgrade.state != UPGRADE_NONE || master->upgrade.is_wanted;
}

bool upgrade_is_proving(const struct master *master)
{
    return master->upgrade.state == UPGRADE_PROVING;
}

static void note_outcome(struct upgrade *upgrade, bool has_failed, const char *text)
{
    upgrade->has_failed = has_failed;
    upgrade->last_realtime = clock_realtime();
    snprintf(upgrade->last, sizeof(upgrade->last), "%s", text);
    if (has_failed)
        upgrade->failed++;
    else
        upgrade->succeeded++;
}

/* The end of one that failed, in the binary that goes on. The service manager hears first. */
static void fail(struct master *master, int status, const char *reason)
{
    char line[SCOREBOARD_TEXT + 64], answer[CHANNEL_TEXT + 256];
    struct upgrade *upgrade = &master->upgrade;
    release(master);
    note_outcome(upgrade, true, reason);
    snprintf(answer, sizeof(answer), "upgrade failed, hayate " PACKAGE_VERSION " goes on: %s\n",
             reason);
    log_error("upgrade failed, hayate " PACKAGE_VERSION " goes on: %s", reason);
    notify_ready(master->notify, master_status_line(master, line, sizeof(line)));
    control_answer(master->control, CONTROL_UPGRADE, UINT64_MAX, status, answer);
    reload_resume(master);
}

__attribute__((format(printf, 2, 3))) static void fail_early(struct master *master,
                                                             const char *format, ...)
{
    char reason[CHANNEL_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    fail(master, EXIT_FAILURE, reason);
}

static void begin(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;
    upgrade->state = UPGRADE_TRIAL;
    upgrade->began = clock_monotonic();
    notify_reloading(master->notify);
    if (!upgrade->path) {
        fail_early(master, "where the binary is was not to be found out: is /proc mounted?");
        return;
    }
    upgrade->new_binary = open(upgrade->path, O_PATH | O_CLOEXEC);
    upgrade->old_binary = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    if (upgrade->new_binary == -1 || upgrade->old_binary == -1) {
        fail_early(master, "cannot open %s: %s",
                   upgrade->new_binary == -1 ? upgrade->path : "/proc/self/exe", strerror(errno));
        return;
    }
    if (tryout_start(master, upgrade->new_binary) == -1)
        fail_early(master, "cannot try the new binary: %s", strerror(errno));
}

const char *master_upgrade(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;
    if (master->is_stopping)
        return "a stop is in progress";
    if (upgrade->state != UPGRADE_NONE || upgrade->is_wanted)
        return "another upgrade is under way";
    upgrade->is_wanted = true;
    return NULL;
}

/* The new binary in our place; or nothing has changed, and -1 with errno. */
static int execute(const struct master *master, int binary, int fd, const struct legacy *legacy)
{
    char number[16];
    if (fd == -1)
        return -1;
    snprintf(number, sizeof(number), "%d", fd);
    if (legacy_set_cloexec(legacy, false) == 0 && fd_set_cloexec(fd, false) == 0 &&
        setenv(LEGACY_VARIABLE, number, 1) == 0) {
        notify_export(master->notify);
        fexecve(binary, master->options->arguments, environ);
    }
    int reason = errno;
    unsetenv(LEGACY_VARIABLE);
    unsetenv("NOTIFY_SOCKET");
    legacy_set_cloexec(legacy, true);
    close(fd);
    errno = reason;
    return -1;
}

static void execute_new(struct master *master)
{
    struct legacy *legacy = NULL;
    int fd = bequeath(master, NULL, &legacy);
    execute(master, master->upgrade.new_binary, fd, legacy);
    int reason = errno;
    free(legacy);
    fail_early(master, "%s cannot be executed: %s", master->upgrade.path, strerror(reason));
}

void upgrade_reaped(struct master *master, pid_t pid, int status)
{
    struct upgrade *upgrade = &master->upgrade;
    const char *failure;
    char reason[CHANNEL_TEXT];
    if (!tryout_reaped(master, pid, status, &failure))
        return;
    if (!failure) {
        upgrade->state = UPGRADE_TRIED;
        return;
    }
    snprintf(reason, sizeof(reason), "%.256s in its trial: %.700s", upgrade->path, failure);
    fail(master, upgrade->tryout.status, reason);
}

void upgrade_take_over(struct master *master, const struct legacy *legacy)
{
    struct upgrade *upgrade = &master->upgrade;
    upgrade->began = legacy->began;
    upgrade->succeeded = legacy->upgrades;
    upgrade->failed = legacy->failures;
    free(upgrade->path);
    upgrade->path = strdup(legacy_text(legacy, legacy->path));
    if (legacy->new_binary_fd != -1)
        close(legacy->new_binary_fd);
    upgrade->old_binary = legacy->old_binary_fd;
    if (legacy->flags & LEGACY_FAILED) {
        watch_follow(master->watch);
        fail(master, (int)legacy->status, legacy_text(legacy, legacy->reason));
        return;
    }
    upgrade->from = strdup(legacy_text(legacy, legacy->program));
    upgrade->state = UPGRADE_PROVING;
    reload_prove(master);
}

void upgrade_commit(struct master *master, const char *change)
{
    struct upgrade *upgrade = &master->upgrade;
    char span[CLOCK_SPAN_SIZE], text[sizeof(upgrade->last)];
    clock_span(span, sizeof(span), clock_monotonic() - upgrade->began);
    snprintf(text, sizeof(text), "upgraded from %.64s to " PACKAGE_VERSION " in %s: %s",
             upgrade->from ? upgrade->from : "?", span, change);
    log_info("%s", text);
    release(master);
    upgrade->state = UPGRADE_PROVEN;
    note_outcome(upgrade, false, text);
}

void upgrade_finish(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;
    char answer[sizeof(upgrade->last) + 1];
    if (upgrade->state != UPGRADE_PROVEN)
        return;
    upgrade->state = UPGRADE_NONE;
    snprintf(answer, sizeof(answer), "%s\n", upgrade->last);
    control_answer(master->control, CONTROL_UPGRADE, UINT64_MAX, EXIT_SUCCESS, answer);
}

/* Children of the generation that failed: they never accepted a connection, and are to leave. */
static bool has_newcomer(const struct master *master)
{
    for (const struct child *child = master->children; child; child = child->next)
        if (child->generation->number > master->current->number)
            return true;
    return false;
}

static void execute_old(struct master *master)
{
    struct legacy *legacy = NULL;
    struct upgrade *upgrade = &master->upgrade;
    const struct bequest_failure failure = { upgrade->status, upgrade->failure };
    int fd = bequeath(master, &failure, &legacy);
    execute(master, upgrade->old_binary, fd, legacy);
    int error = errno;
    char reason[CHANNEL_TEXT + 128];
    free(legacy);
    /* Then we are what there is, and can go on with its workers as well as it could. */
    snprintf(reason, sizeof(reason), "%s; and it cannot go back to the old binary: %s",
             failure.reason, strerror(error));
    master->reload.running = 0;
    watch_follow(master->watch);
    fail(master, upgrade->status, reason);
}

void upgrade_go_back(struct master *master, int status, const char *reason)
{
    struct upgrade *upgrade = &master->upgrade;
    upgrade->state = UPGRADE_LOST;
    upgrade->status = status;
    snprintf(upgrade->failure, sizeof(upgrade->failure), "%s", reason);
}

void upgrade_go_on(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;
    if (master->reopen.running != 0 || master->is_stopping)
        return;
    if (upgrade->state == UPGRADE_LOST) {
        if (!has_newcomer(master))
            execute_old(master);
    } else if (master->reload.running != 0) {
        return;
    } else if (upgrade->state == UPGRADE_TRIED) {
        execute_new(master);
    } else if (upgrade->is_wanted && upgrade->state == UPGRADE_NONE) {
        upgrade->is_wanted = false;
        begin(master);
    }
}

void upgrade_return(const struct master *master, const struct legacy *legacy, const char *reason)
{
    const struct bequest_failure failure = { EXIT_FAILURE, reason };
    if (legacy->flags & LEGACY_FAILED)
        return; /* the old one cannot either */
    int fd = bequeath_again(legacy, &failure);
    execute(master, legacy->old_binary_fd, fd, legacy);
}

void upgrade_abandon(struct master *master)
{
    struct upgrade *upgrade = &master->upgrade;
    upgrade->is_wanted = false;
    if (upgrade->state == UPGRADE_PROVEN)
        return; /* it is told so */
    release(master);
    control_answer(master->control, CONTROL_UPGRADE, UINT64_MAX, EXIT_FAILURE,
                   "refused: a stop is in progress\n");
}
