/* Arguments of the kernels that merge partial states, filled in by the host and read by the device. */
#ifndef FA_GPU_KERNELS_PARAMS_MERGE_H
#define FA_GPU_KERNELS_PARAMS_MERGE_H

#include "gpu/kernels/params/attention.h"

#define FA_MERGE_THREADS 128
#define FA_MERGE_ROWS 4 /* of a block: one for each warp */

/* A tensor of one state: rows [batch, rows, heads, head_dim], or [batch, heads, rows] of an LSE. */
typedef struct fa_merge_tensor {
  void *data;
  int64_t part; /* elements from one part to the next; 0: there are no parts */
  fa_kernel_strides stride;
} fa_merge_tensor;

/* Grid: x over blocks of FA_MERGE_ROWS rows, of all heads and sequences: row r of head h of sequence b is number
 * (b * heads + h) * rows + r. Packed rows are those of one sequence. Offsets are 64-bit. */
typedef struct fa_merge_params {
  fa_merge_tensor o_parts, lse_parts, o, lse;
  fa_merge_tensor d_o, d_lse, do_parts, dlse_parts; /* backward; d_lse.data NULL: zeros */
  int64_t n_rows;                                   /* of all heads and sequences */
  int heads, rows;
  int parts, head_dim;
  int base_2; /* logarithms; else natural */
} fa_merge_params;

#endif
