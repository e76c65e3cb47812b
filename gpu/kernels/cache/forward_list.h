/* Every inference kernel: FA_ENTRY(name, T, D, shape, general), and FA_ENTRY_COMBINE(name, T). For what a
 * call wants, the first that can do it is taken. */
#define FA_KINDS(T, D)                                                                                       \
  FA_ENTRY(cache_forward_##T##_##D##_few, T, D, few_rows, false)                                                \
  FA_ENTRY(cache_forward_##T##_##D##_few_general, T, D, few_rows, true)                                         \
  FA_ENTRY(cache_forward_##T##_##D##_many, T, D, many_rows, false)                                              \
  FA_ENTRY(cache_forward_##T##_##D##_many_general, T, D, many_rows, true)
FA_KINDS(f16, 64)
FA_KINDS(f16, 128)
FA_KINDS(f16, 256)
FA_KINDS(bf16, 64)
FA_KINDS(bf16, 128)
FA_KINDS(bf16, 256)
FA_ENTRY_COMBINE(cache_combine_f16, f16)
FA_ENTRY_COMBINE(cache_combine_bf16, bf16)
#undef FA_KINDS
#undef FA_ENTRY
#undef FA_ENTRY_COMBINE
