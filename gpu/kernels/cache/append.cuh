/* Runs before attention over a KV cache: appends new keys (rotated) and new values to their slots of the
 * cache, and copies queries (rotated) to a buffer of their own.
 *
 * A thread copies 8 neighbouring elements of a row or, of rows of any width and of f32, one. The other element of a
 * rotated pair may be anywhere in the row, so it is loaded separately, from the source, which no kernel writes. Elements
 * past rotary_dim, and values, keep their bits. */
#ifndef FA_GPU_KERNELS_CACHE_APPEND_CUH
#define FA_GPU_KERNELS_CACHE_APPEND_CUH

#include "gpu/kernels/cache/slot.cuh"
#include "gpu/kernels/parts/tile.cuh"

namespace fa {

/* What an element lies in memory as. */
template <class T> struct append_storage { typedef uint16_t type; };
template <> struct append_storage<f32> { typedef float type; };

FA_DEVICE float append_value(float x, f32) {
  return x;
}
template <class T> FA_DEVICE float append_value(uint16_t x, T) {
  return low_half(static_cast<uint32_t>(x), T());
}
FA_DEVICE float append_stored(float x, f32) {
  return x;
}
template <class T> FA_DEVICE uint16_t append_stored(float x, T) {
  return static_cast<uint16_t>(pack2(x, 0.0f, T()));
}

/* Element d of a row, rotated; cosines, sines: of the row's position. */
template <class T, class S>
FA_DEVICE float rotated(const fa_cache_append_params &p, const S *row, const S *cosines, const S *sines, int d) {
  const int half = p.rotary_dim / 2;
  const bool second = p.rotary_interleaved ? d % 2 : d >= half;
  const int pair = p.rotary_interleaved ? d / 2 : second ? d - half : d;
  const int other = p.rotary_interleaved ? d ^ 1 : second ? pair : d + half;
  const float x = append_value(load_global(row + d), T()), y = append_value(load_global(row + other), T());
  const float c = append_value(load_global(cosines + pair), T()), s = append_value(load_global(sines + pair), T());
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

/* The rows that a block's threads share, of which each has `chunks` parts: a part's row, head and place in the row. */
struct append_work {
  int batch, part, chunks, heads;
  int first;       /* the sequence's first new slot */
  int row0;        /* its first row in the source */
  int64_t n, step; /* parts, and how far apart a thread's are */
};

FA_DEVICE append_work append_work_of(const fa_cache_append_params &p, int chunks) {
  append_work w;
  w.part = p.first_part + static_cast<int>(blockIdx.y);
  w.batch = static_cast<int>(blockIdx.z);
  w.chunks = chunks;
  w.heads = p.heads[w.part];
  w.first = load_global(p.cache_seqlens + w.batch);
  const bool packed = w.part == FA_CACHE_Q && p.cu_seqlens_q;
  w.row0 = packed ? load_global(p.cu_seqlens_q + w.batch) : 0;
  const int n_rows = packed ? load_global(p.cu_seqlens_q + w.batch + 1) - w.row0 : p.rows[w.part];
  w.n = static_cast<int64_t>(n_rows) * w.heads * chunks;
  w.step = static_cast<int64_t>(gridDim.x) * FA_CACHE_APPEND_THREADS;
  return w;
}

/* Offsets of a row in its source and where it goes, and its position. */
struct append_row {
  int64_t from, to;
  int position;
};

FA_DEVICE append_row append_row_of(const fa_cache_append_params &p, const append_work &w, int64_t i) {
  const int head = static_cast<int>(i / w.chunks % w.heads), row = static_cast<int>(i / w.chunks / w.heads);
  const fa_kernel_strides &from = p.from_stride[w.part], &to = p.to_stride[w.part];
  const int64_t place = w.part == FA_CACHE_Q ? w.batch * to.batch + (w.row0 + row) * to.row
                                             : slot_offset(p, to, w.batch, w.first + row);
  return {w.batch * from.batch + (w.row0 + row) * from.row + head * from.head, place + head * to.head,
          w.first + (w.part == FA_CACHE_Q && !p.queries_move ? 0 : row)};
}

template <class T> FA_DEVICE void cache_append(const fa_cache_append_params &p) {
  const append_work w = append_work_of(p, p.head_dim / 8);
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * FA_CACHE_APPEND_THREADS + threadIdx.x; i < w.n; i += w.step) {
    const int d0 = static_cast<int>(i % w.chunks) * 8;
    const append_row row = append_row_of(p, w, i);
    const uint16_t *source = p.from[w.part] + row.from;
    vec4 v = p.aligned[w.part] ? load_chunk<true>(source + d0) : load_chunk<false>(source + d0);
    if (w.part != FA_CACHE_V && d0 < p.rotary_dim) v = rotated_chunk<T>(p, source, row.position, d0, v);
    uint16_t *target = p.to[w.part] + row.to + d0;
    if (p.aligned[w.part])
      store_chunk<true>(target, v);
    else
      store_chunk<false>(target, v);
  }
}

/* Element by element: pointers and strides count elements of T, whatever their type says. */
template <class T> FA_DEVICE void cache_append_elements(const fa_cache_append_params &p) {
  typedef typename append_storage<T>::type S;
  const append_work w = append_work_of(p, p.head_dim);
  const S *const from = reinterpret_cast<const S *>(p.from[w.part]);
  S *const to = reinterpret_cast<S *>(p.to[w.part]);
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * FA_CACHE_APPEND_THREADS + threadIdx.x; i < w.n; i += w.step) {
    const int d = static_cast<int>(i % w.chunks);
    const append_row row = append_row_of(p, w, i);
    S x = load_global(from + row.from + d);
    if (w.part != FA_CACHE_V && d < p.rotary_dim)
      x = append_stored(rotated<T>(p, from + row.from,
                                   reinterpret_cast<const S *>(p.cosines) + row.position * p.cos_stride,
                                   reinterpret_cast<const S *>(p.sines) + row.position * p.sin_stride, d),
                        T());
    store_global(to + row.to + d, x);
  }
}

} // namespace fa

#endif
