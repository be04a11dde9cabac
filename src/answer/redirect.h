/*
 * redirect: the kind of route that sends the client elsewhere (RFC 9110, 15.4).
 *
 * The target is the one that is configured; of the request only the query goes along. So no
 * request can choose the host a client is sent to.
 */
#ifndef ANSWER_REDIRECT_H
#define ANSWER_REDIRECT_H

#include "answer/answer.h"

extern const struct answer_kind redirect_kind;

#endif
