/* The element types and head dims that flash kernels are compiled for, forward and backward. Included by the
 * lists of kernels, which say what there is of each:
 *   FA_DIM_FAST(T, D)   those that models use most: every kind ahead of time
 *   FA_DIM_LAST(T, D)   the largest: plain, general and mixed ahead of time
 *   FA_DIM(T, D)        the others: plain and general ahead of time
 * Mixed kernels take every head dim up to their tiles': there are few of them.
 * FA_ONLY_F16 or FA_ONLY_BF16, defined by a translation unit: this type alone. */
/* What stands between plain and general, made of a macro of (name, T, D, kind). */
#ifndef FA_SPECIAL_KINDS
#define FA_SPECIAL_KINDS(entry, name, T, D)                                                                  \
  entry(name##_alibi, T, D, alibi) entry(name##_softcap, T, D, softcap) entry(name##_dropout, T, D, dropout)
#endif

#ifndef FA_ONLY_BF16
FA_DIM(f16, 32)
FA_DIM_FAST(f16, 64)
FA_DIM(f16, 96)
FA_DIM_FAST(f16, 128)
FA_DIM(f16, 160)
FA_DIM(f16, 192)
FA_DIM(f16, 224)
FA_DIM_LAST(f16, 256)
#endif
#ifndef FA_ONLY_F16
FA_DIM(bf16, 32)
FA_DIM_FAST(bf16, 64)
FA_DIM(bf16, 96)
FA_DIM_FAST(bf16, 128)
FA_DIM(bf16, 160)
FA_DIM(bf16, 192)
FA_DIM(bf16, 224)
FA_DIM_LAST(bf16, 256)
#endif
#undef FA_DIM
#undef FA_DIM_FAST
#undef FA_DIM_LAST
