/* Every specialisation of the backward kernels. Included wherever something is to be made of each.
 *
 *   FA_ENTRY(name, T, D, kind, shape)
 *     a main kernel, kind as in kernel_kind, shape as in flash_backward_shape; for what a call wants, the
 * first that can do it is taken FA_ENTRY_AT_RUN_TIME, same arguments compiled only where it is wanted, and
 * only on the device FA_ENTRY_ROWS(name, T, D) the kernels around it: gpu/kernels/flash/backward_kernels.cuh
 *   FA_ENTRY_DBIAS(name, T)
 *     those for sums of dbias
 *
 * Small ones are listed for the head dims alone whose general kernel by keys does not fit into 99 KiB; mixed
 * kernels are all of them small enough. */
#ifndef FA_ENTRY_AT_RUN_TIME
#define FA_ENTRY_AT_RUN_TIME(name, T, D, kind, shape)
#endif
#define FA_BY_KEYS(name, T, D, kind) FA_ENTRY(name, T, D, kind, by_keys)
#define FA_BY_KEYS_LATE(name, T, D, kind) FA_ENTRY_AT_RUN_TIME(name, T, D, kind, by_keys)
#define FA_SMALL(name, T, D, kind) FA_ENTRY(name, T, D, kind, by_keys_small)
#define FA_SMALL_LATE(name, T, D, kind) FA_ENTRY_AT_RUN_TIME(name, T, D, kind, by_keys_small)
#define FA_BY_QUERIES(name, T, D, kind) FA_ENTRY(name, T, D, kind, by_queries)
#define FA_BY_QUERIES_LATE(name, T, D, kind) FA_ENTRY_AT_RUN_TIME(name, T, D, kind, by_queries)
#define FA_KINDS(plain_entry, special, general_entry, name, T, D)                                            \
  plain_entry(name, T, D, plain) FA_SPECIAL_KINDS(special, name, T, D)                                       \
      general_entry(name##_general, T, D, general)
#define FA_DIM_FAST(T, D)                                                                                    \
  FA_KINDS(FA_BY_KEYS, FA_BY_KEYS, FA_BY_KEYS, flash_backward_##T##_##D, T, D)                               \
  FA_BY_KEYS(flash_backward_##T##_##D##_biased, T, D, biased)                                                \
  FA_KINDS(FA_BY_QUERIES, FA_BY_QUERIES, FA_BY_QUERIES, flash_backward_##T##_##D##_queries, T, D)            \
  FA_ENTRY_ROWS(flash_backward_##T##_##D, T, D)
#define FA_DIM(T, D)                                                                                         \
  FA_KINDS(FA_BY_KEYS, FA_BY_KEYS_LATE, FA_BY_KEYS, flash_backward_##T##_##D, T, D)                          \
  FA_KINDS(FA_BY_QUERIES_LATE, FA_BY_QUERIES_LATE, FA_BY_QUERIES, flash_backward_##T##_##D##_queries, T, D)  \
  FA_ENTRY_ROWS(flash_backward_##T##_##D, T, D)
#define FA_DIM_LAST(T, D) FA_DIM(T, D)
#include "gpu/kernels/flash/dims_list.h"
#define FA_SMALL_DIM(T, D)                                                                                   \
  FA_KINDS(FA_SMALL_LATE, FA_SMALL_LATE, FA_SMALL, flash_backward_##T##_##D##_small, T, D)
#define FA_SMALL_DIMS(T)                                                                                     \
  FA_SMALL_DIM(T, 128)                                                                                       \
  FA_SMALL_DIM(T, 160)                                                                                       \
  FA_SMALL_DIM(T, 192)                                                                                       \
  FA_SMALL_DIM(T, 224) FA_SMALL_DIM(T, 256) FA_MIXED(T, 64) FA_MIXED(T, 128) FA_MIXED(T, 256)
#define FA_MIXED(T, D) FA_BY_KEYS(flash_backward_##T##_##D##_mixed, T, D, mixed)
#ifndef FA_ONLY_BF16
FA_SMALL_DIMS(f16)
FA_ENTRY_DBIAS(flash_backward_f16, f16)
#endif
#ifndef FA_ONLY_F16
FA_SMALL_DIMS(bf16)
FA_ENTRY_DBIAS(flash_backward_bf16, bf16)
#endif
#undef FA_BY_KEYS
#undef FA_BY_KEYS_LATE
#undef FA_SMALL
#undef FA_SMALL_LATE
#undef FA_BY_QUERIES
#undef FA_BY_QUERIES_LATE
#undef FA_KINDS
#undef FA_SMALL_DIM
#undef FA_SMALL_DIMS
#undef FA_MIXED
#undef FA_ENTRY
#undef FA_ENTRY_AT_RUN_TIME
#undef FA_ENTRY_ROWS
#undef FA_ENTRY_DBIAS
