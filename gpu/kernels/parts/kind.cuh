/* What a kernel is compiled for: one thing that costs time for every pair, or all that a family has. */
#ifndef FA_GPU_KERNELS_PARTS_KIND_CUH
#define FA_GPU_KERNELS_PARTS_KIND_CUH

namespace fa {

/* All but `general` and `mixed` want rows that begin on 16 bytes; `biased` wants that of the bias too, and
 * whole chunks of keys. */
enum kernel_kind {
  plain,
  alibi,
  softcap,
  dropout,
  biased,
  flex,    /* score_mod, mask_mod, block lists (kernels for sm_90a) */
  general, /* as the parameters say: unaligned rows, softcap and ALiBi, tiled dropout, p_debug */
  mixed /* as the parameters say: unaligned rows, bias, linear dropout, any two head dims up to the tile's */
};

/* What that means at compile time. */
template <kernel_kind KIND> struct kernel_kind_traits {
  static constexpr bool GENERAL = KIND == general, MIXED = KIND == mixed, ALIGNED = !GENERAL && !MIXED;
  static constexpr bool ALIBI = KIND == alibi || GENERAL;
  static constexpr bool SOFTCAP = KIND == softcap || GENERAL;
  static constexpr bool DROPOUT = KIND == dropout || GENERAL; /* tiled */
  static constexpr bool LINEAR = MIXED;                       /* linear dropout */
  static constexpr bool BIAS = KIND == biased || MIXED;
  static constexpr bool FLEX = KIND == flex;
};

/* What the scale of a score is followed by, when its maximum or its LSE is subtracted before it goes to base
 * 2: a bias may be as low as floats go. */
static constexpr float LOG2E = 1.44269504088896340736f;

} // namespace fa

#endif
