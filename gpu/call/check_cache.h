/* The parts of fa_forward_kvcache_check. */
#ifndef FA_GPU_CALL_CHECK_CACHE_H
#define FA_GPU_CALL_CHECK_CACHE_H

#include "gpu/fa.h"

/* The largest of the kernels over a cache; larger ones, and other rows, are for those of ordinary keys. */
#define FA_CACHE_MAX_HEAD_DIM 576
#define FA_CACHE_MAX_HEAD_DIM_V 512

/* Checks sizes, numbers and features: everything that needs no tensors; of a pointer only whether it is
 * NULL. */
fa_status fa_cache_check_problem(const fa_attention *a, const fa_inference *kv, fa_error *err);
/* Part of it: what a cache of 8 bits is not together with. */
fa_status fa_cache_check_quantized(const fa_attention *a, const fa_inference *kv, fa_error *err);
/* Of an element of the caches, and of new keys and values. */
int fa_cache_element_bytes(const fa_attention *a, const fa_inference *kv);
/* Two numbers in a byte, and scales of blocks. */
bool fa_cache_has_blocks(const fa_inference *kv);
/* Elements of a row of k_cache: head_dim, or bytes where types are mixed, or two numbers are in one. */
int64_t fa_cache_columns(const fa_attention *a, const fa_inference *kv);
int fa_cache_new_bytes(const fa_attention *a, const fa_inference *kv);
/* Checks pointers and strides of a call that passed the first check. */
fa_status fa_cache_check_tensors(const fa_attention *a, const fa_inference *kv, fa_error *err);

/* Contents in host memory (for check_device_data). Absent ones are NULL; the table is [batch][max_pages],
 * dense. */
typedef struct fa_cache_contents {
  const int32_t *cache_seqlens, *cache_batch_idx, *leftpad_k, *block_table;
  const int32_t *cu_seqlens_q;
  const int32_t *topk_indices, *topk_length;
} fa_cache_contents;
fa_status fa_cache_check_contents(const fa_attention *a, const fa_inference *kv, const fa_cache_contents *c,
                                  fa_error *err);

#endif
