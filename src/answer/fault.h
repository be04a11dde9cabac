/*
 * fault: the kind of route that harms the worker which answers it, for the tests of what the
 * master does then. Only in builds with --enable-faults.
 */
#ifndef ANSWER_FAULT_H
#define ANSWER_FAULT_H

#include "answer/answer.h"

extern const struct answer_kind fault_kind;

#endif
