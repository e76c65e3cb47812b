/* Arguments of the main backward kernel for sm_90a: those of the others of the call, and maps. */
#ifndef FA_GPU_KERNELS_PARAMS_HOPPER_BACKWARD_H
#define FA_GPU_KERNELS_PARAMS_HOPPER_BACKWARD_H

#include "gpu/kernels/params/flash_backward.h"
#include "gpu/kernels/params/tensor_map.h"

/* Maps have axes head_dim, row, head, batch. */
typedef struct fa_hopper_backward_params {
  fa_tensor_map q, k, v, d_o, dk, dv;
  fa_backward_params b;
  int row_dim; /* columns of the workspace's rows, of which tiles of whole panels may have more */
} fa_hopper_backward_params;

#endif
