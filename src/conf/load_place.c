#include <errno.h>
#include <fcntl.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "conf/control.h"
#include "conf/load.h"
#include "conf/source.h"
#include "conf/value.h"

int load_control(struct load *load, const struct schema_row *row, struct load_slot slot,
                 char **path)
{
    char *text;
    int result = 0;

    if (slot.document->origin == LOAD_DEFAULTS) {
        load->conf->control_is_default = true;
        switch (control_default(path, false)) {
        case CONTROL_FAILED:
            return load_no_memory(load);
        case CONTROL_OFF:
            return load_warn(load,
                             "the control socket is off: no %s to write in, and no "
                             "$XDG_RUNTIME_DIR; set control to a path",
                             CONTROL_DIRECTORY);
        case CONTROL_FOUND:
            return 0;
        }
    }
    if (load_string(load, row, slot, &text) == -1)
        return -1;
    if (text[0] == '\0')
        result = load_refuse_text(load, row, slot, text, "is empty");
    else if (strcmp(text, "off") != 0) {
        *path = load_document_path(load, row, slot, text);
        if (!*path)
            result = -1;
        else if (!control_fits(*path))
            result = load_refuse_value(load, row, slot,
                                       "the path of a socket has at most 107 bytes, not %zu: "
                                       "wants a shorter one",
                                       strlen(*path));
    }
    free(text);
    return result;
}

static bool is_terminal(const char *path)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool is_tty = fd != -1 && isatty(fd);
    fd_close(&fd);
    return is_tty;
}

/* Why nothing can be logged to `path`, or NULL. Creates nothing. */
static const char *sink_fault(const char *path, char room[SOURCE_FAULT_SIZE])
{
    struct stat status;
    const char *asked = path;
    int wanted = W_OK; /* a FIFO is opened for both, so that it outlives its readers */
    char *directory = NULL;
    const char *fault = NULL;

    if (stat(path, &status) == 0) {
        bool is_null = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
        if (S_ISDIR(status.st_mode))
            return "is a directory, not a file";
        if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode) && !is_null &&
            !(S_ISCHR(status.st_mode) && is_terminal(path)))
            return "is neither a file, a FIFO nor a terminal";
        wanted |= S_ISFIFO(status.st_mode) ? R_OK : 0;
    } else if (errno == ENOENT && lstat(path, &status) == 0) {
        return "is a symbolic link to nothing";
    } else if (errno == ENOENT && path[strlen(path) - 1] != '/') {
        directory = source_directory(path);
        asked = directory;
        wanted = W_OK | X_OK;
    }
    if (!asked || faccessat(AT_FDCWD, asked, wanted, AT_EACCESS) == -1) {
        bool is_directory = directory != NULL;
        snprintf(room, SOURCE_FAULT_SIZE, "cannot be %s: %s", is_directory ? "created" : "written",
                 strerror(asked ? errno : ENOMEM));
        fault = room;
    }
    free(directory);
    return fault;
}

static enum conf_sink_kind kind_of(const char *word)
{
    return strcmp(word, "off") == 0      ? CONF_SINK_OFF
           : strcmp(word, "stdout") == 0 ? CONF_SINK_STDOUT
           : strcmp(word, "stderr") == 0 ? CONF_SINK_STDERR
                                         : CONF_SINK_PATH;
}

int load_sink(struct load *load, const struct schema_row *row, struct load_slot slot,
              struct conf_sink *sink)
{
    char room[SOURCE_FAULT_SIZE];
    char *text;
    int result = 0;

    if (load_string(load, row, slot, &text) == -1)
        return -1;
    sink->kind = kind_of(text);
    bool is_word = false;
    for (size_t i = 0; row->choices[i]; i++)
        is_word |= strcmp(row->choices[i], text) == 0;
    if (is_word)
        goto out;
    if (text[0] == '\0' || sink->kind != CONF_SINK_PATH) {
        result =
            load_refuse_text(load, row, slot, text, text[0] ? "is no place for it" : "is empty");
        goto out;
    }
    sink->path = load_document_path(load, row, slot, text);
    const char *fault = sink->path && !load->record ? sink_fault(sink->path, room) : NULL;
    if (fault)
        result = load_refuse_value(load, row, slot, "%s %s", sink->path, fault);
    else if (!sink->path)
        result = -1;
out:
    free(text);
    return result;
}
