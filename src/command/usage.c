#include <errno.h>
#include <ev.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "conf/conf.h"
#include "conf/hint.h"
#include "http/request.h"

static const char usage[] =
    "usage: hayate [run] [-c FILE] [-o KEY=VALUE]...   serve, in the foreground\n"
    "       hayate check [-c FILE] [-o KEY=VALUE]...   validate the configuration (also -t)\n"
    "       hayate config [-c FILE] [-o KEY=VALUE]... | --running\n"
    "                                              print the effective configuration\n"
    "       hayate reload                          reload, and wait for the result\n"
    "       hayate status [--json]                 what the running server does\n"
    "       hayate stop | reopen | upgrade         stop it, reopen its logs, replace its binary\n"
    "       hayate probe [URL | PATH]              one GET; 0 if the answer is 2xx\n"
    "       hayate --help | --version\n"
    "\n"
    "  -c, --config FILE    the configuration file\n"
    "  -o, --option KEY=VALUE   overrides one key of it, as in -o workers=2\n"
    "      --control PATH   the control socket of the running server\n"
    "\n"
    "Exit status: 0 success, 1 failure, 2 usage, 3 not running, 78 bad configuration.\n"
    "See hayate(8) and hayate.conf(5).\n";

static const struct {
    const char *name;
    int (*run)(const struct command_options *options);
    bool reads_config; /* it loads the configuration, and takes -o */
} commands[] = {
    { "check", command_check, true },      { "config", command_config, true },
    { "reload", command_reload, false },   { "status", command_status, false },
    { "stop", command_stop, false },       { "reopen", command_reopen, false },
    { "upgrade", command_upgrade, false }, { "probe", command_probe, true },
    { "run", command_run, true },
};

enum { OPTION_CONTROL = 256, OPTION_JSON, OPTION_RUNNING };

static const struct option long_options[] = {
    { "config", required_argument, NULL, 'c' },
    { "option", required_argument, NULL, 'o' },
    { "test", no_argument, NULL, 't' },
    { "control", required_argument, NULL, OPTION_CONTROL },
    { "json", no_argument, NULL, OPTION_JSON },
    { "running", no_argument, NULL, OPTION_RUNNING },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, 'V' },
    { NULL, 0, NULL, 0 },
};

int command_fail(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("hayate: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return status;
}

int command_print(const char *text, size_t length)
{
    if (fwrite(text, 1, length, stdout) != length || fflush(stdout) == EOF)
        return command_fail(COMMAND_FAILURE, "cannot write to stdout: %s", strerror(errno));
    return COMMAND_SUCCESS;
}

static int print_version(void)
{
    char text[256], parser[32];
    request_parser_version(parser, sizeof(parser));
    int length = snprintf(text, sizeof(text),
                          "hayate " PACKAGE_VERSION "\nlibev %d.%d, http-parser %s, libconfig %s\n",
                          ev_version_major(), ev_version_minor(), parser, conf_library_version());
    return command_print(text, (size_t)length);
}

static int fail_option(const char *given)
{
    struct hint hint = { 0 };
    char word[64];
    snprintf(word, sizeof(word), "%s", given + strspn(given, "-"));
    word[strcspn(word, "=")] = '\0';
    for (size_t i = 0; long_options[i].name; i++)
        hint_consider(&hint, word, long_options[i].name, long_options[i].name);
    return command_fail(COMMAND_USAGE, "unknown option %s%s%s%s; see hayate --help", given,
                        hint.best ? " (did you mean --" : "", hint.best ? hint.best : "",
                        hint.best ? "?)" : "");
}

static int fail_command(const char *given)
{
    struct hint hint = { 0 };
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        hint_consider(&hint, given, commands[i].name, commands[i].name);
    return command_fail(COMMAND_USAGE, "unknown command \"%s\"%s%s%s; see hayate --help", given,
                        hint.best ? " (did you mean \"" : "", hint.best ? hint.best : "",
                        hint.best ? "\"?)" : "");
}

struct parsed {
    struct command_options options;
    const char **overrides; /* room for all there can be */
    size_t noverrides;
    bool is_check;
};

/* -1: go on; else the exit status. */
static int parse_options(struct parsed *parsed, int argc, char **argv)
{
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":c:o:thV", long_options, NULL)) != -1) {
        switch (option) {
        case 'c':
            parsed->options.file = optarg;
            break;
        case 'o':
            if (!strchr(optarg, '=') || *optarg == '=')
                return command_fail(COMMAND_USAGE, "-o %s: wants KEY=VALUE, as in -o workers=2",
                                    optarg);
            parsed->overrides[parsed->noverrides++] = optarg;
            break;
        case 't':
            parsed->is_check = true;
            break;
        case OPTION_CONTROL:
            if (*optarg == '\0')
                return command_fail(COMMAND_USAGE, "--control wants the path of a socket");
            parsed->options.control = optarg;
            break;
        case OPTION_JSON:
            parsed->options.is_json = true;
            break;
        case OPTION_RUNNING:
            parsed->options.is_running = true;
            break;
        case 'h':
            return command_print(usage, sizeof(usage) - 1);
        case 'V':
            return print_version();
        case ':':
            return command_fail(COMMAND_USAGE, "%s wants a value; see hayate --help",
                                argv[optind - 1]);
        default: {
            char letter[3] = { '-', (char)optopt, '\0' };
            bool is_letter = optopt > 0 && optopt < 256;
            return fail_option(is_letter ? letter : argv[optind - 1]);
        }
        }
    }
    return -1;
}

static int dispatch(const struct parsed *parsed, int argc, char **argv)
{
    struct command_options options = parsed->options;
    const char *name = optind < argc ? argv[optind++] : parsed->is_check ? "check" : "run";
    bool takes_argument = strcmp(name, "probe") == 0;
    if (parsed->is_check && strcmp(name, "check") != 0)
        return command_fail(COMMAND_USAGE, "-t is the command check: it goes with no other");
    if (takes_argument && optind < argc)
        options.argument = argv[optind++];
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        if (optind < argc)
            return command_fail(COMMAND_USAGE, "%s: too many arguments: \"%s\"", name,
                                argv[optind]);
        if (options.overrides[0] && (!commands[i].reads_config || options.is_running))
            return command_fail(COMMAND_USAGE, "-o goes with run, check, config and probe; the "
                                               "running server keeps those it was started with");
        if (options.control && commands[i].reads_config && !options.is_running)
            return command_fail(COMMAND_USAGE, "--control goes with the commands that ask the "
                                               "running server; here it is -o control=PATH");
        if (options.is_json && commands[i].run != command_status)
            return command_fail(COMMAND_USAGE, "--json goes with status");
        if (options.is_running && commands[i].run != command_config)
            return command_fail(COMMAND_USAGE, "--running goes with config");
        return commands[i].run(&options);
    }
    return fail_command(name);
}

int command_main(int argc, char **argv)
{
    struct parsed parsed = { 0 };
    parsed.overrides = calloc((size_t)argc + 1, sizeof(*parsed.overrides));
    if (!parsed.overrides)
        return command_fail(COMMAND_FAILURE, "out of memory");
    parsed.options.overrides = parsed.overrides;
    parsed.options.arguments = argv;
    int status = parse_options(&parsed, argc, argv);
    if (status == -1)
        status = dispatch(&parsed, argc, argv);
    free(parsed.overrides);
    return status;
}
