/* The data of partial states: distances, empty parts, and what is in the memory of empty ones. */
#include "tests/support/built_case.h"

#include <math.h>

static fa_case merge_case(int64_t parts, fa_fill lse) {
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem_set_family(&c.problem, FA_MERGE);
  c.problem.merge.parts = parts;
  c.problem.batch = 2;
  c.problem.heads_q = 3;
  c.problem.seqlen_q = 40;
  c.problem.head_dim = 8;
  c.fill[FA_T_LSE_PARTS] = lse;
  REQUIRE(fa_problem_complete(&c.problem) == FA_OK);
  return c;
}

static double lse_of(const fa_tensors *set, int64_t part, int64_t b, int64_t h, int64_t i) {
  const int64_t index[4] = {part, b, h, i};
  return fa_tensor_get(&set->t[FA_T_LSE_PARTS], index);
}

/* Every part is the largest somewhere, and neighbours in size are so far apart. */
static void check_distance(fa_fill fill, double distance) {
  fa_case c = merge_case(3, fill);
  fa_tensors set = build(&c);
  bool largest[3] = {false, false, false};
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t i = 0; i < 40; ++i) {
      double x[3];
      for (int k = 0; k < 3; ++k) x[k] = lse_of(&set, k, 1, h, i);
      const double high = fmax(x[0], fmax(x[1], x[2])), low = fmin(x[0], fmin(x[1], x[2]));
      CHECK(fabs(high - low - 2 * distance) < 1e-4);
      for (int k = 0; k < 3; ++k) largest[k] |= x[k] == high;
    }
  CHECK(largest[0] && largest[1] && largest[2]);
  fa_tensors_free(&set);
  fa_case_free(&c);
}

/* How many parts of the row are empty with either sign, and the O of which of them is NaN. */
typedef struct tally {
  int negative, positive, nan;
} tally;

static tally look(const fa_tensors *set, int64_t n, int64_t b, int64_t h, int64_t i) {
  tally t = {0, 0, 0};
  for (int64_t k = 0; k < n; ++k) {
    const int64_t index[5] = {k, b, i, h, 5};
    const double lse = lse_of(set, k, b, h, i);
    const bool nan = isnan(fa_tensor_get(&set->t[FA_T_O_PARTS], index));
    t.negative += lse == -INFINITY;
    t.positive += lse == INFINITY;
    t.nan += nan;
    CHECK(isinf(lse) || !nan);
  }
  return t;
}

static void check_empty(int64_t n) {
  fa_case c = merge_case(n, FA_FILL_LSE_EMPTY);
  fa_tensors set = build(&c);
  int all_negative = 0, all_positive = 0, both = 0, one = 0, none = 0, nan = 0;
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t i = 0; i < 40; ++i) {
      const tally t = look(&set, n, 1, h, i);
      all_negative += t.negative == n;
      all_positive += t.positive == n;
      both += t.negative > 0 && t.positive > 0;
      one += t.negative + t.positive == 1;
      none += t.negative + t.positive == 0;
      nan += t.nan;
    }
  CHECK(all_negative && all_positive && one && none && nan > 20);
  CHECK(n == 1 || both);
  fa_tensors_free(&set);
  fa_case_free(&c);
}

static void check_keys(bool base_2) {
  fa_case c = merge_case(2, FA_FILL_LSE_KEYS);
  c.problem.merge.base_2 = base_2;
  fa_tensors set = build(&c);
  const double apart = log(3072.0 / 64) / (base_2 ? log(2) : 1);
  for (int64_t i = 0; i < 40; ++i)
    CHECK(fabs(lse_of(&set, 0, 0, 2, i) - lse_of(&set, 1, 0, 2, i) - apart) < 1e-5);
  fa_tensors_free(&set);
  fa_case_free(&c);
}

/* Parts differ from each other, and more of them do not change the first ones. */
static void check_more_parts(void) {
  fa_case few = merge_case(2, FA_FILL_NORMAL), many = merge_case(5, FA_FILL_NORMAL);
  fa_tensors a = build(&few), b = build(&many);
  for (int64_t k = 0; k < 2; ++k)
    for (int64_t d = 0; d < 8; ++d) {
      const int64_t index[5] = {k, 1, 7, 2, d}, other[5] = {k + 1, 1, 7, 2, d};
      const double x = fa_tensor_get(&a.t[FA_T_O_PARTS], index);
      CHECK(x == fa_tensor_get(&b.t[FA_T_O_PARTS], index) && x != fa_tensor_get(&b.t[FA_T_O_PARTS], other));
    }
  fa_tensors_free(&a);
  fa_tensors_free(&b);
  fa_case_free(&few);
  fa_case_free(&many);
}

int main(void) {
  check_distance(FA_FILL_LSE_EQUAL, 0);
  check_distance(FA_FILL_LSE_NEAR, 0.1);
  check_distance(FA_FILL_LSE_20, 20);
  check_distance(FA_FILL_LSE_90, 90);
  check_distance(FA_FILL_LSE_200, 200);
  for (int64_t n = 1; n < 5; ++n) check_empty(n);
  check_keys(false);
  check_keys(true);
  check_more_parts();
  return check_done();
}
