#include "base/frames.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/modules.h"

/* How a pointer is written: the low four bits, and what it is relative to. */
enum encoding {
    ENCODING_ADDRESS = 0x00,
    ENCODING_U2 = 0x02,
    ENCODING_U4 = 0x03,
    ENCODING_U8 = 0x04,
    ENCODING_S2 = 0x0a,
    ENCODING_S4 = 0x0b,
    ENCODING_S8 = 0x0c,
    ENCODING_FORM = 0x0f,
    ENCODING_HERE = 0x10,
    ENCODING_TABLE = 0x30, /* to .eh_frame_hdr */
    ENCODING_BASE = 0x70,
    ENCODING_OMIT = 0xff,
};

/* Those in the two highest bits have an operand in the others. */
enum code {
    CODE_ADVANCE = 0x40,
    CODE_OFFSET = 0x80,
    CODE_RESTORE = 0xc0,
    CODE_NOP = 0x00,
    CODE_SET_LOCATION = 0x01,
    CODE_ADVANCE_1 = 0x02,
    CODE_ADVANCE_2 = 0x03,
    CODE_ADVANCE_4 = 0x04,
    CODE_OFFSET_EXTENDED = 0x05,
    CODE_RESTORE_EXTENDED = 0x06,
    CODE_UNDEFINED = 0x07,
    CODE_SAME_VALUE = 0x08,
    CODE_REGISTER = 0x09,
    CODE_REMEMBER_STATE = 0x0a,
    CODE_RESTORE_STATE = 0x0b,
    CODE_BASE = 0x0c,
    CODE_BASE_REGISTER = 0x0d,
    CODE_BASE_OFFSET = 0x0e,
    CODE_OFFSET_EXTENDED_SIGNED = 0x11,
    CODE_BASE_SIGNED = 0x12,
    CODE_BASE_OFFSET_SIGNED = 0x13,
    CODE_VALUE_OFFSET = 0x14,
    CODE_VALUE_OFFSET_SIGNED = 0x15,
    CODE_SIGNED_RETURN = 0x2d, /* AArch64: the return address is signed, or is no more */
    CODE_ARGUMENTS_SIZE = 0x2e,
};

#define DEPTH 8 /* of remembered states */

struct reader {
    const uint8_t *at, *end;
    bool is_bad; /* it ended early, or made no sense */
};

/* What one entry (FDE) and what it shares with others (CIE) say. */
struct entry {
    uintptr_t start, size;
    struct reader common, own; /* instructions */
    uint64_t code_unit;
    int64_t data_unit;
    uint8_t encoding;
    bool has_augmentation;
};

struct machine {
    const struct entry *entry;
    uintptr_t location;
    struct frames_row *row, initial;
    struct frames_row remembered[DEPTH];
    unsigned depth;
};

/* The processors that unwind.h knows are little-endian, as Linux runs on them. */
static uint64_t read_unsigned(struct reader *reader, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(reader->end - reader->at) < size) {
        reader->is_bad = true;
        reader->at = reader->end;
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)reader->at[i] << (8 * i);
    reader->at += size;
    return value;
}

/* LEB128: seven bits a byte, the lowest first. */
static uint64_t read_leb(struct reader *reader, bool is_signed)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = read_unsigned(reader, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (is_signed && byte & 0x40 && shift < 64)
        value |= ~UINT64_C(0) << shift;
    return value;
}

static uintptr_t read_pointer(struct reader *reader, uint8_t encoding)
{
    uintptr_t here = (uintptr_t)reader->at, value = 0;
    switch (encoding & ENCODING_FORM) {
    case ENCODING_ADDRESS:
    case ENCODING_U8:
    case ENCODING_S8:
        value = (uintptr_t)read_unsigned(reader, 8);
        break;
    case ENCODING_U2:
        value = (uintptr_t)read_unsigned(reader, 2);
        break;
    case ENCODING_U4:
        value = (uintptr_t)read_unsigned(reader, 4);
        break;
    case ENCODING_S2:
        value = (uintptr_t)(intptr_t)(int16_t)read_unsigned(reader, 2);
        break;
    case ENCODING_S4:
        value = (uintptr_t)(intptr_t)(int32_t)read_unsigned(reader, 4);
        break;
    default:
        reader->is_bad = true;
    }
    if ((encoding & ENCODING_BASE) == ENCODING_HERE)
        value += here;
    else if (encoding & ENCODING_BASE)
        reader->is_bad = true;
    return value;
}

/* The body of the record at `at`, behind its length. */
static struct reader open_record(const uint8_t *at)
{
    uint32_t length;
    memcpy(&length, at, sizeof(length));
    bool is_plain = length > 0 && length < 0xfffffff0;
    return (struct reader){ at + 4, is_plain ? at + 4 + length : at + 4, !is_plain };
}

/* What the letters of the augmentation bring: of interest is how the entries write pointers. */
static void read_augmentation(struct reader *reader, struct entry *entry, const char *letters)
{
    if (*letters != 'z') {
        reader->is_bad |= *letters != '\0';
        return;
    }
    entry->has_augmentation = true;
    uint64_t length = read_leb(reader, false);
    if (length > (uint64_t)(reader->end - reader->at)) {
        reader->is_bad = true;
        return;
    }
    struct reader data = { reader->at, reader->at + length, false };
    reader->at += length;
    for (letters++; *letters; letters++)
        if (*letters == 'R') {
            entry->encoding = (uint8_t)read_unsigned(&data, 1);
        } else if (*letters == 'P') {
            uint8_t encoding = (uint8_t)read_unsigned(&data, 1);
            /* Only its length counts. */
            read_pointer(&data, encoding & ENCODING_FORM);
        } else if (*letters == 'L') {
            read_unsigned(&data, 1);
        } else if (*letters != 'S' && *letters != 'B') {
            break; /* the length says where the rest ends */
        }
    reader->is_bad |= data.is_bad;
}

static bool read_common(struct entry *entry, const uint8_t *at, uint64_t *back)
{
    struct reader reader = open_record(at);
    uint64_t id = read_unsigned(&reader, 4);
    uint8_t version = (uint8_t)read_unsigned(&reader, 1);
    const char *letters = (const char *)reader.at;
    const uint8_t *end = memchr(reader.at, '\0', (size_t)(reader.end - reader.at));
    if (reader.is_bad || id != 0 || (version != 1 && version != 3) || !end)
        return false;
    reader.at = end + 1;
    entry->code_unit = read_leb(&reader, false);
    entry->data_unit = (int64_t)read_leb(&reader, true);
    *back = version == 1 ? read_unsigned(&reader, 1) : read_leb(&reader, false);
    read_augmentation(&reader, entry, letters);
    entry->common = reader;
    return !reader.is_bad;
}

static bool read_entry(struct entry *entry, const uint8_t *at, uint64_t *back)
{
    struct reader reader = open_record(at);
    const uint8_t *here = reader.at;
    uint64_t distance = read_unsigned(&reader, 4);
    if (reader.is_bad || distance == 0 || !read_common(entry, here - distance, back))
        return false;
    entry->start = read_pointer(&reader, entry->encoding);
    entry->size = read_pointer(&reader, entry->encoding & ENCODING_FORM);
    if (entry->has_augmentation) {
        uint64_t length = read_leb(&reader, false);
        if (length > (uint64_t)(reader.end - reader.at))
            return false;
        reader.at += length;
    }
    entry->own = reader;
    return !reader.is_bad;
}

static void set_rule(struct machine *machine, uint64_t number, enum frames_kind kind, int64_t value)
{
    if (number < UNWIND_REGISTERS)
        machine->row->rules[number] = (struct frames_rule){ kind, value };
}

static void restore_rule(struct machine *machine, uint64_t number)
{
    if (number < UNWIND_REGISTERS)
        machine->row->rules[number] = machine->initial.rules[number];
}

/* Of instructions without an operand in their first byte those that move on, or remember. */
static bool move(struct machine *machine, struct reader *reader, uint8_t code)
{
    uint64_t unit = machine->entry->code_unit;
    switch (code) {
    case CODE_NOP:
    case CODE_SIGNED_RETURN:
        return true;
    case CODE_SET_LOCATION:
        machine->location = read_pointer(reader, machine->entry->encoding);
        return true;
    case CODE_ADVANCE_1:
        machine->location += read_unsigned(reader, 1) * unit;
        return true;
    case CODE_ADVANCE_2:
        machine->location += read_unsigned(reader, 2) * unit;
        return true;
    case CODE_ADVANCE_4:
        machine->location += read_unsigned(reader, 4) * unit;
        return true;
    case CODE_ARGUMENTS_SIZE:
        read_leb(reader, false);
        return true;
    case CODE_REMEMBER_STATE:
        if (machine->depth == DEPTH)
            return false;
        machine->remembered[machine->depth++] = *machine->row;
        return true;
    case CODE_RESTORE_STATE:
        if (machine->depth == 0)
            return false;
        *machine->row = machine->remembered[--machine->depth];
        return true;
    default:
        return false;
    }
}

static bool set_base(struct machine *machine, struct reader *reader, uint8_t code)
{
    int64_t unit = machine->entry->data_unit;
    struct frames_row *row = machine->row;
    if (code == CODE_BASE || code == CODE_BASE_SIGNED || code == CODE_BASE_REGISTER)
        row->base = read_leb(reader, false);
    if (code == CODE_BASE || code == CODE_BASE_OFFSET)
        row->offset = (int64_t)read_leb(reader, false);
    if (code == CODE_BASE_SIGNED || code == CODE_BASE_OFFSET_SIGNED)
        row->offset = (int64_t)read_leb(reader, true) * unit;
    return true;
}

static bool set_register(struct machine *machine, struct reader *reader, uint8_t code)
{
    int64_t unit = machine->entry->data_unit;
    uint64_t number = read_leb(reader, false);
    switch (code) {
    case CODE_OFFSET_EXTENDED:
        set_rule(machine, number, FRAMES_SAVED, (int64_t)read_leb(reader, false) * unit);
        return true;
    case CODE_OFFSET_EXTENDED_SIGNED:
        set_rule(machine, number, FRAMES_SAVED, (int64_t)read_leb(reader, true) * unit);
        return true;
    case CODE_VALUE_OFFSET:
        set_rule(machine, number, FRAMES_VALUE, (int64_t)read_leb(reader, false) * unit);
        return true;
    case CODE_VALUE_OFFSET_SIGNED:
        set_rule(machine, number, FRAMES_VALUE, (int64_t)read_leb(reader, true) * unit);
        return true;
    case CODE_RESTORE_EXTENDED:
        restore_rule(machine, number);
        return true;
    case CODE_UNDEFINED:
        set_rule(machine, number, FRAMES_UNDEFINED, 0);
        return true;
    case CODE_SAME_VALUE:
        set_rule(machine, number, FRAMES_SAME, 0);
        return true;
    case CODE_REGISTER:
        set_rule(machine, number, FRAMES_REGISTER, (int64_t)read_leb(reader, false));
        return true;
    default:
        return false; /* an expression, or not known */
    }
}

/* Up to what holds at `address`. */
static bool run(struct machine *machine, struct reader reader, uintptr_t address)
{
    while (reader.at < reader.end && !reader.is_bad) {
        uint8_t code = (uint8_t)read_unsigned(&reader, 1), operand = code & 0x3f;
        bool is_known = true;
        if ((code & 0xc0) == CODE_ADVANCE)
            machine->location += operand * machine->entry->code_unit;
        else if ((code & 0xc0) == CODE_OFFSET)
            set_rule(machine, operand, FRAMES_SAVED,
                     (int64_t)read_leb(&reader, false) * machine->entry->data_unit);
        else if ((code & 0xc0) == CODE_RESTORE)
            restore_rule(machine, operand);
        else if (code == CODE_BASE || code == CODE_BASE_REGISTER || code == CODE_BASE_OFFSET ||
                 code == CODE_BASE_SIGNED || code == CODE_BASE_OFFSET_SIGNED)
            is_known = set_base(machine, &reader, code);
        else
            is_known = move(machine, &reader, code) || set_register(machine, &reader, code);
        if (!is_known)
            return false;
        if (machine->location > address)
            return true;
    }
    return !reader.is_bad;
}

/* The last entry that begins at or before the address, in the table that is sorted by that. */
static const uint8_t *search(const struct module *module, uintptr_t address)
{
    const uint8_t *table = module->unwind;
    struct pair {
        int32_t start, entry; /* relative to the table */
    } pair;
    uint32_t count;
    /* As every linker writes it. */
    if (!table || module->unwind_size < 12 || table[0] != 1 || table[2] != ENCODING_U4 ||
        table[3] != (ENCODING_TABLE | ENCODING_S4))
        return NULL;
    memcpy(&count, table + 8, sizeof(count));
    if (count > (module->unwind_size - 12) / sizeof(pair))
        return NULL;
    int64_t wanted = (int64_t)(address - (uintptr_t)table);
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        memcpy(&pair, table + 12 + middle * sizeof(pair), sizeof(pair));
        if (pair.start <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    memcpy(&pair, table + 12 + (low - 1) * sizeof(pair), sizeof(pair));
    return table + pair.entry;
}

enum frames_result frames_find(const struct module *module, uintptr_t address,
                               struct frames_row *row)
{
    const uint8_t *at = search(module, address);
    struct entry entry = { .encoding = ENCODING_ADDRESS };
    memset(row, 0, sizeof(*row));
    row->base = UNWIND_REGISTERS;
    if (!at)
        return FRAMES_NONE;
    if (!read_entry(&entry, at, &row->back))
        return FRAMES_UNKNOWN;
    if (address - entry.start >= entry.size)
        return FRAMES_NONE;
    struct machine machine = { .entry = &entry, .location = entry.start, .row = row };
    /* What is common ends before the first instruction. */
    if (!run(&machine, entry.common, UINTPTR_MAX))
        return FRAMES_UNKNOWN;
    machine.initial = *row;
    machine.location = entry.start;
    return run(&machine, entry.own, address) ? FRAMES_FOUND : FRAMES_UNKNOWN;
}
