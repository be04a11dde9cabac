/* Connections: the same comes back whether the bytes come at once or in pieces; each ends. */

#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__attribute__((constructor)) static void start(void)
{
#define METHODS " methods = [ \"GET\", \"POST\" ] },"
#define FOUR(text) text text text text
    inner_start("limits = { header = 512 body = 100 requests = 20 }\n"
                "routes = ( { path = \"/a\" text = \"A\"" METHODS
                " { path = \"/b\" text = \"B\" delay = \"5ms\"" METHODS
                " { path = \"/c\" text = \"\" status = 204 headers = { ETag = \"W/\\\"c\\\"\""
                " Last-Modified = \"Sun, 06 Nov 1994 08:49:37 GMT\" } },"
                " { path = \"/d\" redirect = \"/a\" },"
                " { path = \"/e\" text = \"" FOUR(FOUR(FOUR(FOUR("more than fits, ")))) "\" } )");
}

static struct buf answers_to(struct slice bytes, size_t step, bool ends)
{
    struct buf answers = { 0 };
    int client = inner_open();
    inner_send(client, bytes, step, &answers);
    for (int i = 0; i < 21 && !inner_receive(client, &answers); i++)
        inner_pass(10 * CLOCK_MILLISECOND); /* late answers, one after the other */
    /* Pieces make a 100 come, and a fault be seen after the answer. */
    inner_leave_out(&answers, "HTTP/1.1 100 Continue\r\n\r\n");
    inner_leave_out(&answers, "Connection: close\r\n");
    if (ends)
        shutdown(client, SHUT_WR);
    inner_end(client);
    return answers;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = { (const char *)data, size };
    size_t step = size > 0 ? 1 + data[size - 1] % 16 : 1; /* the last byte says how long they are */
    struct buf whole = answers_to(bytes, size, false), split = answers_to(bytes, step, step > 8);
    if (!slice_equal(buf_slice(&whole), buf_slice(&split)))
        abort();
    buf_fini(&whole);
    buf_fini(&split);
    return 0;
}
