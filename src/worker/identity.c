#include "worker/identity.h"

#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "worker/heritage.h"
#include "worker/orphan.h"

int identity_take(const struct heritage *heritage, const char **what)
{
    uid_t uid = heritage->uid;
    gid_t gid = heritage->gid;
    if (heritage->is_root) {
        *what = "cannot take on its user";
        if (setgroups(1, &gid) == -1 || setresgid(gid, gid, gid) == -1 ||
            setresuid(uid, uid, uid) == -1)
            return -1;
        prctl(PR_SET_DUMPABLE, 1);
    }
    *what = "cannot watch the master";
    return orphan_watch(heritage->master);
}

int identity_signals(void)
{
    static const int ignored[] = { SIGHUP,  SIGUSR1, SIGUSR2, SIGWINCH,
                                   SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ };
    sigset_t set;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    if (sigprocmask(SIG_SETMASK, &set, NULL) == -1)
        return -1;
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}
