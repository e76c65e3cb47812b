/* Arguments of the kernels that append new keys and values to a KV cache and rotate queries (rotary
 * embedding), filled in by the host and read by the device. */
#ifndef FA_GPU_KERNELS_PARAMS_CACHE_APPEND_H
#define FA_GPU_KERNELS_PARAMS_CACHE_APPEND_H

#include "gpu/kernels/params/attention.h"

#define FA_CACHE_APPEND_THREADS 128
#define FA_CACHE_APPEND_MAX_GRID_X 4096

/* The parts: tensors that rows are copied from and to. A block's part is blockIdx.y + first_part. */
enum { FA_CACHE_Q, FA_CACHE_K, FA_CACHE_V, FA_CACHE_PARTS };

/* Grid: x any number of blocks, which share the rows of a sequence; y parts; z sequences. A sequence has less
 * than 2^30 rows; offsets into tensors are 64-bit. */
typedef struct fa_cache_append_params {
  const uint16_t *from[FA_CACHE_PARTS]; /* q, new k, new v; f16 or bf16 patterns */
  uint16_t *to[FA_CACHE_PARTS];         /* the copy of q, the K and V caches */
  fa_kernel_strides from_stride[FA_CACHE_PARTS];
  fa_kernel_strides to_stride[FA_CACHE_PARTS]; /* of the caches, batch: between cache rows or pages; row:
                                                  between slots */
  int rows[FA_CACHE_PARTS];                    /* of a sequence: seqlen_q, or the number of new keys */
  int heads[FA_CACHE_PARTS];
  int aligned[FA_CACHE_PARTS]; /* rows begin on 16 bytes on both sides */
  int first_part;
  int head_dim;                    /* a multiple of 8 */
  const int32_t *cache_seqlens;    /* [batch]: where a sequence's new keys begin */
  const int32_t *cache_batch_idx;  /* [batch], or NULL: sequence b has row b of the cache */
  const int32_t *block_table;      /* page table [batch][pages of a sequence], or NULL: no pages */
  int64_t block_table_stride;      /* elements of the page table from one sequence to the next */
  int page_size;                   /* slots of a page; read if there is a block_table */
  const uint16_t *cosines, *sines; /* [positions][rotary_dim / 2], of the elements' type */
  int64_t cos_stride, sin_stride;  /* elements from one position to the next */
  int rotary_dim;                  /* 0: no rotation; even */
  int rotary_interleaved; /* a pair is two neighbouring elements; else elements rotary_dim / 2 apart */
  int queries_move;       /* row i of q is i positions after the first row; else all are at the first row's */
} fa_cache_append_params;

#endif
