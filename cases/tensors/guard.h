/* The memory under tensors: guarded buffers, and the patterns that mark what must not be touched or read.
 *
 * Every pattern is one repeated 16-bit word, so that it is the same at any even address and reads as NaN in
 * f16, bf16, f32 and f64 (as i32: negative or above 2^30, never an index); in e4m3 and e5m2 one of its bytes does, in
 * such outputs and the gaps of such inputs both. The words differ from each other
 * and from the NaNs that arithmetic makes (0x7fff, 0xffff, 0x7e00, 0xfe00, 0x7fc0, 0xffc0), so that a dump
 * tells them apart. */
#ifndef FA_CASES_TENSORS_GUARD_H
#define FA_CASES_TENSORS_GUARD_H

#include "cases/tensors/set.h"

#define FA_PATTERN_GUARD 0xfff5
#define FA_PATTERN_INPUT_GAP 0x7ff3   /* gaps and unused slots of inputs */
#define FA_PATTERN_INPUT_GAP_8 0x7f7f /* the same in tensors of 8 bits: NaN of e4m3 and e5m2, i8's largest */
#define FA_PATTERN_POISON_A 0x7ffa    /* outputs before the call */
#define FA_PATTERN_POISON_B 0xfff9
#define FA_PATTERN_POISON_A_8                                                                                \
  0xffff /* the same in outputs of 8 bits: the NaN that conversions do not make, and that they do */
#define FA_PATTERN_POISON_B_8 0x7f7f
#define FA_PATTERN_POISON_FINITE 0x4b4b /* a number in every type, larger than any sum of test data */

/* The same 16 bits twice. */
#define FA_PATTERN_WORD(pattern) ((uint32_t)(pattern) << 16 | (uint32_t)(pattern))
/* Fills bytes from p with a pattern of little-endian 32-bit words. */
void fa_pattern_fill(char *p, size_t bytes, uint32_t pattern);
/* Offset of the first byte that differs from the pattern, or bytes. */
size_t fa_pattern_first_difference(const char *p, size_t bytes, uint32_t pattern);

/* Payload 256-byte aligned, content undefined; guards set. bytes may be 0. */
fa_status fa_buffer_alloc(fa_buffer *b, size_t bytes, fa_error *err);
/* In memory of the caller's, bytes + 2 FA_GUARD_BYTES of it. */
fa_buffer fa_buffer_at(char *memory, size_t bytes);
void fa_buffer_free(fa_buffer *b);
char *fa_buffer_payload(const fa_buffer *b);
/* Fills the whole payload that is backed by memory. */
void fa_buffer_fill(const fa_buffer *b, uint16_t pattern);
void fa_buffer_fill_word(const fa_buffer *b, uint32_t pattern);
/* As large, with memory in the same places, content undefined; guards set. */
fa_status fa_buffer_alloc_like(fa_buffer *dst, const fa_buffer *src, fa_error *err);
/* A copy of it. */
fa_status fa_buffer_clone(fa_buffer *dst, const fa_buffer *src, fa_error *err);

/* ---- buffers that are mostly address space ---- */

/* Payload bytes from begin to before end. */
typedef struct fa_span {
  size_t begin, end;
} fa_span;

#define FA_VIRTUAL_BYTES ((size_t)256 << 20) /* smaller buffers are always plain memory */
/* True if a buffer of this size, of which only `touched` is used, should be reserved. */
bool fa_spans_are_sparse(const fa_span *touched, int64_t n, size_t bytes);
/* Like fa_buffer_alloc, but with memory only under the touched bytes, up to one whole page around them, and
 * under the guards. Any other access faults. */
fa_status fa_buffer_reserve(fa_buffer *b, size_t bytes, const fa_span *touched, int64_t n, fa_error *err);
/* Adds memory under more of the payload and fills it with the pattern; does nothing for plain buffers. */
fa_status fa_buffer_touch(fa_buffer *b, const fa_span *touched, int64_t n, uint16_t pattern, fa_error *err);
bool fa_buffer_is_virtual(const fa_buffer *b);
/* The parts of the payload backed by memory, ascending; in a plain buffer one, the whole payload. */
int fa_buffer_n_spans(const fa_buffer *b);
fa_span fa_buffer_span(const fa_buffer *b, int i);

/* What gaps of inputs of this type hold. */
uint16_t fa_input_gap(fa_dtype dtype);

/* Compares one element of a tensor in a guarded buffer bit by bit (no conversion). */
bool fa_tensor_has_pattern(const fa_tensor *t, const int64_t *index, uint16_t pattern);

#endif
