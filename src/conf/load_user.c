#include <errno.h>
#include <libconfig.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/load.h"
#include "conf/value.h"

#define NOBODY 65534

struct account {
    bool is_found;
    uid_t uid;
    gid_t gid;
};

/*
 * Looks the name (or, without one, the number) up in /etc/passwd: getpwnam would bring the name
 * services into a static binary.
 */
static struct account find_account(const char *name, uid_t uid)
{
    struct account account = { false, uid, (gid_t)uid };
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *entry;

    while (file && !account.is_found && (entry = fgetpwent(file)))
        if (name ? strcmp(entry->pw_name, name) == 0 : entry->pw_uid == uid)
            account = (struct account){ true, entry->pw_uid, entry->pw_gid };
    if (file)
        fclose(file);
    return account;
}

/* What is wrong with `name` as that of an account, or NULL. */
static const char *name_fault(const char *name)
{
    if (name[0] == '\0')
        return "is empty";
    for (const char *c = name; *c; c++)
        if (*c == ':' || *c == '/' || (unsigned char)*c <= ' ' || *c == 0x7f)
            return "is not the name of an account";
    return NULL;
}

/* The value as text, whichever way it is written. */
static int load_name(struct load *load, const struct schema_row *row, struct load_slot slot,
                     char **name)
{
    struct schema_row number_row = *row;
    int64_t number;
    number_row.least = 0;
    number_row.most = (int64_t)UINT32_MAX - 1;

    *name = NULL;
    if (config_setting_type(slot.setting) == CONFIG_TYPE_STRING) {
        if (load_string(load, row, slot, name) == -1)
            return -1;
        const char *fault = name_fault(*name);
        return fault ? load_refuse_text(load, row, slot, *name, fault) : 0;
    }
    if (load_number(load, &number_row, slot, &number) == -1)
        return -1;
    return asprintf(name, "%lld", (long long)number) == -1 ? (*name = NULL, load_no_memory(load))
                                                           : 0;
}

/* Finds the account called `name`, or with that number. */
static int resolve(struct load *load, const struct schema_row *row, struct load_slot slot,
                   const char *name, struct account *account)
{
    int64_t number;
    if (value_parse_number(&number, name) != NULL) {
        *account = find_account(name, 0);
        return 0;
    }
    if (number < 0 || number >= (int64_t)UINT32_MAX)
        return load_refuse_text(load, row, slot, name, "is out of range");
    *account = find_account(NULL, (uid_t)number);
    account->is_found = true;
    return 0;
}

/* The workers go on as who they are, whatever has become of the account. */
static struct account recorded(const struct load *load, struct load_slot slot,
                               const struct account *now)
{
    const struct conf_record *record = load->record;
    bool is_default = slot.document->origin == LOAD_DEFAULTS;
    if (!now->is_found && is_default && record->uid == NOBODY)
        return *now; /* nor was it there then */
    return (struct account){ true, record->uid, record->gid };
}

/* Not root: nobody's account can be taken on, so the key counts for nothing. */
static int ignore(struct load *load, const char *name, const struct account *account)
{
    if (account->is_found && account->uid == geteuid())
        return 0;
    char quoted[VALUE_QUOTE_SIZE];
    return load_warn(load, "user = %s is ignored: not started as root", value_quote(quoted, name));
}

static int take(struct load *load, const struct schema_row *row, struct load_slot slot, char **name,
                struct account *account)
{
    struct conf *conf = load->conf;
    bool is_default = slot.document->origin == LOAD_DEFAULTS;

    if (!account->is_found && !is_default)
        return load_refuse_text(load, row, slot, *name, "is not an account in /etc/passwd");
    if (!account->is_found) {
        if (load_warn(load, "there is no account \"%s\": workers run as uid and gid %d", *name,
                      NOBODY) == -1)
            return -1;
        free(*name);
        if (asprintf(name, "%d", NOBODY) == -1) {
            *name = NULL;
            return load_no_memory(load);
        }
        *account = (struct account){ true, NOBODY, NOBODY };
    }
    if (account->uid == 0 && load_warn(load, "user = \"%s\": workers keep root's rights", *name))
        return -1;
    conf->user = *name;
    conf->uid = account->uid;
    conf->gid = account->gid;
    *name = NULL;
    return 0;
}

int load_user(struct load *load, const struct schema_row *row, struct load_slot slot)
{
    struct account account = { 0 };
    char *name;
    bool is_root = geteuid() == 0;

    if (!is_root && slot.document->origin == LOAD_DEFAULTS)
        return 0;
    int result = load_name(load, row, slot, &name);
    if (result == 0)
        result = resolve(load, row, slot, name, &account);
    if (result == 0 && load->record && is_root)
        account = recorded(load, slot, &account);
    if (result == 0)
        result = is_root ? take(load, row, slot, &name, &account) : ignore(load, name, &account);
    free(name);
    return result;
}
