/*
 * text: the kind of route whose answer is a text of the configuration.
 */
#ifndef ANSWER_TEXT_H
#define ANSWER_TEXT_H

#include "answer/answer.h"

extern const struct answer_kind text_kind;

#endif
