#include "master/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

struct notify {
    int fd;
    struct sockaddr_un address;
    socklen_t length;
    char status[1024]; /* the last one told */
};

/* An absolute path, or "@name" in the abstract namespace. */
static int parse(struct notify *notify, const char *text)
{
    size_t length = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || length < 2 ||
        length >= sizeof(notify->address.sun_path)) {
        errno = EINVAL;
        return -1;
    }
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, text, length + 1);
    notify->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (text[0] == '@')
        notify->address.sun_path[0] = '\0';
    else
        notify->length++;
    return 0;
}

struct notify *notify_new(void)
{
    const char *text = getenv("NOTIFY_SOCKET");
    if (!text || !*text)
        return NULL;
    struct notify *notify = calloc(1, sizeof(*notify));
    if (!notify)
        return NULL;
    notify->fd = -1;
    if (parse(notify, text) == -1) {
        log_warning("NOTIFY_SOCKET=%s is neither an absolute path nor @name: the service manager "
                    "is told nothing",
                    text);
        free(notify);
        notify = NULL;
    } else if ((notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) == -1) {
        free(notify);
        notify = NULL;
    }
    unsetenv("NOTIFY_SOCKET");
    return notify;
}

void notify_export(const struct notify *notify)
{
    char text[sizeof(notify->address.sun_path) + 1] = "";
    if (!notify)
        return;
    memcpy(text, notify->address.sun_path, sizeof(notify->address.sun_path));
    if (text[0] == '\0')
        text[0] = '@';
    setenv("NOTIFY_SOCKET", text, 1);
}

void notify_free(struct notify *notify)
{
    if (!notify)
        return;
    fd_close(&notify->fd);
    free(notify);
}

static void tell(struct notify *notify, const char *text)
{
    if (notify)
        sendto(notify->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
               (const struct sockaddr *)&notify->address, notify->length);
}

static void remember(struct notify *notify, const char *status)
{
    if (notify)
        snprintf(notify->status, sizeof(notify->status), "%s", status);
}

void notify_ready(struct notify *notify, const char *status)
{
    remember(notify, status);
    char text[1024];
    snprintf(text, sizeof(text), "READY=1\nSTATUS=%s\n", status);
    tell(notify, text);
}

void notify_reloading(struct notify *notify)
{
    char text[128];
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\n",
             clock_monotonic() / 1000);
    tell(notify, text);
}

void notify_stopping(struct notify *notify, const char *status, int64_t most)
{
    char text[1024];
    snprintf(text, sizeof(text), "STOPPING=1\nSTATUS=%s\nEXTEND_TIMEOUT_USEC=%" PRId64 "\n", status,
             most / 1000);
    tell(notify, text);
}

void notify_status(struct notify *notify, const char *status)
{
    if (notify && strcmp(notify->status, status) == 0)
        return;
    remember(notify, status);
    char text[1024];
    snprintf(text, sizeof(text), "STATUS=%s\n", status);
    tell(notify, text);
}
