/* Runs before attention over a KV cache: appends new keys (rotated) and new values to their slots of the
 * cache, and copies queries (rotated) to a buffer of their own.
 *
 * A thread copies 8 neighbouring elements of a row. The other element of a rotated pair may be anywhere in
 * the row, so it is loaded separately, from the source, which no kernel writes. Elements past rotary_dim, and
 * values, keep their bits. */
#ifndef FA_GPU_KERNELS_CACHE_APPEND_CUH
#define FA_GPU_KERNELS_CACHE_APPEND_CUH

#include "gpu/kernels/cache/slot.cuh"
#include "gpu/kernels/parts/tile.cuh"

namespace fa {

template <class T> FA_DEVICE float load_element(const uint16_t *p) {
  return low_half(static_cast<uint32_t>(load_global(p)), T());
}

/* Element d of a row, rotated; cosines, sines: of the row's position. */
template <class T>
FA_DEVICE float rotated(const fa_cache_append_params &p, const uint16_t *row, const uint16_t *cosines,
                        const uint16_t *sines, int d) {
  const int half = p.rotary_dim / 2;
  const bool second = p.rotary_interleaved ? d % 2 : d >= half;
  const int pair = p.rotary_interleaved ? d / 2 : second ? d - half : d;
  const int other = p.rotary_interleaved ? d ^ 1 : second ? pair : d + half;
  const float x = load_element<T>(row + d), y = load_element<T>(row + other);
  const float c = load_element<T>(cosines + pair), s = load_element<T>(sines + pair);
  return second ? fmaf(y, s, multiply(x, c)) : fmaf(x, c, -multiply(y, s));
}

/* The 8 elements from d0 on, rotated. */
template <class T>
FA_DEVICE vec4 rotated_chunk(const fa_cache_append_params &p, const uint16_t *row, int position, int d0,
                             vec4 v) {
  const uint16_t *cosines = p.cosines + position * p.cos_stride, *sines = p.sines + position * p.sin_stride;
  uint32_t w[4] = {v.x, v.y, v.z, v.w};
  FA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int d = d0 + 2 * i;
    if (d < p.rotary_dim)
      w[i] = pack2(rotated<T>(p, row, cosines, sines, d), rotated<T>(p, row, cosines, sines, d + 1), T());
  }
  return vec4{w[0], w[1], w[2], w[3]};
}

template <class T> FA_DEVICE void cache_append(const fa_cache_append_params &p) {
  const int part = p.first_part + static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int chunks = p.head_dim / 8, heads = p.heads[part];
  const int first = load_global(p.cache_seqlens + batch);
  const fa_kernel_strides &from = p.from_stride[part], &to = p.to_stride[part];
  const bool packed = part == FA_CACHE_Q && p.cu_seqlens_q;
  const int row0 = packed ? load_global(p.cu_seqlens_q + batch) : 0;
  const int n_rows = packed ? load_global(p.cu_seqlens_q + batch + 1) - row0 : p.rows[part];
  const int64_t n = static_cast<int64_t>(n_rows) * heads * chunks;
  const int64_t step = static_cast<int64_t>(gridDim.x) * FA_CACHE_APPEND_THREADS;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * FA_CACHE_APPEND_THREADS + threadIdx.x; i < n; i += step) {
    const int d0 = static_cast<int>(i % chunks) * 8, head = static_cast<int>(i / chunks % heads);
    const int row = static_cast<int>(i / chunks / heads);
    const uint16_t *source = p.from[part] + batch * from.batch + (row0 + row) * from.row + head * from.head;
    vec4 v = p.aligned[part] ? load_chunk<true>(source + d0) : load_chunk<false>(source + d0);
    if (part != FA_CACHE_V && d0 < p.rotary_dim)
      v = rotated_chunk<T>(p, source, first + (part == FA_CACHE_Q && !p.queries_move ? 0 : row), d0, v);
    const int64_t place =
        part == FA_CACHE_Q ? batch * to.batch + (row0 + row) * to.row : slot_offset(p, to, batch, first + row);
    uint16_t *target = p.to[part] + place + head * to.head + d0;
    if (p.aligned[part])
      store_chunk<true>(target, v);
    else
      store_chunk<false>(target, v);
  }
}

} // namespace fa

#endif
