/* Makes the tensors of a case. Private to cases/: its steps, and the values of one row of a filled tensor. */
#ifndef FA_CASES_DATA_BUILD_H
#define FA_CASES_DATA_BUILD_H

#include "cases/data/fill_element.h"
#include "cases/recipe/case.h"
#include "cases/tensors/table.h"

/* Allocates every tensor of the case (the inputs, and the outputs that its problem asks for) with the case's
 * layout, strides and guards, and fills the inputs. Poisons the outputs (FA_POISON_A), the gaps of inputs,
 * unused cache slots and pages, and table entries that by contract are never read. */
fa_status fa_case_build(const fa_case *c, fa_tensors *out, fa_error *err);
/* The same with up to n_threads threads; what is made does not depend on how many. */
fa_status fa_case_build_on(const fa_case *c, int n_threads, fa_tensors *out, fa_error *err);

/* Who else makes values, the same bits: a device. */
typedef struct fa_filler {
  void *self;
  /* Returns a bit for each tensor that it filled, inputs whose buffers hold the pattern of gaps until then. */
  fa_tensor_bits (*fill)(void *self, const fa_case *c, fa_tensors *set);
} fa_filler;
fa_status fa_case_build_with(const fa_case *c, int n_threads, const fa_filler *filler, fa_tensors *out,
                             fa_error *err);

/* ---- the steps ---- */

/* Shape (rank 4, or 3 without the batch axis) and strides of a tensor [B, S, H, D] under the case's layout
 * and this tensor's recipe. n_heads_stored >= shape's heads: packed tensors share one heads axis. Returns the
 * number of elements from the first to one past the last of all stored heads. */
int64_t fa_layout_strides(fa_layout layout, const fa_stride_recipe *recipe, int rank, const int64_t *shape,
                          int64_t n_heads_stored, int64_t *stride);

/* Caches, new keys, page table, rotary tables. */
fa_status fa_build_cache(const fa_case *c, fa_tensors *set, fa_error *err);
/* Block-sparse lists. */
fa_status fa_build_blocks(const fa_case *c, fa_tensors *set, fa_error *err);
/* Lists of keys; after the cache's tables. */
fa_status fa_build_topk(const fa_case *c, fa_tensors *set, fa_error *err);
/* listed[j] = 1 if a row of sequence b names key j: of a call with lists. */
void fa_topk_mark(const fa_case *c, const fa_tensors *set, int64_t b, uint8_t *listed);
/* Bits of a custom mask. */
fa_status fa_build_bits(const fa_case *c, fa_tensors *set, fa_error *err);
/* Captured buffers, filled, and the tensors of their gradients. */
fa_status fa_build_buffers(const fa_case *c, fa_tensors *set, fa_error *err);
/* Descales of operands of 8 bits; before these are filled. */
fa_status fa_build_descales(const fa_case *c, fa_tensors *set, fa_error *err);
/* Fills every float input but those in `made`; v before do, because do_aligned reads v. */
fa_status fa_build_fills(const fa_case *c, int n_threads, fa_tensor_bits made, fa_tensors *set,
                         fa_error *err);

/* Adds an i32 tensor [n...] with these values (NULL: keeps the pattern of input gaps). */
fa_status fa_build_int32(fa_tensors *set, fa_tensor_id id, int rank, const int64_t *shape, const int32_t *v,
                         fa_error *err);

/* ---- one row ---- */

/* Which row: batch index b, row s within the sequence (keys: slot in the sequence; new keys: the slot that
 * they will get), head h (bias: query head, and s is the query row). */
typedef struct fa_fill_row {
  const fa_case *c;
  const fa_tensors *set; /* block lists, for one_hot */
  fa_tensor_id id;
  fa_fill fill;
  const fa_fill_numbers *numbers; /* fa_fill_numbers_of that tensor and fill */
  uint64_t seed;                  /* fa_fill_seed */
  uint64_t key;                   /* of (seed, b, h): set by fa_fill_row_values */
  const double *drawn;   /* fa_fill_normal(row, d, 0) for every d, drawn at once for this very row; or NULL */
  int64_t b, s, h, part; /* part: of tensors that have parts, else 0 */
} fa_fill_row;

/* width: elements of a row. Without the mean of V, which is the caller's to make for do_aligned. */
fa_fill_numbers fa_fill_numbers_of(const fa_case *c, fa_tensor_id id, fa_fill fill, int64_t width);
/* Those of negative_logits and sentinel, for q and k; other fills have none. */
void fa_fill_constant_logits(const fa_case *c, fa_fill_numbers *x);
/* Mixes the data seed and the tensor's name. */
uint64_t fa_fill_seed(uint64_t data_seed, fa_tensor_id id);
/* Draws for element d of the row; lanes 0..3 are independent. */
uint64_t fa_fill_u64(const fa_fill_row *r, int64_t d, int lane);
double fa_fill_normal(const fa_fill_row *r, int64_t d, int lane);
/* value[n]: the row before it is rounded to the tensor's dtype. */
void fa_fill_row_values(const fa_fill_row *row, double *value, int64_t n);
/* What is stored of a row's values, before it is rounded: they are divided by the row's descale if the tensor has
 * some, and rounded to whole numbers for i8. New keys that a call quantises are moved to where it cannot matter how it
 * divides. index: the row's in the tensor, without the column. */
void fa_quantize_row(const fa_fill_row *row, const fa_tensor *stored, const int64_t *index, double *value);
/* The same of a row in which types are mixed (cases/tensors/mixed.h): stores it, with descales of its tiles. */
void fa_store_mixed_row(const fa_fill_row *row, const fa_tensor *t, const int64_t *index, double *value);
/* The same of a row of numbers of 4 bits (cases/tensors/nibbles.h): with the scales of its blocks. */
void fa_store_nibbles_row(const fa_fill_row *row, const fa_tensor *t, const int64_t *index, double *value);
/* Writes a row of q, k or k_new under a fill that shapes logits; false if the fill does not. */
bool fa_fill_logits_row(const fa_fill_row *r, double *value, int64_t n);

/* ---- parts (cases/data/fill_parts.c) ---- */

/* The LSE of a part of a row, in the case's base; -inf or +inf: the part is empty. */
double fa_fill_part_lse(const fa_fill_row *row);
/* That part's O is NaN, which is in the memory of whoever saw no key and did not write. */
bool fa_fill_part_is_nan(const fa_fill_row *row);

/* Lengths of one sequence: query rows, keys (hidden ones excluded), and hidden keys before them. */
typedef struct fa_sequence {
  int64_t sq, sk, leftpad, q_start, k_start; /* starts: token offset if variable-length, else 0 */
} fa_sequence;
fa_sequence fa_case_sequence(const fa_problem *p, int64_t b);

#endif
