/* The checks of gpu/fa.h. */
#ifndef FA_GPU_CALL_CHECK_H
#define FA_GPU_CALL_CHECK_H

#include "gpu/fa.h"

/* Most partial results that one call may combine. */
#define FA_MAX_SPLITS_OF_KEYS 1024

/* Checks sizes, numbers and features: everything that needs no tensors. FA_ERR_INPUT for what is wrong,
 * FA_ERR_UNSUPPORTED for what no kernel does. */
fa_status fa_attention_check_problem(const fa_attention *a, fa_error *err);
/* The same of sizes and numbers alone; which kernels can do the call is for others to say. */
fa_status fa_attention_check_numbers(const fa_attention *a, fa_error *err);
/* Checks pointers and strides of q, k, v, o, lse and bias, and pointers of the integer arrays. */
fa_status fa_attention_check_tensors(const fa_attention *a, fa_error *err);
/* Checks all of a backward call whose attention passed both checks. */
fa_status fa_gradients_check(const fa_attention *a, const fa_gradients *g, fa_error *err);

/* Of a call with q, k and v of 8 bits: what its kernels lack, and its descales' pointers. */
fa_status fa_eight_check(const fa_attention *a, fa_error *err);
/* Of amax_p and amax_o, where some are given. has_kernels: that return them. */
fa_status fa_amax_check(const fa_attention *a, bool has_kernels, fa_error *err);
/* FA_ERR_UNSUPPORTED if q, k and v are of 8 bits, for kinds of call that do not take them: what, in words. */
fa_status fa_eight_refuse(const fa_attention *a, const char *what, fa_error *err);

/* Checks pointers of an attention's integer arrays and slopes, not their contents. Without cu_seqlens_k packed
 * queries have keys of their own, as over a cache: whether they may is for the caller to check. */
fa_status fa_attention_check_arrays(const fa_attention *a, fa_error *err);

/* lo <= x <= hi: smaller is FA_ERR_INPUT, larger FA_ERR_UNSUPPORTED. */
fa_status fa_range_check(const char *name, int64_t x, int64_t lo, int64_t hi, fa_error *err);
/* p must be aligned to element_bytes; NULL is. */
fa_status fa_alignment_check(const char *name, const void *p, int element_bytes, fa_error *err);

/* A tensor's pointer and strides. rows: over all sequences if the lengths are variable. elements: per row. */
typedef struct fa_extent {
  const char *name;
  const void *data;
  fa_strides stride;
  int64_t batch, rows, heads, elements; /* batch 0: variable lengths, no batch axis */
  int element_bytes;
  bool output;
} fa_extent;
fa_status fa_extent_check(const fa_extent *x, fa_error *err);
/* Of an LSE, or what lies like it. */
fa_extent fa_lse_extent(const fa_attention *a, const char *name, const void *data, fa_strides stride,
                        bool output);

/* Checks the arrays' contents, copied to host memory (for check_device_data). Absent ones are NULL. */
fa_status fa_attention_check_lengths(const fa_attention *a, const int32_t *cu_seqlens_q,
                                     const int32_t *cu_seqlens_k, const int32_t *seqused_k,
                                     const int32_t *leftpad_k, fa_error *err);

/* Of one of the arrays cu_seqlens, [batch + 1]; longest, total: what the call says of it. */
fa_status fa_cu_seqlens_check(const char *name, const int32_t *cu, int64_t batch, int64_t longest,
                              int64_t total, fa_error *err);

int64_t fa_attention_head_dim_v(const fa_attention *a);
int fa_attention_element_bytes(const fa_attention *a);
int fa_attention_operand_bytes(const fa_attention *a); /* of q, k and v */
bool fa_attention_is_varlen(const fa_attention *a);
/* LSE, dLSE and delta have a batch axis: rows are not packed, or the statistics are padded. */
bool fa_attention_has_lse_batch(const fa_attention *a);
/* True if the outputs have no elements, so that there is nothing to launch. */
bool fa_attention_is_empty(const fa_attention *a);

#endif
