#include "base/utf8.h"

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

uint32_t utf8_code(const char *data, size_t width)
{
    static const unsigned char first[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t code = (unsigned char)data[0] & first[width];
    for (size_t i = 1; i < width; i++)
        code = code << 6 | ((unsigned char)data[i] & 0x3f);
    return code;
}

bool utf8_is_unfit(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        { 0x0000, 0x001f }, /* C0 */
        { 0x007f, 0x009f }, /* DEL, C1 with U+0085 */
        { 0x061c, 0x061c }, /* ARABIC LETTER MARK */
        { 0x200e, 0x200f }, /* LEFT-TO-RIGHT MARK, RIGHT-TO-LEFT MARK */
        { 0x2028, 0x202e }, /* LINE and PARAGRAPH SEPARATOR, embeddings and overrides */
        { 0x2066, 0x2069 }, /* isolates */
        { 0xfeff, 0xfeff }, /* ZERO WIDTH NO-BREAK SPACE, the byte order mark */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}
