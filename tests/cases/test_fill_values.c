/* Fills that shape values, biases and gradients, and those of independent elements, do what the table says:
 * each claim is checked on the data of built cases, in double. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "tests/support/fill_case.h"

#include <math.h>
#include <string.h>

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

/* positional_v: two rows of V that agree in many columns could be mistaken for each other. */
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

/* Equal probabilities round alike: logits must differ by more than a rounding, between keys and between
 * rows. */
static void test_told_apart(void) {
  static const struct {
    const char *text;
    bool generic;
  } some[] = {
      {"{\"seqlen_q\":9}", true},
      {"{\"seqlen_q\":9,\"scale\":0}", false},
      {"{\"seqlen_q\":9,\"scale\":1e-6}", false},
      {"{\"seqlen_q\":9,\"scale\":1e-6,\"dtype\":\"f32\"}", true},
      {"{\"seqlen_q\":9,\"scale\":1e-9,\"dtype\":\"f32\"}", false},
      {"{\"seqlen_q\":9,\"fill\":\"small\",\"dtype\":\"bf16\"}", true},
      {"{\"seqlen_q\":9,\"fill\":\"small\",\"dtype\":\"bf16\",\"scale\":0.03}", false},
      {"{\"seqlen_q\":9,\"fill\":\"small\",\"dtype\":\"f16\",\"scale\":0.03}", true},
      {"{\"seqlen_q\":9,\"scale\":1e-6,\"family\":\"memeff\",\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}", true},
      {"{\"seqlen_q\":9,\"scale\":1e-6,\"family\":\"memeff\",\"bias\":{\"shape\":[\"b\",\"h\",1,\"k\"]}}",
       false}};
  for (size_t i = 0; i < sizeof some / sizeof *some; ++i) {
    fa_case c;
    fa_error err = {""};
    REQUIRE(fa_case_from_text(some[i].text, &c, &err) == FA_OK);
    CHECK_MSG(fa_case_is_generic(&c) == some[i].generic, "%s", some[i].text);
    fa_case_free(&c);
  }
}

/* The named rows are 0 in every sequence and head; all others are as without "zero". */
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

/* Every fill, long rows of sequences of one length and of many: whoever draws a row, it is the same. */
static void test_threads(void) {
  static const char *const shapes[] = {
      "\"batch\": 3, \"seqlen_q\": 150, \"seqlen_k\": 140",
      "\"cu_seqlens_q\": [0, 150, 150, 300], \"cu_seqlens_k\": [0, 70, 140, 333]"};
  for (int f = 0; f < FA_N_FILLS; ++f)
    for (int i = 0; i < 2; ++i) {
      char text[400];
      fa_error err;
      fa_case c;
      fa_tensors one, many;
      const fa_fill_info *info = fa_fill_describe((fa_fill)f);
      if (!info->do_only && !fa_fill_is_general((fa_fill)f)) continue;
      snprintf(text, sizeof text, "{\"head_dim\": 24, \"heads_q\": 2, %s}", shapes[i]);
      REQUIRE(fa_case_from_text(text, &c, &err) == FA_OK);
      if (info->do_only)
        c.fill[FA_T_DO] = (fa_fill)f;
      else
        fa_case_set_fill(&c, (fa_fill)f);
      REQUIRE(fa_case_build(&c, &one, &err) == FA_OK && fa_case_build_on(&c, 3, &many, &err) == FA_OK);
      for (int id = 0; id < FA_T_COUNT; ++id)
        if (one.buffer[id].base)
          CHECK_MSG(memcmp(one.t[id].data, many.t[id].data,
                           (size_t)fa_tensor_count(&one.t[id]) * fa_dtype_size(one.t[id].dtype)) == 0,
                    "%s of %s", fa_tensor_id_name((fa_tensor_id)id), text);
      fa_tensors_free(&one);
      fa_tensors_free(&many);
      fa_case_free(&c);
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
    CHECK(info->do_only == (f == FA_FILL_DO_ALIGNED || f == FA_FILL_DO_ONE_HOT));
    CHECK(info->lse_only == (f >= FA_FILL_LSE_EQUAL && f <= FA_FILL_LSE_EMPTY));
    CHECK(info->sinks_only == (f >= FA_FILL_SINK_SIZES && f <= FA_FILL_SINK_NONE));
  }
  fa_fill unused;
  CHECK(!fa_fill_from_name("gaussian", &unused) && !fa_fill_from_name("", &unused));
}

int main(void) {
  test_table();
  test_generic();
  test_outlier();
  test_values();
  test_positional();
  test_bias();
  test_gradient_aligned();
  test_gradient_one_hot();
  test_told_apart();
  test_zero();
  test_threads();
  return check_done();
}
