#include <libconfig.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/load.h"
#include "conf/value.h"

static int check_range(struct load *load, const struct schema_row *row, struct load_slot slot,
                       int64_t number, const char *what)
{
    bool has_range = row->least != 0 || row->most != 0;
    if ((number == 0 && row->has_zero) || !has_range ||
        (number >= row->least && number <= row->most))
        return 0;
    return load_refuse_wanting(load, row, slot, what);
}

static const char *parse(const struct schema_row *row, int64_t *number, const char *text)
{
    switch (row->type) {
    case SCHEMA_SIZE:
        return value_parse_size(number, text);
    case SCHEMA_DURATION:
        return value_parse_duration(number, text);
    default:
        return value_parse_number(number, text);
    }
}

static int load_number_string(struct load *load, const struct schema_row *row,
                              struct load_slot slot, int64_t *number)
{
    char quoted[VALUE_QUOTE_SIZE];
    char what[VALUE_QUOTE_SIZE + 80];
    char *text;

    if (load_string(load, row, slot, &text) == -1)
        return -1;
    const char *fault = parse(row, number, text);
    snprintf(what, sizeof(what), "%s %s", value_quote(quoted, text),
             fault ? fault : "is out of range");
    free(text);
    return fault ? load_refuse_wanting(load, row, slot, what)
                 : check_range(load, row, slot, *number, what);
}

int load_number(struct load *load, const struct schema_row *row, struct load_slot slot,
                int64_t *number)
{
    char what[VALUE_QUOTE_SIZE + 80];

    switch (config_setting_type(slot.setting)) {
    case CONFIG_TYPE_INT:
        *number = config_setting_get_int(slot.setting);
        break;
    case CONFIG_TYPE_INT64:
        *number = config_setting_get_int64(slot.setting);
        break;
    case CONFIG_TYPE_STRING:
        return load_number_string(load, row, slot, number);
    default:
        return load_refuse_type(load, row, slot);
    }
    bool lacks_unit = row->type == SCHEMA_DURATION && *number != 0;
    snprintf(what, sizeof(what), "%lld is %s", (long long)*number,
             lacks_unit ? "a duration without a unit (ms, s, m or h)" : "out of range");
    return lacks_unit ? load_refuse_wanting(load, row, slot, what)
                      : check_range(load, row, slot, *number, what);
}

int load_workers(struct load *load, const struct schema_row *row, struct load_slot slot,
                 unsigned *workers)
{
    int64_t number = 0;
    if (config_setting_type(slot.setting) == CONFIG_TYPE_STRING) {
        char *text;
        if (load_string(load, row, slot, &text) == -1)
            return -1;
        bool is_auto = strcmp(text, "auto") == 0;
        free(text);
        if (is_auto) {
            *workers = 0;
            return 0;
        }
    }
    if (load_number(load, row, slot, &number) == -1)
        return -1;
    *workers = (unsigned)number;
    return 0;
}
