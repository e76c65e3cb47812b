#include "fuzz/bench/pairs.h"

#include "gpu/args/calls.h"
#include "gpu/expr/functions.h"

#include <stdlib.h>
#include <string.h>

static const int64_t most_looks = 1 << 22; /* evaluations of mask_mod, give or take a row of every head */

/* Keys visible to row i of a sequence by position: first .. end - 1. */
static int64_t keys_of(const fa_problem *p, int64_t i, int64_t sq, int64_t sk, int64_t *first) {
  const int64_t at = i + (p->mask.align == FA_ALIGN_BOTTOM_RIGHT ? sk - sq : 0);
  const fa_window window = fa_mask_window(&p->mask);
  int64_t end = window.right >= 0 ? at + window.right + 1 : sk;
  *first = window.left >= 0 ? at - window.left : 0;
  if (*first < 0) *first = 0;
  if (end > sk) end = sk;
  return end > *first ? end : *first;
}

static void lengths_of(const fa_problem *p, int64_t b, int64_t *sq, int64_t *sk) {
  *sq = p->seqlen_q;
  *sk = p->seqlen_k;
  if (fa_problem_is_varlen(p)) *sq = p->cu_seqlens_q.v[b + 1] - p->cu_seqlens_q.v[b];
  if (fa_problem_has_packed_keys(p)) *sk = p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b];
  if (p->seqused_k.n) *sk = p->seqused_k.v[b];
  if (p->family == FA_KVCACHE) *sk = p->kvcache.len.v[b] + p->kvcache.n_new;
  if (p->leftpad_k.n) *sk -= p->leftpad_k.v[b];
}

static double pairs_by_position(const fa_problem *p) {
  double pairs = 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t sq, sk, first;
    lengths_of(p, b, &sq, &sk);
    for (int64_t i = 0; i < sq; ++i) {
      const int64_t end = keys_of(p, i, sq, sk, &first);
      pairs += (double)(end - first);
    }
  }
  return pairs * (double)p->heads_q;
}

/* ---- mask_mod and block lists ---- */

typedef struct looker {
  const fa_problem *p;
  const fa_flex *flex;
  const fa_flex_functions *functions;
  int64_t n_q, n_kv;
  uint8_t *kind; /* per block of keys, for the row: 0 unlisted, 1 partial, 2 full */
} looker;

static void mark(const looker *x, const int32_t *count, const int32_t *index, int64_t row, uint8_t kind) {
  for (int32_t k = 0; count && k < count[row]; ++k) x->kind[index[row * x->n_kv + k]] = kind;
}

static void look_up_row(const looker *x, int64_t b, int64_t h, int64_t i) {
  const fa_flex *f = x->flex;
  memset(x->kind, f->kv_num_blocks ? 0 : 1, (size_t)x->n_kv);
  if (!f->kv_num_blocks) return;
  const int64_t batch = b % f->list_batch, head = h % f->list_heads;
  const int64_t row = (batch * f->list_heads + head) * x->n_q + i / f->q_block;
  mark(x, f->kv_num_blocks, f->kv_indices, row, 1);
  mark(x, f->full_kv_num_blocks, f->full_kv_indices, row, 2);
}

static double pairs_of_row(const looker *x, const fa_flex_pair *of_row) {
  int64_t first, pairs = 0;
  fa_flex_pair at = *of_row;
  const int64_t end = keys_of(x->p, at.i, at.len_q, at.len_k, &first);
  for (int64_t j = first; j < end; ++j) {
    const int kind = x->kind[x->flex->kv_block ? j / x->flex->kv_block : 0];
    at.j = (int)j;
    pairs += kind == 2 || (kind == 1 && (!x->functions->mask || x->functions->mask(x->functions->self, &at)));
  }
  return (double)pairs;
}

static double pairs_of_heads(const looker *x) {
  const fa_problem *p = x->p;
  const int64_t looks = p->batch * p->heads_q * (p->seqlen_k + 1);
  int64_t n_rows = most_looks / looks + 1;
  double pairs = 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t sq, sk;
    lengths_of(p, b, &sq, &sk);
    const int64_t n = n_rows < sq ? n_rows : sq;
    for (int64_t h = 0; h < p->heads_q; ++h)
      for (int64_t r = 0; r < n; ++r) {
        const fa_flex_pair at = {.b = (int)b,
                                 .h = (int)h,
                                 .i = (int)((2 * r + 1) * sq / (2 * n)),
                                 .len_q = (int)sq,
                                 .len_k = (int)sk};
        look_up_row(x, b, h, at.i);
        pairs += pairs_of_row(x, &at) * (double)sq / (double)n;
      }
  }
  return pairs;
}

double fa_bench_pairs(const fa_problem *p, const fa_tensors *t) {
  fa_args x;
  const char *why = NULL;
  fa_flex_interpreter *interpreter = NULL;
  double pairs = pairs_by_position(p);
  if (!fa_args_is_flex(p)) return pairs;
  const fa_status status = fa_args_make(p, t, false, 1, &x, &why, NULL);
  const fa_flex *flex = &x.flex.flex;
  const fa_flex_program *e = x.flex.program;
  looker look = {.p = p, .flex = flex};
  const bool good =
      status == FA_OK && !why &&
      fa_flex_interpreter_make(NULL, e ? &e->mask : NULL, e ? e->buffer : NULL, e ? e->n_buffers : 0,
                               flex->buffer, NULL, &interpreter, NULL) == FA_OK;
  if (good) {
    look.functions = fa_flex_interpreter_functions(interpreter);
    look.n_q = fa_flex_n_q(&x.a);
    look.n_kv = flex->kv_block ? fa_flex_n_kv(&x.a) : 1;
    look.kind = calloc((size_t)look.n_kv + 1, 1);
    if (look.kind && (look.functions->mask || flex->kv_num_blocks)) pairs = pairs_of_heads(&look);
    free(look.kind);
  }
  fa_flex_interpreter_free(interpreter);
  fa_args_free(&x);
  return pairs;
}
