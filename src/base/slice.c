#include "base/slice.h"

static unsigned char lower(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? (unsigned char)(u | 0x20) : u;
}

bool slice_equal_nocase(struct slice a, struct slice b)
{
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return true;
}

struct slice slice_trim(struct slice s)
{
    while (s.length > 0 && (s.data[0] == ' ' || s.data[0] == '\t')) {
        s.data++;
        s.length--;
    }
    while (s.length > 0 && (s.data[s.length - 1] == ' ' || s.data[s.length - 1] == '\t'))
        s.length--;
    return s;
}

bool slice_next_member(struct slice *rest, struct slice *member)
{
    while (rest->length > 0) {
        const char *comma = memchr(rest->data, ',', rest->length);
        size_t length = comma ? (size_t)(comma - rest->data) : rest->length;
        *member = slice_trim((struct slice){ rest->data, length });
        rest->data += length + (comma ? 1 : 0);
        rest->length -= length + (comma ? 1 : 0);
        if (member->length > 0)
            return true;
    }
    return false;
}
