#include "support/watched.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/client.h"
#include "support/json.h"
#include "support/scratch.h"
#include "support/suite.h"
#include "support/text.h"

void watched_shell_in(const char *folder, const char *script)
{
    pid_t pid = fork();
    ck_assert(pid >= 0);
    if (pid == 0) {
        setenv("FILE", "etc/hayate.conf", 1);
        if (chdir(scratch_path(folder)) == 0)
            execl("/bin/sh", "sh", "-ec", script, (char *)NULL);
        _exit(127);
    }
    int status;
    ck_assert(waitpid(pid, &status, 0) == pid);
    ck_assert_msg(status == 0, "status %d of: %s", status, script);
}

void watched_shell(const char *script)
{
    watched_shell_in("", script);
}

void watched_prepare(const char *folder)
{
    static const char *const states[] = { "one", "two", "three" };
    for (int i = 0; i < SUITE_ROWS(states); i++)
        scratch_write(text_format("%s/%s", folder, states[i]),
                      text_format(WATCHED_STATE("%s"), states[i]));
    watched_shell_in(folder, "mkdir etc && cp one $FILE");
}

void watched_start(struct server *server, const char *folder, void (*prepare)(void))
{
    const char *name = text_format("%s/hayate", folder);
    server_start(
        server, &(struct server_options){
                    .name = name,
                    .arguments = LIST("-c", scratch_path(text_format("%s/etc/hayate.conf", folder)),
                                      "-o", text_format("control=%s.control", scratch_path(name)),
                                      "-o", "listen=127.0.0.1:0", "-o", "workers=1", "-o",
                                      "log_level=debug", "-o", "watch=true"),
                    .prepare = prepare });
}

void watched_start_settled(struct server *server)
{
    watched_prepare(".");
    watched_start(server, ".", NULL);
    watched_await_settled(server, 0);
}

void watched_await_settled(const struct server *server, size_t mark)
{
    static const char *const ends[] = { " started in ", "reloaded in ", "reload failed" };
    struct deadline deadline = deadline_start();
    for (;;) {
        const char *text = text_read(server->err, mark, NULL);
        for (int i = 0; i < SUITE_ROWS(ends); i++)
            for (const char *next; (next = strstr(text, ends[i])) != NULL;)
                text = next + 1;
        if (text_find_line(text, WATCHED_SAME "|" WATCHED_REFUSED) != NULL)
            return;
        if (!deadline_wait(&deadline))
            ck_abort_msg("did not settle:\n%s", text_tail(server_log(server)));
    }
}

bool watched_is_state(const struct server *server, const char *state)
{
    const char *body = "";
    unsigned status = client_get(server->url, "/state", &body);
    return state == NULL ? status == 404 : status == 200 && strcmp(body, state) == 0;
}

bool watched_is_on(const struct server *server)
{
    return json_get(server_status(server), "watching")->type == JSON_TRUE;
}
