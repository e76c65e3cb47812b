/* Laws about parts: the result for one part of a call does not depend on the others. */
#include "cases/base/rng.h"
#include "fuzz/laws/parts.h"
#include "report/text/line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The part of the base that the other side is, as a dense call: its sequence 0 is sequence b of the base, and
 * its row and key 0 are rows q0 and k0 of that sequence. */
typedef struct part {
  int64_t b, q0, k0;
} part;

static bool map_part(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                     fa_law_link *link) {
  const part *x = ctx;
  const fa_problem *p = &w->base.p;
  const bool varlen = fa_problem_is_varlen(p);
  const fa_tensor_info *info = fa_tensor_describe(id);
  const bool keys = info->on_keys;
  const fa_int32_array *cu = keys ? &p->cu_seqlens_k : &p->cu_seqlens_q;
  const int64_t first = keys ? x->k0 : x->q0;
  if (info->axes == FA_AXES_BIAS) {
    link->at[0] = p->bias.per_batch ? x->b + index[0] : 0;
    link->at[2] = p->bias.per_query ? x->q0 + index[2] : 0;
    link->at[3] = x->k0 + index[3];
  } else if (info->axes == FA_AXES_ROWS) {
    const int64_t row = first + index[2];
    if (varlen)
      link->at[0] = index[1], link->at[1] = cu->v[x->b] + row;
    else
      link->at[0] = x->b + index[0], link->at[2] = row;
  } else if (varlen) {
    link->at[0] = cu->v[x->b] + first + index[1];
    link->at[1] = index[2];
    link->at[2] = index[3];
  } else {
    link->at[0] = x->b + index[0];
    link->at[1] = first + index[1];
  }
  return true;
}

/* Fills the other side's float inputs from that part of the base. */
static void copy_part(fa_law_work *w, fa_law_side *to, const part *x) {
  static const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_BIAS, FA_T_DO, FA_T_DLSE};
  for (size_t k = 0; k < sizeof ids / sizeof *ids; ++k) {
    const fa_tensor *a = &w->base.in.t[ids[k]], *b = &to->in.t[ids[k]];
    int64_t index[FA_MAX_RANK], n = fa_tensor_count(b);
    for (int64_t e = 0; e < n; ++e) {
      fa_tensor_unravel(b, e, index);
      fa_law_link link = {.factor = 1};
      memcpy(link.at, index, sizeof index);
      map_part(w, x, ids[k], index, &link);
      memcpy(b->data + fa_tensor_offset(b, index), a->data + fa_tensor_offset(a, link.at),
             fa_dtype_size(b->dtype));
    }
  }
}

static fa_status make_part(fa_law_work *w, fa_law_side *to, const fa_problem *p, const part *x,
                           fa_error *err) {
  fa_status status = fa_law_make_for(w, to, p, err);
  if (status == FA_OK) copy_part(w, to, x);
  return status;
}

static fa_status keep_one(fa_int32_array *a, int64_t b) {
  if (a->n == 0) return FA_OK;
  const int32_t x = a->v[b];
  return fa_int32_array_set(a, &x, 1);
}

fa_status fa_law_sequence_problem(const fa_problem *p, int64_t b, fa_problem *out, fa_error *err) {
  fa_status status = fa_problem_copy(out, p);
  if (status != FA_OK) return fa_fail(err, status, "out of memory");
  if (fa_problem_has_packed_keys(p)) {
    out->seqlen_q = p->cu_seqlens_q.v[b + 1] - p->cu_seqlens_q.v[b];
    out->seqlen_k = p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b];
    fa_int32_array_set(&out->cu_seqlens_q, NULL, 0);
    fa_int32_array_set(&out->cu_seqlens_k, NULL, 0);
  }
  out->batch = 1;
  if (out->block_sparse.present) out->block_sparse.list_batch = 1;
  out->kvcache.shared_pages = 0; /* a single sequence shares nothing */
  if (keep_one(&out->seqused_k, b) != FA_OK || keep_one(&out->leftpad_k, b) != FA_OK ||
      keep_one(&out->kvcache.len, b) != FA_OK || keep_one(&out->kvcache.batch_idx, b) != FA_OK) {
    fa_problem_free(out);
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  if (p->alibi.n > p->heads_q) {
    memmove(out->alibi.slopes, p->alibi.slopes + b * p->heads_q, (size_t)p->heads_q * sizeof(float));
    out->alibi.n = p->heads_q;
    out->alibi.standard = false;
  }
  return FA_OK;
}

/* Flash counts a call's dropout blocks from sequence 0. */
static void move_dropout(fa_problem *p, int64_t b) {
  if (p->dropout.p > 0) p->dropout.offset += (uint64_t)(b * p->heads_q * 32);
}

bool fa_law_chooses_splits(const fa_law_work *w) {
  return w->base.p.splits == 0 && (w->base.profile.max_splits > 1 || w->other.profile.max_splits > 1);
}

static fa_status compare_sequence(fa_law_work *w, int64_t b, fa_error *err) {
  fa_problem p;
  const part x = {.b = b};
  fa_status status = fa_law_sequence_problem(&w->base.p, b, &p, err);
  if (status != FA_OK) return status;
  move_dropout(&p, b);
  status = make_part(w, &w->other, &p, &x, err);
  fa_problem_free(&p);
  FA_LAW_TRY(status);
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  const bool splits = fa_law_chooses_splits(w);
  const fa_law_mode forward = splits ? FA_LAW_BOUND : FA_LAW_BITS;
  /* dQ is a sum over parts whose number may depend on the grid; dBias is a sum over sequences. */
  fa_law_modes modes = fa_law_modes_all(forward);
  modes.of[FA_T_DQ] = FA_LAW_BOUND;
  if (!w->base.p.bias.per_batch) fa_law_modes_dbias(&modes, FA_LAW_NOT);
  return fa_law_compare_all(w, &w->other, modes, map_part, &x, err);
}

fa_status fa_law_batch_alone(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(p->batch == 1, "there is one entry");
  FA_SKIP_IF(fa_problem_is_varlen(p), "see varlen-separate");
  FA_SKIP_IF(p->block_sparse.present && p->block_sparse.list_batch > 1, "block lists go by entry");
  FA_SKIP_IF(p->dropout.p > 0 && p->family != FA_FLASH, "dropout goes by entry");
  FA_SKIP_IF(p->family == FA_KVCACHE && p->bias.per_batch, "the bias goes by entry");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  fa_status (*const compare)(fa_law_work *, int64_t, fa_error *) =
      p->family == FA_KVCACHE ? fa_law_compare_cached_sequence : compare_sequence;
  FA_LAW_TRY(compare(w, p->batch - 1, err));
  return p->batch > 2 ? compare(w, p->batch / 2, err) : FA_OK;
}

fa_status fa_law_varlen_separate(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(!fa_problem_is_varlen(p), "not of variable length");
  FA_SKIP_IF(p->family == FA_KVCACHE, "a cache's entries have rows of different tensors");
  FA_SKIP_IF(p->block_sparse.present, "block lists go by the longest length");
  FA_SKIP_IF(p->dropout.p > 0 && p->family != FA_FLASH, "dropout goes by the longest length");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  const int64_t step = p->batch > 8 ? p->batch / 8 : 1; /* only some of many */
  for (int64_t b = 0; b < p->batch; b += step) FA_LAW_TRY(compare_sequence(w, b, err));
  return FA_OK;
}

/* ---- a prefix of the rows ---- */

fa_status fa_law_causal_prefix(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  const int64_t shift = p->mask.align == FA_ALIGN_TOP_LEFT ? 0 : p->seqlen_k - p->seqlen_q;
  FA_SKIP_IF(p->mask.type != FA_MASK_CAUSAL, "not causal");
  FA_SKIP_IF(fa_problem_is_varlen(p) || p->family == FA_KVCACHE || p->block_sparse.present,
             "of one call with plain rows and keys only");
  FA_SKIP_IF(p->seqused_k.n || p->leftpad_k.n, "not all keys are used");
  FA_SKIP_IF(p->dropout.p > 0 && p->family != FA_FLASH, "dropout goes by the lengths");
  FA_SKIP_IF(p->alibi.present && p->mask.align == FA_ALIGN_TOP_LEFT, "slopes go by the lengths");
  FA_SKIP_IF(p->seqlen_q < 2, "there is one row");
  fa_rng r = fa_rng_make(w->c->data_seed, 0x707265666978);
  int64_t rows = fa_rng_range(&r, 1, p->seqlen_q - 1);
  const bool whole = p->seqlen_q > 128 && fa_rng_chance(&r, 0.5); /* whole tiles: must give the same bits */
  if (whole) rows = (rows + 127) / 128 * 128 < p->seqlen_q ? (rows + 127) / 128 * 128 : 128;
  const int64_t keys = rows + shift < 0 ? 0 : rows + shift > p->seqlen_k ? p->seqlen_k : rows + shift;
  FA_SKIP_IF(p->mask.align != FA_ALIGN_TOP_LEFT && keys != rows + shift, "the first rows see no key");
  FA_LAW_TRY(fa_law_make_base(w, err));
  w->base.p.splits = p->splits == 0 ? 1 : p->splits;
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  fa_problem q;
  const part x = {0};
  if (fa_problem_copy(&q, &w->base.p) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  q.seqlen_q = rows;
  q.seqlen_k = keys;
  fa_status status = make_part(w, &w->other, &q, &x, err);
  fa_problem_free(&q);
  FA_LAW_TRY(status);
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  const fa_law_mode forward = whole && w->base.p.splits <= 1 ? FA_LAW_BITS : FA_LAW_BOUND;
  const fa_law_modes modes = {.of = {[FA_T_O] = forward, [FA_T_LSE] = forward, [FA_T_DQ] = FA_LAW_BOUND}};
  return fa_law_compare_all(w, &w->other, modes, map_part, &x, err);
}

/* ---- two ranges of keys ---- */

/* One range's share of the softmax sum, and its value. */
typedef struct share {
  double weight, o;
  double slack, bound; /* of the share, and of share times o; infinite: unknown */
  bool empty;          /* no key of this range is visible */
} share;

static share share_of(const fa_law_side *s, const int64_t *index, int64_t position, double whole,
                      double bound_whole) {
  const int64_t at[3] = {index[0], index[2], index[1]};
  const int64_t row = (at[0] * s->p.heads_q + at[1]) * s->p.seqlen_q + at[2];
  const double lse = fa_tensor_get(&s->out.t[FA_T_LSE], at);
  bool has;
  share x = {.empty = isinf(lse)};
  if (x.empty) return x;
  const double relative = expm1(fa_law_bound_at(s, FA_T_LSE, at, row, &has) + bound_whole);
  const double bound_o = fa_law_bound_at(s, FA_T_O, index, position, &has);
  x.weight = exp(lse - whole);
  x.o = fa_tensor_get(&s->out.t[FA_T_O], index);
  x.slack = isinf(relative) ? INFINITY : x.weight * relative;
  x.bound = isinf(relative) || isinf(bound_o) ? INFINITY : x.weight * (bound_o + relative * fabs(x.o));
  return x;
}

typedef struct merged {
  int64_t n, bad, first[FA_MAX_RANK];
  double got, want, bound;
} merged;

static void count(merged *m, const int64_t *index, double got, double want, double bound) {
  ++m->n;
  if (fabs(got - want) <= bound) return;
  if (m->bad++) return;
  memcpy(m->first, index, sizeof m->first);
  m->got = got, m->want = want, m->bound = bound;
}

/* If the shares do not add up to 1, an LSE is wrong; if they do, O is checked. */
static void merge(fa_law_work *w, const fa_law_side *ranges) {
  const fa_tensor *o = &w->base.out.t[FA_T_O], *l = &w->base.out.t[FA_T_LSE];
  int64_t n = fa_tensor_count(o), index[FA_MAX_RANK];
  merged sums = {0}, values = {0};
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(o, e, index);
    const int64_t at[FA_MAX_RANK] = {index[0], index[2], index[1]};
    const int64_t row = (at[0] * w->base.p.heads_q + at[1]) * w->base.p.seqlen_q + at[2];
    const double whole = fa_tensor_get(l, at);
    bool has;
    const double bound_lse = fa_law_bound_at(&w->base, FA_T_LSE, at, row, &has);
    const double bound_o = fa_law_bound_at(&w->base, FA_T_O, index, e, &has);
    const share a = share_of(&ranges[0], index, e, whole, bound_lse),
                b = share_of(&ranges[1], index, e, whole, bound_lse);
    const bool empty = a.empty && b.empty;
    const double sum = !empty ? a.weight + b.weight : isinf(whole) ? 1 : 0;
    const double slack = a.slack + b.slack + 1e-6, bound = bound_o + a.bound + b.bound;
    if (isinf(slack) || isinf(bound)) continue;
    const double want = a.weight * a.o + b.weight * b.o;
    if (index[3] == 0) count(&sums, at, sum, 1, slack);
    if (fabs(sum - 1) <= slack) count(&values, index, fa_tensor_get(o, index), want, bound);
  }
  w->n_compared += sums.n + values.n;
  if (values.bad)
    fa_law_mismatch(w, FA_T_O, values.bad, n, o, values.first, values.got, values.want, values.bound);
  if (!sums.bad) return;
  char text[128];
  fa_index_text(sums.first, l->rank, text, sizeof text);
  fa_law_break(w, FA_T_LSE, false,
               "in %lld of %lld rows the ranges' weights do not add up to 1, the first %s: %.9g, within %.3g",
               (long long)sums.bad, (long long)sums.n, text, sums.got, sums.bound);
}

/* The ranges' weights follow from their LSEs, and what is weighted is O. */
static fa_status merge_delivered(fa_law_work *w, const fa_law_side *range) {
  const fa_tensor_bits needed = FA_TENSOR_BIT(FA_T_O) | FA_TENSOR_BIT(FA_T_LSE);
  FA_SKIP_IF(w->r->not_delivered & needed, "it merges ranges by their lse, and o or lse is not delivered");
  merge(w, range);
  return FA_OK;
}

/* Keys [0, cut) and [cut, Sk). Under a causal mask, row i still sees up to key i + Sk - Sq of the whole. For
 * the first range that is a window, unbounded on the left, that reaches Sk - cut further right than its own
 * diagonal. */
static fa_status make_range(fa_law_work *w, fa_law_side *to, bool second, int64_t cut, fa_error *err) {
  fa_problem p;
  const part x = {.k0 = second ? cut : 0};
  if (fa_problem_copy(&p, &w->base.p) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  p.seqlen_k = second ? p.seqlen_k - cut : cut;
  if (!second && p.mask.type == FA_MASK_CAUSAL) fa_mask_set_window(&p.mask, -1, w->base.p.seqlen_k - cut);
  fa_status status = make_part(w, to, &p, &x, err);
  fa_problem_free(&p);
  return status;
}

fa_status fa_law_merge_ranges(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  const bool causal =
      p->mask.type == FA_MASK_CAUSAL && p->mask.align == FA_ALIGN_BOTTOM_RIGHT && p->family != FA_MEMEFF;
  FA_SKIP_IF(p->mask.type != FA_MASK_NONE && !causal, "the mask cannot be cut at a key");
  FA_SKIP_IF(fa_problem_is_varlen(p) || p->family == FA_KVCACHE || p->block_sparse.present,
             "of one call with plain keys only");
  FA_SKIP_IF(p->seqused_k.n || p->leftpad_k.n || p->alibi.present, "keys are told apart by their position");
  FA_SKIP_IF(p->dropout.p > 0, "dropout goes by position");
  FA_SKIP_IF(p->seqlen_k < 2, "there is one key");
  FA_SKIP_IF(p->empty_lse == FA_EMPTY_ZERO && (causal || p->bias.present),
             "an LSE of 0 may be that of no key");
  FA_LAW_TRY(fa_law_make_base(w, err));
  w->base.p.backward = w->base.p.grad_lse = false;
  w->base.p.bias.grad = false;
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  fa_rng r = fa_rng_make(w->c->data_seed, 0x6d65726765);
  const int64_t cut = fa_rng_range(&r, 1, p->seqlen_k - 1);
  fa_law_side range[2] = {0};
  fa_status status = fa_law_bounds(w, &w->base, err);
  for (int i = 0; i < 2 && status == FA_OK && !w->over; ++i) {
    status = make_range(w, &range[i], i == 1, cut, err);
    if (status == FA_OK) status = fa_law_run(w, &range[i], err);
    if (status == FA_OK && !w->over) status = fa_law_bounds(w, &range[i], err);
  }
  if (status == FA_OK && !w->over) status = merge_delivered(w, range);
  for (int i = 0; i < 2; ++i) fa_law_side_free(&range[i]);
  return status;
}

fa_status fa_law_split_count(fa_law_work *w, fa_error *err) {
  const fa_law_modes bound = fa_law_modes_all(FA_LAW_BOUND);
  static const int64_t counts[] = {2, 3, 7};
  FA_SKIP_IF(w->c->problem.dropout.p > 0, "splits have no dropout");
  FA_LAW_TRY(fa_law_make_base(w, err));
  w->base.p.splits = 1;
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
    FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
    w->other.p.splits = counts[i];
    FA_LAW_TRY(fa_law_run(w, &w->other, err));
    FA_LAW_TRY(fa_law_compare_all(w, &w->other, bound, NULL, NULL, err));
  }
  return FA_OK;
}
