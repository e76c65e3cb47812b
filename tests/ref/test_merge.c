/* The judge's merge of partial states against sums in long double, its gradients against finite differences of them,
 * and its bounds against what float32 makes of the same, in three orders. */
#include "cases/base/rng.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/built_case.h"

#include <math.h>

enum { N_CASES = 300, MAX_PARTS = 6, WIDTH = 9 };

#define PICK(r, list) ((list)[fa_rng_below(r, (int64_t)(sizeof(list) / sizeof *(list)))])

static fa_case random_merge(fa_rng *r) {
  static const fa_dtype dtypes[] = {FA_F16, FA_BF16, FA_F32};
  static const fa_fill lse[] = {FA_FILL_NORMAL,   FA_FILL_LSE_EQUAL, FA_FILL_LSE_NEAR,
                                FA_FILL_LSE_20,   FA_FILL_LSE_90,    FA_FILL_LSE_200,
                                FA_FILL_LSE_KEYS, FA_FILL_LSE_EMPTY, FA_FILL_LSE_EMPTY};
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem *p = &c.problem;
  fa_problem_set_family(p, FA_MERGE);
  p->dtype = PICK(r, dtypes);
  p->merge = (fa_parts){fa_rng_range(r, 1, MAX_PARTS), fa_rng_chance(r, 0.5), PICK(r, dtypes)};
  p->head_dim = fa_rng_range(r, 1, WIDTH);
  p->heads_q = fa_rng_range(r, 1, 3);
  p->seqlen_q = fa_rng_range(r, 1, 11);
  p->batch = fa_rng_range(r, 1, 2);
  p->grad_lse = fa_rng_chance(r, 0.5);
  const int32_t cu[] = {0, 3, 3, 10};
  if (fa_rng_chance(r, 0.4)) set_array(&p->cu_seqlens_q, cu, 4);
  c.layout = (fa_layout)fa_rng_below(r, 3);
  c.fill[FA_T_LSE_PARTS] = PICK(r, lse);
  c.data_seed = fa_rng_next(r);
  REQUIRE(fa_problem_complete(p) == FA_OK);
  return c;
}

/* ---- one row, in long double ---- */

typedef struct row {
  int64_t n, width;
  bool base_2;
  long double lse[MAX_PARTS], o[MAX_PARTS][WIDTH], d_o[WIDTH], d_lse;
} row;

typedef struct merged {
  long double lse, o[WIDTH];
} merged;

static merged merge_exactly(const row *r) {
  const long double unit = r->base_2 ? logl(2) : 1;
  long double sum = 0, max = -INFINITY;
  merged m = {-INFINITY, {0}};
  for (int64_t k = 0; k < r->n; ++k)
    if (r->lse[k] < INFINITY && r->lse[k] > max) max = r->lse[k];
  if (isinf((double)max)) return m;
  for (int64_t k = 0; k < r->n; ++k) {
    if (isinf((double)r->lse[k])) continue;
    const long double w = expl((r->lse[k] - max) * unit);
    sum += w;
    for (int64_t x = 0; x < r->width; ++x) m.o[x] += w * r->o[k][x];
  }
  for (int64_t x = 0; x < r->width; ++x) m.o[x] /= sum;
  m.lse = max + logl(sum) / unit;
  return m;
}

/* What the gradients are gradients of. */
static long double loss(const row *r) {
  const merged m = merge_exactly(r);
  long double sum = isinf((double)m.lse) ? 0 : r->d_lse * m.lse;
  for (int64_t x = 0; x < r->width; ++x) sum += r->d_o[x] * m.o[x];
  return sum;
}

static long double difference(row *r, long double *at) {
  const long double step = 0x1p-20L, before = *at;
  *at = before + step;
  const long double up = loss(r);
  *at = before - step;
  const long double down = loss(r);
  *at = before;
  return (up - down) / (2 * step);
}

/* ---- the rows of a case ---- */

typedef struct place {
  int64_t b, i, h, token; /* token: of packed rows */
} place;

static bool is_packed(const fa_case *c) {
  return c->problem.cu_seqlens_q.n > 0;
}

/* Row-major position of the row in O, in rows, and in the LSE. */
static int64_t o_row(const fa_case *c, const place *at) {
  const fa_problem *p = &c->problem;
  return is_packed(c) ? at->token * p->heads_q + at->h : (at->b * p->seqlen_q + at->i) * p->heads_q + at->h;
}
static int64_t lse_at(const fa_case *c, const place *at) {
  const fa_problem *p = &c->problem;
  return is_packed(c) ? at->h * fa_problem_total_q(p) + at->token
                      : (at->b * p->heads_q + at->h) * p->seqlen_q + at->i;
}

static double get(const fa_tensor *t, int64_t position) {
  int64_t index[FA_MAX_RANK] = {0};
  fa_tensor_unravel(t, position, index);
  return fa_tensor_get(t, index);
}

static row row_at(const fa_case *c, const fa_tensors *in, const place *at) {
  const fa_problem *p = &c->problem;
  row r = {.n = p->merge.parts, .width = p->head_dim, .base_2 = p->merge.base_2};
  const int64_t rows = fa_problem_total_q(p) * p->heads_q;
  for (int64_t k = 0; k < r.n; ++k) {
    r.lse[k] = (long double)get(&in->t[FA_T_LSE_PARTS], k * rows + lse_at(c, at));
    for (int64_t x = 0; x < r.width; ++x)
      r.o[k][x] = (long double)get(&in->t[FA_T_O_PARTS], (k * rows + o_row(c, at)) * r.width + x);
  }
  for (int64_t x = 0; x < r.width; ++x)
    r.d_o[x] = (long double)get(&in->t[FA_T_DO], o_row(c, at) * r.width + x);
  r.d_lse = p->grad_lse ? (long double)get(&in->t[FA_T_DLSE], lse_at(c, at)) : 0;
  return r;
}

static bool is_close(double got, long double want, long double size, long double tolerance) {
  if (isinf((double)want)) return got == (double)want;
  return fabsl((long double)got - want) <= tolerance * (size + fabsl(want)) + 0x1p-1000L;
}

static void check_row(const fa_case *c, const fa_wants *forward, const fa_wants *backward, const place *at,
                      row *r) {
  const merged m = merge_exactly(r);
  const int64_t rows = fa_problem_total_q(&c->problem) * c->problem.heads_q;
  CHECK(is_close(forward->t[FA_T_LSE].value[lse_at(c, at)], m.lse, 1, 1e-14L));
  for (int64_t x = 0; x < r->width; ++x)
    CHECK(is_close(forward->t[FA_T_O].value[o_row(c, at) * r->width + x], m.o[x], 10, 1e-14L));
  for (int64_t k = 0; k < r->n; ++k) {
    const bool empty = isinf((double)r->lse[k]);
    const double d_lse = backward->t[FA_T_DLSE_PARTS].value[k * rows + lse_at(c, at)];
    CHECK(is_close(d_lse, empty ? 0 : difference(r, &r->lse[k]), 10, 1e-10L));
    for (int64_t x = 0; x < r->width; ++x) {
      const double d_o = backward->t[FA_T_DO_PARTS].value[(k * rows + o_row(c, at)) * r->width + x];
      CHECK(is_close(d_o, empty ? 0 : difference(r, &r->o[k][x]), 10, 1e-10L));
    }
  }
}

/* ---- float32, as three kernels would ---- */

static float exp_of(const row *r, float x) {
  return r->base_2 ? exp2f(x) : expf(x);
}
static float log_of(const row *r, float x) {
  return r->base_2 ? log2f(x) : logf(x);
}

/* The maximum first, one normalisation at the end. */
static float by_maximum(const row *r, float o[WIDTH]) {
  float max = -INFINITY, sum = 0;
  for (int64_t k = 0; k < r->n; ++k)
    if (!isinf((double)r->lse[k])) max = fmaxf(max, (float)r->lse[k]);
  for (int64_t k = 0; k < r->n; ++k)
    if (!isinf((double)r->lse[k])) {
      const float w = exp_of(r, (float)r->lse[k] - max);
      sum += w;
      for (int64_t x = 0; x < r->width; ++x) o[x] += w * (float)r->o[k][x];
    }
  for (int64_t x = 0; x < r->width && sum > 0; ++x) o[x] /= sum;
  return sum > 0 ? max + log_of(r, sum) : -INFINITY;
}

/* A running maximum. */
static float by_running(const row *r, float o[WIDTH]) {
  float max = -INFINITY, sum = 0;
  for (int64_t k = 0; k < r->n; ++k) {
    if (isinf((double)r->lse[k])) continue;
    const float lse = (float)r->lse[k], higher = fmaxf(max, lse);
    const float old = sum > 0 ? exp_of(r, max - higher) : 0, new = exp_of(r, lse - higher);
    sum = sum * old + new;
    for (int64_t x = 0; x < r->width; ++x) o[x] = o[x] * old + new *(float)r->o[k][x];
    max = higher;
  }
  for (int64_t x = 0; x < r->width && sum > 0; ++x) o[x] /= sum;
  return sum > 0 ? max + log_of(r, sum) : -INFINITY;
}

/* Two at a time, from the last part to the first. */
static float by_pairs(const row *r, float o[WIDTH]) {
  float lse = -INFINITY;
  for (int64_t k = r->n - 1; k >= 0; --k) {
    if (isinf((double)r->lse[k])) continue;
    const float max = fmaxf(lse, (float)r->lse[k]);
    const float a = isinf(lse) ? 0 : exp_of(r, lse - max), b = exp_of(r, (float)r->lse[k] - max);
    for (int64_t x = 0; x < r->width; ++x) o[x] = (a * o[x] + b * (float)r->o[k][x]) / (a + b);
    lse = max + log_of(r, a + b);
  }
  return lse;
}

static double worst_ratio, worst_lse_ratio;

static void check_bounds(const fa_case *c, const fa_wants *forward, const place *at, const row *r) {
  static float (*const ways[])(const row *, float[WIDTH]) = {by_maximum, by_running, by_pairs};
  for (int w = 0; w < 3; ++w) {
    float o[WIDTH] = {0};
    const float lse = ways[w](r, o);
    const fa_want *want = &forward->t[FA_T_LSE], *want_o = &forward->t[FA_T_O];
    const int64_t e = lse_at(c, at);
    if (isinf(want->value[e])) {
      CHECK(lse == (float)want->value[e]);
    } else {
      const double ratio = fabs(lse - want->value[e]) / fa_want_bound(want, e);
      CHECK_MSG(ratio <= 1, "way %d: lse %.9g, not %.9g: %g of the bound", w, lse, want->value[e], ratio);
      worst_lse_ratio = fmax(worst_lse_ratio, ratio);
    }
    for (int64_t x = 0; x < r->width; ++x) {
      const int64_t at_o = o_row(c, at) * r->width + x;
      const double err = fabs((double)o[x] - want_o->value[at_o]),
                   bound = (double)want_o->accum[at_o] + 0x1p-149;
      CHECK_MSG(err <= bound, "way %d: o %.9g, not %.9g", w, o[x], want_o->value[at_o]);
      worst_ratio = fmax(worst_ratio, err / bound);
    }
  }
}

static void check_case(const fa_case *c) {
  const fa_profile profile = fa_profile_get("simt-f32", c->problem.dtype);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  fa_tensors in = build(c);
  fa_wants forward, backward;
  fa_error err = {""};
  REQUIRE(fa_ref_forward(&c->problem, &in, &opt, &forward, &err) == FA_OK);
  REQUIRE(fa_ref_backward(&c->problem, &in, NULL, NULL, &forward, &opt, &backward, &err) == FA_OK);
  for (int64_t b = 0; b < c->problem.batch; ++b) {
    const fa_sequence e = fa_case_sequence(&c->problem, b);
    for (int64_t i = 0; i < e.sq; ++i)
      for (int64_t h = 0; h < c->problem.heads_q; ++h) {
        const place at = {b, i, h, e.q_start + i};
        row r = row_at(c, &in, &at);
        check_row(c, &forward, &backward, &at, &r);
        check_bounds(c, &forward, &at, &r);
      }
  }
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
}

int main(void) {
  fa_rng r = fa_rng_make(22, 0);
  for (int k = 0; k < N_CASES; ++k) {
    fa_case c = random_merge(&r);
    check_case(&c);
    fa_case_free(&c);
  }
  printf("worst of O %.3g, of the LSE %.3g of their bounds\n", worst_ratio, worst_lse_ratio);
  CHECK(worst_ratio > 0.02 && worst_lse_ratio > 0.02); /* bounds that nothing comes near to see nothing */
  return check_done();
}
