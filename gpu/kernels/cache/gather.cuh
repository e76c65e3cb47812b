/* Runs before the kernels of ordinary keys where these attend to a KV cache: copies the keys and values of pages, or of cache
 * rows in any order, to where rows follow one another, and writes how many keys each sequence has.
 *
 * A thread copies 16 bytes of a row or, where rows do not begin on 16 bytes, two at a time, whatever the elements are. */
#ifndef FA_GPU_KERNELS_CACHE_GATHER_CUH
#define FA_GPU_KERNELS_CACHE_GATHER_CUH

#include "gpu/kernels/cache/slot.cuh"

namespace fa {

/* One thread of a sequence writes what is its, and that of the last sequence where the next one would begin. */
FA_DEVICE void gather_lengths(const fa_cache_gather_params &p, int batch, int length) {
  if (blockIdx.x != 0 || blockIdx.y != 0 || threadIdx.x != 0) return;
  store_global(p.lengths + batch, length);
  if (!p.first) return;
  store_global(p.first + batch, batch * p.slots);
  if (batch + 1 == static_cast<int>(gridDim.z)) store_global(p.first + batch + 1, (batch + 1) * p.slots);
}

/* A thread's share of a part: UNIT halves of a row at a time. */
template <int UNIT> FA_DEVICE void gather_part(const fa_cache_gather_params &p, int part, int batch, int length) {
  const int past = p.slots - length < FA_CACHE_GATHER_PAST ? p.slots - length : FA_CACHE_GATHER_PAST;
  const int units = p.columns[part] / UNIT;
  const int64_t n = static_cast<int64_t>(length + past) * p.heads * units;
  const int64_t step = static_cast<int64_t>(gridDim.x) * FA_CACHE_GATHER_THREADS;
  uint16_t *const to = p.to[part] + static_cast<int64_t>(batch) * p.slots * p.heads * p.columns[part];
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * FA_CACHE_GATHER_THREADS + threadIdx.x; i < n; i += step) {
    const int at = static_cast<int>(i % units) * UNIT, head = static_cast<int>(i / units % p.heads);
    const int slot = static_cast<int>(i / units / p.heads);
    const fa_kernel_strides &stride = p.from_stride[part];
    const uint16_t *from = nullptr;
    if (slot < length) from = p.from[part] + slot_offset(p, stride, batch, slot) + head * stride.head + at;
    if constexpr (UNIT == 8)
      store_global(reinterpret_cast<vec4 *>(to + i * UNIT),
                   from ? load_global(reinterpret_cast<const vec4 *>(from)) : vec4{0, 0, 0, 0});
    else
      store_global(to + i, from ? load_global(from) : static_cast<uint16_t>(0));
  }
}

FA_DEVICE void cache_gather(const fa_cache_gather_params &p) {
  const int part = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int length = load_global(p.cache_seqlens + batch) + p.n_new;
  gather_lengths(p, batch, length);
  if (!p.to[part]) return;
  if (p.aligned[part])
    gather_part<8>(p, part, batch, length);
  else
    gather_part<1>(p, part, batch, length);
}

} // namespace fa

#endif
