/* The arguments of a call, by number, and what a change makes of one: for fuzz/inputs/call_input.h. */
#ifndef FA_FUZZ_INPUTS_CALL_ARGUMENTS_H
#define FA_FUZZ_INPUTS_CALL_ARGUMENTS_H

#include "fuzz/inputs/call_input.h"

/* number: below fa_call_input_arguments(). */
void fa_call_argument_set(fa_call_input *x, unsigned number, unsigned how, uint16_t v);
/* A pointer or a stride, which are changed in the second round. */
bool fa_call_argument_is_layout(unsigned number);
/* Every pointer to an address of its own, where nothing lies. */
void fa_call_arguments_point(fa_call_input *x);

#endif
