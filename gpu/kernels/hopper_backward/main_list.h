/* The main backward kernels for sm_90a: FA_ENTRY(name, T, D, BM, KIND, VARLEN, ORDERED), as
 * hopper_backward_config has them. For what a call wants, the first that can do it is taken: those with lengths
 * of an entry's own do everything that is rarer, deterministic calls of fixed lengths too. */
#define FA_KIND(suffix, D, ...)                                                                              \
  FA_ENTRY(hopper_backward_f16_##D##suffix, fa::f16, D, 64, __VA_ARGS__)                                     \
  FA_ENTRY(hopper_backward_bf16_##D##suffix, fa::bf16, D, 64, __VA_ARGS__)
FA_KIND(, 64, fa::plain, false, false)
FA_KIND(_alibi, 64, fa::alibi, false, false)
FA_KIND(_softcap, 64, fa::softcap, false, false)
FA_KIND(_dropout, 64, fa::dropout, false, false)
FA_KIND(_ordered, 64, fa::plain, false, true)
FA_KIND(_varlen, 64, fa::plain, true, true)
FA_KIND(_varlen_alibi, 64, fa::alibi, true, true)
FA_KIND(_varlen_softcap, 64, fa::softcap, true, true)
FA_KIND(_varlen_dropout, 64, fa::dropout, true, true)
FA_KIND(, 96, fa::plain, false, false)
FA_KIND(_dropout, 96, fa::dropout, false, false)
FA_KIND(_varlen, 96, fa::plain, true, true)
FA_KIND(_varlen_alibi, 96, fa::alibi, true, true)
FA_KIND(_varlen_softcap, 96, fa::softcap, true, true)
FA_KIND(_varlen_dropout, 96, fa::dropout, true, true)
FA_KIND(, 128, fa::plain, false, false)
FA_KIND(_alibi, 128, fa::alibi, false, false)
FA_KIND(_softcap, 128, fa::softcap, false, false)
FA_KIND(_dropout, 128, fa::dropout, false, false)
FA_KIND(_ordered, 128, fa::plain, false, true)
FA_KIND(_varlen, 128, fa::plain, true, true)
FA_KIND(_varlen_alibi, 128, fa::alibi, true, true)
FA_KIND(_varlen_softcap, 128, fa::softcap, true, true)
FA_KIND(_varlen_dropout, 128, fa::dropout, true, true)
#undef FA_KIND
#undef FA_ENTRY
