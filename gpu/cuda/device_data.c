#include "gpu/cuda/device_data.h"

#include "gpu/call/check.h"
#include "gpu/call/check_cache.h"
#include "gpu/expr/program.h"

#include <stdlib.h>

/* A copy in host memory of n numbers, malloc'd; *out stays as it is where there are none. */
static fa_status read_back(const fa_cuda_driver *d, const char *name, const int32_t *from, int64_t n,
                           CUstream stream, int32_t **out, fa_error *err) {
  if (!from || n == 0) return FA_OK;
  *out = malloc((size_t)n * sizeof **out);
  if (!*out) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  CUresult code = d->cuMemcpyDtoHAsync(*out, (CUdeviceptr)from, (size_t)n * sizeof **out, stream);
  if (code == CUDA_SUCCESS) code = d->cuStreamSynchronize(stream);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, name, err);
}

static fa_status check_lengths(const fa_cuda_driver *d, const fa_attention *a, CUstream stream,
                               fa_error *err) {
  int32_t *cu_q = NULL, *cu_k = NULL, *seqused = NULL, *leftpad = NULL;
  fa_status status = read_back(d, "reading cu_seqlens_q", a->cu_seqlens_q, a->batch + 1, stream, &cu_q, err);
  if (status == FA_OK)
    status = read_back(d, "reading cu_seqlens_k", a->cu_seqlens_k, a->batch + 1, stream, &cu_k, err);
  if (status == FA_OK)
    status = read_back(d, "reading seqused_k", a->seqused_k, a->batch, stream, &seqused, err);
  if (status == FA_OK)
    status = read_back(d, "reading leftpad_k", a->leftpad_k, a->batch, stream, &leftpad, err);
  if (status == FA_OK) status = fa_attention_check_lengths(a, cu_q, cu_k, seqused, leftpad, err);
  free(cu_q);
  free(cu_k);
  free(seqused);
  free(leftpad);
  return status;
}

/* ---- block lists ---- */

static fa_status check_lists(const fa_cuda_driver *d, const fa_attention *a, CUstream stream, fa_error *err) {
  const fa_flex *f = a->flex;
  const int64_t counts = f->list_batch * f->list_heads * fa_flex_n_q(a), n = counts * fa_flex_n_kv(a);
  const struct {
    const char *name;
    const int32_t *data;
    int64_t n;
  } from[4] = {{"reading kv_num_blocks", f->kv_num_blocks, counts},
               {"reading kv_indices", f->kv_indices, n},
               {"reading full_kv_num_blocks", f->full_kv_num_blocks, counts},
               {"reading full_kv_indices", f->full_kv_indices, n}};
  int32_t *lists[4] = {NULL};
  fa_status status = FA_OK;
  for (int i = 0; i < 4 && status == FA_OK; ++i)
    status = read_back(d, from[i].name, from[i].data, from[i].n, stream, &lists[i], err);
  if (status == FA_OK) status = fa_flex_check_lists(a, lists[0], lists[1], lists[2], lists[3], err);
  for (int i = 0; i < 4; ++i) free(lists[i]);
  return status;
}

/* ---- a cache ---- */

/* The used pages of every entry, [batch][max_pages]; those past an entry's keys may not even be readable. */
static fa_status read_table(const fa_cuda_driver *d, const fa_attention *a, const fa_inference *kv,
                            const int32_t *seqlens, CUstream stream, int32_t **out, fa_error *err) {
  CUresult code = CUDA_SUCCESS;
  if (!kv->block_table || a->batch * kv->max_pages == 0) return FA_OK;
  *out = calloc((size_t)(a->batch * kv->max_pages), sizeof **out);
  if (!*out) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int64_t b = 0; code == CUDA_SUCCESS && b < a->batch; ++b) {
    int64_t n = (seqlens[b] + kv->n_new + kv->page_size - 1) / kv->page_size;
    if (n > kv->max_pages) n = kv->max_pages; /* which the check will say */
    if (n > 0)
      code = d->cuMemcpyDtoHAsync(*out + b * kv->max_pages,
                                  (CUdeviceptr)(kv->block_table + b * kv->block_table_stride),
                                  (size_t)n * sizeof **out, stream);
  }
  const CUresult ended = d->cuStreamSynchronize(stream); /* nobody may still write to what is freed */
  if (code == CUDA_SUCCESS) code = ended;
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, "reading block_table", err);
}

static fa_status check_cache(const fa_cuda_driver *d, const fa_attention *a, const fa_inference *kv,
                             CUstream stream, fa_error *err) {
  int32_t *cu = NULL, *seqlens = NULL, *idx = NULL, *leftpad = NULL, *table = NULL, *lists = NULL,
          *listed = NULL;
  const int64_t rows = a->cu_seqlens_q ? a->total_q : a->batch * a->seqlen_q;
  if (a->batch == 0) return FA_OK;
  fa_status status = read_back(d, "reading cu_seqlens_q", a->cu_seqlens_q, a->batch + 1, stream, &cu, err);
  if (status == FA_OK)
    status = read_back(d, "reading cache_seqlens", kv->cache_seqlens, a->batch, stream, &seqlens, err);
  if (status == FA_OK)
    status = read_back(d, "reading cache_batch_idx", kv->cache_batch_idx, a->batch, stream, &idx, err);
  if (status == FA_OK)
    status = read_back(d, "reading leftpad_k", a->leftpad_k, a->batch, stream, &leftpad, err);
  if (status == FA_OK) status = read_table(d, a, kv, seqlens, stream, &table, err);
  if (status == FA_OK)
    status = read_back(d, "reading topk_indices", kv->topk_indices, rows * kv->topk, stream, &lists, err);
  if (status == FA_OK && kv->topk_indices)
    status = read_back(d, "reading topk_length", kv->topk_length, a->batch, stream, &listed, err);
  const fa_cache_contents contents = {.cache_seqlens = seqlens,
                                      .cache_batch_idx = idx,
                                      .leftpad_k = leftpad,
                                      .block_table = table,
                                      .cu_seqlens_q = cu,
                                      .topk_indices = lists,
                                      .topk_length = listed};
  if (status == FA_OK) status = fa_cache_check_contents(a, kv, &contents, err);
  free(cu);
  free(seqlens);
  free(idx);
  free(leftpad);
  free(table);
  free(lists);
  free(listed);
  return status;
}

fa_status fa_cuda_check_device_data(const fa_cuda_driver *d, const fa_call *call, CUstream stream,
                                    fa_error *err) {
  if (call->kind == FA_CALL_BLOCKS) return FA_OK;
  if (call->kind == FA_CALL_CACHE) return check_cache(d, call->a, call->cache, stream, err);
  const fa_status status = check_lengths(d, call->a, stream, err);
  return status == FA_OK && call->a->flex ? check_lists(d, call->a, stream, err) : status;
}
