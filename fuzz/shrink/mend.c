/* Updates fields that follow from others, after an edit. */
#include "fuzz/shrink/reduce.h"

#include <stdlib.h>
#include <string.h>

static int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* One value per sequence: truncates, or repeats the last one. */
static void fit_array(fa_int32_array *a, int64_t n) {
  if (a->n <= 0 || a->n == n) return;
  int32_t *v = malloc((size_t)n * sizeof *v);
  if (!v) return; /* the case is then invalid, and not tried */
  for (int64_t i = 0; i < n; ++i) v[i] = a->v[least_of(i, a->n - 1)];
  free(a->v);
  *a = (fa_int32_array){n, v};
}

static void clip(int32_t *x, int64_t limit) {
  if (*x > limit) *x = (int32_t)(limit > 0 ? limit : 0);
}

/* Limits every sequence's lengths to the tensors'. */
static void fit_lengths(fa_problem *p) {
  fa_kvcache *kv = &p->kvcache;
  if (kv->n_new == 0) p->quantized.quantizes_new = false;
  fit_array(&p->seqused_k, p->batch);
  fit_array(&p->leftpad_k, p->batch);
  fit_array(&kv->len, p->batch);
  fit_array(&kv->batch_idx, p->batch);
  fit_array(&p->topk.len, p->batch);
  if (kv->page_size > 0) p->seqlen_k = (p->seqlen_k + kv->page_size - 1) / kv->page_size * kv->page_size;
  if (kv->page_size > 0 && kv->shared_pages > p->seqlen_k / kv->page_size)
    kv->shared_pages = p->seqlen_k / kv->page_size;
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t n = p->cu_seqlens_k.n ? p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b] : p->seqlen_k;
    if (kv->len.n == p->batch) {
      clip(&kv->len.v[b], p->seqlen_k - kv->n_new);
      n = kv->len.v[b] + kv->n_new;
    }
    if (p->seqused_k.n == p->batch) {
      clip(&p->seqused_k.v[b], n);
      n = p->seqused_k.v[b];
    }
    if (p->leftpad_k.n == p->batch) clip(&p->leftpad_k.v[b], n);
  }
}

/* Removes or truncates ranges past the last row, and merges adjacent ones. */
static void fit_zero(fa_int32_array *a, int64_t rows) {
  int64_t n = 0;
  for (int64_t i = 0; i + 1 < a->n; i += 2) {
    const int32_t from = a->v[i];
    int32_t to = a->v[i + 1];
    clip(&to, rows);
    if (from >= to) continue;
    if (n > 0 && from <= a->v[n - 1]) {
      if (to > a->v[n - 1]) a->v[n - 1] = to;
    } else {
      a->v[n++] = from;
      a->v[n++] = to;
    }
  }
  a->n = n;
  if (n > 0) return;
  free(a->v);
  *a = (fa_int32_array){0};
}

static void fit_alibi(fa_problem *p) {
  fa_alibi *a = &p->alibi;
  if (!a->present) {
    free(a->slopes);
    *a = (fa_alibi){0};
  } else if (!a->standard && a->n != p->heads_q && a->n != p->batch * p->heads_q && a->n > p->heads_q) {
    a->n = p->heads_q;
  }
}

void fa_shrink_mend(fa_case *c, const fa_shrink_goal *goal) {
  fa_problem *p = &c->problem;
  if (p->cu_seqlens_q.n > 0) p->batch = p->cu_seqlens_q.n - 1;
  if (!p->backward) p->grad_lse = false;
  if (p->cu_seqlens_q.n == 0) p->lse_padded = false;
  if (!p->bias.present) p->bias = (fa_bias){0};
  if (!p->sinks.present) p->sinks = (fa_sinks){0};
  if (!fa_mask_has_left(&p->mask)) p->mask.left = -1;
  if (!fa_mask_has_edges(&p->mask)) p->mask.right = -1;
  if (p->mask.type != FA_MASK_CHUNK) p->mask.size = 0;
  if (p->dropout.p == 0) p->dropout = (fa_dropout){0};
  if (p->kvcache.rotary_dim > p->head_dim) p->kvcache.rotary_dim = p->head_dim / 2 * 2;
  if (p->kvcache.rotary_dim == 0) p->kvcache.rotary_interleaved = false;
  if (goal->default_scale) p->scale = fa_default_scale(p->head_dim);
  fit_alibi(p);
  if (fa_problem_complete(p) != FA_OK) return;
  fit_lengths(p);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const bool used = fa_case_uses(c, (fa_tensor_id)id);
    if (!used) c->strides[id] = (fa_stride_recipe){0};
    if (!used && fa_case_has_fill((fa_tensor_id)id)) c->fill[id] = c->fill[FA_T_Q];
    fit_zero(&c->zero[id],
             used && fa_case_has_zero((fa_tensor_id)id) ? fa_case_zero_rows(c, (fa_tensor_id)id) : 0);
  }
}

/* ---- sequences ---- */

static void delete_range(void *array, int64_t *n, size_t size, int64_t from, int64_t count) {
  char *v = array;
  memmove(v + (size_t)from * size, v + (size_t)(from + count) * size, (size_t)(*n - from - count) * size);
  *n -= count;
}

static void delete_lengths(fa_int32_array *cu, int64_t from, int64_t n) {
  if (cu->n == 0) return;
  const int32_t gone = cu->v[from + n] - cu->v[from];
  delete_range(cu->v, &cu->n, sizeof *cu->v, from + 1, n);
  for (int64_t i = from + 1; i < cu->n; ++i) cu->v[i] -= gone;
}

void fa_shrink_delete_sequences(fa_case *c, int64_t from, int64_t n) {
  fa_problem *p = &c->problem;
  fa_int32_array *each[] = {&p->seqused_k, &p->leftpad_k, &p->kvcache.len, &p->kvcache.batch_idx,
                            &p->topk.len};
  for (int i = 0; i < 5; ++i)
    if (each[i]->n == p->batch) delete_range(each[i]->v, &each[i]->n, sizeof *each[i]->v, from, n);
  fa_alibi *a = &p->alibi;
  if (a->n == p->batch * p->heads_q && a->n != p->heads_q)
    delete_range(a->slopes, &a->n, sizeof *a->slopes, from * p->heads_q, n * p->heads_q);
  delete_lengths(&p->cu_seqlens_q, from, n);
  delete_lengths(&p->cu_seqlens_k, from, n);
  p->batch -= n;
}

void fa_shrink_set_sequence_length(fa_case *c, int side, int64_t entry, int64_t length) {
  fa_int32_array *cu = side ? &c->problem.cu_seqlens_k : &c->problem.cu_seqlens_q;
  const int64_t change = length - (cu->v[entry + 1] - cu->v[entry]);
  for (int64_t i = entry + 1; i < cu->n; ++i) cu->v[i] += (int32_t)change;
}
