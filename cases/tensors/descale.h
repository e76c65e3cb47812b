/* Descales of operands of 8 bits (cases/vocabulary/quantized.h). */
#ifndef FA_CASES_TENSORS_DESCALE_H
#define FA_CASES_TENSORS_DESCALE_H

#include "cases/tensors/table.h"

/* How many numbers of q, k, v share one of these descales: what the case says, but queries have no
 * pages, and beside them in 8 bits V has none per key. */
fa_descale_per fa_descale_per_of(const fa_problem *p, fa_tensor_id descale);

/* What a row of q, k, v, k_new or v_new is multiplied by; 1 if it is not of 8 bits. b: whose row it is, h: its head,
 * index: the row's in the tensor, without the column. */
double fa_descale_of_row(const fa_problem *p, const fa_tensors *set, fa_tensor_id id, int64_t b, int64_t h,
                         const int64_t *index);

/* What is stored of x, a value divided by its descale: rounded to nearest, ties to even, saturating. */
double fa_quantised(fa_dtype t, double x);
/* How much further than that a kernel may be that divides value by descale in float32, or multiplies it by the inverse: 0
 * where no such error changes what is stored, as nearly everywhere. */
double fa_quantised_doubt(fa_dtype t, double value, double descale);

/* The largest, and the smallest, descale of q, k or v; 1 if it is not of 8 bits. Those that nobody reads are NaN, and do not count. */
double fa_descale_largest(const fa_problem *p, const fa_tensors *set, fa_tensor_id id);
double fa_descale_smallest(const fa_problem *p, const fa_tensors *set, fa_tensor_id id);

/* What O is multiplied by before it is stored; 1 where that is not in 8 bits. */
double fa_o_scale(const fa_problem *p, const fa_tensors *set);

#endif
