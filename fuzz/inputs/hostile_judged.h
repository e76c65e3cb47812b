/* Small cases judged with a foreign subject that may do anything: each has a result, one that prints as lines without control
 * characters, and that a journal keeps. */
#ifndef FA_FUZZ_INPUTS_HOSTILE_JUDGED_H
#define FA_FUZZ_INPUTS_HOSTILE_JUDGED_H

#include "gpu/backend.h"

enum { FA_HOSTILE_CASES = 7 };

/* The case of this number, modulo their number. Ends the process if its result is none. */
void fa_hostile_judge(const fa_backend *backend, void *self, int number);
/* Ends the process if these bytes have a control character that is no newline. */
void fa_hostile_check_text(const char *text, size_t n);

#endif
