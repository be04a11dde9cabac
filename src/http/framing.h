/*
 * framing: what the fields of a head say of the body that follows, the connection, the host and
 * the client's expectations (RFC 9112, 3.2, 6, 9; RFC 9110, 7.2, 7.6.1, 10.1.1).
 *
 * request.h says what is refused. This is a part of request, for its use alone.
 */
#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include "http/request.h"

/*
 * Reads the fields of a request whose method, version, fields and host (that of the target, or
 * empty) are there, and fills in the rest. 0, or the status that refuses it, with the reason.
 */
unsigned framing_judge(struct request *request, const char **reason);

#endif
