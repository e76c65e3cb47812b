/* The forward kernels for sm_90a: FA_ENTRY(name, T, D, KIND, GROUPS, BN, APART, LAZY[, VARLEN[,
 * STAGES]]), as hopper_forward_config has them. For what a call wants, the first that can do it is taken.
 * FA_ENTRY_LONG, same arguments: only for FA_HOPPER_LONG keys and more. */
#ifndef FA_ENTRY_LONG
#define FA_ENTRY_LONG FA_ENTRY
#endif
#define FA_KIND(suffix, D, ...)                                                                              \
  FA_ENTRY(hopper_forward_f16_##D##suffix, fa::f16, D, __VA_ARGS__)                                          \
  FA_ENTRY(hopper_forward_bf16_##D##suffix, fa::bf16, D, __VA_ARGS__)
FA_KIND(, 64, fa::plain, 3, 128, true, 0, false)
FA_KIND(_varlen, 64, fa::plain, 3, 128, true, 0)
FA_KIND(_alibi, 64, fa::alibi, 3, 128, true, 0, false)
FA_KIND(_alibi_varlen, 64, fa::alibi, 2, 128, true, 0)
FA_KIND(_softcap, 64, fa::softcap, 2, 128, true, 0)
FA_KIND(_dropout, 64, fa::dropout, 3, 128, true, 0)
FA_KIND(, 96, fa::plain, 2, 128, true, 0, false)
FA_KIND(_varlen, 96, fa::plain, 2, 128, true, 0)
FA_KIND(_alibi, 96, fa::alibi, 2, 128, true, 0)
FA_KIND(_softcap, 96, fa::softcap, 2, 128, true, 0)
FA_KIND(_dropout, 96, fa::dropout, 2, 128, true, 0)
FA_ENTRY_LONG(hopper_forward_f16_128_long, fa::f16, 128, fa::plain, 2, 176, false, 0, false)
FA_ENTRY_LONG(hopper_forward_bf16_128_long, fa::bf16, 128, fa::plain, 2, 176, false, 0, false)
FA_KIND(, 128, fa::plain, 2, 128, true, 0, false)
FA_KIND(_varlen, 128, fa::plain, 2, 128, true, 0)
FA_KIND(_alibi, 128, fa::alibi, 2, 128, true, 0)
FA_KIND(_softcap, 128, fa::softcap, 2, 128, true, 0)
FA_KIND(_dropout, 128, fa::dropout, 2, 128, true, 0)
FA_KIND(, 192, fa::plain, 2, 112, false, 2, false)
FA_KIND(_varlen, 192, fa::plain, 2, 112, false, 2)
FA_KIND(_alibi, 192, fa::alibi, 2, 112, false, 0)
FA_KIND(_softcap, 192, fa::softcap, 2, 96, false, 0)
FA_KIND(_dropout, 192, fa::dropout, 2, 96, false, 0)
FA_KIND(, 256, fa::plain, 2, 80, false, 2, false)
FA_KIND(_varlen, 256, fa::plain, 2, 80, false, 2)
FA_KIND(_alibi, 256, fa::alibi, 2, 64, false, 0)
FA_KIND(_softcap, 256, fa::softcap, 2, 64, false, 0)
FA_KIND(_dropout, 256, fa::dropout, 2, 64, false, 0)
#undef FA_KIND
#undef FA_ENTRY
#undef FA_ENTRY_LONG
