/* Operands of 8 bits: keys and values, in a cache or not, and queries if the case says so. What is stored times a descale
 * is the value (docs/reference/semantics.md, "Eight bits"). The case has a recipe; descales are tensors, f32:
 *
 *   q_descale, k_descale, v_descale   [1]                     one for the tensor
 *                                     [B, Hk]                 per sequence and KV head; queries of a group share one
 *                                     [B, S, H], [total, H]   per row and head: as the tensor itself without its columns;
 *                                                             of a cache [rows, capacity, Hk] or [pages, page_size, Hk]
 *                                     [pages, Hk]             per page; queries then have [B, Hk]
 *
 * Per tile, of a latent cache (kvcache.v_in_k), there are none: a row of K is bytes (cases/tensors/mixed.h), and holds a
 * descale for each 128 of its numbers of e4m3 beside them, and the columns that are of K alone in the problem's type.
 *
 * A cache of FA_E2M1 has two numbers in a byte, and a scale of e4m3 for every 16 columns beside the descale, which is per tensor
 * or head (cases/tensors/nibbles.h).
 *
 * Beside queries of 8 bits V's are per head where the case says per token or page. Those of keys that nobody reads are NaN.
 *
 * Beside them O may have 8 bits too: what is stored is O times o_scale, f32 [1], rounded, and beyond the largest number of
 * its type that number. */
#ifndef FA_CASES_VOCABULARY_QUANTIZED_H
#define FA_CASES_VOCABULARY_QUANTIZED_H

#include "cases/base/dtype.h"

/* How many numbers share one descale. */
typedef enum fa_descale_per {
  FA_PER_TENSOR,
  FA_PER_HEAD,
  FA_PER_TOKEN,
  FA_PER_PAGE,
  FA_PER_TILE,
  FA_N_DESCALES
} fa_descale_per;

/* ANY: 2^-6 .. 2^-4, no powers of two. POWERS: the powers of two among these. ONE: all 1, where most mistakes hide. */
typedef enum fa_descale_values {
  FA_DESCALES_ANY,
  FA_DESCALES_POWERS,
  FA_DESCALES_ONE,
  FA_N_DESCALE_VALUES
} fa_descale_values;

#define FA_MIXED_TILE 128 /* columns of a tile */

typedef struct fa_quantized {
  bool present;
  fa_dtype dtype; /* FA_E4M3, FA_E5M2, FA_I8, of a cache also FA_E2M1; not present: 0, as all the others */
  bool queries;   /* Q too; otherwise it has the problem's type. Not in FA_I8 and FA_E2M1 */
  fa_descale_per per;
  fa_descale_values values;
  bool
      quantizes_new; /* new keys and values of a cache have the problem's type, and the call stores them in 8 bits */
  bool amax;         /* amax_p and amax_o are outputs: the largest magnitudes of P and of O */
  fa_dtype o;        /* FA_E4M3, FA_E5M2: O's, beside queries of 8 bits; 0: the problem's */
  double o_scale; /* what such an O is multiplied by; 0: drawn, as values says */
} fa_quantized;

/* "tensor", "head", "token", "page", "tile"; "?" out of range */
const char *fa_descale_per_name(fa_descale_per per);
/* O is stored in 8 bits, times a scale. */
bool fa_quantizes_o(const fa_quantized *q);
const char *fa_descale_values_name(fa_descale_values values); /* "any", "powers", "one"; "?" out of range */

#endif
