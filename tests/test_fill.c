/* Every fill mode does what its line in the table says: its claim is checked on the data of built cases, in
 * double, over dtypes, head dims, scales, GQA, masks and variable length. */
#include "cases/build.h"
#include "cases/case.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

/* ---- cases ---- */

typedef struct setup {
  fa_dtype dtype;
  int64_t batch, hq, hk, sq, sk, d, dv;
  double scale; /* 0: the default */
} setup;

static fa_case make_case(const setup *s, fa_fill fill) {
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem *p = &c.problem;
  fa_problem_set_family(p, s->dv == s->d ? FA_FLASH : FA_FLEX);
  p->dtype = s->dtype;
  p->batch = s->batch, p->heads_q = s->hq, p->heads_kv = s->hk;
  p->seqlen_q = s->sq, p->seqlen_k = s->sk, p->head_dim = s->d, p->head_dim_v = s->dv;
  p->scale = s->scale != 0 ? s->scale : fa_default_scale(s->d);
  fa_case_set_fill(&c, fill);
  c.data_seed = 42;
  return c;
}

static fa_tensors build(const fa_case *c) {
  fa_tensors set;
  fa_error err = {""};
  const fa_status status = fa_case_build(c, &set, &err);
  if (status != FA_OK) fprintf(stderr, "%s\n", err.text);
  REQUIRE(status == FA_OK);
  return set;
}

static void set_array(fa_int32_array *a, const int32_t *v, int64_t n) {
  REQUIRE(fa_int32_array_set(a, v, n) == FA_OK);
}

static double get4(const fa_tensor *t, int64_t b, int64_t s, int64_t h, int64_t d) {
  const int64_t index[4] = {b, s, h, d};
  return fa_tensor_get(t, t->rank == 4 ? index : index + 1);
}

/* Logical element (b, s, h, d) of a dense or variable-length q, k, v or do. */
static double element(const fa_case *c, const fa_tensors *set, fa_tensor_id id, int64_t b, int64_t s,
                      int64_t h, int64_t d) {
  const fa_entry e = fa_case_entry(&c->problem, b);
  return get4(&set->t[id], b, s + (id == FA_T_K || id == FA_T_V ? e.k_start : e.q_start), h, d);
}

/* scale * q.k; *exact_f32: the same summed in float, forward and backward, gives no other value. */
static double logit(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i, int64_t j,
                    bool *exact_f32) {
  const fa_problem *p = &c->problem;
  double sum = 0;
  float up = 0, down = 0;
  for (int64_t d = 0; d < p->head_dim; ++d) {
    const double x = element(c, set, FA_T_Q, b, i, h, d) *
                     element(c, set, FA_T_K, b, j, h / (p->heads_q / p->heads_kv), d);
    sum += x;
    up += (float)x;
  }
  for (int64_t d = p->head_dim - 1; d >= 0; --d)
    down += (float)(element(c, set, FA_T_Q, b, i, h, d) *
                    element(c, set, FA_T_K, b, j, h / (p->heads_q / p->heads_kv), d));
  if (exact_f32) *exact_f32 = (double)up == sum && (double)down == sum;
  return p->scale * sum;
}

static const setup setups[] = {
    {FA_F16, 1, 2, 1, 5, 70, 64, 64, 0},   {FA_BF16, 2, 4, 2, 3, 33, 128, 128, 0},
    {FA_F32, 1, 3, 3, 2, 40, 40, 40, 0},   {FA_F16, 1, 1, 1, 4, 20, 16, 24, 0.5},
    {FA_BF16, 1, 2, 2, 4, 17, 32, 32, -2}, {FA_F16, 1, 1, 1, 3, 30, 256, 256, 0.01},
};
#define N_SETUPS (sizeof setups / sizeof *setups)

/* ---- joint structure of q and k ---- */

static void check_logits(fa_fill fill,
                         void (*check)(const fa_case *, const fa_tensors *, int64_t, int64_t, int64_t)) {
  for (size_t k = 0; k < N_SETUPS; ++k) {
    fa_case c = make_case(&setups[k], fill);
    fa_tensors set = build(&c);
    for (int64_t b = 0; b < c.problem.batch; ++b)
      for (int64_t h = 0; h < c.problem.heads_q; ++h)
        for (int64_t i = 0; i < c.problem.seqlen_q; ++i) check(&c, &set, b, h, i);
    fa_tensors_free(&set);
    fa_case_free(&c);
  }
}

/* The claims themselves must be able to fail: they do on data of another fill. */
static void check_not_logits(fa_fill other,
                             void (*check)(const fa_case *, const fa_tensors *, int64_t, int64_t, int64_t)) {
  const int before = check_n_failed, quiet = 1000000;
  check_n_failed = quiet;
  check_logits(other, check);
  const bool failed = check_n_failed > quiet;
  check_n_failed = before;
  CHECK_MSG(failed, "a claim holds for %s too", fa_fill_describe(other)->name);
}

static void check_negative(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i) {
  for (int64_t j = 0; j < c->problem.seqlen_k; ++j) {
    const double x = logit(c, set, b, h, i, j, NULL);
    CHECK_MSG(x > -215 && x < -185, "D %d scale %g: %g", (int)c->problem.head_dim, c->problem.scale, x);
  }
}

static void check_sentinel(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i) {
  for (int64_t j = 0; j < c->problem.seqlen_k; ++j) {
    const double x = logit(c, set, b, h, i, j, NULL);
    CHECK_MSG(x > -65000 && x < -5e4, "D %d scale %g: %g", (int)c->problem.head_dim, c->problem.scale, x);
  }
}

static void check_stairs(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i,
                         double direction) {
  const double step = logit(c, set, b, h, i, 1, NULL);
  int exponent;
  const bool power_of_two = fabs(frexp(c->problem.scale, &exponent)) == 0.5;
  CHECK_MSG(power_of_two ? step == direction * 0.5 : fabs(log2(2 * direction * step)) <= 0.500001,
            "scale %g: step %g", c->problem.scale, step);
  for (int64_t d = 0; d < c->problem.head_dim; ++d) /* large q would take dK out of f16's range */
    CHECK(fabs(element(c, set, FA_T_Q, b, i, h, d) * c->problem.scale) <= 0.7072);
  for (int64_t j = 0; j < c->problem.seqlen_k; ++j) {
    bool exact;
    const double x = logit(c, set, b, h, i, j, &exact);
    CHECK_MSG(exact && fabs(x - step * (double)j) <= 1e-15 * fabs(x), "scale %g j %d: %g", c->problem.scale,
              (int)j, x);
  }
}
static void check_up(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i) {
  check_stairs(c, set, b, h, i, 1);
}
static void check_down(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i) {
  check_stairs(c, set, b, h, i, -1);
}

static void check_uniform_exact(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i) {
  for (int64_t j = 0; j < c->problem.seqlen_k; ++j) {
    CHECK(logit(c, set, b, h, i, j, NULL) == 0);
    const double v = element(c, set, FA_T_V, b, j, 0, j % c->problem.head_dim_v);
    CHECK(v == floor(v) && fabs(v) <= 128);
  }
}

static void check_integer(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i) {
  for (int64_t j = 0; j < c->problem.seqlen_k; ++j) {
    bool exact;
    const double x = logit(c, set, b, h, i, j, &exact) / c->problem.scale;
    const double g = element(c, set, FA_T_DO, b, i, h, j % c->problem.head_dim_v);
    CHECK(exact && fabs(x) <= 4.0 * (double)c->problem.head_dim);
    CHECK(g == floor(g) && fabs(g) <= 4);
  }
}

static void check_ties(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i) {
  const double first = logit(c, set, b, h, i, 0, NULL);
  for (int64_t j = 1; j < c->problem.seqlen_k; ++j) CHECK(logit(c, set, b, h, i, j, NULL) == first);
}

/* Digits past the second, few dimensions. */
static void test_long_stairs(void) {
  const setup s = {FA_BF16, 1, 1, 1, 1, 70000, 4, 4, 0};
  fa_case c = make_case(&s, FA_FILL_STAIRCASE_UP);
  fa_tensors set = build(&c);
  for (int64_t j = 0; j < 70000; j += 613) CHECK(logit(&c, &set, 0, 0, 0, j, NULL) == 0.5 * (double)j);
  fa_tensors_free(&set);
  fa_case_free(&c);
  const setup two = {FA_F16, 1, 1, 1, 1, 2000, 2, 2, 0.5};
  c = make_case(&two, FA_FILL_STAIRCASE_DOWN);
  set = build(&c);
  for (int64_t j = 0; j < 2000; ++j) CHECK(logit(&c, &set, 0, 0, 0, j, NULL) == -0.5 * (double)j);
  fa_tensors_free(&set);
  fa_case_free(&c);
}

/* ---- one_hot ---- */

/* visible: by the letter of the contract, pair by pair. */
static bool visible(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i, int64_t slot) {
  const fa_problem *p = &c->problem;
  const fa_entry e = fa_case_entry(p, b);
  const int64_t j = slot - e.leftpad, at = i + (p->mask.align == FA_ALIGN_TOP_LEFT ? 0 : e.sk - e.sq);
  if (j < 0 || j >= e.sk) return false;
  if (p->mask.type == FA_MASK_CAUSAL && j > at) return false;
  if (p->mask.type == FA_MASK_WINDOW && p->mask.left >= 0 && j < at - p->mask.left) return false;
  if (p->mask.type == FA_MASK_WINDOW && p->mask.right >= 0 && j > at + p->mask.right) return false;
  if (!p->block_sparse.present) return true;
  for (int f = 0; f < 2; ++f) {
    const fa_tensor *n = &set->t[f ? FA_T_FULL_KV_NUM_BLOCKS : FA_T_KV_NUM_BLOCKS];
    const fa_tensor *index = &set->t[f ? FA_T_FULL_KV_INDICES : FA_T_KV_INDICES];
    const int64_t row[3] = {b, h, i / p->block_sparse.q_block};
    for (int64_t k = 0; k < (int64_t)fa_tensor_get(n, row); ++k) {
      const int64_t entry[4] = {row[0], row[1], row[2], k};
      if ((int64_t)fa_tensor_get(index, entry) == j / p->block_sparse.kv_block) return true;
    }
  }
  return false;
}

static void check_one_hot(const fa_case *c) {
  fa_tensors set = build(c);
  const fa_problem *p = &c->problem;
  int64_t rows = 0;
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->heads_q; ++h) {
      const fa_entry e = fa_case_entry(p, b);
      for (int64_t i = 0; i < e.sq; ++i) {
        int64_t seen = 0, chosen = 0;
        for (int64_t j = e.leftpad; j < e.leftpad + e.sk; ++j) {
          bool exact;
          const double x = logit(c, &set, b, h, i, j, &exact);
          if (!visible(c, &set, b, h, i, j)) continue;
          ++seen;
          chosen += x == 0;
          CHECK_MSG(exact && (x == 0 || x <= -128), "logit %g", x);
        }
        CHECK_MSG(seen == 0 || chosen == 1, "row %d sees %d, %d chosen", (int)i, (int)seen, (int)chosen);
        rows += chosen;
      }
    }
  CHECK(rows > 0);
  fa_tensors_free(&set);
}

static void test_one_hot(void) {
  for (size_t k = 0; k < N_SETUPS; ++k) {
    fa_case c = make_case(&setups[k], FA_FILL_ONE_HOT);
    check_one_hot(&c);
    fa_case other = make_case(&setups[k], FA_FILL_STAIRCASE_UP);
    const int before = check_n_failed;
    check_n_failed = 1000000;
    check_one_hot(&other);
    const bool failed = check_n_failed > 1000000;
    check_n_failed = before;
    CHECK(failed);
    fa_case_free(&other);
    c.problem.mask.type = FA_MASK_CAUSAL;
    check_one_hot(&c);
    c.problem.mask = (fa_mask){FA_MASK_WINDOW, FA_ALIGN_BOTTOM_RIGHT, 3, 1};
    check_one_hot(&c);
    fa_case_free(&c);
  }
  const setup sparse = {FA_F16, 2, 2, 1, 40, 60, 16, 24, 0};
  fa_case c = make_case(&sparse, FA_FILL_ONE_HOT);
  fa_block_sparse *s = &c.problem.block_sparse;
  *s = (fa_block_sparse){
      .present = true, .source = FA_BLOCKS_DENSITY, .q_block = 8, .kv_block = 16, .density = 0.4, .seed = 3};
  c.problem.mask = (fa_mask){FA_MASK_CAUSAL, FA_ALIGN_TOP_LEFT, -1, -1};
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  check_one_hot(&c);
  fa_case_free(&c);
  const setup ragged = {FA_BF16, 1, 2, 2, 1, 1, 32, 32, 0};
  c = make_case(&ragged, FA_FILL_ONE_HOT);
  set_array(&c.problem.cu_seqlens_q, (int32_t[]){0, 3, 3, 10, 12}, 5);
  set_array(&c.problem.cu_seqlens_k, (int32_t[]){0, 9, 20, 20, 28}, 5);
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  set_array(&c.problem.seqused_k, (int32_t[]){7, 11, 0, 8}, 4);
  set_array(&c.problem.leftpad_k, (int32_t[]){2, 0, 0, 3}, 4);
  c.problem.mask.type = FA_MASK_CAUSAL;
  check_one_hot(&c);
  fa_case_free(&c);
}

/* ---- independent elements ---- */

typedef struct moments {
  double mean, variance, kurtosis, max;
} moments;

static moments moments_of(const fa_tensor *t) {
  moments m = {0};
  const int64_t n = fa_tensor_count(t);
  double s1 = 0, s2 = 0, s4 = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(t, i, index);
    const double x = fa_tensor_get(t, index);
    s1 += x, s2 += x * x, s4 += x * x * x * x;
    if (!(fabs(x) <= m.max)) m.max = fabs(x);
  }
  m.mean = s1 / (double)n;
  m.variance = s2 / (double)n - m.mean * m.mean;
  m.kurtosis = s4 / (double)n / (s2 / (double)n * s2 / (double)n);
  return m;
}

static bool near(double x, double want, double tolerance) {
  return fabs(x - want) <= tolerance * fabs(want);
}

static void test_generic(void) {
  const setup s = {FA_F32, 2, 4, 2, 100, 128, 64, 64, 0};
  static const struct {
    fa_fill fill;
    double q, k, v, g; /* standard deviations */
  } want[] = {{FA_FILL_NORMAL, 1, 1, 1, 1},      {FA_FILL_LOGITS_4X, 4, 1, 1, 1},
              {FA_FILL_LOGITS_64X, 64, 1, 1, 1}, {FA_FILL_SMALL, 0.1, 0.1, 0.1, 0.1},
              {FA_FILL_V_OFFSET, 1, 1, 1, 1},    {FA_FILL_UNIFORM, 0.57735, 0.57735, 0.57735, 0.57735}};
  for (size_t i = 0; i < sizeof want / sizeof *want; ++i) {
    fa_case c = make_case(&s, want[i].fill);
    fa_tensors set = build(&c);
    const moments q = moments_of(&set.t[FA_T_Q]), k = moments_of(&set.t[FA_T_K]);
    const moments v = moments_of(&set.t[FA_T_V]), g = moments_of(&set.t[FA_T_DO]);
    CHECK_MSG(near(sqrt(q.variance), want[i].q, 0.02) && near(sqrt(k.variance), want[i].k, 0.02) &&
                  near(sqrt(v.variance), want[i].v, 0.02) && near(sqrt(g.variance), want[i].g, 0.02),
              "%s", fa_fill_describe(want[i].fill)->name);
    CHECK(fabs(v.mean - (want[i].fill == FA_FILL_V_OFFSET ? 8 : 0)) < 0.03);
    CHECK(fabs(q.mean) < 0.03 * want[i].q && (want[i].fill != FA_FILL_UNIFORM || q.max < 1));
    fa_tensors_free(&set);
    fa_case_free(&c);
  }
  fa_case c = make_case(&s, FA_FILL_HEAVY_TAIL);
  fa_tensors set = build(&c);
  CHECK(moments_of(&set.t[FA_T_V]).kurtosis > 6 && moments_of(&set.t[FA_T_V]).max < 1e5);
  fa_tensors_free(&set);
  fa_case_free(&c);
}

static void test_outlier(void) {
  const setup s = {FA_BF16, 1, 2, 2, 200, 200, 32, 32, 0};
  fa_case c = make_case(&s, FA_FILL_OUTLIER);
  fa_tensors set = build(&c);
  int channel[2] = {-1, -1};
  for (int t = 0; t < 2; ++t)
    for (int d = 0; d < 32; ++d) {
      double sum = 0;
      for (int64_t i = 0; i < 200; ++i) sum += pow(element(&c, &set, t ? FA_T_K : FA_T_Q, 0, i, 1, d), 2);
      const double deviation = sqrt(sum / 200);
      if (deviation > 10) {
        CHECK(channel[t] < 0);
        channel[t] = d;
      }
      CHECK_MSG(near(deviation, d == channel[t] ? 20 : 1, 0.25), "%g", deviation);
    }
  CHECK(channel[0] >= 0 && channel[0] == channel[1]);
  fa_tensors_free(&set);
  fa_case_free(&c);
}

/* ---- values ---- */

static void check_value(const fa_case *c, const fa_tensors *set, int64_t b, int64_t j, int64_t h, int64_t d) {
  const fa_dtype t = c->problem.dtype;
  const double v = element(c, set, FA_T_V, b, j, h, d), g = element(c, set, FA_T_DO, b, 0, h, d);
  const double min_normal = fa_dtype_min_subnormal(t) / (2 * fa_dtype_unit_roundoff(t));
  switch (c->fill[FA_T_V]) {
  case FA_FILL_POSITIONAL_V:
    CHECK(v == floor(v) && v >= -128 && v <= 127);
    break;
  case FA_FILL_DUPLICATE_KEYS:
    CHECK(j < 4 || v == element(c, set, FA_T_V, b, j - 4, h, d));
    CHECK(j < 4 || element(c, set, FA_T_K, b, j, h, d) == element(c, set, FA_T_K, b, j - 4, h, d));
    CHECK(j == 0 || j % 4 == 0 || v != element(c, set, FA_T_V, b, j - 1, h, d));
    break;
  case FA_FILL_DENORMAL:
    CHECK(v != 0 && fabs(v) < min_normal && g != 0 && fabs(g) < min_normal);
    break;
  case FA_FILL_NEAR_MAX:
    CHECK(fabs(v) >= 57344 && fabs(v) <= 63232 && fabs(g) < 0.2);
    CHECK((v < 0) == (element(c, set, FA_T_V, b, 0, h, 0) < 0));
    break;
  case FA_FILL_CANCELLATION:
    CHECK(j == 0 || v == -element(c, set, FA_T_V, b, j - 1, h, d));
    break;
  case FA_FILL_ZERO:
    CHECK(v == 0 && g == 0 && element(c, set, FA_T_K, b, j, h, d) == 0);
    break;
  default:
    CHECK(0);
  }
}

static void test_values(void) {
  static const fa_fill fills[] = {FA_FILL_POSITIONAL_V, FA_FILL_DUPLICATE_KEYS, FA_FILL_DENORMAL,
                                  FA_FILL_NEAR_MAX,     FA_FILL_CANCELLATION,   FA_FILL_ZERO};
  for (int t = 0; t < 3; ++t)
    for (size_t f = 0; f < sizeof fills / sizeof *fills; ++f) {
      const setup s = {(fa_dtype[]){FA_F16, FA_BF16, FA_F32}[t], 2, 4, 4, 2, 11, 8, 8, 0};
      fa_case c = make_case(&s, fills[f]);
      fa_tensors set = build(&c);
      for (int64_t i = 0; i < 2 * 11 * 4 * 8; ++i)
        check_value(&c, &set, i / 352, i / 32 % 11, i / 8 % 4, i % 8);
      fa_tensors_free(&set);
      fa_case_free(&c);
    }
}

/* positional_v: two rows of V that agree in many columns could be taken for each other. */
static void test_positional(void) {
  const setup s = {FA_BF16, 2, 2, 2, 1, 50, 16, 16, 0};
  fa_case c = make_case(&s, FA_FILL_POSITIONAL_V);
  fa_tensors set = build(&c);
  for (int x = 0; x < 200; ++x)
    for (int y = 0; y < x; ++y) {
      int same = 0;
      for (int d = 0; d < 16; ++d)
        same += element(&c, &set, FA_T_V, x / 100, x / 2 % 50, x % 2, d) ==
                element(&c, &set, FA_T_V, y / 100, y / 2 % 50, y % 2, d);
      CHECK(same < 8);
    }
  fa_tensors_free(&set);
  fa_case_free(&c);
}

/* ---- bias and do ---- */

static void test_bias(void) {
  const setup s = {FA_F32, 2, 4, 2, 24, 150, 16, 8, 0};
  static const fa_fill fills[] = {FA_FILL_NEG_INF_PREFIX, FA_FILL_NEG_INF_ROWS, FA_FILL_FINFO_MIN};
  for (int f = 0; f < 3; ++f)
    for (int per_query = 0; per_query < 2; ++per_query) {
      fa_case c = make_case(&s, FA_FILL_NORMAL);
      c.problem.bias = (fa_bias){true, true, true, true, per_query};
      c.fill[FA_T_BIAS] = fills[f];
      fa_tensors set = build(&c);
      int64_t marked = 0, plain = 0;
      for (int64_t at = 0; at < fa_tensor_count(&set.t[FA_T_BIAS]); ++at) {
        int64_t i[4];
        fa_tensor_unravel(&set.t[FA_T_BIAS], at, i);
        const double x = fa_tensor_get(&set.t[FA_T_BIAS], i);
        const bool marks = f == 2 ? x == -fa_dtype_max(FA_F32) : x == -INFINITY;
        if (f == 0) CHECK(marks == (i[3] < 130));
        if (f == 1) CHECK(marks == ((i[0] + i[1] + i[2]) % 4 == 1));
        if (f == 2 && per_query) CHECK(marks == (i[3] > i[2] + 126 || (i[1] % 2 == 1 && i[3] < 130)));
        if (f == 2 && !per_query) CHECK(marks == (i[3] >= 113));
        CHECK(marks || fabs(x) < 7);
        marked += marks, plain += !marks;
      }
      CHECK(marked > 0 && plain > 0);
      fa_tensors_free(&set);
      fa_case_free(&c);
    }
}

static void test_gradient_aligned(void) {
  const setup s = {FA_F16, 2, 4, 2, 9, 64, 32, 32, 0};
  fa_case c = make_case(&s, FA_FILL_NORMAL);
  c.fill[FA_T_DO] = FA_FILL_DO_ALIGNED;
  fa_tensors set = build(&c);
  for (int64_t row = 0; row < 2 * 9 * 4; ++row) {
    const int64_t b = row / 36, i = row / 4 % 9, h = row % 4;
    double dot = 0, gg = 0, mm = 0;
    for (int64_t d = 0; d < 32; ++d) {
      double mean = 0;
      for (int64_t j = 0; j < 64; ++j) mean += element(&c, &set, FA_T_V, b, j, h / 2, d) / 64;
      const double g = element(&c, &set, FA_T_DO, b, i, h, d);
      dot += g * mean, gg += g * g, mm += mean * mean;
    }
    CHECK_MSG(dot / sqrt(gg * mm) > 0.95, "cosine %g", dot / sqrt(gg * mm));
    CHECK(near(gg, 32, 0.3));
  }
  fa_tensors_free(&set);
  fa_case_free(&c);
}

static void test_gradient_one_hot(void) {
  const setup s = {FA_F16, 2, 4, 2, 20, 5, 8, 8, 0};
  fa_case c = make_case(&s, FA_FILL_NORMAL);
  c.fill[FA_T_DO] = FA_FILL_DO_ONE_HOT;
  fa_tensors set = build(&c);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 4; ++h) {
      int ones = 0;
      for (int64_t i = 0; i < 20; ++i)
        for (int64_t d = 0; d < 8; ++d) {
          const double g = element(&c, &set, FA_T_DO, b, i, h, d);
          CHECK(g == 0 || (g == 1 && i >= 12 && d == h));
          ones += g == 1;
        }
      CHECK(ones == 1);
    }
  fa_tensors_free(&set);
  fa_case_free(&c);
}

/* Named rows are 0 in every entry and head, all others as without "zero". */
static void test_zero(void) {
  static const char *const text[] = {"{\"batch\":2,\"heads_q\":2,\"seqlen_q\":9,\"zero\":{\"k\":[[0,4],[5,8]]"
                                     ",\"q\":[[8,9]],\"do\":[[2,3]]}}",
                                     "{\"heads_q\":2,\"cu_seqlens_q\":[0,9,12],\"cu_seqlens_k\":[0,2,11],"
                                     "\"zero\":{\"k\":[[1,4]],\"v\":[[2,8]]}}",
                                     "{\"family\":\"kvcache\",\"seqlen_k\":64,\"kvcache\":{\"len\":[60],"
                                     "\"page_size\":16},\"zero\":{\"k\":[[16,33]]}}"};
  for (int i = 0; i < 3; ++i) {
    fa_case zeroed, plain;
    fa_tensors a, b;
    fa_error err = {""};
    REQUIRE(fa_case_from_text(text[i], &zeroed, &err) == FA_OK && fa_case_copy(&plain, &zeroed) == FA_OK);
    for (int id = 0; id < FA_T_COUNT; ++id) REQUIRE(fa_int32_array_set(&plain.zero[id], NULL, 0) == FA_OK);
    CHECK(!fa_case_is_generic(&zeroed) && !fa_case_equal(&zeroed, &plain));
    REQUIRE(fa_case_build(&zeroed, &a, &err) == FA_OK && fa_case_build(&plain, &b, &err) == FA_OK);
    int64_t n_zero = 0, n_other = 0;
    for (int id = 0; id < FA_T_COUNT; ++id) {
      const fa_tensor *t = &a.t[id];
      if (!fa_case_has_zero(id) || !t->data) continue;
      const fa_problem *p = &plain.problem;
      const fa_int32_array *cu = id == FA_T_Q || id == FA_T_DO ? &p->cu_seqlens_q : &p->cu_seqlens_k;
      for (int64_t e = 0, index[FA_MAX_RANK]; e < fa_tensor_count(t); ++e) {
        fa_tensor_unravel(t, e, index);
        int64_t row = index[t->rank - 3];
        for (int64_t k = cu->n - 2; k > 0; --k)
          if (row >= cu->v[k]) row -= cu->v[k], k = 0;
        if (p->kvcache.page_size) { /* unused pages hold a NaN pattern, and pages are shuffled */
          const double x = fa_tensor_get(t, index);
          n_zero += x == 0;
          n_other += x == fa_tensor_get(&b.t[id], index);
          continue;
        }
        const double want = fa_case_row_is_zero(&zeroed, id, row) ? 0 : fa_tensor_get(&b.t[id], index);
        CHECK_MSG(fa_tensor_get(t, index) == want, "%s element %lld", fa_tensor_id_name(id), (long long)e);
      }
    }
    if (i == 2) CHECK(n_zero == 17 * 64 && n_other == (1 + 60 - 17 + 60) * 64);
    fa_tensors_free(&a);
    fa_tensors_free(&b);
    fa_case_free(&zeroed);
    fa_case_free(&plain);
  }
}

static void test_table(void) {
  for (int f = 0; f < FA_N_FILLS; ++f) {
    const fa_fill_info *info = fa_fill_describe((fa_fill)f);
    fa_fill back;
    REQUIRE(info->name && info->what);
    CHECK(fa_fill_from_name(info->name, &back) && back == (fa_fill)f);
    CHECK(info->generic == (f <= FA_FILL_UNIFORM));
    CHECK(info->bias_only == (f >= FA_FILL_NEG_INF_PREFIX && f <= FA_FILL_FINFO_MIN));
    CHECK(info->do_only == (f >= FA_FILL_DO_ALIGNED));
  }
  fa_fill unused;
  CHECK(!fa_fill_from_name("gaussian", &unused) && !fa_fill_from_name("", &unused));
}

int main(void) {
  test_table();
  check_logits(FA_FILL_NEGATIVE_LOGITS, check_negative);
  check_logits(FA_FILL_SENTINEL, check_sentinel);
  check_logits(FA_FILL_STAIRCASE_UP, check_up);
  check_logits(FA_FILL_STAIRCASE_DOWN, check_down);
  check_logits(FA_FILL_UNIFORM_EXACT, check_uniform_exact);
  check_logits(FA_FILL_INTEGER, check_integer);
  check_logits(FA_FILL_TIES, check_ties);
  check_not_logits(FA_FILL_NORMAL, check_negative);
  check_not_logits(FA_FILL_NEGATIVE_LOGITS, check_sentinel);
  check_not_logits(FA_FILL_STAIRCASE_DOWN, check_up);
  check_not_logits(FA_FILL_STAIRCASE_UP, check_down);
  check_not_logits(FA_FILL_INTEGER, check_uniform_exact);
  check_not_logits(FA_FILL_SMALL, check_integer);
  check_not_logits(FA_FILL_DUPLICATE_KEYS, check_ties);
  test_long_stairs();
  test_one_hot();
  test_generic();
  test_outlier();
  test_values();
  test_positional();
  test_bias();
  test_gradient_aligned();
  test_gradient_one_hot();
  test_zero();
  return check_done();
}
