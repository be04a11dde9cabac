#include <stdio.h>

#include "answer/answer.h"
#include "command/command.h"
#include "conf/conf.h"

int command_check(const struct command_options *options)
{
    struct conf_error error;
    struct conf_request request = { options->file, options->overrides, answer_kinds() };
    struct conf *conf = conf_load(&request, &error);
    if (!conf) {
        /* The plain form, so that editors and scripts find file and line at its beginning. */
        fprintf(stderr, "%s\n", error.text);
        return COMMAND_CONFIG;
    }
    for (size_t i = 0; i < conf->nwarnings; i++)
        fprintf(stderr, "warning: %s\n", conf->warnings[i]);
    printf("%s: configuration is valid\n", conf->file ? conf->file : "built-in defaults");
    conf_free(conf);
    return COMMAND_SUCCESS;
}
