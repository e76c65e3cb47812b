/* The main backward kernels for sm_90a: FA_ENTRY(name, T, D, BM, KIND, VARLEN, ORDERED), as
 * hopper_backward_config has them. For what a call wants, the first that can do it is taken. */
#define FA_KIND(suffix, D, ...)                                                                              \
  FA_ENTRY(hopper_backward_f16_##D##suffix, fa::f16, D, 64, __VA_ARGS__)                                     \
  FA_ENTRY(hopper_backward_bf16_##D##suffix, fa::bf16, D, 64, __VA_ARGS__)
#define FA_KINDS(D)                                                                                          \
  FA_KIND(, D, fa::plain, false, false)                                                                      \
  FA_KIND(_alibi, D, fa::alibi, false, false)                                                                \
  FA_KIND(_softcap, D, fa::softcap, false, false)                                                            \
  FA_KIND(_dropout, D, fa::dropout, false, false)                                                            \
  FA_KIND(_ordered, D, fa::plain, false, true)                                                               \
  FA_KIND(_varlen, D, fa::plain, true, false)                                                                \
  FA_KIND(_varlen_alibi, D, fa::alibi, true, false)
FA_KINDS(64)
FA_KIND(, 96, fa::plain, false, false)
FA_KIND(_dropout, 96, fa::dropout, false, false)
FA_KIND(_varlen, 96, fa::plain, true, false)
FA_KINDS(128)
#undef FA_KIND
#undef FA_KINDS
#undef FA_ENTRY
