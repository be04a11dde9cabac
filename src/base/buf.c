#include "base/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

void buf_fini(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){ 0 };
}

int buf_reserve(struct buf *buf, size_t more)
{
    if (more <= buf->capacity - buf->length)
        return 0;
    if (more > SIZE_MAX / 2 - buf->length) {
        errno = ENOMEM;
        return -1;
    }
    size_t capacity = buf->capacity ? buf->capacity : 256;
    while (capacity < buf->length + more)
        capacity *= 2;
    char *data = realloc(buf->data, capacity);
    if (!data)
        return -1;
    buf->data = data;
    buf->capacity = capacity;
    return 0;
}

int buf_add(struct buf *buf, const void *data, size_t length)
{
    if (length == 0)
        return 0;
    if (buf_reserve(buf, length) == -1)
        return -1;
    memcpy(buf->data + buf->length, data, length);
    buf->length += length;
    return 0;
}

int buf_add_slice(struct buf *buf, struct slice slice)
{
    return buf_add(buf, slice.data, slice.length);
}

int buf_add_string(struct buf *buf, const char *string)
{
    return buf_add(buf, string, strlen(string));
}

int buf_vprintf(struct buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    int result = -1;
    if (length >= 0 && buf_reserve(buf, (size_t)length + 1) == 0) {
        vsnprintf(buf->data + buf->length, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
        result = 0;
    }
    va_end(again);
    return result;
}

int buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int result = buf_vprintf(buf, format, args);
    va_end(args);
    return result;
}

void buf_consume(struct buf *buf, size_t length)
{
    if (length >= buf->length) {
        buf->length = 0;
        return;
    }
    memmove(buf->data, buf->data + length, buf->length - length);
    buf->length -= length;
}

int buf_add_json(struct buf *buf, struct slice text)
{
    for (size_t i = 0; i < text.length;) {
        unsigned char c = (unsigned char)text.data[i];
        size_t width = utf8_width(text.data + i, text.length - i);
        uint32_t code = width > 0 ? utf8_code(text.data + i, width) : 0;
        int result;
        if (width == 0)
            result = buf_add_string(buf, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\')
            result = buf_printf(buf, "\\%c", c);
        else if (utf8_is_unfit(code))
            result = buf_printf(buf, "\\u%04x", code);
        else
            result = buf_add(buf, text.data + i, width);
        if (result == -1)
            return -1;
        i += width ? width : 1;
    }
    return 0;
}

int buf_add_escaped(struct buf *buf, struct slice text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        int result = c < 0x20 || c >= 0x7f || c == '"' || c == '\\'
                         ? buf_printf(buf, "\\x%02X", c)
                         : buf_add(buf, &text.data[i], 1);
        if (result == -1)
            return -1;
    }
    return 0;
}

const char *buf_string(struct buf *buf)
{
    if (buf_reserve(buf, 1) == -1)
        return NULL;
    buf->data[buf->length] = '\0';
    return buf->data;
}
