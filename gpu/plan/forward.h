/* The choice of a forward kernel: part of gpu/plan/make.h. */
#ifndef FA_GPU_PLAN_FORWARD_H
#define FA_GPU_PLAN_FORWARD_H

#include "gpu/plan/parts.h"

/* The portable kernel for arguments that passed fa_attention_check_problem; NULL, with a message: there is
 * none. aligned: all rows begin on 16 bytes. */
const fa_kernel *fa_forward_kernel(const fa_attention *a, bool aligned, const fa_kernel_device *device,
                                   fa_error *err);

#endif
