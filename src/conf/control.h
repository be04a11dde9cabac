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
 * The default path, malloced: /run/hayate/control for root and where that directory is fit, else
 * $XDG_RUNTIME_DIR/hayate/control. A master needs to write there (`is_master`); a client needs
 * only that it is there.
 */
enum control_result control_default(char **path, bool is_master);

/* Does the path of a socket fit the kernel's sun_path? */
bool control_fits(const char *path);

#define CONTROL_DIRECTORY "/run/hayate"
#define CONTROL_NAME "control"

#endif
