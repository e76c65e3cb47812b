/* Random cases as fuzz inputs: a profile of the generator, a key, and single draws that are given instead of drawn from the
 * key. So an input can say whatever `random` can, and a change of a few bytes changes one draw of one part of the case.
 *
 * Format: version 1, little-endian, read from the beginning. Missing bytes read as 0, a piece of a draw at the end is
 * ignored, and any bytes are a valid case. Draws after the first FA_DRAWS are ignored.
 *   1 byte   bits 0-4 the profile, bit 5 every family and feature in every combination, bit 7 the kernels for sm_90a
 *   8 bytes  the key
 *   2 bytes  which data
 *   then draws of 5 bytes: stream (fa_gen_stream; 255: FA_GEN_SINK_FILLS), index (2 bytes), value (2 bytes) */
#ifndef FA_FUZZ_INPUTS_DRAWS_H
#define FA_FUZZ_INPUTS_DRAWS_H

#include "fuzz/generate/draw.h"
#include "fuzz/inputs/mutate.h"

enum {
  FA_DRAWS = 64,
  FA_DRAWS_HEAD = 11,
  FA_DRAW_BYTES = 5,
  FA_DRAWS_BYTES = FA_DRAWS_HEAD + FA_DRAWS * FA_DRAW_BYTES
};

typedef struct fa_draws {
  uint8_t head; /* the first byte */
  uint64_t key;
  uint16_t data;
  int n;
  fa_rng_edit draw[FA_DRAWS];
} fa_draws;

void fa_draws_read(const uint8_t *data, size_t size, fa_draws *out);
/* bytes[FA_DRAWS_BYTES]; returns how many. */
size_t fa_draws_write(const fa_draws *x, uint8_t *bytes);
bool fa_draws_are_for_hopper(const fa_draws *x);
/* FA_ERR_MEMORY is the only error. */
fa_status fa_draws_to_case(const fa_draws *x, fa_case *out, fa_error *err);

/* For libFuzzer's hooks: as fa_record_mutate and fa_record_cross. */
size_t fa_draws_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed, fa_mutate_fn raw);
size_t fa_draws_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                      size_t max_size, unsigned seed);

#endif
