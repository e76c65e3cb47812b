/* The flex backward kernels for sm_90a, as in hopper_backward_list.h; a device's are compiled with the
 * expressions of a call. */
#define FA_KIND(D)                                                                                           \
  FA_ENTRY(hopper_flex_backward_f16_##D, fa::f16, D, 64, fa::flex, false, false)                             \
  FA_ENTRY(hopper_flex_backward_bf16_##D, fa::bf16, D, 64, fa::flex, false, false)
FA_KIND(64)
FA_KIND(128)
#undef FA_KIND
#undef FA_ENTRY
