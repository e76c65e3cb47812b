/* Arguments of the main backward kernels for sm_90a: those of the call's other kernels, and tensor maps. */
#ifndef FA_GPU_KERNELS_PARAMS_HOPPER_BACKWARD_H
#define FA_GPU_KERNELS_PARAMS_HOPPER_BACKWARD_H

#include "gpu/kernels/params/flash_backward.h"
#include "gpu/kernels/params/tensor_map.h"

/* The maps have axes head_dim, row, head, batch. */
typedef struct fa_hopper_backward_params {
  fa_tensor_map q, k, v, d_o, dk, dv;
  fa_backward_params b;
  int row_dim; /* columns of a row of the workspace; a tile of whole panels may have more */
} fa_hopper_backward_params;

#endif
