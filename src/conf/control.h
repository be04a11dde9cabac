/*
 * control: where the control socket is when nobody says so.
 */
#ifndef CONF_CONTROL_H
#define CONF_CONTROL_H

#include <stdbool.h>

enum control_result {
    CONTROL_FOUND,
    CONTROL_OFF,    /* there is no fit place */
    CONTROL_FAILED, /* ENOMEM */
};

/*
 * The default path, malloced: /run/hayate/control for root and for whoever may write there, else
 * $XDG_RUNTIME_DIR/hayate/control. A client looks for a master of its own account by the same
 * rule, and when there is none, for the system's.
 */
enum control_result control_default(char **path, bool is_client);

/* Does the path of a socket fit the kernel's sun_path? */
bool control_fits(const char *path);

#define CONTROL_DIRECTORY "/run/hayate"
#define CONTROL_NAME "control"

#endif
