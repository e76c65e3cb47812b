/* Every specialisation of the forward kernel: FA_ENTRY(name, T, D, kind), kind as in kernel_kind. Included
 * wherever something is to be made of each. For what a call wants, the first that can do it is taken.
 * FA_ENTRY_AT_RUN_TIME, same arguments: compiled only where it is wanted, and only on the device. */
#ifndef FA_ENTRY_AT_RUN_TIME
#define FA_ENTRY_AT_RUN_TIME(name, T, D, kind)
#endif
#define FA_KINDS(special, name, T, D)                                                                        \
  FA_ENTRY(name, T, D, plain)                                                                                \
  FA_SPECIAL_KINDS(special, name, T, D)                                                                      \
  FA_ENTRY(name##_general, T, D, general)
#define FA_MIXED(T, D) FA_ENTRY(flash_forward_##T##_##D##_mixed, T, D, mixed)
#define FA_DIM_FAST(T, D)                                                                                    \
  FA_KINDS(FA_ENTRY, flash_forward_##T##_##D, T, D)                                                          \
  FA_ENTRY(flash_forward_##T##_##D##_biased, T, D, biased)                                                   \
  FA_MIXED(T, D)
#define FA_DIM(T, D) FA_KINDS(FA_ENTRY_AT_RUN_TIME, flash_forward_##T##_##D, T, D)
#define FA_DIM_LAST(T, D) FA_DIM(T, D) FA_MIXED(T, D)
#include "gpu/kernels/flash/dims_list.h"
#undef FA_KINDS
#undef FA_MIXED
#undef FA_ENTRY
#undef FA_ENTRY_AT_RUN_TIME
