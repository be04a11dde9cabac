/*
 * head: the scanner of a request's head (RFC 9112, 2.2, 3, 5): exact grammar, byte by byte.
 *
 * It looks at each byte once, however the bytes come, and says at the first byte that cannot be
 * part of a request that it is none: a TLS hello or an HTTP/2 preface is refused by what has come,
 * not by what never follows. It finds the end of the head and judges nothing that needs a look at
 * more than the line it is in: that is left to request.
 *
 * Stricter than a recipient must be, where the RFC leaves the choice: a line ends with CRLF only;
 * one empty line before the request line is skipped, not more; one SP parts the request line.
 */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stdbool.h>

#include "http/request.h"

/*
 * Goes on from scan->position. DONE: scan->position bytes are the head. A head that is not
 * complete within `limit` bytes is refused: 501 in its method (RFC 9112, 3), 414 in the rest of its
 * first line, else 431.
 */
enum request_result head_scan(struct request_scan *scan, struct slice bytes, size_t limit);

/*
 * The parts of the request line that have been seen whole: method, then target. The others are
 * empty.
 */
void head_line(const struct request_scan *scan, struct slice bytes, struct slice *method,
               struct slice *target);

#endif
