/* The forward kernels for sm_90a: FA_ENTRY(name, T, D, GROUPS, BN, TURNS, APART, LAZY), as
 * hopper_forward_config has them. For what a call wants, the first that can do it is taken. */
#define FA_BOTH(D, ...)                                                                                      \
  FA_ENTRY(hopper_forward_f16_##D, fa::f16, D, __VA_ARGS__)                                                  \
  FA_ENTRY(hopper_forward_bf16_##D, fa::bf16, D, __VA_ARGS__)
FA_BOTH(64, 3, 128, true, true, true)
FA_BOTH(128, 2, 128, true, true, true)
FA_BOTH(256, 2, 80, false, false, true)
#undef FA_BOTH
#undef FA_ENTRY
