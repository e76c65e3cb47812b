/* Arguments of the kernels that put new keys and values into a cache, and rotate queries, as the host fills
 * them and the device reads them. */
#ifndef FA_GPU_KERNELS_PARAMS_CACHE_APPEND_H
#define FA_GPU_KERNELS_PARAMS_CACHE_APPEND_H

#include "gpu/kernels/params/attention.h"

#define FA_CACHE_APPEND_THREADS 128
#define FA_CACHE_APPEND_MAX_GRID_X 4096

/* The tensors that rows are copied from and to, and numbers of grid rows (blockIdx.y + first_part). */
enum { FA_CACHE_Q, FA_CACHE_K, FA_CACHE_V, FA_CACHE_PARTS };

/* Grid: x any number of blocks, which go over the rows of an entry together; y the parts; z the entries.
 * Rows of an entry number less than 2^30; offsets into tensors are 64-bit. */
typedef struct fa_cache_append_params {
  const uint16_t *from[FA_CACHE_PARTS]; /* q, new k, new v; f16 or bf16 patterns */
  uint16_t *to[FA_CACHE_PARTS];         /* the copy of q, the caches */
  fa_kernel_strides from_stride[FA_CACHE_PARTS];
  fa_kernel_strides to_stride[FA_CACHE_PARTS]; /* of the caches: batch is a cache's row or page, row a slot */
  int rows[FA_CACHE_PARTS];                   /* of an entry: seqlen_q, new keys */
  int heads[FA_CACHE_PARTS];
  int aligned[FA_CACHE_PARTS]; /* rows begin on 16 bytes on both sides */
  int first_part;
  int head_dim;                    /* a multiple of 8 */
  const int32_t *cache_seqlens;    /* [batch]: where an entry's new keys begin */
  const int32_t *cache_batch_idx;  /* [batch], or NULL: the cache's row is the entry */
  const int32_t *block_table;      /* [batch][pages of an entry], or NULL: no pages */
  int64_t block_table_stride;      /* entries of the table from one entry to the next */
  int page_size;                   /* slots; with a block_table */
  const uint16_t *cosines, *sines; /* [positions][rotary_dim / 2], of the elements' type */
  int64_t cos_stride, sin_stride;  /* elements from one position to the next */
  int rotary_dim;                  /* 0: nothing is rotated; even */
  int rotary_interleaved;          /* pairs are neighbours; else half of rotary_dim apart */
  int queries_move; /* row i of q is at position i after the first; else all are at the first */
} fa_cache_append_params;

#endif
