/* The main backward kernels for sm_90a of wide heads: FA_ENTRY(name, T, D, KIND, VARLEN, ORDERED), as
 * hopper_backward_pair_config has them. For what a call wants, the first that can do it is taken. There is no
 * dropout with lengths of the entries' own: its producers have no register for where an entry lies. */
#define FA_KIND(suffix, D, ...)                                                                              \
  FA_ENTRY(hopper_backward_pair_f16_##D##suffix, fa::f16, D, __VA_ARGS__)                                    \
  FA_ENTRY(hopper_backward_pair_bf16_##D##suffix, fa::bf16, D, __VA_ARGS__)
FA_KIND(, 192, fa::plain, false, false)
FA_KIND(_alibi, 192, fa::alibi, false, false)
FA_KIND(_softcap, 192, fa::softcap, false, false)
FA_KIND(_ordered, 192, fa::plain, false, true)
FA_KIND(_dropout, 192, fa::dropout, false, true)
FA_KIND(_varlen, 192, fa::plain, true, true)
FA_KIND(_varlen_alibi, 192, fa::alibi, true, true)
FA_KIND(_varlen_softcap, 192, fa::softcap, true, true)
FA_KIND(, 256, fa::plain, false, false)
FA_KIND(_alibi, 256, fa::alibi, false, false)
FA_KIND(_softcap, 256, fa::softcap, false, false)
FA_KIND(_ordered, 256, fa::plain, false, true)
FA_KIND(_dropout, 256, fa::dropout, false, true)
FA_KIND(_varlen, 256, fa::plain, true, true)
FA_KIND(_varlen_alibi, 256, fa::alibi, true, true)
FA_KIND(_varlen_softcap, 256, fa::softcap, true, true)
#undef FA_KIND
#undef FA_ENTRY
