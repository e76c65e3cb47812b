/* Checks of pointers and strides in gpu/fa.h. */
#include "gpu/call/check.h"

#include "gpu/call/choose.h"
#include "gpu/expr/program.h"

/* The axes of a tensor must not overlap: from the innermost outwards, each stride must step over all axes
 * inside it. This also rejects a few interleaved layouts without overlaps. */
static bool elements_are_apart(int64_t elements, const int64_t extent[3], const int64_t stride[3]) {
  bool used[3] = {false, false, false};
  __int128 reach = elements; /* elements from the first to one past the last */
  for (int n = 0; n < 3; ++n) {
    int next = -1;
    for (int i = 0; i < 3; ++i)
      if (!used[i] && (next < 0 || stride[i] < stride[next])) next = i;
    used[next] = true;
    if (extent[next] <= 1) continue;
    if (stride[next] < reach) return false;
    reach += (__int128)stride[next] * (extent[next] - 1);
  }
  return true;
}

fa_status fa_extent_check(const fa_extent *x, fa_error *err) {
  const int64_t extent[3] = {x->batch ? x->batch : 1, x->rows, x->heads};
  const int64_t stride[3] = {x->batch ? x->stride.batch : 0, x->stride.row, x->stride.head};
  static const char *const axis[3] = {"batch", "row", "head"};
  if (extent[0] == 0 || extent[1] == 0 || extent[2] == 0) return FA_OK;
  if (!x->data) return fa_fail(err, FA_ERR_INPUT, "%s is NULL", x->name);
  if ((uintptr_t)x->data % (uintptr_t)x->element_bytes != 0)
    return fa_fail(err, FA_ERR_INPUT, "%s = %p: not aligned to its elements of %d bytes", x->name, x->data,
                   x->element_bytes);
  __int128 reach = x->elements;
  for (int i = 0; i < 3; ++i) {
    if (stride[i] < 0)
      return fa_fail(err, FA_ERR_INPUT, "%s: %s stride %lld: negative strides are not supported", x->name,
                     axis[i], (long long)stride[i]);
    reach += (__int128)stride[i] * (extent[i] - 1);
  }
  if (reach > (__int128)1 << 48)
    return fa_fail(err, FA_ERR_INPUT, "%s: its strides reach over 2^48 elements", x->name);
  if (x->output && !elements_are_apart(x->elements, extent, stride))
    return fa_fail(
        err, FA_ERR_INPUT,
        "%s is written, but with strides (%lld, %lld, %lld) of batch, row and head its elements overlap",
        x->name, (long long)stride[0], (long long)stride[1], (long long)stride[2]);
  return FA_OK;
}

fa_status fa_alignment_check(const char *name, const void *p, int element_bytes, fa_error *err) {
  if ((uintptr_t)p % (uintptr_t)element_bytes == 0) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "%s = %p: not aligned to %d bytes", name, p, element_bytes);
}

fa_extent fa_lse_extent(const fa_attention *a, const char *name, const void *data, fa_strides stride,
                        bool output) {
  const bool has_batch = fa_attention_has_lse_batch(a);
  return (fa_extent){.name = name,
                     .data = data,
                     .stride = stride,
                     .batch = has_batch ? a->batch : 0,
                     .rows = has_batch ? a->seqlen_q : a->total_q,
                     .heads = a->heads_q,
                     .elements = 1,
                     .element_bytes = 4,
                     .output = output};
}

static fa_status check_both_packed(const fa_attention *a, fa_error *err) {
  if (!a->cu_seqlens_q == !a->cu_seqlens_k) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "%s is NULL, but %s is given: both or neither",
                 a->cu_seqlens_q ? "cu_seqlens_k" : "cu_seqlens_q",
                 a->cu_seqlens_q ? "cu_seqlens_q" : "cu_seqlens_k");
}

static fa_status check_dropout(const fa_attention *a, fa_error *err) {
  if (!a->dropout_seed_at != !a->dropout_offset_at)
    return fa_fail(err, FA_ERR_INPUT, "%s is NULL, but %s is given: both or neither",
                   a->dropout_seed_at ? "dropout_offset_at" : "dropout_seed_at",
                   a->dropout_seed_at ? "dropout_seed_at" : "dropout_offset_at");
  fa_status status = fa_alignment_check("dropout_seed_at", a->dropout_seed_at, 8, err);
  if (status == FA_OK) status = fa_alignment_check("dropout_offset_at", a->dropout_offset_at, 8, err);
  return status == FA_OK ? fa_alignment_check("dropout_used", a->dropout_used, 8, err) : status;
}

fa_status fa_attention_check_arrays(const fa_attention *a, fa_error *err) {
  fa_status status = fa_alignment_check("cu_seqlens_q", a->cu_seqlens_q, 4, err);
  if (status == FA_OK) status = fa_alignment_check("cu_seqlens_k", a->cu_seqlens_k, 4, err);
  if (status == FA_OK) status = fa_alignment_check("seqused_k", a->seqused_k, 4, err);
  if (status == FA_OK) status = fa_alignment_check("leftpad_k", a->leftpad_k, 4, err);
  if (status == FA_OK) status = fa_alignment_check("mask_indptr", a->mask_indptr, 4, err);
  if (status == FA_OK && !a->mask_bits != !a->mask_indptr)
    status = fa_fail(err, FA_ERR_INPUT, "%s is NULL, but %s is given: both or neither",
                     a->mask_bits ? "mask_indptr" : "mask_bits", a->mask_bits ? "mask_bits" : "mask_indptr");
  if (status == FA_OK) status = fa_alignment_check("p_debug", a->p_debug, 16, err);
  if (status == FA_OK) status = check_dropout(a, err);
  if (status == FA_OK) status = fa_alignment_check("alibi_slopes", a->alibi_slopes, 4, err);
  if (status == FA_OK) status = fa_alignment_check("sinks", a->sinks, 4, err);
  if (status != FA_OK) return status;
  if (a->alibi_slopes && a->alibi_batch_stride < 0)
    return fa_fail(err, FA_ERR_INPUT, "alibi_batch_stride = %lld: negative strides are not supported",
                   (long long)a->alibi_batch_stride);
  if (a->cu_seqlens_q && a->seqlen_q > a->total_q)
    return fa_fail(err, FA_ERR_INPUT,
                   "seqlen_q = %lld, the longest entry, is more than all total_q = %lld tokens",
                   (long long)a->seqlen_q, (long long)a->total_q);
  if (a->cu_seqlens_k && a->seqlen_k > a->total_k)
    return fa_fail(err, FA_ERR_INPUT,
                   "seqlen_k = %lld, the longest entry, is more than all total_k = %lld tokens",
                   (long long)a->seqlen_k, (long long)a->total_k);
  return FA_OK;
}

fa_status fa_attention_check_tensors(const fa_attention *a, fa_error *err) {
  fa_status status = check_both_packed(a, err);
  if (status == FA_OK) status = fa_attention_check_arrays(a, err);
  if (status == FA_OK && a->flex) status = fa_flex_check_tensors(a, err);
  if (status != FA_OK || fa_attention_is_empty(a)) return status;
  const bool varlen = fa_attention_is_varlen(a);
  const int64_t batch = varlen ? 0 : a->batch, rows = varlen ? a->total_q : a->seqlen_q;
  const int64_t keys = varlen ? a->total_k : a->seqlen_k, head_dim_v = fa_attention_head_dim_v(a);
  const int bytes = fa_attention_element_bytes(a), operand = fa_attention_operand_bytes(a);
  const fa_extent all[] = {
      {"q", a->q, a->q_stride, batch, rows, a->heads_q, a->head_dim, operand, false},
      {"k", a->k, a->k_stride, batch, keys, a->heads_kv, a->head_dim, operand, false},
      {"v", a->v, a->v_stride, batch, keys, a->heads_kv, head_dim_v, operand, false},
      {"o", a->o, a->o_stride, batch, rows, a->heads_q, head_dim_v, bytes, true},
      fa_lse_extent(a, "lse", a->lse, a->lse_stride, true),
      {"bias", a->bias, a->bias_stride, a->batch, a->seqlen_q, a->heads_q, a->seqlen_k, bytes, false},
  };
  const size_t n = sizeof all / sizeof *all - (a->bias ? 0 : 1);
  for (size_t i = 0; status == FA_OK && i < n; ++i) status = fa_extent_check(&all[i], err);
  return status;
}

/* ---- gradients ---- */

/* An axis along which dbias is summed has one element in dbias. */
static fa_status check_dbias(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  if (!g->dbias) return FA_OK;
  if (!a->bias) return fa_fail(err, FA_ERR_INPUT, "dbias is wanted, but there is no bias");
  const fa_strides s = g->dbias_stride;
  const fa_extent x = {"dbias",
                       g->dbias,
                       s,
                       s.batch ? a->batch : 1,
                       s.row ? a->seqlen_q : 1,
                       s.head ? a->heads_q : 1,
                       a->seqlen_k,
                       fa_attention_element_bytes(a),
                       true};
  return fa_extent_check(&x, err);
}

/* The gradient of an LSE that leaves the sink out is none that the kernels add to delta. */
static fa_status check_sinks(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  if (g->dsinks && !a->sinks) return fa_fail(err, FA_ERR_INPUT, "dsinks is wanted, but there are no sinks");
  if (g->d_lse && a->sinks && !a->sinks_in_lse)
    return fa_fail(err, FA_ERR_INPUT, "d_lse: with sinks it needs sinks_in_lse");
  return fa_alignment_check("dsinks", g->dsinks, 4, err);
}

fa_status fa_gradients_check(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  if (!g) return fa_fail(err, FA_ERR_INPUT, "the fa_gradients is NULL");
  if (g->num_splits_key < 0 || g->num_splits_key > 1024)
    return fa_fail(err, FA_ERR_INPUT, "num_splits_key = %lld: 0 (chosen) .. 1024",
                   (long long)g->num_splits_key);
  fa_status status = fa_eight_refuse(a, "there is no backward pass", err);
  if (status == FA_OK && !a->flex) status = fa_choose_check(a, g, err);
  if (status == FA_OK) status = fa_flex_check_gradients(a, g, err);
  if (status == FA_OK) status = check_sinks(a, g, err);
  const bool varlen = fa_attention_is_varlen(a);
  const int64_t batch = varlen ? 0 : a->batch, rows = varlen ? a->total_q : a->seqlen_q;
  const int64_t keys = varlen ? a->total_k : a->seqlen_k, head_dim_v = fa_attention_head_dim_v(a);
  const int bytes = fa_attention_element_bytes(a);
  if (status != FA_OK || (!varlen && a->batch == 0)) return status;
  const fa_extent all[] = {
      {"d_o", g->d_o, g->do_stride, batch, rows, a->heads_q, head_dim_v, bytes, false},
      {"dq", g->dq, g->dq_stride, batch, rows, a->heads_q, a->head_dim, bytes, true},
      {"dk", g->dk, g->dk_stride, batch, keys, a->heads_kv, a->head_dim, bytes, true},
      {"dv", g->dv, g->dv_stride, batch, keys, a->heads_kv, head_dim_v, bytes, true},
      /* and if present: */
      fa_lse_extent(a, "d_lse", g->d_lse, g->dlse_stride, false),
      fa_lse_extent(a, "delta", g->delta, g->delta_stride, false),
  };
  for (size_t i = 0; status == FA_OK && i < sizeof all / sizeof *all; ++i)
    if (i < 4 || all[i].data) status = fa_extent_check(&all[i], err);
  return status == FA_OK ? check_dbias(a, g, err) : status;
}
