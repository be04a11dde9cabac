#include "master/tryout.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/scoreboard.h"
#include "master/bequeath.h"
#include "master/legacy.h"
#include "master/master.h"

/* What it may take, from fork to exit; seconds. */
#define DEADLINE 5.

static void stop_listening(struct master *master)
{
    struct tryout *tryout = &master->upgrade.tryout;
    ev_io_stop(master->loop, &tryout->told);
    fd_close(&tryout->channel);
}

/* When it has said that it answered, it is let go. */
static void hear(struct master *master)
{
    struct tryout *tryout = &master->upgrade.tryout;
    struct channel_message message;
    enum channel_result result;
    while ((result = channel_receive(tryout->channel, &message)) == CHANNEL_MESSAGE) {
        while (message.nfds > 0)
            close(message.fds[--message.nfds]);
        if (message.kind == CHANNEL_FAILED) {
            /* A worker's part of a trial gives none. */
            tryout->status =
                message.argument & 0xff ? (int)(message.argument & 0xff) : EXIT_FAILURE;
            snprintf(tryout->failure, sizeof(tryout->failure), "%s", message.text);
        }
        tryout->has_answered |= message.kind == CHANNEL_READY;
    }
    if (result != CHANNEL_EMPTY || tryout->has_answered)
        stop_listening(master);
}

static void on_told(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;
    (void)events;
    hear(io->data);
}

static void kill_all(const struct tryout *tryout)
{
    kill(-tryout->pid, SIGKILL);
}

static void on_overdue(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    struct tryout *tryout = timer->data;
    if (!tryout->failure[0])
        snprintf(tryout->failure, sizeof(tryout->failure), "it did not %s within %.0f s",
                 tryout->has_answered ? "end" : "answer its own first request", DEADLINE);
    kill_all(tryout);
}

void tryout_init(struct master *master)
{
    struct tryout *tryout = &master->upgrade.tryout;
    tryout->channel = -1;
    ev_init(&tryout->told, on_told);
    ev_init(&tryout->overdue, on_overdue);
    tryout->told.data = master;
    tryout->overdue.data = tryout;
}

static int set_number(const char *variable, int fd)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", fd);
    return setenv(variable, number, 1);
}

/* In the new process, and nothing in it comes back. */
_Noreturn static void become(const struct master *master, int binary, int legacy, int channel)
{
    struct channel_message message = { .kind = CHANNEL_FAILED, .argument = EXIT_FAILURE };
    const int kept[] = { binary, legacy, channel, master->scoreboard_fd };
    int result = setpgid(0, 0);
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        result |= fd_set_cloexec(kept[i], false);
    if (result == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
        getppid() == atomic_load(&master->scoreboard->master.pid) &&
        set_number(LEGACY_VARIABLE, legacy) == 0 && set_number(LEGACY_TRIAL_VARIABLE, channel) == 0)
        fexecve(binary, master->options->arguments, environ);
    snprintf(message.text, sizeof(message.text), "it cannot be executed: %s", strerror(errno));
    channel_send(channel, &message);
    _exit(EXIT_FAILURE);
}

static void start_listening(struct master *master)
{
    struct tryout *tryout = &master->upgrade.tryout;
    ev_io_set(&tryout->told, tryout->channel, EV_READ);
    ev_io_start(master->loop, &tryout->told);
    ev_now_update(master->loop);
    ev_timer_set(&tryout->overdue, DEADLINE, 0.);
    ev_timer_start(master->loop, &tryout->overdue);
}

int tryout_start(struct master *master, int binary)
{
    struct tryout *tryout = &master->upgrade.tryout;
    struct legacy *copy = NULL;
    int ends[2] = { -1, -1 };
    tryout->has_answered = false;
    tryout->status = EXIT_FAILURE;
    tryout->failure[0] = '\0';
    int legacy = bequeath(master, NULL, &copy);
    free(copy);
    pid_t pid = legacy == -1 || channel_open(ends) == -1 ? -1 : fork();
    if (pid == 0)
        become(master, binary, legacy, ends[1]);
    fd_close(&ends[1]);
    fd_close(&legacy);
    if (pid == -1) {
        fd_close(&ends[0]);
        return -1;
    }
    setpgid(pid, pid); /* whoever of us comes first */
    tryout->pid = pid;
    tryout->channel = ends[0];
    start_listening(master);
    return 0;
}

void tryout_stop(struct master *master)
{
    struct tryout *tryout = &master->upgrade.tryout;
    stop_listening(master);
    ev_timer_stop(master->loop, &tryout->overdue);
    if (tryout->pid > 0)
        kill_all(tryout);
    tryout->pid = 0;
}

bool tryout_reaped(struct master *master, pid_t pid, int status, const char **reason)
{
    struct tryout *tryout = &master->upgrade.tryout;
    if (pid <= 0 || pid != tryout->pid)
        return false;
    if (tryout->channel != -1)
        hear(master);
    tryout_stop(master); /* and what it has left behind */
    *reason = NULL;
    bool has_left = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (tryout->has_answered && has_left && !tryout->failure[0])
        return true;
    if (!tryout->failure[0] && WIFSIGNALED(status))
        snprintf(tryout->failure, sizeof(tryout->failure), "it was killed by signal %d",
                 WTERMSIG(status));
    else if (!tryout->failure[0])
        snprintf(tryout->failure, sizeof(tryout->failure), "it exited with status %d %s",
                 WEXITSTATUS(status),
                 tryout->has_answered ? "although it had answered" : "without a word");
    *reason = tryout->failure;
    return true;
}
