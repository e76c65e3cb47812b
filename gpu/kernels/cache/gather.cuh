/* Runs before the kernels of ordinary keys where these attend to a KV cache: copies the keys and values of pages, or of cache
 * rows in any order, to where rows follow one another, and writes how many keys each sequence has.
 *
 * A thread copies 8 neighbouring elements of a row. */
#ifndef FA_GPU_KERNELS_CACHE_GATHER_CUH
#define FA_GPU_KERNELS_CACHE_GATHER_CUH

#include "gpu/kernels/cache/slot.cuh"
#include "gpu/kernels/parts/tile.cuh"

namespace fa {

/* One thread of a sequence writes what is its, and that of the last sequence where the next one would begin. */
FA_DEVICE void gather_lengths(const fa_cache_gather_params &p, int batch, int length) {
  if (blockIdx.x != 0 || blockIdx.y != 0 || threadIdx.x != 0) return;
  store_global(p.lengths + batch, length);
  if (!p.first) return;
  store_global(p.first + batch, batch * p.slots);
  if (batch + 1 == static_cast<int>(gridDim.z)) store_global(p.first + batch + 1, (batch + 1) * p.slots);
}

FA_DEVICE void cache_gather(const fa_cache_gather_params &p) {
  const int part = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int length = load_global(p.cache_seqlens + batch) + p.n_new, chunks = p.columns[part] / 8;
  gather_lengths(p, batch, length);
  if (!p.to[part]) return;
  const int past = p.slots - length < FA_CACHE_GATHER_PAST ? p.slots - length : FA_CACHE_GATHER_PAST;
  const int64_t n = static_cast<int64_t>(length + past) * p.heads * chunks;
  const int64_t step = static_cast<int64_t>(gridDim.x) * FA_CACHE_GATHER_THREADS;
  uint16_t *const to = p.to[part] + static_cast<int64_t>(batch) * p.slots * p.heads * p.columns[part];
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * FA_CACHE_GATHER_THREADS + threadIdx.x; i < n; i += step) {
    const int d0 = static_cast<int>(i % chunks) * 8, head = static_cast<int>(i / chunks % p.heads);
    const int slot = static_cast<int>(i / chunks / p.heads);
    const fa_kernel_strides &stride = p.from_stride[part];
    vec4 v = {0, 0, 0, 0};
    if (slot < length) {
      const uint16_t *from = p.from[part] + slot_offset(p, stride, batch, slot) + head * stride.head + d0;
      v = p.aligned[part] ? load_chunk<true>(from) : load_chunk<false>(from);
    }
    store_chunk<true>(to + i * 8, v);
  }
}

} // namespace fa

#endif
