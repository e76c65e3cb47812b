/* Fills that shape logits do what the table says: each claim is checked on the data of built cases, in
 * double, over dtypes, head dims, scales, GQA, masks and variable length. */
#include "tests/support/fill_case.h"

#include <math.h>

/* scale * q.k; *exact_f32: summing it in float, forwards or backwards, gives the same value. */
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

/* The claims must be able to fail: they do on data of another fill. */
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
  for (int64_t d = 0; d < c->problem.head_dim; ++d) /* large q would push dK out of f16's range */
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

/* Digits beyond the second, few dimensions. */
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

/* Visibility literally as in the contract, pair by pair. */
static bool visible(const fa_case *c, const fa_tensors *set, int64_t b, int64_t h, int64_t i, int64_t slot) {
  const fa_problem *p = &c->problem;
  const fa_sequence e = fa_case_sequence(p, b);
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
      const fa_sequence e = fa_case_sequence(p, b);
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
    c.problem.mask = (fa_mask){.type = FA_MASK_WINDOW, .align = FA_ALIGN_BOTTOM_RIGHT, .left = 3, .right = 1};
    check_one_hot(&c);
    fa_case_free(&c);
  }
  const setup sparse = {FA_F16, 2, 2, 1, 40, 60, 16, 24, 0};
  fa_case c = make_case(&sparse, FA_FILL_ONE_HOT);
  fa_block_sparse *s = &c.problem.block_sparse;
  *s = (fa_block_sparse){
      .present = true, .source = FA_BLOCKS_DENSITY, .q_block = 8, .kv_block = 16, .density = 0.4, .seed = 3};
  c.problem.mask = (fa_mask){.type = FA_MASK_CAUSAL, .align = FA_ALIGN_TOP_LEFT, .left = -1, .right = -1};
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

int main(void) {
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
  return check_done();
}
