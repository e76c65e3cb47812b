/* The kernel kinds: each is compiled for one feature that costs time on every pair (row, key), or for all
 * features of its family. */
#ifndef FA_GPU_KERNELS_PARTS_KIND_CUH
#define FA_GPU_KERNELS_PARTS_KIND_CUH

namespace fa {

/* All but `general` and `mixed` need rows that begin on 16 bytes; `biased` also needs that of the bias, and a
 * multiple of 8 keys. */
enum kernel_kind {
  plain,
  alibi,
  softcap,
  dropout,
  biased,
  linear,  /* linear dropout (kernels for sm_90a) */
  flex,    /* score_mod, mask_mod, block lists (kernels for sm_90a) */
  several, /* chosen at run time: any of softcap, ALiBi and tiled dropout (kernels for sm_90a) */
  general, /* chosen at run time by the parameters: unaligned rows, softcap and ALiBi, tiled dropout, p_debug */
  mixed /* chosen at run time: unaligned rows, bias, linear dropout, any two head dims up to the tile's */
};

/* The compile-time properties of a kind. */
template <kernel_kind KIND> struct kernel_kind_traits {
  static constexpr bool GENERAL = KIND == general, MIXED = KIND == mixed, ALIGNED = !GENERAL && !MIXED;
  static constexpr bool SEVERAL = KIND == several;
  static constexpr bool ALIBI = KIND == alibi || GENERAL || SEVERAL;
  static constexpr bool SOFTCAP = KIND == softcap || GENERAL || SEVERAL;
  static constexpr bool DROPOUT = KIND == dropout || GENERAL || SEVERAL; /* tiled */
  static constexpr bool LINEAR = KIND == linear || MIXED; /* linear dropout */
  static constexpr bool BIAS = KIND == biased || MIXED;
  static constexpr bool FLEX = KIND == flex;
};

/* The factor that takes a score to base 2 after its maximum or LSE was subtracted. Kinds with a bias subtract
 * first, since a bias may be as low as -FLT_MAX. */
static constexpr float LOG2E = 1.44269504088896340736f;

} // namespace fa

#endif
