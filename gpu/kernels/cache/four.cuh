/* A cache of 4 bits in attention over it: stages hold what the cache holds, and a team makes tiles of elements of one at a time.
 *
 * A stage: KEYS rows of K, D / 2 bytes each, as many of V, and the scales of K and of V, D / 16 bytes a row. A thread copies, and
 * unpacks, chunks of 16 bytes, which are 32 columns; of two of them the first has the four scales of both. */
#ifndef FA_GPU_KERNELS_CACHE_FOUR_CUH
#define FA_GPU_KERNELS_CACHE_FOUR_CUH

#include "gpu/kernels/cache/pipeline.cuh"
#include "gpu/kernels/parts/nibbles.cuh"

namespace fa {

/* Where in a stage. */
template <class C> struct packed_stage {
  static constexpr int ROW = C::D / 2, SCALES = C::D / FA_CACHE_SCALED; /* bytes of a key */
  static constexpr int NUMBERS = C::KEYS * ROW, SCALES_AT = 2 * NUMBERS, OF_V = C::KEYS * SCALES;
};

/* ---- loading ---- */

/* Copies the first n of so many words of bytes at any address, and zeros. */
FA_DEVICE void copy_bytes(uint32_t to, const uint8_t *from, int n, int words) {
  FA_NO_UNROLL
  for (int i = 0; i < words; ++i) {
    uint32_t w = 0;
    FA_UNROLL
    for (int b = 0; b < 4; ++b)
      if (4 * i + b < n) w |= static_cast<uint32_t>(load_global(from + 4 * i + b)) << 8 * b;
    store_shared4(to + 4 * i, w);
  }
}

/* n: bytes from there to the end of the row; 0 or less: zeros. */
template <class C> FA_DEVICE void copy_numbers(uint32_t to, const uint8_t *from, int n, bool aligned) {
  if (aligned)
    copy_chunk<C>(to, from, n > 0);
  else
    copy_bytes(to, from, n, 4);
}
FA_DEVICE void copy_scales(uint32_t to, const uint8_t *from, int n, bool aligned) {
  if (aligned)
    cp_async4(to, from, n > 0);
  else
    copy_bytes(to, from, n, 1);
}

/* Of a chunk's first block, in the block's KV head. Worked out again for each row: pointers that are kept take registers that
 * the kernels of 256 columns do not have. */
FA_DEVICE int64_t scale_at(const fa_kernel_strides &s, int64_t page, int64_t slot, int chunk) {
  return page * s.batch + slot * s.row + opaque(static_cast<int>(blockIdx.y)) * s.head + chunk * 2;
}

template <class C>
FA_DEVICE void load_packed(uint32_t stage, const fa_cache_params &p, const cache_source<C> &from,
                           const cache_pages<C> &pages, int key0, int lo, int hi, int thread) {
  typedef cache_tile_copy<C> copy;
  typedef packed_stage<C> in;
  thread = opaque(thread);
  const int chunk = copy::chunk(thread), columns = p.head_dim - chunk * copy::CHUNK;
  FA_UNROLL
  for (int i = 0; i < copy::ROWS; ++i) {
    const int row = copy::first_row(thread) + i * copy::ROWS_AT_ONCE, key = key0 + row;
    const int n = key >= lo && key < hi ? columns : 0;
    const int64_t page = from.whole ? pages.page[0] : pages.page[i],
                  slot = key - page_of_key(p, key) * p.page_size;
    const uint32_t to = stage + row * in::ROW + chunk * 16,
                   scales = stage + in::SCALES_AT + row * in::SCALES + chunk * 2;
    copy_numbers<C>(to, from.k + page * p.k_stride.batch + slot * p.k_stride.row, n / 2, p.aligned);
    copy_numbers<C>(to + in::NUMBERS, from.v + page * p.v_stride.batch + slot * p.v_stride.row, n / 2, p.aligned);
    if (chunk % 2) continue;
    const fa_cache_block_scales &s = p.block_scales;
    copy_scales(scales, s.k + scale_at(s.k_stride, page, slot, chunk), n / FA_CACHE_SCALED, p.aligned);
    copy_scales(scales + in::OF_V, s.v + scale_at(s.v_stride, page, slot, chunk), n / FA_CACHE_SCALED,
                p.aligned);
  }
}

/* ---- unpacking ---- */

/* A chunk of numbers to four of a tile. scales: of its two blocks, in the lowest bytes. */
template <class C>
FA_DEVICE void unpack_chunk(uint32_t tile, vec4 numbers, uint32_t scales, int row, int chunk) {
  const uint32_t w[4] = {numbers.x, numbers.y, numbers.z, numbers.w};
  FA_UNROLL
  for (int i = 0; i < 4; ++i)
    store_shared16(tile + tile_offset<C::D>(row, 4 * chunk + i),
                   unpacked(w[i], block_scale(scales >> i / 2 * 8 & 0xff), typename C::T()));
}

/* By a whole team: a stage's keys, and their values, as two tiles. */
template <class C> FA_DEVICE void unpack_stage(uint32_t tiles, uint32_t stage, int thread) {
  typedef cache_tile_copy<C> copy;
  typedef packed_stage<C> in;
  thread = opaque(thread);
  const int chunk = copy::chunk(thread);
  FA_NO_UNROLL
  for (int i = 0; i < copy::ROWS; ++i) {
    const int row = copy::first_row(thread) + i * copy::ROWS_AT_ONCE;
    const uint32_t numbers = stage + row * in::ROW + chunk * 16,
                   scales = stage + in::SCALES_AT + row * in::SCALES + chunk / 2 * 4;
    FA_NO_UNROLL
    for (int v = 0; v < 2; ++v)
      unpack_chunk<C>(tiles + v * C::TILE_BYTES, load_shared16(numbers + v * in::NUMBERS),
                      load_shared4(scales + v * in::OF_V) >> chunk % 2 * 16, row, chunk);
  }
}

} // namespace fa

#endif
