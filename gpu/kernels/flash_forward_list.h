/* Every specialisation of the forward kernel: FA_ENTRY(name, T, D, kind), kind as in flash_kind. Included
 * wherever something is to be made of each. For what a call wants, the first that can do it is taken.
 * FA_ENTRY_AT_RUN_TIME, same arguments: compiled only where it is wanted, and only on the device. */
#ifndef FA_ENTRY_AT_RUN_TIME
#define FA_ENTRY_AT_RUN_TIME(name, T, D, kind)
#endif
#define FA_ENTRIES_FAST(T, D)                                                                                \
  FA_ENTRY(flash_forward_##T##_##D, T, D, plain)                                                             \
  FA_ENTRY(flash_forward_##T##_##D##_modified, T, D, modified)                                               \
  FA_ENTRY(flash_forward_##T##_##D##_dropout, T, D, dropout)                                                 \
  FA_ENTRY(flash_forward_##T##_##D##_general, T, D, general)
#define FA_ENTRIES(T, D)                                                                                     \
  FA_ENTRY(flash_forward_##T##_##D, T, D, plain)                                                             \
  FA_ENTRY_AT_RUN_TIME(flash_forward_##T##_##D##_modified, T, D, modified)                                   \
  FA_ENTRY_AT_RUN_TIME(flash_forward_##T##_##D##_dropout, T, D, dropout)                                     \
  FA_ENTRY(flash_forward_##T##_##D##_general, T, D, general)
FA_ENTRIES(f16, 32)
FA_ENTRIES_FAST(f16, 64)
FA_ENTRIES(f16, 96)
FA_ENTRIES_FAST(f16, 128)
FA_ENTRIES(f16, 160)
FA_ENTRIES(f16, 192)
FA_ENTRIES(f16, 224)
FA_ENTRIES(f16, 256)
FA_ENTRIES(bf16, 32)
FA_ENTRIES_FAST(bf16, 64)
FA_ENTRIES(bf16, 96)
FA_ENTRIES_FAST(bf16, 128)
FA_ENTRIES(bf16, 160)
FA_ENTRIES(bf16, 192)
FA_ENTRIES(bf16, 224)
FA_ENTRIES(bf16, 256)
#undef FA_ENTRIES
#undef FA_ENTRIES_FAST
#undef FA_ENTRY
#undef FA_ENTRY_AT_RUN_TIME
