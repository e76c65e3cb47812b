#include "cases/data/build.h"

#include "cases/tensors/guard.h"
#include "cases/tensors/table.h"

#include <string.h>

#define TRY(e)                                                                                               \
  do {                                                                                                       \
    fa_status try_status = (e);                                                                              \
    if (try_status != FA_OK) return try_status;                                                              \
  } while (0)

fa_sequence fa_case_sequence(const fa_problem *p, int64_t b) {
  const fa_int32_array *cu_q = &p->cu_seqlens_q, *cu_k = &p->cu_seqlens_k;
  fa_sequence e = {.sq = p->seqlen_q, .sk = p->seqlen_k};
  if (cu_q->n > 0) e.q_start = cu_q->v[b], e.sq = cu_q->v[b + 1] - cu_q->v[b];
  if (cu_k->n > 0) e.k_start = cu_k->v[b], e.sk = cu_k->v[b + 1] - cu_k->v[b];
  if (p->family == FA_KVCACHE) e.sk = p->kvcache.len.v[b] + p->kvcache.n_new;
  if (p->seqused_k.n > 0) e.sk = p->seqused_k.v[b];
  if (p->leftpad_k.n > 0) e.leftpad = p->leftpad_k.v[b];
  e.sk -= e.leftpad;
  return e;
}

/* ---- layout ---- */

int64_t fa_layout_strides(fa_layout layout, const fa_stride_recipe *recipe, int rank, const int64_t *shape,
                          int64_t n_heads_stored, int64_t *stride) {
  static const int inner_to_outer[3][3] = {
      [FA_LAYOUT_BSHD] = {2, 1, 0}, [FA_LAYOUT_BHSD] = {1, 2, 0}, [FA_LAYOUT_SBHD] = {2, 0, 1}};
  const int skip = 4 - rank; /* rank 3: no batch axis */
  int64_t step = shape[rank - 1], span = step;
  stride[rank - 1] = 1;
  for (int i = 0; i < 3; ++i) {
    const int axis = inner_to_outer[layout][i], at = axis - skip;
    if (at < 0) continue;
    int64_t n = axis == 2 ? n_heads_stored : shape[at];
    step += recipe->gap[axis];
    stride[at] = recipe->expand[axis] ? 0 : step;
    if (recipe->expand[axis]) n = n > 0;
    if (n > 0) span += (n - 1) * step;
    step *= n > 0 ? n : 1; /* an empty axis must not turn the outer strides into 0 */
  }
  return span;
}

/* The logical shape, without the batch axis if the case is variable-length; returns the rank. */
static int tensor_shape(const fa_case *c, fa_tensor_id id, int64_t *shape) {
  int64_t full[4];
  fa_case_tensor_shape(c, id, full);
  const int skip = fa_problem_is_varlen(&c->problem) ? 1 : 0;
  memcpy(shape, full + skip, (size_t)(4 - skip) * sizeof *shape);
  return 4 - skip;
}

/* Adds a tensor [B, S, H, D] with its recipe. n_sharing other tensors with n_shared_heads heads in all will
 * be placed after its heads in the same buffer. */
static fa_status add_tensor(const fa_case *c, fa_tensors *set, fa_tensor_id id, int64_t n_shared_heads,
                            fa_error *err) {
  int64_t shape[4], stride[4];
  const int rank = tensor_shape(c, id, shape), heads = rank - 2;
  const fa_stride_recipe *recipe = &c->strides[id];
  const int64_t span =
      fa_layout_strides(c->layout, recipe, rank, shape, shape[heads] + n_shared_heads, stride);
  int64_t own = 1;
  for (int a = 0; a < rank; ++a) own = shape[a] == 0 ? 0 : own ? own + (shape[a] - 1) * stride[a] : 0;
  const int64_t tail = (n_shared_heads > 0 && own > 0 ? span - own : 0) + recipe->tail;
  return fa_tensors_add_padded(set, id, fa_tensor_dtype(&c->problem, id), rank, shape, stride, recipe->offset,
                               tail, err);
}

/* Adds a tensor of parts, one behind the other, each with the recipe. The strides of one are given. */
static fa_status add_parts(const fa_case *c, fa_tensors *set, fa_tensor_id id, int rank, const int64_t *shape,
                           const int64_t *stride, int64_t span, fa_error *err) {
  int64_t all[FA_MAX_RANK] = {c->problem.merge.parts}, step[FA_MAX_RANK] = {span};
  const fa_stride_recipe *recipe = &c->strides[id];
  memcpy(all + 1, shape, (size_t)rank * sizeof *all);
  memcpy(step + 1, stride, (size_t)rank * sizeof *step);
  return fa_tensors_add_padded(set, id, fa_tensor_dtype(&c->problem, id), rank + 1, all, step, recipe->offset,
                               recipe->tail, err);
}

/* [part, b, s, h, d] */
static fa_status add_token_parts(const fa_case *c, fa_tensors *set, fa_tensor_id id, fa_error *err) {
  int64_t shape[4], stride[4];
  const int rank = tensor_shape(c, id, shape);
  const int64_t span = fa_layout_strides(c->layout, &c->strides[id], rank, shape, shape[rank - 2], stride);
  return add_parts(c, set, id, rank, shape, stride, span, err);
}

/* Adds a tensor that starts first_head heads after the owner's first. */
static fa_status add_packed(const fa_case *c, fa_tensors *set, fa_tensor_id id, fa_tensor_id owner,
                            int64_t first_head, fa_error *err) {
  int64_t shape[4];
  const int rank = tensor_shape(c, id, shape);
  const int64_t *stride = set->t[owner].stride;
  /* An empty owner has no room after its heads; its views are empty too (same lengths). */
  const int64_t offset = fa_tensor_count(&set->t[owner]) > 0 ? first_head * stride[rank - 2] : 0;
  return fa_tensors_add_view(set, id, owner, rank, shape, stride, offset, err);
}

static fa_status build_qkv(const fa_case *c, fa_tensors *set, fa_error *err) {
  if (c->problem.family == FA_MERGE) return FA_OK; /* has none */
  const int64_t hq = c->problem.heads_q, hk = c->problem.heads_kv;
  const bool qkv = c->packing == FA_PACK_QKV, kv = c->packing == FA_PACK_KV;
  TRY(add_tensor(c, set, FA_T_Q, qkv ? 2 * hk : 0, err));
  if (c->problem.family == FA_KVCACHE) return FA_OK; /* fa_build_cache makes the others */
  if (qkv) {
    TRY(add_packed(c, set, FA_T_K, FA_T_Q, hq, err));
    return add_packed(c, set, FA_T_V, FA_T_Q, hq + hk, err);
  }
  TRY(add_tensor(c, set, FA_T_K, kv ? hk : 0, err));
  return kv ? add_packed(c, set, FA_T_V, FA_T_K, hk, err) : add_tensor(c, set, FA_T_V, 0, err);
}

/* [b, h, q] and more, always in this order whatever the layout, with the recipe's gaps after each batch
 * index, query row, head. The bias: [b|1, h|1, q|1, Sk]; the LSE: [B, H, S], variable length [H, total] unless it is
 * padded. */
static fa_status add_head_major(const fa_case *c, fa_tensors *set, fa_tensor_id id, fa_error *err) {
  const fa_stride_recipe *recipe = &c->strides[id];
  const fa_tensor_info *info = fa_tensor_describe(id);
  const bool rows = info->axes != FA_AXES_BIAS;
  const bool packed = fa_problem_is_varlen(&c->problem) && !c->problem.lse_padded;
  const int skip = rows && packed ? 1 : 0, rank = rows ? 3 : 4;
  int64_t bshd[4], s[4];
  fa_case_tensor_shape(c, id, bshd);
  const int64_t span = fa_layout_strides(FA_LAYOUT_BHSD, recipe, 4, bshd, bshd[2], s);
  const int64_t shape[4] = {bshd[0], bshd[2], bshd[1], bshd[3]}, stride[4] = {s[0], s[2], s[1], s[3]};
  if (fa_tensor_has_parts(id))
    return add_parts(c, set, id, rank - skip, shape + skip, stride + skip, span, err);
  return fa_tensors_add_padded(set, id, fa_tensor_dtype(&c->problem, id), rank - skip, shape + skip,
                               stride + skip, recipe->offset, recipe->tail, err);
}

/* The debug matrix: whole tiles of every head. */
static fa_status add_scores(const fa_case *c, fa_tensors *set, fa_tensor_id id, fa_error *err) {
  const fa_problem *p = &c->problem;
  const int64_t shape[4] = {p->batch, p->heads_q, (p->seqlen_q + 127) / 128 * 128,
                            (p->seqlen_k + 127) / 128 * 128};
  return fa_tensors_add(set, id, p->dtype, 4, shape, NULL, 0, err);
}

/* One number a query head, or one of the call. */
static fa_status add_numbers(fa_tensors *set, fa_tensor_id id, int64_t n, fa_error *err) {
  return fa_tensors_add(set, id, FA_F32, 1, &n, NULL, 0, err);
}

/* The tensors that build_qkv and fa_build_cache do not make. */
static fa_status build_rest(const fa_case *c, fa_tensors *set, fa_error *err) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_tensor_info *info = fa_tensor_describe((fa_tensor_id)id);
    const bool qkv = info->data == FA_DATA_QUERY || info->data == FA_DATA_KEY || info->data == FA_DATA_VALUE;
    if ((qkv && !fa_tensor_has_parts((fa_tensor_id)id)) ||
        !fa_tensor_is_asked_for(&c->problem, (fa_tensor_id)id))
      continue;
    if (info->axes == FA_AXES_PARTS)
      TRY(add_token_parts(c, set, (fa_tensor_id)id, err));
    else if (info->axes == FA_AXES_TOKENS)
      TRY(add_tensor(c, set, (fa_tensor_id)id, 0, err));
    else if (info->axes == FA_AXES_HEADS)
      TRY(add_numbers(set, (fa_tensor_id)id, c->problem.heads_q, err));
    else if (info->axes == FA_AXES_ONE)
      TRY(add_numbers(set, (fa_tensor_id)id, 1, err));
    else if (info->axes == FA_AXES_SCORES)
      TRY(add_scores(c, set, (fa_tensor_id)id, err));
    else
      TRY(add_head_major(c, set, (fa_tensor_id)id, err));
  }
  return FA_OK;
}

/* ---- small tensors ---- */

fa_status fa_build_int32(fa_tensors *set, fa_tensor_id id, int rank, const int64_t *shape, const int32_t *v,
                         fa_error *err) {
  TRY(fa_tensors_add(set, id, FA_I32, rank, shape, NULL, 0, err));
  const int64_t n = fa_tensor_count(&set->t[id]);
  if (v && n > 0) memcpy(set->t[id].data, v, (size_t)n * sizeof *v);
  return FA_OK;
}

/* The small tensors: lengths and slopes. */
static fa_status build_lengths(const fa_case *c, fa_tensors *set, fa_error *err) {
  const fa_problem *p = &c->problem;
  const struct {
    fa_tensor_id id;
    const fa_int32_array *a;
  } arrays[] = {{FA_T_CU_SEQLENS_Q, &p->cu_seqlens_q}, {FA_T_CU_SEQLENS_K, &p->cu_seqlens_k},
                {FA_T_SEQUSED_K, &p->seqused_k},       {FA_T_LEFTPAD_K, &p->leftpad_k},
                {FA_T_CACHE_SEQLENS, &p->kvcache.len}, {FA_T_CACHE_BATCH_IDX, &p->kvcache.batch_idx}};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i)
    if (arrays[i].a->n > 0) TRY(fa_build_int32(set, arrays[i].id, 1, &arrays[i].a->n, arrays[i].a->v, err));
  if (!p->alibi.present) return FA_OK;
  const int64_t shape[2] = {p->batch, p->heads_q};
  const int skip = p->alibi.n == p->heads_q ? 1 : 0; /* [Hq], or [B, Hq] */
  TRY(fa_tensors_add(set, FA_T_ALIBI_SLOPES, FA_F32, 2 - skip, shape + skip, NULL, 0, err));
  memcpy(set->t[FA_T_ALIBI_SLOPES].data, p->alibi.slopes, (size_t)p->alibi.n * sizeof(float));
  return FA_OK;
}

fa_status fa_case_build_with(const fa_case *c, int n_threads, const fa_filler *filler, fa_tensors *out,
                             fa_error *err) {
  fa_tensor_bits made = 0;
  memset(out, 0, sizeof *out);
  fa_status status = fa_case_validate(c, err);
  if (status == FA_OK) status = build_qkv(c, out, err);
  if (status == FA_OK) status = build_rest(c, out, err);
  if (status == FA_OK) status = build_lengths(c, out, err);
  if (status == FA_OK) status = fa_build_cache(c, out, err);
  if (status == FA_OK) status = fa_build_topk(c, out, err);
  if (status == FA_OK) status = fa_build_blocks(c, out, err);
  if (status == FA_OK) status = fa_build_bits(c, out, err);
  if (status == FA_OK) status = fa_build_buffers(c, out, err);
  if (status == FA_OK) status = fa_build_descales(c, out, err);
  if (status == FA_OK && filler) made = filler->fill(filler->self, c, out);
  if (status == FA_OK) status = fa_build_fills(c, n_threads, made, out, err);
  if (status != FA_OK) fa_tensors_free(out);
  return status;
}

fa_status fa_case_build_on(const fa_case *c, int n_threads, fa_tensors *out, fa_error *err) {
  return fa_case_build_with(c, n_threads, NULL, out, err);
}

fa_status fa_case_build(const fa_case *c, fa_tensors *out, fa_error *err) {
  return fa_case_build_on(c, 1, out, err);
}
