/* The flex forward kernels for sm_90a, as in gpu/kernels/hopper/forward_list.h; a device's are compiled with the
 * expressions of a call. Tiles of 128 rows: the usual blocks are those, or several of those. */
#define FA_KIND(D, ...)                                                                                      \
  FA_ENTRY(hopper_flex_f16_##D, fa::f16, D, fa::flex, __VA_ARGS__)                                           \
  FA_ENTRY(hopper_flex_bf16_##D, fa::bf16, D, fa::flex, __VA_ARGS__)
FA_KIND(64, 2, 128, true, 0, false)
FA_KIND(128, 2, 128, true, 0, false)
#undef FA_KIND
#undef FA_ENTRY
