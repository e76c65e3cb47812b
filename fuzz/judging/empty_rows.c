#include "fuzz/judging/empty_rows.h"

#include "ref/bounds/stored.h"
#include "ref/engine/call.h"
#include "ref/engine/geometry.h"
#include "ref/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fa_contract_has_own_empty_rows(const fa_contract *c) {
  return c && (c->lse_of_empty != FA_LSE_EMPTY_AS_CASE || c->o_of_empty != FA_O_EMPTY_ZERO);
}

static bool sees_nothing(const fa_ref_call *c) {
  for (int64_t b = 0; b < c->p->batch; ++b)
    for (int64_t i = 0; i < c->entry[b].sq; ++i) {
      int64_t first, end;
      fa_ref_mask_range(&c->p->mask, c->entry[b].sk, c->entry[b].shift, i, &first, &end);
      if (first >= end) return true;
    }
  return false;
}

bool fa_empty_rows_are_possible(const fa_problem *p, const fa_tensors *in) {
  const fa_ref_options options = {.n_threads = 1};
  fa_ref_call c;
  fa_wants none;
  if (p->family == FA_MERGE || p->bias.present || p->score_mod || p->mask_mod || p->block_sparse.present ||
      p->mask_bits.present || p->topk.present || fa_ref_call_init(&c, p, in, &options, &none, NULL) != FA_OK)
    return true;
  const bool possible = sees_nothing(&c);
  fa_ref_call_free(&c);
  return possible;
}

static double of_case(const fa_problem *p) {
  return p->empty_lse == FA_EMPTY_POS_INF ? INFINITY : p->empty_lse == FA_EMPTY_NEG_INF ? -INFINITY : 0;
}

/* Such a row's LSE as it is compared. */
static double expected_lse(const fa_empty_rows *rows) {
  switch (rows->contract->lse_of_empty) {
  case FA_LSE_EMPTY_POS_INF:
    return INFINITY;
  case FA_LSE_EMPTY_NEG_INF:
    return -INFINITY;
  case FA_LSE_EMPTY_ZERO:
    return 0;
  case FA_LSE_EMPTY_AS_CASE:
    return of_case(rows->p);
  default:
    return NAN;
  }
}

fa_status fa_empty_rows_forward(const fa_problem *p, const fa_tensors *in, const fa_contract *contract,
                                const fa_ref_options *opt, fa_wants *forward, fa_empty_rows *out,
                                fa_error *err) {
  *out = (fa_empty_rows){.p = p, .contract = contract};
  if (!fa_contract_has_own_empty_rows(contract)) return fa_ref_forward(p, in, opt, forward, err);
  /* An LSE of -infinity means no visible key, whereas 0 or infinity may also be computed. */
  fa_problem told = *p;
  told.empty_lse = FA_EMPTY_NEG_INF;
  fa_status status = fa_ref_forward(&told, in, opt, forward, err);
  if (status != FA_OK) return status;
  fa_want *lse = &forward->t[FA_T_LSE];
  out->flag = calloc((size_t)lse->n + 1, sizeof *out->flag);
  if (!out->flag) {
    fa_wants_free(forward);
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  for (int64_t e = 0; e < lse->n; ++e) {
    out->flag[e] = lse->value[e] == -INFINITY;
    out->n += out->flag[e];
  }
  fa_empty_rows_restore(out, forward);
  return FA_OK;
}

void fa_empty_rows_free(fa_empty_rows *rows) {
  free(rows->flag);
  *rows = (fa_empty_rows){0};
}

/* Calls visit for every such row with its place in O's rows and in the LSE. */
typedef void visit(void *context, const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i);

static fa_status for_each(const fa_empty_rows *rows, const fa_tensors *in, visit *f, void *context,
                          fa_error *err) {
  const fa_ref_options options = {.n_threads = 1};
  fa_ref_call c;
  fa_wants none;
  fa_status status = fa_ref_call_init(&c, rows->p, in, &options, &none, err);
  if (status != FA_OK) return status;
  for (int64_t b = 0; b < rows->p->batch; ++b)
    for (int64_t h = 0; h < c.heads_q; ++h)
      for (int64_t i = 0; i < c.entry[b].sq; ++i)
        if (rows->flag[fa_ref_lse_index(&c, &c.entry[b], h, i)]) f(context, &c, &c.entry[b], h, i);
  fa_ref_call_free(&c);
  return FA_OK;
}

/* ---- what is expected of O ---- */

/* The mean of one head's values, which all of its rows without keys share. */
typedef struct means {
  const fa_ref_options *opt;
  const fa_ref_sequence *of;
  int64_t hk;
  double *value, *size, *row; /* [Dv] each: the mean, the mean of magnitudes, one value */
  fa_want *o;
} means;

static void compute_mean(means *m, const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk) {
  if (m->of == e && m->hk == hk) return;
  m->of = e;
  m->hk = hk;
  for (int64_t x = 0; x < c->dv; ++x) m->value[x] = m->size[x] = 0;
  for (int64_t j = 0; j < e->sk; ++j) {
    fa_ref_load_k(c, FA_T_V, e, hk, j, 1, m->row);
    for (int64_t x = 0; x < c->dv; ++x) {
      m->value[x] += m->row[x] / (double)e->sk;
      m->size[x] += fabs(m->row[x]) / (double)e->sk;
    }
  }
}

/* Weights of 1 or 1 / n, rounded as P is; a sum of n products; and the division. All keys and all such rows of a head
 * share one weight, so that its rounding is one error and not the noise of many: statistics leave it out. */
static void expect_mean(void *context, const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i) {
  means *m = context;
  const fa_profile *f = m->opt->profile;
  const int64_t at = fa_ref_q_index(c, e, h, i, c->dv);
  const double terms = (double)(e->sk + 16) * (f && f->mma_block > 0 ? 8 : 1) * 0x1p-24;
  /* A mean of nothing is 0 / 0, and with dropout it is not the mean of all. */
  const bool known = e->sk > 0 && !(c->p->dropout.p > 0);
  compute_mean(m, c, e, h / c->group);
  for (int64_t x = 0; x < c->dv; ++x) {
    m->o->value[at + x] = known ? m->value[x] : NAN;
    if (!m->o->quant) continue;
    m->o->quant[at + x] = f ? (float)(f->u_p * m->size[x] + f->floor_p * (double)e->sk) : 0;
    if (m->o->noise) m->o->noise[at + x] = m->o->quant[at + x];
    m->o->accum[at + x] = (float)((terms + (f ? f->u_operand + 4 * f->eps_exp : 0)) * m->size[x]);
  }
  fa_bound_stored_o(c->p, c->in, at, c->dv, m->o);
}

static fa_status expect_means(const fa_empty_rows *rows, const fa_tensors *in, const fa_ref_options *opt,
                              fa_want *o, fa_error *err) {
  const size_t dv = (size_t)rows->p->head_dim_v;
  double *memory = calloc(3 * dv + 1, sizeof *memory);
  if (!memory) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  means m = {.opt = opt, .value = memory, .size = memory + dv, .row = memory + 2 * dv, .o = o};
  const fa_status status = for_each(rows, in, expect_mean, &m, err);
  free(memory);
  return status;
}

/* First element of O's row for an element of the LSE: [b, h, s] is [b, s, h], and [h, t] is [t, h]; padded, [b, h, s] is
 * [cu_seqlens_q[b] + s, h]. */
static int64_t row_of_o(const fa_problem *p, int64_t at) {
  if (p->lse_padded) {
    const int64_t i = at % p->seqlen_q, head = at / p->seqlen_q;
    return ((p->cu_seqlens_q.v[head / p->heads_q] + i) * p->heads_q + head % p->heads_q) * p->head_dim_v;
  }
  const int64_t rows = fa_problem_is_varlen(p) ? fa_problem_total_q(p) : p->seqlen_q;
  const int64_t s = at % rows, h = at / rows % p->heads_q, b = at / rows / p->heads_q;
  return ((b * rows + s) * p->heads_q + h) * p->head_dim_v;
}

/* Exactly this. */
static void set(fa_want *w, int64_t first, int64_t n, double value) {
  for (int64_t x = first; x < first + n; ++x) {
    w->value[x] = value;
    if (w->quant) w->quant[x] = w->accum[x] = 0;
  }
}

static void set_o(const fa_empty_rows *rows, fa_want *o, int64_t at, double value) {
  set(o, row_of_o(rows->p, at), rows->p->head_dim_v, value);
}

fa_status fa_empty_rows_expect(const fa_empty_rows *rows, const fa_tensors *in, const fa_ref_options *opt,
                               fa_wants *forward, fa_error *err) {
  fa_want *lse = &forward->t[FA_T_LSE];
  const double value = rows->n ? expected_lse(rows) : 0;
  for (int64_t e = 0; rows->n && e < lse->n; ++e) {
    if (!rows->flag[e]) continue;
    set(lse, e, 1, value);
    if (rows->contract->o_of_empty != FA_O_EMPTY_ZERO) set_o(rows, &forward->t[FA_T_O], e, NAN);
  }
  if (rows->n == 0 || rows->contract->o_of_empty != FA_O_EMPTY_MEAN_V) return FA_OK;
  return expect_means(rows, in, opt, &forward->t[FA_T_O], err);
}

void fa_empty_rows_restore(const fa_empty_rows *rows, fa_wants *forward) {
  fa_want *lse = &forward->t[FA_T_LSE];
  for (int64_t e = 0; rows->n && e < lse->n; ++e) {
    if (!rows->flag[e]) continue;
    set(lse, e, 1, of_case(rows->p));
    set_o(rows, &forward->t[FA_T_O], e, 0);
  }
}

void fa_empty_rows_hide(const fa_empty_rows *rows, fa_wants *forward) {
  fa_want *lse = &forward->t[FA_T_LSE];
  for (int64_t e = 0; rows->n && e < lse->n; ++e) {
    if (!rows->flag[e]) continue;
    set(lse, e, 1, NAN);
    set_o(rows, &forward->t[FA_T_O], e, NAN);
  }
}

/* How many flags there are: the elements of the LSE, of which a padded one has more than O has rows. */
static int64_t n_flags(const fa_empty_rows *rows) {
  const fa_problem *p = rows->p;
  const bool packed = fa_problem_is_varlen(p) && !p->lse_padded;
  return rows->n ? p->heads_q * (packed ? fa_problem_total_q(p) : p->batch * p->seqlen_q) : 0;
}

/* ---- NaN, which a comparison cannot ask for ---- */

static void add_bad(fa_verdict *v, const fa_tensor *got, const int64_t *index, fa_poison poison) {
  const bool unwritten = fa_tensor_is_poison(got, index, poison);
  fa_point point = {.got = fa_tensor_get(got, index),
                    .want = NAN,
                    .err = INFINITY,
                    .ratio = INFINITY,
                    .poison = unwritten,
                    .class_bad = true};
  for (int a = 0; a < got->rank; ++a) point.index[a] = index[a];
  ++v->bad;
  ++v->class_bad;
  v->unwritten += unwritten;
  v->worst_ratio = INFINITY;
  v->fail = true;
  if (v->n_worst < FA_WORST_POINTS) v->worst[v->n_worst++] = point;
  if (!v->where[0])
    snprintf(v->where, sizeof v->where, "rows without a visible key should hold NaN, as declared");
}

static void check_nan(const fa_tensor *got, int64_t at, fa_poison poison, fa_verdict *v) {
  int64_t index[FA_MAX_RANK];
  fa_tensor_unravel(got, at, index);
  ++v->count;
  if (!isnan(fa_tensor_get(got, index)) || fa_tensor_is_poison(got, index, poison))
    add_bad(v, got, index, poison);
}

void fa_empty_rows_check_nan(const fa_empty_rows *rows, const fa_tensor *got, fa_poison poison,
                             fa_verdict *v) {
  const bool lse = v->id == FA_T_LSE && rows->n && rows->contract->lse_of_empty == FA_LSE_EMPTY_NAN;
  const bool o = v->id == FA_T_O && rows->n && rows->contract->o_of_empty == FA_O_EMPTY_NAN;
  if (!v->judged || !(lse || o)) return;
  const int64_t dv = rows->p->head_dim_v, n = n_flags(rows);
  for (int64_t e = 0; e < n; ++e) {
    if (!rows->flag[e]) continue;
    const int64_t first = lse ? e : row_of_o(rows->p, e);
    for (int64_t x = first; x < first + (lse ? 1 : dv); ++x) check_nan(got, x, poison, v);
  }
}

/* ---- two runs ---- */

static void copy_elements(const fa_tensor *from, const fa_tensor *to, int64_t first, int64_t n) {
  const size_t size = fa_dtype_size(to->dtype);
  int64_t index[FA_MAX_RANK];
  for (int64_t e = first; from->data && to->data && e < first + n; ++e) {
    fa_tensor_unravel(to, e, index);
    memcpy(to->data + fa_tensor_offset(to, index), from->data + fa_tensor_offset(from, index), size);
  }
}

void fa_empty_rows_equal(const fa_empty_rows *rows, const fa_tensors *from, fa_tensors *to) {
  const fa_problem *p = rows->p;
  const int64_t n = n_flags(rows);
  for (int64_t e = 0; e < n; ++e) {
    if (!rows->flag[e]) continue;
    if (rows->contract->lse_of_empty == FA_LSE_EMPTY_ANY)
      copy_elements(&from->t[FA_T_LSE], &to->t[FA_T_LSE], e, 1);
    if (rows->contract->o_of_empty == FA_O_EMPTY_ANY)
      copy_elements(&from->t[FA_T_O], &to->t[FA_T_O], row_of_o(p, e), p->head_dim_v);
  }
}

/* ---- for the backward ---- */

fa_status fa_empty_rows_plain_lse(const fa_empty_rows *rows, const fa_tensor *lse, fa_tensor *out,
                                  fa_error *err) {
  const int64_t n = fa_tensor_count(lse);
  float *value = malloc((size_t)(n + 1) * sizeof *value);
  if (!value) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  *out = (fa_tensor){.dtype = FA_F32, .rank = lse->rank, .data = (char *)value};
  int64_t step = 1;
  for (int a = lse->rank - 1; a >= 0; --a) {
    out->shape[a] = lse->shape[a];
    out->stride[a] = step;
    step *= lse->shape[a];
  }
  for (int64_t e = 0; e < n; ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(lse, e, index);
    value[e] = (float)(rows->flag[e] ? of_case(rows->p) : fa_tensor_get(lse, index));
  }
  return FA_OK;
}
