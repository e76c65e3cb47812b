/* What a kernel is compiled for: one thing that costs time for every pair, or all. All but `general` want
 * rows that begin on 16 bytes. */
#ifndef FA_GPU_KERNELS_FLASH_KIND_CUH
#define FA_GPU_KERNELS_FLASH_KIND_CUH

namespace fa {

enum flash_kind {
  plain,
  alibi,
  softcap,
  dropout,
  general /* everything, as the parameters say: unaligned rows, softcap and ALiBi, dropout, p_debug */
};

/* What that means at compile time. */
template <flash_kind KIND> struct flash_kind_traits {
  static constexpr bool ALIGNED = KIND != general, GENERAL = KIND == general;
  static constexpr bool ALIBI = KIND == alibi || GENERAL;
  static constexpr bool SOFTCAP = KIND == softcap || GENERAL;
  static constexpr bool DROPOUT = KIND == dropout || GENERAL;
};

} // namespace fa

#endif
