#include "base/utf8.h"

#include <stdbool.h>

size_t utf8_width(const char *data, size_t length)
{
    const unsigned char *u = (const unsigned char *)data;
    if (length == 0)
        return 0;
    if (u[0] < 0x80)
        return 1;
    size_t width = u[0] >= 0xc2 && u[0] <= 0xdf   ? 2
                   : u[0] >= 0xe0 && u[0] <= 0xef ? 3
                   : u[0] >= 0xf0 && u[0] <= 0xf4 ? 4
                                                  : 0;
    if (width == 0 || width > length)
        return 0;
    for (size_t i = 1; i < width; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte. */
    bool is_bad = (u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
                  (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f);
    return is_bad ? 0 : width;
}
