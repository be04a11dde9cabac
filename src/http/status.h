/*
 * status: the status codes of RFC 9110, 15 and their reason phrases.
 */
#ifndef HTTP_STATUS_H
#define HTTP_STATUS_H

#include <stdbool.h>

/* "OK" for 200; the empty string for one that has no name. Never NULL. */
const char *status_reason(unsigned status);

/* May a response with this status have a body at all? Not 1xx, 204, 304 (RFC 9110, 6.4.1). */
bool status_has_body(unsigned status);

#endif
