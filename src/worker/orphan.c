#include "worker/orphan.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Nobody else has a use for it, so nobody sends it. */
#define DEATH_SIGNAL (SIGRTMIN + 1)

#define GRACE_SECONDS 2

/* A handler gets no argument, so this is the one thing of a worker that is not in its struct.
 * Written once, before the handler is there. */
static pid_t parent;

void orphan_fault(pid_t master)
{
#ifdef ENABLE_FAULTS
    const char *file = getenv("HAYATE_FAULT_FORK");
    while (file && access(file, F_OK) == 0 && getppid() == master)
        usleep(1000);
#endif
    (void)master;
}

static void on_death(int number)
{
    (void)number;
    if (getppid() != parent)
        alarm(GRACE_SECONDS);
}

int orphan_watch(pid_t master)
{
    struct sigaction action = { .sa_handler = on_death, .sa_flags = SA_RESTART };
    sigset_t set;
    parent = master;
    sigemptyset(&action.sa_mask);
    sigemptyset(&set);
    sigaddset(&set, DEATH_SIGNAL);
    sigaddset(&set, SIGALRM);
    if (sigaction(DEATH_SIGNAL, &action, NULL) == -1 || signal(SIGALRM, SIG_DFL) == SIG_ERR ||
        sigprocmask(SIG_UNBLOCK, &set, NULL) == -1 || prctl(PR_SET_PDEATHSIG, DEATH_SIGNAL) == -1)
        return -1;
    if (getppid() != master) {
        errno = ESRCH;
        return -1;
    }
    return 0;
}

void orphan_settle(void)
{
    /* The channel ends before the signal comes, so that one may still be on its way. */
    prctl(PR_SET_PDEATHSIG, 0);
    signal(DEATH_SIGNAL, SIG_IGN);
    alarm(0);
}
