#include <stdio.h>

#include "answer/answer.h"
#include "base/buf.h"
#include "command/command.h"
#include "conf/conf.h"
#include "conf/print.h"

int command_config(const struct command_options *options)
{
    if (options->is_running)
        return client_ask(options, "config");
    struct conf_error error;
    struct conf_request request = { options->file, options->overrides, answer_kinds() };
    struct conf *conf = conf_load(&request, &error);
    if (!conf) {
        fprintf(stderr, "%s\n", error.text);
        return COMMAND_CONFIG;
    }
    struct buf text = { 0 };
    int status = conf_print(&text, conf) == -1 ? command_fail(COMMAND_FAILURE, "out of memory")
                                               : command_print(text.data, text.length);
    buf_fini(&text);
    conf_free(conf);
    return status;
}
