/* Tiles of K whose rows mix types (gpu/fa.h, mixed_rows): numbers of e4m3 become elements as they are loaded, times the
 * descale of their 128 columns, in float32 and rounded; the other columns are elements. To all that follows the tile is one of
 * elements. */
#ifndef FA_GPU_KERNELS_CACHE_LARGE_MIXED_CUH
#define FA_GPU_KERNELS_CACHE_LARGE_MIXED_CUH

#include "gpu/kernels/cache/pipeline.cuh"

namespace fa {

/* Where the rows are that a thread copies of a tile. */
template <class C> struct large_rows {
  static constexpr int N = cache_tile_copy<C>::ROWS;
  int page[N], slot[N]; /* slot < 0: there is no such key, and nothing is read */
};

/* Four bytes at any address; aligned: at a multiple of 4. */
FA_DEVICE uint32_t mixed_word(const uint8_t *from, int aligned) {
  if (aligned) return load_global(reinterpret_cast<const uint32_t *>(from));
  uint32_t word = 0;
  FA_UNROLL
  for (int i = 0; i < 4; ++i) word |= static_cast<uint32_t>(load_global(from + i)) << 8 * i;
  return word;
}

/* The two lowest bytes, numbers of e4m3, times by. */
template <class T> FA_DEVICE uint32_t mixed_pair(uint32_t bytes, float by, T to) {
  const uint32_t numbers = widen2(bytes, e4m3(), f16());
  return pack2(multiply(low_half(numbers, f16()), by), multiply(high_half(numbers, f16()), by), to);
}

/* Eight columns of a row, from `column` on. */
template <class C> FA_DEVICE vec4 mixed_columns(const fa_cache_params &p, const uint8_t *row, int column) {
  const uint8_t *const descales = row + p.head_dim_v;
  const uint8_t *const others = descales + p.head_dim_v / FA_CACHE_MIXED_TILE * 4;
  if (column >= p.head_dim_v) {
    const uint8_t *const at = others + (column - p.head_dim_v) * 2;
    return vec4{mixed_word(at, p.aligned), mixed_word(at + 4, p.aligned), mixed_word(at + 8, p.aligned),
                mixed_word(at + 12, p.aligned)};
  }
  typename C::T t;
  const float by = as_float(mixed_word(descales + column / FA_CACHE_MIXED_TILE * 4, p.aligned));
  const uint32_t low = mixed_word(row + column, p.aligned), high = mixed_word(row + column + 4, p.aligned);
  return vec4{mixed_pair(low, by, t), mixed_pair(low >> 16, by, t), mixed_pair(high, by, t), mixed_pair(high >> 16, by, t)};
}

/* As load_large_tile (large_load.cuh), of which rows that do not exist become zeros too. */
template <class C>
FA_DEVICE void load_mixed_tile(uint32_t tile, const fa_cache_params &p, const cache_source<C> &from,
                               const large_rows<C> &rows, int n_chunks, int thread) {
  typedef cache_tile_copy<C> copy;
  const int chunk = copy::chunk(thread);
  const uint8_t *const first = from.k - chunk * copy::CHUNK; /* a row begins there, whatever the thread's chunk */
  FA_UNROLL
  for (int i = 0; i < copy::ROWS; ++i) {
    const bool is_key = rows.slot[i] >= 0;
    const uint8_t *row = first + rows.page[i] * p.k_stride.batch + (is_key ? rows.slot[i] : 0) * p.k_stride.row;
    const uint32_t to = tile + tile_offset<C::D>(copy::first_row(thread) + i * copy::ROWS_AT_ONCE, chunk);
    FA_NO_UNROLL
    for (int c = 0; c + chunk < n_chunks; c += 8) {
      const int column = (c + chunk) * 8;
      const bool read = is_key && column < p.head_dim;
      store_shared16(to + c * 16, read ? mixed_columns<C>(p, row, column) : vec4{0, 0, 0, 0});
    }
  }
}

} // namespace fa

#endif
