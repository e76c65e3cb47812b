/* Rows without a visible key, found and rewritten in every layout of an LSE, against plain loops over sequences, heads and rows. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "fuzz/judging/delivered.h"
#include "fuzz/judging/empty_rows.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEADS "\"dtype\":\"f32\",\"head_dim\":4,\"heads_q\":3,\"mask\":{\"type\":\"causal\"}"
#define PACKED "\"cu_seqlens_q\":[0,5,9,12],\"cu_seqlens_k\":[0,3,8,8]"

static const char *const cases[] = {
    "{" HEADS ",\"batch\":2,\"seqlen_q\":6,\"seqlen_k\":4}",
    "{" HEADS "," PACKED "}",
    "{" HEADS "," PACKED ",\"lse_layout\":\"padded\"}",
};

typedef struct subject {
  fa_case c;
  fa_tensors in;
  fa_wants forward;
  fa_contract contract;
  fa_empty_rows rows;
} subject;

static void make(subject *s, const char *text) {
  const fa_ref_options opt = {.n_threads = 1};
  fa_error err = {""};
  *s = (subject){.rows = {.n = 0}};
  CHECK_MSG(fa_case_from_text(text, &s->c, &err) == FA_OK, "%s", err.text);
  REQUIRE(fa_case_build(&s->c, &s->in, &err) == FA_OK);
  fa_contract_init(&s->contract);
  s->contract.o_of_empty = FA_O_EMPTY_ANY, s->contract.lse_of_empty = FA_LSE_EMPTY_ANY;
  REQUIRE(fa_empty_rows_forward(&s->c.problem, &s->in, &s->contract, &opt, &s->forward, &s->rows, &err) ==
          FA_OK);
}

static void drop(subject *s) {
  fa_empty_rows_free(&s->rows);
  fa_wants_free(&s->forward);
  fa_tensors_free(&s->in);
  fa_case_free(&s->c);
}

/* Where a row's LSE and the first element of its O are. */
typedef struct place {
  int64_t lse, o;
  bool empty;
} place;

static place place_of(const fa_problem *p, int64_t b, int64_t h, int64_t i) {
  const int32_t *q = p->cu_seqlens_q.v, *k = p->cu_seqlens_k.v;
  if (p->cu_seqlens_q.n == 0)
    return (place){(b * p->heads_q + h) * p->seqlen_q + i, ((b * p->seqlen_q + i) * p->heads_q + h) * 4,
                   i < p->seqlen_q - p->seqlen_k};
  const int64_t sq = q[b + 1] - q[b], sk = k[b + 1] - k[b], token = q[b] + i;
  return (place){p->lse_padded ? (b * p->heads_q + h) * p->seqlen_q + i : h * q[p->batch] + token,
                 (token * p->heads_q + h) * 4, sk == 0 || i < sq - sk};
}

typedef void (*visit)(subject *s, const place *at, void *context);

static void for_each_row(subject *s, visit f, void *context) {
  const fa_problem *p = &s->c.problem;
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->heads_q; ++h)
      for (int64_t i = 0;
           i < (p->cu_seqlens_q.n ? p->cu_seqlens_q.v[b + 1] - p->cu_seqlens_q.v[b] : p->seqlen_q); ++i) {
        const place at = place_of(p, b, h, i);
        f(s, &at, context);
      }
}

static void count(subject *s, const place *at, void *context) {
  CHECK(s->rows.flag[at->lse] == at->empty);
  *(int64_t *)context += at->empty;
}

static void check_hidden(subject *s, const place *at, void *context) {
  const bool hidden = *(const bool *)context;
  CHECK(isnan(s->forward.t[FA_T_LSE].value[at->lse]) == (hidden && at->empty));
  for (int x = 0; x < 4; ++x) CHECK(isnan(s->forward.t[FA_T_O].value[at->o + x]) == (hidden && at->empty));
}

/* ---- two runs ---- */

typedef struct runs {
  fa_tensors first, second;
  bool o, lse; /* which are made the same */
} runs;

static double element(const fa_tensor *t, int64_t e) {
  int64_t at[FA_MAX_RANK];
  fa_tensor_unravel(t, e, at);
  return fa_tensor_get(t, at);
}

static void add(fa_tensors *set, const fa_wants *w, double value) {
  const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE};
  for (int k = 0; k < 2; ++k) {
    const fa_want *x = &w->t[ids[k]];
    REQUIRE(fa_tensors_add(set, ids[k], FA_F32, x->rank, x->shape, NULL, 0, NULL) == FA_OK);
    for (int64_t e = 0; e < x->n; ++e) {
      int64_t at[FA_MAX_RANK];
      fa_tensor_unravel(&set->t[ids[k]], e, at);
      fa_tensor_set(&set->t[ids[k]], at, value + (double)e);
    }
  }
}

static void check_equal(subject *s, const place *at, void *context) {
  const runs *r = context;
  (void)s;
  CHECK(element(&r->second.t[FA_T_LSE], at->lse) == (at->empty && r->lse ? 0 : 1000) + (double)at->lse);
  for (int x = 0; x < 4; ++x)
    CHECK(element(&r->second.t[FA_T_O], at->o + x) == (at->empty && r->o ? 0 : 1000) + (double)(at->o + x));
}

static void test_equal(subject *s, bool o, bool lse) {
  runs r = {.o = o, .lse = lse};
  s->contract.o_of_empty = o ? FA_O_EMPTY_ANY : FA_O_EMPTY_ZERO;
  s->contract.lse_of_empty = lse ? FA_LSE_EMPTY_ANY : FA_LSE_EMPTY_AS_CASE;
  add(&r.first, &s->forward, 0);
  add(&r.second, &s->forward, 1000);
  fa_empty_rows_equal(&s->rows, &r.first, &r.second);
  for_each_row(s, check_equal, &r);
  fa_tensors_free(&r.first);
  fa_tensors_free(&r.second);
}

/* What one of the runs does not deliver is left alone. */
static void test_undelivered(subject *s) {
  for (int side = 0; side < 2; ++side) {
    runs r = {.o = true};
    s->contract.o_of_empty = FA_O_EMPTY_ANY, s->contract.lse_of_empty = FA_LSE_EMPTY_ANY;
    add(&r.first, &s->forward, 0);
    add(&r.second, &s->forward, 1000);
    fa_tensor *lse = side ? &r.second.t[FA_T_LSE] : &r.first.t[FA_T_LSE];
    char *data = lse->data;
    lse->data = NULL;
    fa_empty_rows_equal(&s->rows, &r.first, &r.second);
    lse->data = data;
    for_each_row(s, check_equal, &r);
    fa_tensors_free(&r.first);
    fa_tensors_free(&r.second);
  }
}

/* ---- the mean of V ---- */

static void check_mean(subject *s, const place *at, void *context) {
  const fa_problem *p = &s->c.problem;
  (void)context;
  for (int x = 0; x < 4 && at->empty; ++x) {
    const double got = s->forward.t[FA_T_O].value[at->o + x];
    CHECK(p->dropout.p > 0 || p->cu_seqlens_q.n > 0 ? isnan(got) || p->dropout.p == 0
                                                    : fabs(got) < 2 && got != 0);
  }
}

/* By a profile: what rounding weights, sums and the exponential is worth, of the mean of magnitudes. */
static void check_mean_bound(subject *s, const place *at, void *context) {
  const fa_profile *f = context;
  const double sk = (double)s->c.problem.seqlen_k;
  const int64_t h = at->o / 4 % s->c.problem.heads_q,
                b = at->o / 4 / s->c.problem.heads_q / s->c.problem.seqlen_q;
  for (int x = 0; x < 4 && at->empty; ++x) {
    double size = 0;
    for (int64_t j = 0; j < s->c.problem.seqlen_k; ++j)
      size += fabs(fa_tensor_get(&s->in.t[FA_T_V], (int64_t[]){b, j, h, x})) / sk;
    const double accum = ((sk + 16) * 0x1p-24 + f->u_operand + 4 * f->eps_exp) * size;
    const double got = s->forward.t[FA_T_O].accum[at->o + x];
    CHECK_MSG(fabs(got - accum) <= 1e-3 * accum, "%g, not %g", got, accum);
  }
}

static void test_mean_bound(void) {
  const fa_profile f = fa_profile_get("simt-f32", FA_F32);
  const fa_ref_options opt = {.n_threads = 1, .profile = &f};
  subject s;
  CHECK(f.eps_exp > 0 && f.mma_block == 0);
  make(&s, cases[0]);
  fa_empty_rows_free(&s.rows);
  fa_wants_free(&s.forward);
  s.contract.o_of_empty = FA_O_EMPTY_MEAN_V;
  REQUIRE(fa_empty_rows_forward(&s.c.problem, &s.in, &s.contract, &opt, &s.forward, &s.rows, NULL) == FA_OK);
  REQUIRE(fa_empty_rows_expect(&s.rows, &s.in, &opt, &s.forward, NULL) == FA_OK);
  for_each_row(&s, check_mean_bound, (void *)(uintptr_t)&f);
  drop(&s);
}

/* With dropout it is the mean of some keys only, which nobody knows. */
static void test_mean(subject *s) {
  const fa_ref_options opt = {.n_threads = 1};
  s->contract.o_of_empty = FA_O_EMPTY_MEAN_V, s->contract.lse_of_empty = FA_LSE_EMPTY_AS_CASE;
  for (int dropout = 0; dropout < 2; ++dropout) {
    s->c.problem.dropout.p = dropout ? 0.25 : 0;
    REQUIRE(fa_empty_rows_expect(&s->rows, &s->in, &opt, &s->forward, NULL) == FA_OK);
    for_each_row(s, check_mean, NULL);
  }
  s->c.problem.dropout.p = 0;
}

/* ---- for the backward ---- */

static void check_plain(subject *s, const place *at, void *context) {
  const double x = element(context, at->lse);
  CHECK(at->empty ? isinf(x) && x > 0 : x == (double)at->lse);
  (void)s;
}

static void test_plain(subject *s) {
  fa_tensors set = {0};
  fa_tensor plain;
  add(&set, &s->forward, 0);
  REQUIRE(fa_empty_rows_plain_lse(&s->rows, &set.t[FA_T_LSE], &plain, NULL) == FA_OK);
  CHECK(plain.rank == set.t[FA_T_LSE].rank && plain.stride[plain.rank - 1] == 1);
  for_each_row(s, check_plain, &plain);
  free(plain.data);
  fa_tensors_free(&set);
}

/* NaN that should be there: one LSE that holds something else, and one O. */
static void test_check_nan(subject *s) {
  const fa_tensor_id ids[] = {FA_T_LSE, FA_T_O};
  s->contract.o_of_empty = FA_O_EMPTY_NAN, s->contract.lse_of_empty = FA_LSE_EMPTY_NAN;
  for (int k = 0; k < 2; ++k) {
    fa_tensors set = {0};
    fa_verdict v = {.id = ids[k], .judged = true};
    add(&set, &s->forward, 5);
    fa_empty_rows_check_nan(&s->rows, &set.t[ids[k]], FA_POISON_A, &v);
    CHECK(v.fail && v.bad == s->rows.n * (k ? 4 : 1) && v.class_bad == v.bad && isinf(v.worst_ratio) &&
          v.worst_ratio > 0);
    CHECK(v.n_worst == (v.bad < FA_WORST_POINTS ? v.bad : FA_WORST_POINTS) && v.where[0] && v.unwritten == 0);
    fa_verdict other = {.id = FA_T_DQ, .judged = true}, not_judged = {.id = ids[k]};
    fa_empty_rows_check_nan(&s->rows, &set.t[ids[k]], FA_POISON_A, &other);
    fa_empty_rows_check_nan(&s->rows, &set.t[ids[k]], FA_POISON_A, &not_judged);
    CHECK(!other.fail && !not_judged.fail);
    fa_tensors_free(&set);
  }
}

static void test_case(const char *text) {
  subject s;
  int64_t n = 0;
  bool hidden = true;
  make(&s, text);
  for_each_row(&s, count, &n);
  CHECK(n > 0 && s.rows.n == n);
  fa_empty_rows_hide(&s.rows, &s.forward);
  for_each_row(&s, check_hidden, &hidden);
  hidden = false;
  fa_empty_rows_restore(&s.rows, &s.forward);
  for_each_row(&s, check_hidden, &hidden);
  test_equal(&s, true, true);
  test_equal(&s, true, false);
  test_equal(&s, false, true);
  test_undelivered(&s);
  test_plain(&s);
  test_check_nan(&s);
  test_mean(&s);
  drop(&s);
}

static void test_drop(void) {
  char data[1];
  fa_tensors t = {0};
  for (int id = 0; id < FA_T_COUNT; ++id) t.t[id].data = data;
  fa_outputs_drop(&t, FA_TENSOR_BIT(FA_T_LSE) | FA_TENSOR_BIT(FA_T_DV));
  for (int id = 0; id < FA_T_COUNT; ++id) CHECK(!t.t[id].data == (id == FA_T_LSE || id == FA_T_DV));
}

/* Calls in which some row may see no key, and those in which every row sees one. */
static void test_possible(void) {
  static const struct {
    const char *text;
    bool possible;
  } calls[] = {
      {"{\"seqlen_q\":6,\"head_dim\":8}", false},
      {"{\"seqlen_q\":6,\"seqlen_k\":1,\"head_dim\":8}", false},
      {"{\"seqlen_q\":6,\"head_dim\":8,\"alibi\":{}}", false},
      {"{\"seqlen_q\":6,\"head_dim\":8,\"mask\":{\"type\":\"causal\"}}", false},
      {"{\"seqlen_q\":6,\"seqlen_k\":5,\"head_dim\":8,\"mask\":{\"type\":\"causal\"}}", true},
      {"{\"seqlen_q\":6,\"seqlen_k\":0,\"head_dim\":8}", true},
      {"{\"batch\":2,\"seqlen_q\":6,\"head_dim\":8,\"seqused_k\":[4,1]}", false},
      {"{\"batch\":2,\"seqlen_q\":6,\"head_dim\":8,\"seqused_k\":[4,0]}", true},
      {"{\"cu_seqlens_q\":[0,1,3],\"cu_seqlens_k\":[0,2,4],\"head_dim\":8}", false},
      {"{\"cu_seqlens_q\":[0,1,3],\"cu_seqlens_k\":[0,4,4],\"head_dim\":8}", true},
      {"{\"cu_seqlens_q\":[0,3,3],\"cu_seqlens_k\":[0,4,4],\"head_dim\":8}", false},
      {"{\"family\":\"merge\",\"seqlen_q\":6,\"head_dim\":8,\"merge\":{\"parts\":2}}", true},
      {"{\"family\":\"memeff\",\"seqlen_q\":6,\"head_dim\":8,\"bias\":{\"shape\":[1,1,1,\"k\"]}}", true},
      {"{\"family\":\"flex\",\"seqlen_q\":6,\"head_dim\":8,\"mask_mod\":\"kv_idx < 9\"}", true},
      {"{\"family\":\"flex\",\"seqlen_q\":6,\"head_dim\":8,\"score_mod\":\"score + 1.0\"}", true},
      {"{\"family\":\"flex\",\"seqlen_q\":40,\"head_dim\":8,\"block_sparse\":{\"q_block\":16,\"kv_block\":16,"
       "\"density\":0.9,\"seed\":\"1\"}}",
       true}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    fa_case c;
    fa_tensors in;
    fa_error err = {""};
    CHECK_MSG(fa_case_from_text(calls[i].text, &c, &err) == FA_OK, "%s: %s", calls[i].text, err.text);
    REQUIRE(fa_case_build(&c, &in, &err) == FA_OK);
    CHECK_MSG(fa_empty_rows_are_possible(&c.problem, &in) == calls[i].possible, "%s", calls[i].text);
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

int main(void) {
  test_possible();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) test_case(cases[i]);
  test_mean_bound();
  test_drop();
  return check_done();
}
