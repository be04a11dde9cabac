#include <sys/stat.h>

#include "answer/answer.h"
#include "command/command.h"
#include "master/master.h"

int command_run(const struct command_options *options)
{
    struct master_options master = {
        .file = options->file,
        .overrides = options->overrides,
        .kinds = answer_kinds(),
        .arguments = options->arguments,
    };
    /* What we make gets its mode by name; until then it is nobody else's. */
    umask(077);
    return master_run(&master);
}
