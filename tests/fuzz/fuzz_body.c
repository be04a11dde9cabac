/* Chunked bodies: whatever they are, they give the same outcome whole and in pieces. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct request request = { .framing = REQUEST_CHUNKED };
    struct body whole, split;
    size_t used = 0, used_split = 0;
    size_t step = size > 0 ? 1 + data[size - 1] % 16 : 1; /* the last byte says how long they are */
    uint64_t limit = size % 2 ? 100 : 0;

    body_start(&whole, &request, limit);
    enum body_result result = body_feed(&whole, (struct slice){ (const char *)data, size }, &used);
    enum body_result piece = body_start(&split, &request, limit);
    while (piece == BODY_MORE && used_split < size) {
        size_t length = size - used_split < step ? size - used_split : step, more = 0;
        char *copy = memcpy(malloc(length), data + used_split, length); /* ends where it ends */
        piece = body_feed(&split, (struct slice){ copy, length }, &more);
        free(copy);
        assert(more <= length && (piece != BODY_MORE || more == length));
        used_split += more;
    }
    assert(piece == result && used == used_split && used <= size);
    assert(whole.received == split.received && (limit == 0 || whole.received <= limit));
    assert(whole.status == split.status && whole.reason == split.reason);
    assert(whole.overhead == split.overhead && whole.overhead <= 8192 + whole.received);
    assert(result != BODY_DONE || (used >= 5 && memcmp(data + used - 4, "\r\n", 2) == 0));
    assert(result != BODY_REFUSED || whole.status == 400 || whole.status == 413);
    return 0;
}
