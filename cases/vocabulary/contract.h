/* What a subject delivers of a call's outputs, and in which conventions. The harness converts what it gets to
 * its own conventions (docs/reference/semantics.md) before anything is judged, and judges without what is
 * missing. Our own kernels deliver everything in the harness's conventions: fa_contract_init. */
#ifndef FA_CASES_VOCABULARY_CONTRACT_H
#define FA_CASES_VOCABULARY_CONTRACT_H

#include "cases/base/dtype.h"
#include "cases/vocabulary/tensor_bits.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The axes of the LSE that a subject writes. Sq is the longest sequence of a variable-length call; rows past a
 * sequence's end hold anything. A case that pads the LSE (lse_layout) makes AS_CALL [B, H, Sq] and TOKENS_HEADS
 * [B, Sq, H] there, too. */
typedef enum fa_lse_layout {
  FA_LSE_AS_CALL,      /* [B, H, Sq]; variable length: [H, total] */
  FA_LSE_PADDED,       /* [B, H, Sq] always */
  FA_LSE_TOKENS_HEADS, /* [B, Sq, H]; variable length: [total, H] */
  FA_N_LSE_LAYOUTS
} fa_lse_layout;

/* The LSE of a row without a visible key. AS_CASE: what the case's empty_lse asks for. ANY: not compared. */
typedef enum fa_lse_of_empty {
  FA_LSE_EMPTY_AS_CASE,
  FA_LSE_EMPTY_POS_INF,
  FA_LSE_EMPTY_NEG_INF,
  FA_LSE_EMPTY_ZERO,
  FA_LSE_EMPTY_NAN,
  FA_LSE_EMPTY_ANY,
  FA_N_LSE_OF_EMPTY
} fa_lse_of_empty;

/* The O of such a row. MEAN_V: the mean of all values of the sequence, as from masks that are large finite
 * numbers. ANY: not compared. Unless ZERO, gradients of a case that has such rows are not judged. */
typedef enum fa_o_of_empty {
  FA_O_EMPTY_ZERO,
  FA_O_EMPTY_MEAN_V,
  FA_O_EMPTY_NAN,
  FA_O_EMPTY_ANY,
  FA_N_O_OF_EMPTY
} fa_o_of_empty;

/* The point from which ALiBi's distance is counted in the LSE. COLUMN: slope * j instead of -slope * |i + shift
 * - j|, under a causal mask without a left edge: the LSE is larger by slope * (i + shift). */
typedef enum fa_lse_alibi { FA_LSE_ALIBI_DISTANCE, FA_LSE_ALIBI_COLUMN, FA_N_LSE_ALIBI } fa_lse_alibi;

typedef struct fa_contract {
  fa_tensor_bits outputs; /* a bit (1 << fa_tensor_id) for every output that it writes if the call has it */
  bool lse_base_2;        /* log2 of the sum of 2^(x log2 e): LSE times log2(e) */
  bool lse_unscaled;      /* the LSE divided by the call's scale */
  fa_lse_layout lse_layout;
  fa_dtype lse_dtype; /* f32, f64; f16 or bf16: too coarse for the backward, which is judged without it */
  fa_lse_of_empty lse_of_empty;
  fa_o_of_empty o_of_empty;
  fa_lse_alibi lse_alibi;
} fa_contract;

/* Bits of what a subject has said about itself; the rest is unknown, and may be found by a probe. */
typedef enum fa_contract_field {
  FA_CONTRACT_OUTPUTS = 1,
  FA_CONTRACT_LSE_BASE = 2,
  FA_CONTRACT_LSE_UNSCALED = 4,
  FA_CONTRACT_LSE_LAYOUT = 8,
  FA_CONTRACT_LSE_DTYPE = 16,
  FA_CONTRACT_LSE_OF_EMPTY = 32,
  FA_CONTRACT_O_OF_EMPTY = 64,
  FA_CONTRACT_LSE_ALIBI = 128
} fa_contract_field;

void fa_contract_init(fa_contract *c); /* everything, in the harness's conventions */

/* Words of the enums as the hello and reports have them: "as_call", "padded", "tokens_heads"; "as_case", "+inf",
 * "-inf", "0", "nan", "any"; "0", "mean_v", "nan", "any"; "distance", "column". NULL out of range. */
const char *fa_lse_layout_name(int i);
const char *fa_lse_of_empty_name(int i);
const char *fa_o_of_empty_name(int i);
const char *fa_lse_alibi_name(int i);

#ifdef __cplusplus
}
#endif

#endif
