#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

int fd_ensure_standard(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) != -1)
            continue;
        /* open gives the lowest free number, which is this one: those below are taken. */
        if (open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) == -1)
            return -1;
    }
    return 0;
}

void fd_close(int *fd)
{
    int saved = errno;
    if (*fd != -1)
        close(*fd);
    *fd = -1;
    errno = saved;
}

int fd_set_cloexec(int fd, bool is_on)
{
    int flags = fcntl(fd, F_GETFD);
    if (flags == -1)
        return -1;
    flags = is_on ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC;
    return fcntl(fd, F_SETFD, flags);
}

unsigned long fd_raise_limit(unsigned long wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == -1)
        return 0;
    if (limit.rlim_cur >= wanted)
        return limit.rlim_cur;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == -1)
        getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}
