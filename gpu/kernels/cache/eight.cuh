/* A cache of 8 bits in attention over it: its descales, and fragments of elements made of tiles of bytes.
 *
 * A lane finds the bytes of four neighbouring columns of a key in a register of a fragment. Columns are therefore counted in
 * another order than in the kernels of 16 bits, within each run of 16:
 *
 *   K   what the MMA takes for columns 2t, 2t + 1 and 2t + 8, 2t + 9 (t = lane % 4) are 4t, 4t + 1 and 4t + 2, 4t + 3. Q is
 *       loaded so too (load_q), and a sum has no order
 *   V   transposing moves pairs of bytes: the even columns of a run are one tile of the MMA, the odd ones another. So are
 *       those of O, until it is stored (store_part) */
#ifndef FA_GPU_KERNELS_CACHE_EIGHT_CUH
#define FA_GPU_KERNELS_CACHE_EIGHT_CUH

#include "gpu/kernels/cache/forward_config.cuh"
#include "gpu/kernels/cache/pipeline.cuh"

namespace fa {

/* ---- descales ---- */

/* What scores are multiplied by, also to base 2, and O at the end: with the descales of a sequence and KV head in them. */
struct cache_scales {
  float score, log2, value;
};
template <class C> FA_DEVICE cache_scales scales_of(const fa_cache_params &p, const cache_work_tile &work) {
  cache_scales s = {p.scale, p.scale_log2, 1.0f};
  if (!C::DESCALED || p.descale.of_slots) return s;
  const int64_t at = work.batch * p.descale.stride.batch + work.kv_head * p.descale.stride.head;
  const float k = p.descale.k ? load_global(p.descale.k + at) : 1.0f;
  s.score = multiply(s.score, k);
  s.log2 = multiply(s.log2, k);
  if (p.descale.v) s.value = load_global(p.descale.v + at);
  return s;
}

/* Multiplies a warp's scores, or its P, by the descales of their slots; from: of the tile's first. */
template <class C> FA_DEVICE void multiply_by_descales(float (&s)[C::KEYS / 8][4], uint32_t from, int lane) {
  FA_UNROLL
  for (int n = 0; n < C::KEYS / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float by = as_float(load_shared4(from + (8 * n + lane % 4 * 2 + e) * 4));
      s[n][e] = multiply(s[n][e], by);
      s[n][e + 2] = multiply(s[n][e + 2], by);
    }
  }
}

/* ---- fragments ---- */

/* Elements of bytes are exact, so none has more digits than T. Of two pairs of bytes: those of the first bytes, those of the second. */
FA_DEVICE void pairs_of(uint32_t (&to)[2], uint32_t x, uint32_t y, f16) {
  to[0] = pick_bytes(x, y, 0x5410);
  to[1] = pick_bytes(x, y, 0x7632);
}
/* A number of so few digits is in the upper half of an f32. */
FA_DEVICE uint32_t upper_halves(float low, float high) {
  return pick_bytes(float_bits(low), float_bits(high), 0x7632);
}
FA_DEVICE void pairs_of(uint32_t (&to)[2], uint32_t x, uint32_t y, bf16) {
  to[0] = upper_halves(low_half(x, f16()), low_half(y, f16()));
  to[1] = upper_halves(high_half(x, f16()), high_half(y, f16()));
}

/* Two bytes of a key, and two of the next: the pairs of both keys' first ones, and of their second ones. The second way takes an
 * instruction more, and registers less. */
template <class C> FA_DEVICE void columns_of_keys(uint32_t (&to)[2], uint32_t bytes) {
  typename C::E from;
  typename C::T t;
  if (C::FEWEST) {
    pairs_of(to, widen2(bytes, from, f16()), widen2(bytes >> 16, from, f16()), t);
    return;
  }
  to[0] = widen2(pick_bytes(bytes, 0, 0x4420), from, t);
  to[1] = widen2(pick_bytes(bytes, 0, 0x4431), from, t);
}

/* K's 16 keys 16n.. and 32 columns 32k..: b[h], of 16 columns each, as load_b has them. */
template <class C> FA_DEVICE void load_b_of_bytes(uint32_t (&b)[2][4], uint32_t k_first, int n, int k) {
  uint32_t bytes[4];
  load_b<C::D / 2>(bytes, k_first, n, k);
  FA_UNROLL
  for (int h = 0; h < 2; ++h) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i)
      b[h][i] = widen2(bytes[h + i / 2 * 2] >> (i % 2 * 16), typename C::E(), typename C::T());
  }
}

/* V's 16 keys 16k.. and 32 columns 32n..: b[h], of 16 columns each, of which [0], [1] have the even and [2], [3] the odd
 * ones. */
template <class C> FA_DEVICE void load_b_trans_of_bytes(uint32_t (&b)[2][4], uint32_t v_first, int k, int n) {
  uint32_t bytes[4];
  load_b_trans<C::D / 2>(bytes, v_first, k, n);
  FA_UNROLL
  for (int h = 0; h < 2; ++h) {
    FA_UNROLL
    for (int i = 0; i < 2; ++i) { /* of two keys */
      uint32_t pairs[2];
      columns_of_keys<C>(pairs, bytes[2 * h + i]);
      b[h][i] = pairs[0];
      b[h][i + 2] = pairs[1];
    }
  }
}

} // namespace fa

#endif
