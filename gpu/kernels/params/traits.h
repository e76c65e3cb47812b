/* What a call has, as far as kernels that are compiled for its expressions have no code for what it lacks: the less there is to
 * compile, the sooner its first use returns. */
#ifndef FA_GPU_KERNELS_PARAMS_TRAITS_H
#define FA_GPU_KERNELS_PARAMS_TRAITS_H

/* A bit for each. */
typedef enum fa_trait {
  FA_HAS_SOFTCAP = 1,
  FA_HAS_ALIBI = 2,
  FA_HAS_BIAS = 4,
  FA_HAS_DBIAS = 8,    /* its gradient, element by element */
  FA_HAS_WINDOW = 16,  /* or chunks: a row may see other keys than all of its sequence */
  FA_HAS_LENGTHS = 32, /* of sequences: cu_seqlens, seqused_k, leftpad_k */
  FA_HAS_ALIGNED = 64, /* rows that all begin on 16 bytes */
  FA_HAS_UNALIGNED = 128,
  FA_HAS_BLOCKS = 256, /* their kinds, by lists or by mask_mod */
  FA_HAS_SINKS = 512,
  FA_HAS_WIDE = 1024 /* head dims of more than FA_NARROW columns, q's or v's */
} fa_trait;

#define FA_NARROW 64

#endif
