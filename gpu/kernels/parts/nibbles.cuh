/* Numbers of e2m1, eight in a word, times the e4m3 scale of their block, as elements. A number of e2m1 is one of e4m3 whose
 * exponent is less by 6, and its product with a scale has 6 significant bits between 2^-10 and 2688: it is exact in f16, and
 * so in bf16. */
#ifndef FA_GPU_KERNELS_PARTS_NIBBLES_CUH
#define FA_GPU_KERNELS_PARTS_NIBBLES_CUH

#include "gpu/kernels/machine/prim.cuh"

namespace fa {

/* Two numbers as e4m3, of 2^-6 times their size, times 2^6 times their scale. */
FA_DEVICE uint32_t scaled2(uint32_t bytes, uint32_t scale, f16 t) {
  return multiply2(widen2(bytes, e4m3(), t), scale, t);
}
FA_DEVICE uint32_t scaled2(uint32_t bytes, uint32_t scale, bf16 t) {
  const uint32_t x = scaled2(bytes, scale, f16());
  return pack2(low_half(x, f16()), high_half(x, f16()), t);
}

/* A block's scale times 2^6, twice. */
FA_DEVICE uint32_t block_scale(uint32_t byte) {
  return multiply2(widen2(byte | byte << 8, e4m3(), f16()), 0x54005400u, f16());
}

/* Eight numbers, the first of them in the lowest bits. */
template <class T> FA_DEVICE vec4 unpacked(uint32_t numbers, uint32_t scale, T t) {
  const uint32_t even = (numbers & 0x08080808u) << 4 | (numbers & 0x07070707u) << 2;
  const uint32_t odd = (numbers & 0x80808080u) | (numbers >> 2 & 0x1c1c1c1cu);
  const uint32_t low = pick_bytes(even, odd, 0x5140), high = pick_bytes(even, odd, 0x7362);
  return vec4{scaled2(low, scale, t), scaled2(low >> 16, scale, t), scaled2(high, scale, t),
              scaled2(high >> 16, scale, t)};
}

} // namespace fa

#endif
