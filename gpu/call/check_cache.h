/* What stands behind fa_forward_kvcache_check. */
#ifndef FA_GPU_CALL_CHECK_CACHE_H
#define FA_GPU_CALL_CHECK_CACHE_H

#include "gpu/fa.h"

/* Partial results that one call may combine. */
#define FA_CACHE_MAX_SPLITS 1024

/* Sizes, numbers and features: all that can be said before there are tensors; pointers only say whether
 * something is there. */
fa_status fa_cache_check_problem(const fa_attention *a, const fa_inference *kv, fa_error *err);
/* Pointers and strides, for what passed the first. */
fa_status fa_cache_check_tensors(const fa_attention *a, const fa_inference *kv, fa_error *err);

/* Contents, in host memory: what check_device_data looks at. Absent ones are NULL; the table is [batch]
 * [max_pages], dense. */
typedef struct fa_cache_contents {
  const int32_t *cache_seqlens, *cache_batch_idx, *leftpad_k, *block_table;
} fa_cache_contents;
fa_status fa_cache_check_contents(const fa_attention *a, const fa_inference *kv,
                                      const fa_cache_contents *c, fa_error *err);

#endif
