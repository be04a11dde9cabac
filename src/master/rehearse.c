#include "master/rehearse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/scoreboard.h"
#include "base/tally.h"
#include "conf/conf.h"
#include "master/adopt.h"
#include "master/legacy.h"
#include "master/master.h"
#include "worker/heritage.h"
#include "worker/worker.h"

static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? (int)strtol(text, NULL, 10) : -1;
}

bool rehearse_is_asked(void)
{
    return getenv(LEGACY_TRIAL_VARIABLE) != NULL;
}

__attribute__((format(printf, 3, 4))) _Noreturn static void fail(int channel, int status,
                                                                 const char *format, ...)
{
    struct channel_message message = { .kind = CHANNEL_FAILED, .argument = (uint32_t)status };
    va_list args;
    va_start(args, format);
    vsnprintf(message.text, sizeof(message.text), format, args);
    va_end(args);
    if (channel_send(channel, &message) == -1)
        log_error("the trial of an upgrade failed: %s", message.text);
    exit(EXIT_FAILURE);
}

/* What we would take over. */
static void check_legacy(const struct master_options *options, int channel)
{
    struct legacy_error error;
    struct conf_error why;
    int fd = number_of(LEGACY_VARIABLE);
    struct legacy *legacy = legacy_read(fd, &error);
    if (!legacy)
        fail(channel, EXIT_FAILURE, "the legacy of the old one: %s", error.text);
    struct scoreboard *scoreboard = scoreboard_open(legacy->scoreboard_fd);
    if (!scoreboard)
        fail(channel, EXIT_FAILURE, "the scoreboard of the old one: %s",
             errno == EPROTO ? "it is of another version" : strerror(errno));
    const struct legacy_generation *generations = legacy_list(legacy, LEGACY_GENERATIONS);
    for (uint32_t i = 0; i < legacy->lists[LEGACY_GENERATIONS].count; i++) {
        struct conf *conf = adopt_conf(options, legacy, &generations[i], &why);
        if (!conf)
            fail(channel, EX_CONFIG, "the configuration that is being served: %s", why.text);
        conf_free(conf);
    }
    scoreboard_free(scoreboard);
    close(legacy->scoreboard_fd);
    free(legacy);
    close(fd);
}

/* The longer part of it is a worker's life. */
void rehearse(const struct master_options *options)
{
    const struct conf_request request = { options->file, options->overrides, options->kinds };
    struct conf_error why;
    int channel = number_of(LEGACY_TRIAL_VARIABLE), scoreboard_fd = -1, tally_fd = -1;
    log_identify("trial");
    fd_set_cloexec(channel, true);
    check_legacy(options, channel);
    struct conf *conf = conf_load(&request, &why);
    if (!conf)
        fail(channel, EX_CONFIG, "%s", why.text);
    log_set_format(conf->log_format, conf->log_level);
    struct scoreboard *scoreboard = scoreboard_new(&scoreboard_fd);
    struct scoreboard_slot *slot =
        scoreboard ? scoreboard_take(scoreboard, SCOREBOARD_TRIAL) : NULL;
    struct tally *tally = tally_new(conf->nroutes, &tally_fd);
    if (!slot || !tally)
        fail(channel, EXIT_FAILURE, "out of memory");
    const struct heritage heritage = {
        .is_trial = true,
        .workers = 1,
        .conf = conf,
        .scoreboard = scoreboard,
        .mine = slot,
        .tally = tally,
        .channel = channel,
        .watchdog = -1,
        .access = SINK_INIT,
        .master = getppid(),
        .born = clock_monotonic(),
        .is_root = geteuid() == 0,
        .uid = conf->uid,
        .gid = conf->gid,
    };
    worker_run(&heritage);
}
