#include "conf/expand.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_MAX_LENGTH 255

static bool is_name(const char *name, size_t length)
{
    if (length == 0 || length > NAME_MAX_LENGTH)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return true;
}

/* `inside` is what stands between "${" and "}". */
static enum expand_result expand_one(struct buf *out, const char *inside, size_t length,
                                     char fault[EXPAND_FAULT_SIZE])
{
    char name[NAME_MAX_LENGTH + 1];
    size_t name_length = strcspn(inside, ":}");
    const char *fallback = NULL;
    int shown = length < 40 ? (int)length : 40;

    if (name_length < length) {
        if (inside[name_length + 1] != '-') {
            snprintf(fault, EXPAND_FAULT_SIZE,
                     "${%.*s}: only ${NAME} and ${NAME:-DEFAULT} are known", shown, inside);
            return EXPAND_REFUSED;
        }
        fallback = inside + name_length + 2;
    }
    if (!is_name(inside, name_length)) {
        snprintf(fault, EXPAND_FAULT_SIZE,
                 "${%.*s}: the name of a variable is letters, digits and _, no digit first "
                 "($${ is a literal ${)",
                 shown, inside);
        return EXPAND_REFUSED;
    }
    memcpy(name, inside, name_length);
    name[name_length] = '\0';

    const char *value = getenv(name);
    if (value && value[0] != '\0')
        return buf_add_string(out, value) == -1 ? EXPAND_FAILED : EXPAND_DONE;
    if (!fallback) {
        snprintf(fault, EXPAND_FAULT_SIZE, "${%.40s} is %s: set it, or write ${%.40s:-DEFAULT}",
                 name, value ? "empty" : "not set", name);
        return EXPAND_REFUSED;
    }
    size_t fallback_length = length - (size_t)(fallback - inside);
    if (memmem(fallback, fallback_length, "${", 2)) {
        snprintf(fault, EXPAND_FAULT_SIZE, "${%.*s}: a default cannot hold another ${", shown,
                 inside);
        return EXPAND_REFUSED;
    }
    return buf_add(out, fallback, fallback_length) == -1 ? EXPAND_FAILED : EXPAND_DONE;
}

enum expand_result expand(struct buf *out, const char *string, char fault[EXPAND_FAULT_SIZE])
{
    for (;;) {
        const char *found = strstr(string, "${");
        if (!found)
            return buf_add_string(out, string) == -1 ? EXPAND_FAILED : EXPAND_DONE;
        bool is_literal = found > string && found[-1] == '$';
        if (buf_add(out, string, (size_t)(found - string) - is_literal) == -1)
            return EXPAND_FAILED;
        if (is_literal) {
            if (buf_add_string(out, "${") == -1)
                return EXPAND_FAILED;
            string = found + 2;
            continue;
        }
        const char *end = strchr(found, '}');
        if (!end) {
            snprintf(fault, EXPAND_FAULT_SIZE,
                     "%.40s has no }: write ${NAME}, or $${ for a "
                     "literal ${",
                     found);
            return EXPAND_REFUSED;
        }
        enum expand_result result = expand_one(out, found + 2, (size_t)(end - found - 2), fault);
        if (result != EXPAND_DONE)
            return result;
        string = end + 1;
    }
}
