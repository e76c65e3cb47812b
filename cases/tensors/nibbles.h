/* Caches of numbers of 4 bits (quantized.dtype "e2m1"): K and V are bytes, each with two columns of a row, the first of them in
 * its low bits, as torch.float4_e2m1fn_x2 has them. Every 16 columns share a scale of e4m3, in a tensor of its own that has as
 * many axes. A number times its scale, times the descale, is the value. Here alone it is said where a number of 4 bits is. */
#ifndef FA_CASES_TENSORS_NIBBLES_H
#define FA_CASES_TENSORS_NIBBLES_H

#include "cases/tensors/table.h"

#define FA_SCALED_BLOCK 16 /* columns that share a scale */

/* K or V of such a cache. */
bool fa_tensor_is_nibbles(const fa_problem *p, fa_tensor_id id);
/* The scales of its blocks. */
fa_tensor_id fa_tensor_scales_of(fa_tensor_id id);

/* The first n columns of a row, times their blocks' scales: exact. */
void fa_nibbles_load(const char *row, const char *scales, int64_t n, double *value);
/* Rounds n values, each divided by its block's scale, to nearest even, saturating. n is a multiple of a block. */
void fa_nibbles_store(const double *value, const double *scale, int64_t n, char *row, char *scales);

#endif
