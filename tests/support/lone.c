#include "support/lone.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer/answer.h"
#include "base/clock.h"
#include "base/tally.h"
#include "conf/conf.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"
#include "worker/worker.h"

static struct conf *load(const char *text)
{
    struct conf_error error;
    scratch_write("lone.conf", text ? text : "");
    const struct conf_request request = {
        .file = scratch_path("lone.conf"),
        .kinds = answer_kinds(),
    };
    struct conf *conf = conf_load(&request, &error);
    ck_assert_msg(conf != NULL, "%s", error.text);
    return conf;
}

static void listen_at(struct lone *lone, unsigned nsockets)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t length = sizeof address;
    int on = 1;
    for (unsigned i = 0; i < nsockets; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
        ck_assert_int_eq(listen(fd, 1024), 0);
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
        lone->sockets[i] = fd;
    }
    lone->nsockets = nsockets;
    lone->url = text_format("http://127.0.0.1:%u", ntohs(address.sin_port));
}

static void listen_at_path(struct lone *lone, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    ck_assert(strlen(path) < sizeof address.sun_path);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 1024), 0);
    lone->sockets[0] = fd;
    lone->nsockets = 1;
    lone->url = text_format("http+unix:%s", path);
}

/* In the new process. */
_Noreturn static void become(const struct lone *lone, const struct lone_options *options,
                             int channel, pid_t master)
{
    struct heritage_socket sockets[LONE_SOCKETS];
    unsigned workers = options->workers ? options->workers : 1;
    struct heritage heritage = {
        .is_admin = options->is_admin,
        .worker = options->is_admin ? 0 : 1,
        .generation = 7,
        .workers = workers,
        .connections = (unsigned)lone->conf->limits.connections,
        .conf = lone->conf,
        .scoreboard = lone->scoreboard,
        .mine = lone->slot,
        .tally = options->is_admin ? NULL : lone->tally,
        .sockets = sockets,
        .nsockets = lone->nsockets,
        .channel = channel,
        .watchdog = lone->watchdog,
        .access = SINK_INIT,
        .master = master,
        .born = clock_monotonic(),
        .is_root = options->is_root,
        .uid = 65534,
        .gid = 65534,
    };
    for (unsigned i = 0; i < lone->nsockets; i++)
        sockets[i] = (struct heritage_socket){
            .fd = lone->sockets[i],
            .slot = i,
            .is_shared = options->is_shared || options->unix_path,
            .is_surplus = i >= lone->nsockets - options->surplus,
        };
    if (options->access_log && sink_open_path(&heritage.access, options->access_log, 0644) == -1)
        _exit(99);
    if (options->descriptors > 0) {
        struct rlimit few = { options->descriptors, options->descriptors };
        setrlimit(RLIMIT_NOFILE, &few);
    }
    if (options->is_powerless && geteuid() == 0 && setresuid(65533, 65533, 65533) == -1)
        _exit(99);
    worker_run(&heritage);
}

void lone_spawn(struct lone *lone, const struct lone_options *options)
{
    int ends[2], scoreboard_fd, tally_fd;
    *lone = (struct lone){ .watchdog = -1, .conf = load(options->config) };
    lone->scoreboard = scoreboard_new(&scoreboard_fd);
    ck_assert(lone->scoreboard != NULL);
    lone->tally = tally_new(lone->conf->nroutes, &tally_fd);
    ck_assert(lone->tally != NULL);
    lone->slot = scoreboard_take(lone->scoreboard, SCOREBOARD_WORKER);
    atomic_store(&lone->scoreboard->master.is_ready, 1);
    if (options->unix_path)
        listen_at_path(lone, options->unix_path);
    else
        listen_at(lone, options->nsockets ? options->nsockets : 1);
    if (options->is_watched)
        lone->watchdog = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ck_assert_int_eq(channel_open(ends), 0);
    lone->channel = ends[0];

    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t master = getpid();
    lone->pid = fork();
    ck_assert(lone->pid != -1);
    if (lone->pid == 0) {
        close(ends[0]);
        become(lone, options, ends[1], master);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    atomic_store(&lone->slot->pid, lone->pid);
}

void lone_start(struct lone *lone, const struct lone_options *options)
{
    struct channel_message message;
    lone_spawn(lone, options);
    lone_expect(lone, CHANNEL_READY, &message);
    lone_tell(lone, CHANNEL_GO, 0, 0);
}

void lone_start_plain(struct lone *lone)
{
    lone_start(lone, &(struct lone_options){ 0 });
}

void lone_expect(struct lone *lone, enum channel_kind kind, struct channel_message *message)
{
    struct deadline deadline = deadline_start();
    struct pollfd waited = { .fd = lone->channel, .events = POLLIN };
    ck_assert_msg(poll(&waited, 1, deadline_left(&deadline)) == 1, "no message");
    enum channel_result result = channel_receive(lone->channel, message);
    ck_assert_msg(result == CHANNEL_MESSAGE, "the channel has ended: %d", result);
    ck_assert_msg(message->kind == kind, "message %d, not %d: %s", message->kind, kind,
                  message->text);
}

void lone_tell(struct lone *lone, enum channel_kind kind, uint32_t argument, int64_t value)
{
    const struct channel_message message = {
        .kind = kind,
        .argument = argument,
        .value = value,
    };
    ck_assert_int_eq(channel_send(lone->channel, &message), 0);
}

void lone_settle(struct lone *lone)
{
    struct channel_message message;
    lone_tell(lone, CHANNEL_LOGS, 0, 0); /* nothing to reopen, but an answer */
    lone_expect(lone, CHANNEL_REOPENED, &message);
}

void lone_drain(struct lone *lone, enum channel_drain how)
{
    lone_tell(lone, CHANNEL_DRAIN, how, 10 * CLOCK_SECOND);
}

bool lone_has_ended(struct lone *lone)
{
    siginfo_t info = { 0 };
    return waitid(P_PID, (id_t)lone->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == lone->pid;
}

int lone_wait(struct lone *lone)
{
    int status;
    WAIT_FOR(lone_has_ended(lone));
    ck_assert_int_eq(waitpid(lone->pid, &status, 0), lone->pid);
    close(lone->channel);
    for (unsigned i = 0; i < lone->nsockets; i++)
        close(lone->sockets[i]);
    conf_free(lone->conf);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void lone_leave(struct lone *lone)
{
    lone_drain(lone, CHANNEL_DRAIN_NOW);
    ck_assert_int_eq(lone_wait(lone), 0);
}

bool lone_is_instrumented(void)
{
#if defined __SANITIZE_ADDRESS__ || defined ENABLE_SANITIZERS
    return true;
#else
    return suite_has_valgrind();
#endif
}

struct scoreboard_sums lone_counters(const struct lone *lone)
{
    struct scoreboard_sums sums;
    scoreboard_read_counters(&lone->slot->counters, &sums);
    return sums;
}

bool lone_freeze(struct lone *lone, const struct scoreboard_sums *before)
{
    siginfo_t info;

    ck_assert_int_eq(kill(lone->pid, SIGSTOP), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)lone->pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
    if (info.si_code != CLD_STOPPED)
        return false;
    ck_assert_int_eq(waitid(P_PID, (id_t)lone->pid, &info, WSTOPPED), 0);
    struct scoreboard_sums now = lone_counters(lone);
    if (now.timeouts == before->timeouts && now.cut == before->cut)
        return true;
    kill(lone->pid, SIGCONT);
    return false;
}
