/* Heads: whatever they are, they give the same outcome whole and in pieces. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(struct slice a, const char *a_start, struct slice b, const char *b_start)
{
    assert(slice_equal(a, b));
    assert(a.length == 0 || a.data - a_start == b.data - b_start || *a.data == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct request_limits limits = { .header = 1024 };
    struct request whole = { 0 }, split = { 0 };
    struct request_scan scan = { 0 }, scan_split = { 0 };
    const char *all = (const char *)data;
    enum request_result result = request_feed(&whole, &scan, (struct slice){ all, size }, &limits);
    enum request_result piece = REQUEST_MORE;
    char *copy = NULL;
    size_t step = size > 0 ? 1 + data[size - 1] % 16 : 1; /* the last byte says how long they are */

    for (size_t length = 0; piece == REQUEST_MORE && length < size;) {
        length = length + step < size ? length + step : size;
        free(copy); /* the bytes move with every read, and end where they end */
        copy = memcpy(malloc(length), data, length);
        piece = request_feed(&split, &scan_split, (struct slice){ copy, length }, &limits);
    }
    assert(piece == result);
    if (result == REQUEST_REFUSED)
        assert(whole.status == split.status && whole.reason == split.reason && whole.status >= 400);
    if (result == REQUEST_DONE) {
        assert(whole.head_length == split.head_length && whole.nfields == split.nfields);
        assert(whole.framing == split.framing && whole.content_length == split.content_length);
        assert(whole.path.length == 0 || *whole.path.data == '/' || *whole.path.data == '*');
        assert(slice_equal(whole.path, split.path));
        same(whole.host, all, split.host, copy);
        for (unsigned i = 0; i < whole.nfields; i++)
            same(whole.fields[i].value, all, split.fields[i].value, copy);
    }
    free(copy);
    request_fini(&whole);
    request_fini(&split);
    return 0;
}
