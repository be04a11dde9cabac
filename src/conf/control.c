#include "conf/control.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

bool control_fits(const char *path)
{
    return strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path);
}

static bool is_fit(const char *directory, bool is_master)
{
    struct stat status;
    return stat(directory, &status) == 0 && S_ISDIR(status.st_mode) &&
           (!is_master || faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0);
}

enum control_result control_default(char **path, bool is_master)
{
    *path = NULL;
    /* A master that is root makes the directory. */
    if (geteuid() == 0 || is_fit(CONTROL_DIRECTORY, is_master)) {
        *path = strdup(CONTROL_DIRECTORY "/" CONTROL_NAME);
        return *path ? CONTROL_FOUND : CONTROL_FAILED;
    }
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (!runtime || runtime[0] != '/' || !is_fit(runtime, is_master))
        return CONTROL_OFF;
    if (asprintf(path, "%s/hayate/" CONTROL_NAME, runtime) == -1) {
        *path = NULL;
        return CONTROL_FAILED;
    }
    if (control_fits(*path))
        return CONTROL_FOUND;
    free(*path);
    *path = NULL;
    return CONTROL_OFF;
}
