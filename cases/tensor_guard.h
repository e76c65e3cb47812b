/* The memory under tensors: guarded buffers and the patterns that mark what nobody may touch or read.
 *
 * Every pattern is one 16-bit word repeated, so that it is the same at any even address and reads as NaN in
 * f16, bf16, f32 and f64 alike (as i32: negative or above 2^30, no index). The words differ from each other
 * and from the NaNs that arithmetic makes (0x7fff, 0xffff, 0x7e00, 0xfe00, 0x7fc0, 0xffc0), so that a dump
 * tells them apart. */
#ifndef FA_CASES_TENSOR_GUARD_H
#define FA_CASES_TENSOR_GUARD_H

#include "cases/tensor.h"

#define FA_PATTERN_GUARD 0xfff5
#define FA_PATTERN_INPUT_GAP 0x7ff3 /* gaps and dead slots of inputs */
#define FA_PATTERN_POISON_A 0x7ffa  /* outputs before the call */
#define FA_PATTERN_POISON_B 0xfff9

/* Payload 256-byte aligned, content undefined; guards set. 0 bytes are fine. */
fa_status fa_buffer_alloc(fa_buffer *b, size_t bytes, fa_error *err);
void fa_buffer_free(fa_buffer *b);
char *fa_buffer_payload(const fa_buffer *b);
/* The whole payload. */
void fa_buffer_fill(const fa_buffer *b, uint16_t pattern);

/* One element of a tensor that stands in a guarded buffer, bit by bit (no conversion). */
void fa_tensor_set_pattern(const fa_tensor *t, const int64_t *index, uint16_t pattern);
bool fa_tensor_has_pattern(const fa_tensor *t, const int64_t *index, uint16_t pattern);

#endif
