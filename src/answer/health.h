/*
 * health: the kind of route that tells a supervisor whether the server lives and is ready.
 *
 * "live" is 200 as long as the process answers. "ready" is what the master wrote into the
 * scoreboard: 200, or 503 with the reason.
 */
#ifndef ANSWER_HEALTH_H
#define ANSWER_HEALTH_H

#include "answer/answer.h"

enum health_probe {
    HEALTH_LIVE,
    HEALTH_READY,
};

struct health_options {
    int probe; /* enum health_probe */
};

extern const struct answer_kind health_kind;

#endif
