/* Rows of latent caches in which types are mixed (quantized.descale "tile"): bytes, one behind the other,
 *
 *   head_dim_v               numbers of e4m3: V, and K's first columns
 *   4 for every 128 of them  their descales, float32
 *   2 for each other column  of K alone, in the problem's type: what a rotary embedding has turned
 *
 * With 512 and 64 columns 656 bytes. A row may begin anywhere. */
#ifndef FA_CASES_TENSORS_MIXED_H
#define FA_CASES_TENSORS_MIXED_H

#include "cases/tensors/table.h"

/* K, or V in it, of such a cache. */
bool fa_tensor_is_mixed(const fa_problem *p, fa_tensor_id id);
int64_t fa_mixed_bytes(const fa_problem *p); /* of a row */

/* The first n columns of a row as values; the product of a number and its descale is exact. */
void fa_mixed_load(const fa_problem *p, const char *row, int64_t n, double *value);
/* Of a tile of such a row; 1 behind the last one, where columns are of K alone. */
float fa_mixed_descale(const fa_problem *p, const char *row, int64_t tile);
/* Stores a row of head_dim values; descale: one for each tile. Numbers of e4m3 saturate. */
void fa_mixed_store(const fa_problem *p, const float *descale, const double *value, char *row);

#endif
