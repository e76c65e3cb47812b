/* Bytes as the arguments of a call of gpu/fa.h: a sound call, in which single arguments are then anything.
 *
 * Any bytes are a call, and missing ones read as 0. The first says which function (modulo FA_CALL_INPUT_KINDS), the second
 * which device, two more which of FA_CALL_WITH_* the call has. Then come changes of 4 bytes: which argument, how, and a value
 * of 2 bytes. Sizes and numbers are changed first; pointers and strides are made for these, before they are changed. */
#ifndef FA_FUZZ_INPUTS_CALL_INPUT_H
#define FA_FUZZ_INPUTS_CALL_INPUT_H

#include "fuzz/inputs/mutate.h"
#include "gpu/plan/make.h"

enum { FA_CALL_INPUT_KINDS = FA_CALL_MERGE_BACKWARD + 1, FA_CALL_INPUT_HEAD = 4, FA_CALL_INPUT_CHANGE = 4 };

/* Bits of the two bytes. */
enum {
  FA_CALL_WITH_VARLEN = 1,
  FA_CALL_WITH_BIAS = 2, /* and its gradient */
  FA_CALL_WITH_ALIBI = 4,
  FA_CALL_WITH_MASK_BITS = 8,
  FA_CALL_WITH_USED = 16, /* seqused_k, leftpad_k */
  FA_CALL_WITH_P_DEBUG = 32,
  FA_CALL_WITH_DLSE = 64,
  FA_CALL_WITH_DELTA = 128,
  FA_CALL_WITH_FLEX = 256,
  FA_CALL_WITH_BLOCKS = 512,
  FA_CALL_WITH_PAGES = 1024,
  FA_CALL_WITH_ROTARY = 2048,
  FA_CALL_WITH_SUMS = 4096,          /* a gradient of the bias that is summed over batch and heads */
  FA_CALL_WITH_DROPOUT_STATE = 8192, /* in device memory, and dropout_used */
  FA_CALL_WITH_LISTS = 16384         /* of keys, over a cache */
};

/* Zeroed: of no call. It holds what the call points to: it must stay where it was made, and serves one input after another
 * until it is freed. */
typedef struct fa_call_input {
  fa_call call;
  const fa_kernel_device *device; /* NULL: any */
  fa_kernel_device its;
  fa_attention a;
  fa_gradients g;
  fa_inference cache;
  fa_states states;
  fa_states_gradients states_g;
  fa_flex flex;
  fa_flex_block_lists lists;
  fa_flex_program *program[4]; /* made once */
  int64_t which_program, without;
} fa_call_input;

/* No pointer to a tensor may be followed: there is nothing behind them. */
void fa_call_input_read(const uint8_t *data, size_t size, fa_call_input *out);
void fa_call_input_free(fa_call_input *x);

/* The number of arguments that a change can name. */
int fa_call_input_arguments(void);

/* For LLVMFuzzerCustomMutator: makes, alters and leaves out changes; now and then raw gets the bytes. Returns the new size. */
size_t fa_call_input_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed, fa_mutate_fn raw);

#endif
