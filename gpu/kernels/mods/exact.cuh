/* Sums of floats that do not depend on the order of the additions: exact, in integers.
 *
 * Every finite float is a multiple of 2^-149, less than 2^277. The sum of an element, as a multiple of
 * 2^-149, is kept in FLEX_LIMBS signed 64-bit integers whose units are 24 bits apart: limb k counts 2^(24 k -
 * 149). A float has 24 significant bits, so it adds to at most two neighbouring limbs, less than 2^24 to
 * each, and each limb has room for any 2^38 such additions. Additions to limbs are atomic and associative: in
 * any order they give the same integers. NaN and infinities are counted separately, and decide as in a sum of
 * floats: NaN, or infinities of both signs, give NaN; infinities of one sign give that infinity. Finite
 * numbers never overflow on the way.
 *
 * The sum is rounded once at the end, to nearest, ties to even. A sum of 0 is +0. */
#ifndef FA_GPU_KERNELS_MODS_EXACT_CUH
#define FA_GPU_KERNELS_MODS_EXACT_CUH

#include "gpu/kernels/params/flex.h"
#include "gpu/kernels/machine/prim.cuh"

namespace fa {

static constexpr int FLEX_LIMBS = 12, FLEX_LIMB_BITS = 24;
static constexpr int FLEX_NAN = FLEX_LIMBS, FLEX_PLUS = FLEX_LIMBS + 1, FLEX_MINUS = FLEX_LIMBS + 2;
static_assert(FLEX_MINUS < FA_FLEX_EXACT_WORDS, "limbs, and counts of NaN, +inf and -inf");

/* sum: FA_FLEX_EXACT_WORDS words. */
FA_DEVICE void exact_add(uint64_t *sum, float x) {
  const uint32_t bits = float_bits(x), exponent = bits >> 23 & 0xff;
  if (exponent == 0xff) {
    atomic_add(sum + (bits << 9 ? FLEX_NAN : bits >> 31 ? FLEX_MINUS : FLEX_PLUS), static_cast<uint64_t>(1));
    return;
  }
  const uint32_t mantissa = (bits & 0x7fffff) | (exponent ? 0x800000u : 0u);
  const int unit = exponent ? static_cast<int>(exponent) - 1 : 0; /* exponent of the last bit, above 2^-149 */
  const int limb = unit / FLEX_LIMB_BITS;
  const uint64_t shifted = static_cast<uint64_t>(mantissa) << unit % FLEX_LIMB_BITS;
  const uint64_t low = shifted & 0xffffff, high = shifted >> FLEX_LIMB_BITS;
  const bool negative = bits >> 31;
  if (low) atomic_add(sum + limb, negative ? 0 - low : low);
  if (high) atomic_add(sum + limb + 1, negative ? 0 - high : high);
}

/* sign * the limbs as digits of 24 bits; returns the carry out of the last, negative if the number is. */
FA_DEVICE int64_t exact_digits(uint32_t (&digit)[FLEX_LIMBS], const uint64_t (&limb)[FLEX_LIMBS],
                               bool negate) {
  int64_t carry = 0;
  FA_UNROLL
  for (int k = 0; k < FLEX_LIMBS; ++k) {
    carry += static_cast<int64_t>(negate ? 0 - limb[k] : limb[k]);
    digit[k] = static_cast<uint32_t>(carry) & 0xffffff;
    carry >>= FLEX_LIMB_BITS;
  }
  return carry;
}

/* The bits of the float nearest to the digits' multiple of 2^-149. */
FA_DEVICE uint32_t exact_magnitude(const uint32_t (&digit)[FLEX_LIMBS], int64_t above) {
  if (above) return 0x7f800000u;
  uint64_t top = 0; /* the highest digit that is not 0, and the one below it */
  int at = 0;
  bool sticky = false; /* any bit set below those two */
  FA_UNROLL
  for (int k = FLEX_LIMBS - 1; k >= 0; --k) {
    if (top >> FLEX_LIMB_BITS) {
      sticky = sticky || digit[k];
    } else {
      at = k;
      top = top << FLEX_LIMB_BITS | digit[k];
    }
  }
  /* top is in units of 2^(24 at - 149): round to its 24 leading bits, or to units of 2^-149 where those are
   * fewer */
  int shift = 0;
  while (top >> shift >> FLEX_LIMB_BITS) ++shift;
  const uint64_t rest = top & ((static_cast<uint64_t>(1) << shift) - 1),
                 half = shift ? static_cast<uint64_t>(1) << (shift - 1) : 0;
  uint64_t mantissa = top >> shift;
  if (shift && (rest > half || (rest == half && (sticky || (mantissa & 1))))) ++mantissa;
  const int unit = FLEX_LIMB_BITS * at + shift;
  /* a mantissa that rounds up to 2^24 carries into the exponent; one below 2^23 is subnormal: unit is 0 */
  const uint64_t bits = (static_cast<uint64_t>(unit) << 23) + mantissa;
  return bits < 0x7f800000u ? static_cast<uint32_t>(bits) : 0x7f800000u;
}

FA_DEVICE float exact_round(const uint64_t *sum) {
  uint64_t limb[FLEX_LIMBS];
  FA_UNROLL
  for (int k = 0; k < FLEX_LIMBS; ++k) limb[k] = load_global(sum + k);
  const bool plus = load_global(sum + FLEX_PLUS), minus = load_global(sum + FLEX_MINUS);
  if (load_global(sum + FLEX_NAN) || (plus && minus)) return as_float(0x7fffffffu);
  if (plus || minus) return as_float(plus ? 0x7f800000u : 0xff800000u);
  uint32_t digit[FLEX_LIMBS];
  int64_t above = exact_digits(digit, limb, false);
  const bool negative = above < 0;
  if (negative) above = exact_digits(digit, limb, true);
  return as_float(exact_magnitude(digit, above) | (negative ? 0x80000000u : 0u));
}

/* ---- kernels: a block works on FA_FLEX_EXACT_ELEMENTS elements of one buffer ---- */

FA_DEVICE void flex_exact_clear(const fa_flex_exact_params &p) {
  const int k = static_cast<int>(blockIdx.y);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * FA_FLEX_EXACT_ELEMENTS;
  if (!p.out[k]) return;
  const int words = p.exact[k] ? FA_FLEX_EXACT_WORDS : 1;
  FA_NO_UNROLL
  for (int i = static_cast<int>(threadIdx.x); i < FA_FLEX_EXACT_ELEMENTS * words;
       i += FA_FLEX_EXACT_THREADS) {
    if (first + i / words >= p.n[k]) return;
    if (p.exact[k])
      store_global(p.exact[k] + first * words + i, static_cast<uint64_t>(0));
    else
      store_global(p.dbuffer[k] + first + i, 0.0f);
  }
}

FA_DEVICE void flex_exact_round(const fa_flex_exact_params &p) {
  const int k = static_cast<int>(blockIdx.y);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * FA_FLEX_EXACT_ELEMENTS + static_cast<int>(threadIdx.x);
  if (i >= p.n[k] || !p.out[k] || (!p.exact[k] && p.stored[k] == FA_FLEX_AS_F32)) return;
  const float sum = p.exact[k] ? exact_round(p.exact[k] + i * FA_FLEX_EXACT_WORDS) : load_global(p.dbuffer[k] + i);
  if (p.stored[k] == FA_FLEX_AS_F32)
    store_global(static_cast<float *>(p.out[k]) + i, sum);
  else
    store_global(static_cast<uint16_t *>(p.out[k]) + i,
                 static_cast<uint16_t>(p.stored[k] == FA_FLEX_AS_F16 ? pack2(sum, 0.0f, f16()) : pack2(sum, 0.0f, bf16())));
}

} // namespace fa

#endif
