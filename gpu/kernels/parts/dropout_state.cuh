/* The seed and the offset of dropout's random numbers: the launch's own, or what device memory holds when the kernel
 * runs, so that a captured graph draws other numbers each time that it is replayed. */
#ifndef FA_GPU_KERNELS_PARTS_DROPOUT_STATE_CUH
#define FA_GPU_KERNELS_PARTS_DROPOUT_STATE_CUH

#include "gpu/kernels/machine/prim.cuh"
#include "gpu/kernels/params/attention.h"

namespace fa {

FA_DEVICE uint64_t dropout_seed_of(const fa_attention_params &p) {
  return p.dropout_seed_at ? load_global(p.dropout_seed_at) : p.dropout_seed;
}
FA_DEVICE uint64_t dropout_offset_of(const fa_attention_params &p) {
  return p.dropout_offset_at ? p.dropout_offset + load_global(p.dropout_offset_at) : p.dropout_offset;
}

/* Writes them down for the backward pass. Called by all threads of all blocks; one of them writes. */
FA_DEVICE void store_dropout_used(const fa_attention_params &p, int thread) {
  if (!p.dropout_used || (thread | blockIdx.x | blockIdx.y | blockIdx.z) != 0) return;
  store_global(p.dropout_used, dropout_seed_of(p));
  store_global(p.dropout_used + 1, dropout_offset_of(p));
}

} // namespace fa

#endif
