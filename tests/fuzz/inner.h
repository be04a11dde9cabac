/*
 * inner: the connections of a worker within the fuzzer's own process, over socket pairs, at a
 * monotonic clock that stands still until the fuzzer moves it, and at one date. What happens
 * follows from the input alone. (libFuzzer's own clock stands still too: limit such a fuzzer with
 * -runs=N, or end it with SIGINT.)
 */
#ifndef FUZZ_INNER_H
#define FUZZ_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* Made once, never ended. `config` is the text of a configuration. */
void inner_start(const char *config);

/* The client's end of a new connection, or aborts. */
int inner_open(void);

/* Sends in pieces of `step` bytes, after each of which the loop turns; receives when the worker reads
 * no more before that. Nothing is sent any more once the worker has closed the connection. */
void inner_send(int client, struct slice bytes, size_t step, struct buf *answers);

/* Adds what has come back to `answers`. Returns whether the worker has ended the connection. */
bool inner_receive(int client, struct buf *answers);

/* Takes all of `text` out of them. */
void inner_leave_out(struct buf *answers, const char *text);

/* The clock moves on by `ns`, and the loop turns. */
void inner_pass(int64_t ns);

/* Waits, by that clock, until the worker has none any more: a minute each for the request, its body
 * and what lingers; aborts if it still has. Closes the client's end. */
void inner_end(int client);

#endif
