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

static bool is_writable(const char *directory)
{
    struct stat status;
    return stat(directory, &status) == 0 && S_ISDIR(status.st_mode) &&
           faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0;
}

static enum control_result system_default(char **path)
{
    *path = strdup(CONTROL_DIRECTORY "/" CONTROL_NAME);
    return *path ? CONTROL_FOUND : CONTROL_FAILED;
}

static enum control_result own_default(char **path)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (!runtime || runtime[0] != '/' || !is_writable(runtime))
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

enum control_result control_default(char **path, bool is_client)
{
    *path = NULL;
    /* A master that is root makes the directory. */
    if (geteuid() == 0 || is_writable(CONTROL_DIRECTORY))
        return system_default(path);
    enum control_result result = own_default(path);
    if (!is_client || result == CONTROL_FAILED || (*path && access(*path, F_OK) == 0) ||
        access(CONTROL_DIRECTORY, F_OK) == -1)
        return result;
    free(*path);
    return system_default(path);
}
