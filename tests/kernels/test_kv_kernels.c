/* The cache kernels on the host executor, against a float64 loop: everything that the parameters can express,
 * one thing at a time and several. */
#include "tests/kernels/kv_problem.h"

#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *what, *words; /* kv_problem.h */
} settings[] = {
    {"one row", "bf16 d=128 heads=2 group=4 rows=1 keys=200 splits=1"},
    {"two splits", "f16 d=64 heads=1 group=1 rows=1 keys=700,70 splits=2"},
    {"more splits than blocks", "bf16 d=64 heads=1 group=2 rows=2 keys=130,0,1 splits=7 right=1"},
    {"one key, no key", "f16 d=128 heads=1 group=3 rows=1 keys=1,0 splits=1"},
    {"two warps", "f16 d=256 heads=1 group=5 rows=3 keys=150 splits=3 right=1"},
    {"head_dim 96", "bf16 d=96 heads=2 group=1 rows=4 keys=90 splits=2"},
    {"head_dim 8", "f16 d=8 heads=2 group=2 rows=1 keys=50 splits=2"},
    {"head_dim 200, rows", "bf16 d=200 heads=1 group=2 rows=40 keys=110 splits=2 right=1"},
    {"rows", "f16 d=64 heads=1 group=1 rows=70 keys=200,40 splits=1 right=1"},
    {"rows in splits", "bf16 d=128 heads=1 group=3 rows=30 keys=300,20 splits=3 right=1"},
    {"window", "f16 d=64 heads=1 group=2 rows=5 keys=400 splits=2 left=100 right=3"},
    {"window of rows", "bf16 d=64 heads=1 group=4 rows=25 keys=333 splits=4 left=31 right=6"},
    {"leftpad", "f16 d=128 heads=1 group=2 rows=2 keys=200,90,40 splits=2 pad=77,5,40 right=1"},
    {"leftpad of rows", "bf16 d=64 heads=1 group=1 rows=33 keys=200,90 splits=2 pad=67,80 right=1"},
    {"moved", "f16 d=64 heads=1 group=1 rows=1 keys=64,65,63 splits=1 moved"},
    {"appended", "f16 d=64 heads=1 group=1 rows=4 keys=64,4 splits=2 new=4 right=1"},
    {"pages of 1", "bf16 d=128 heads=2 group=2 rows=1 keys=150,3 splits=2 page=1"},
    {"pages of 7", "f16 d=64 heads=1 group=2 rows=2 keys=333,28 splits=3 page=7 right=1"},
    {"pages of 16", "f16 d=128 heads=1 group=2 rows=40 keys=150,48 splits=1 page=16 right=1"},
    {"pages of 256", "bf16 d=256 heads=1 group=2 rows=1 keys=300,256 splits=2 page=256"},
    {"pages, leftpad, window",
     "f16 d=64 heads=1 group=3 rows=7 keys=290,100 splits=3 page=24 pad=33,99 left=150 right=1"},
    {"far pages", "bf16 d=64 heads=1 group=2 rows=2 keys=100,64 splits=2 page=32 right=1 far"},
    {"far rows of the cache", "f16 d=128 heads=1 group=4 rows=17 keys=70,64,20 splits=1 right=1 moved far"},
    {"pages of 24", "f16 d=128 heads=1 group=2 rows=1 keys=100,90 splits=1 page=24"},
    {"pages of 96", "f16 d=64 heads=1 group=1 rows=20 keys=250 splits=2 page=96 right=1"},
    {"the first warp's keys hidden", "bf16 d=128 heads=1 group=2 rows=1 keys=60,70 pad=33,18 splits=1"},
    {"softcap", "f16 d=64 heads=1 group=2 rows=1 keys=100 splits=2 cap=2.0"},
    {"alibi", "bf16 d=128 heads=1 group=3 rows=3 keys=100,40 splits=2 pad=0,5 alibi"},
    {"alibi and softcap of rows",
     "f16 d=256 heads=1 group=3 rows=9 keys=100,40 splits=2 right=1 cap=3.0 alibi"},
    {"unaligned", "f16 d=64 heads=2 group=2 rows=2 keys=90 splits=2 right=1 unaligned"},
    {"unaligned rows", "bf16 d=72 heads=1 group=2 rows=20 keys=90 splits=1 page=20 right=1 unaligned"},
    {"negative scale", "f16 d=64 heads=1 group=2 rows=20 keys=90 splits=2 right=1 scale=-0.2"},
    {"scale 0", "f16 d=64 heads=1 group=2 rows=2 keys=90 splits=2 right=1 scale=nan"},
    {"rows above all keys", "f16 d=64 heads=1 group=2 rows=50 keys=20 splits=3 right=1"},
};

static void test_settings(void) {
  for (size_t i = 0; i < sizeof settings / sizeof *settings; ++i)
    for (uint64_t seed = 0; seed < 2; ++seed) {
      cache_problem x;
      char text[512];
      const cache_setting s = cache_setting_parse(settings[i].words);
      cache_problem_make(&s, &x);
      const bool ran = cache_problem_run(&x, seed * 99, text);
      CHECK_MSG(ran, "%s: %s", settings[i].what, text);
      if (ran) cache_problem_judge(&x);
      CHECK_MSG(x.wrong == 0, "%s, schedule %d: %d wrong", settings[i].what, (int)seed, x.wrong);
      cache_problem_free(&x);
    }
}

/* ---- the checks can fail ---- */

static void forget_new(fa_cache_params *p) {
  p->n_new = 0;
}
static void widen_right(fa_cache_params *p) {
  ++p->window_right;
}
static void widen_left(fa_cache_params *p) {
  ++p->window_left;
}
static void forget_pad(fa_cache_params *p) {
  p->leftpad_k = NULL;
}
static void forget_rows(fa_cache_params *p) {
  p->cache_batch_idx = NULL;
}
static void next_sequence_pages(fa_cache_params *p) {
  p->block_table += 1;
}
static void longer_pages(fa_cache_params *p) {
  p->page = fa_cache_divisor_of(p->page_size + 1);
}
static void forget_cap(fa_cache_params *p) {
  p->softcap = 0.0f;
}
static void share_slopes(fa_cache_params *p) {
  p->alibi_batch_stride = 0;
}
static void forget_sign(fa_cache_params *p) {
  p->score_sign = 1.0f;
}
static void swap_heads(fa_cache_params *p) {
  p->k_stride.head = 0;
}
static void forget_empty(fa_cache_params *p) {
  p->empty_lse = -INFINITY;
}

static void test_faults(void) {
  static const struct {
    const char *setting;
    void (*plant)(fa_cache_params *);
  } faults[] = {{"appended", forget_new},        {"rows", widen_right},   {"window of rows", widen_left},
                {"leftpad", forget_pad},         {"moved", forget_rows},  {"pages of 7", next_sequence_pages},
                {"pages of 16", longer_pages},   {"softcap", forget_cap}, {"alibi", share_slopes},
                {"negative scale", forget_sign}, {"one row", swap_heads}, {"one key, no key", forget_empty}};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i)
    for (size_t j = 0; j < sizeof settings / sizeof *settings; ++j) {
      if (strcmp(settings[j].what, faults[i].setting) != 0) continue;
      cache_problem x;
      char text[512];
      const cache_setting s = cache_setting_parse(settings[j].words);
      cache_problem_make(&s, &x);
      faults[i].plant(&x.p);
      const bool ran = cache_problem_run(&x, 0, text);
      if (ran) cache_problem_judge(&x);
      CHECK_MSG(!ran || x.wrong > 0, "fault %d passes unseen", (int)i);
      cache_problem_free(&x);
    }
}

/* Leaves the last split out of the combine, and leaves partial results unwritten. */
static void test_combine_faults(void) {
  cache_problem x;
  char text[512];
  const cache_setting s = cache_setting_parse(settings[1].words);
  cache_problem_make(&s, &x);
  REQUIRE(cache_problem_run(&x, 0, text));
  x.p.partial_lse[0] = -INFINITY;
  REQUIRE(cache_problem_launch(&x, fa_cache_combine_find(0), x.n_rows, 1, 1, 0, text));
  cache_problem_judge(&x);
  CHECK(x.wrong > 0);
  memset(x.lse_written, 0, (size_t)x.n_partial);
  CHECK(!cache_problem_launch(&x, fa_cache_combine_find(0), x.n_rows, 1, 1, 0, text));
  cache_problem_free(&x);
}

/* The combine ignores what a split without keys left behind: NaN, or unwritten memory. */
static void test_empty_split(void) {
  cache_problem x;
  char text[512];
  const cache_setting s = cache_setting_parse(settings[2].words);
  cache_problem_make(&s, &x); /* more splits than blocks */
  REQUIRE(cache_problem_run(&x, 0, text));
  int empty = 0, written = 0;
  for (int64_t i = 0; i < x.n_partial; ++i) {
    if (x.p.partial_lse[i] != -INFINITY) continue;
    ++empty;
    for (int d = 0; d < s.head_dim; ++d) written += x.o_written[i * s.head_dim + d];
  }
  /* one row of the last sequence, which has a key, is fully masked: zeros then */
  CHECK(written <= s.head_dim * s.group);
  CHECK(empty > x.n_partial / 2);
  cache_problem_free(&x);
}

/* A row whose splits have no keys but for one that has NaN is NaN, whichever that is: a lane that lost the NaN would leave before the
 * others of its warp. */
static void test_nan_split(void) {
  cache_problem x;
  char text[512] = "";
  const cache_setting s = cache_setting_parse(settings[2].words);
  cache_problem_make(&s, &x);
  REQUIRE(cache_problem_run(&x, 0, text));
  for (int nan = 0; nan < x.p.n_splits; ++nan) {
    for (int i = 0; i < x.p.n_splits; ++i) x.p.partial_lse[i] = i == nan ? NAN : -INFINITY;
    const bool ran = cache_problem_launch(&x, fa_cache_combine_find(0), x.n_rows, 1, 1, 0, text);
    CHECK_MSG(ran && isnan(x.lse[0]), "split %d: %s", nan, text);
  }
  cache_problem_free(&x);
}

/* Exact wherever it may have to divide: at multiples and next to them. */
static void test_divisor(void) {
  static const int sizes[] = {1, 2, 3, 7, 16, 100, 255, 256, 257, 65537, (1 << 29) - 1, 1 << 30, 2147483647};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const fa_cache_divisor v = fa_cache_divisor_of(sizes[i]);
    int64_t wrong = 0;
    for (int64_t k = 0; k < 100000; ++k) {
      const int64_t multiple = k * ((2147483647 / sizes[i]) / 99999 + 1) * sizes[i];
      for (int64_t n = multiple - 1; n <= multiple + 1; ++n)
        if (n >= 0 && n <= 2147483647)
          wrong += (int64_t)((uint64_t)n * v.multiplier >> v.shift) != n / sizes[i];
    }
    CHECK_MSG(wrong == 0, "by %d", sizes[i]);
  }
}

int main(void) {
  test_settings();
  test_faults();
  test_combine_faults();
  test_empty_split();
  test_nan_split();
  test_divisor();
  return check_done();
}
