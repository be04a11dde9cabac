#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/title.h"
#include "command/command.h"

int main(int argc, char **argv)
{
    if (fd_ensure_standard() == -1)
        return EXIT_FAILURE; /* nowhere to say it */
    if (title_init(argc, &argv) == -1) {
        fputs("hayate: out of memory\n", stderr);
        return EXIT_FAILURE;
    }
    return command_main(argc, argv);
}
