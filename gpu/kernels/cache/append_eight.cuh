/* New keys and values to a cache of 8 bits: bytes as they are or, of 16 bits, divided by their descale and rounded to
 * nearest. Element by element: any strides do. */
#ifndef FA_GPU_KERNELS_CACHE_APPEND_EIGHT_CUH
#define FA_GPU_KERNELS_CACHE_APPEND_EIGHT_CUH

#include "gpu/kernels/cache/append.cuh"
#include "gpu/kernels/parts/narrow.cuh"

namespace fa {

template <class E, class T>
FA_DEVICE uint8_t quantised(const fa_cache_append_params &p, const append_work &w, const append_row &row, int64_t i) {
  const float *const descales = w.part == FA_CACHE_K ? p.descale.k : p.descale.v;
  const int d = static_cast<int>(i % w.chunks), head = static_cast<int>(i / w.chunks % w.heads);
  const float x = append_value(load_global(p.from[w.part] + row.from + d), T());
  const float by = descales ? load_global(descales + w.batch * p.descale.stride.batch + head * p.descale.stride.head) : 1.0f;
  return narrowed(divide(x, by), E());
}

/* T: of new keys that are quantised; bytes are the same whatever they are. */
template <class E, class T> FA_DEVICE void cache_append_eight(const fa_cache_append_params &p) {
  const append_work w = append_work_of(p, p.head_dim);
  const uint8_t *const from = reinterpret_cast<const uint8_t *>(p.from[w.part]);
  uint8_t *const to = reinterpret_cast<uint8_t *>(p.to[w.part]);
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * FA_CACHE_APPEND_THREADS + threadIdx.x; i < w.n; i += w.step) {
    const int d = static_cast<int>(i % w.chunks);
    const append_row row = append_row_of(p, w, i);
    store_global(to + row.to + d, p.quantises ? quantised<E, T>(p, w, row, i) : load_global(from + row.from + d));
  }
}

} // namespace fa

#endif
