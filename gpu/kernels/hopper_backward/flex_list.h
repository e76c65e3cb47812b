/* The flex backward kernels for sm_90a, as in gpu/kernels/hopper_backward/main_list.h; a device's are compiled with the
 * expressions of a call. */
#define FA_KIND(suffix, D, ORDERED)                                                                          \
  FA_ENTRY(hopper_flex_backward_f16_##D##suffix, fa::f16, D, 64, fa::flex, false, ORDERED)                   \
  FA_ENTRY(hopper_flex_backward_bf16_##D##suffix, fa::bf16, D, 64, fa::flex, false, ORDERED)
FA_KIND(, 64, false)
FA_KIND(_ordered, 64, true)
FA_KIND(, 128, false)
FA_KIND(_ordered, 128, true)
#undef FA_KIND
#undef FA_ENTRY
