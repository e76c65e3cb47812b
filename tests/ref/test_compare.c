/* One element at a time: what the comparison accepts, what it finds, and how it names it. */
#include "tests/support/compare_fixture.h"

static const int64_t shape[] = {2, 9, 3, 8};
enum { N = 2 * 9 * 3 * 8, AT = 317 }; /* AT = b 1, q 4, h 0, d 5 */

static fixture make(fa_dtype dtype) {
  fixture f = {.id = FA_T_O};
  fa_problem_init(&f.p);
  f.p.batch = 2;
  f.p.seqlen_q = f.p.seqlen_k = 9;
  f.p.heads_q = f.p.heads_kv = 3;
  f.p.head_dim = f.p.head_dim_v = 8;
  f.p.dtype = dtype;
  fixture_make(&f, FA_T_O, dtype, 4, shape);
  REQUIRE(fa_tensors_add(&f.set, FA_T_V, dtype, 4, shape, NULL, 0, NULL) == FA_OK);
  for (int64_t e = 0; e < N; ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(&f.set.t[FA_T_V], e, index);
    fa_tensor_set(&f.set.t[FA_T_V], index, 3 + fa_rng_normal(9, 9, (uint64_t)e));
  }
  return f;
}

static bool is_at(const fa_point *p) {
  return p->index[0] == 1 && p->index[1] == 4 && p->index[2] == 0 && p->index[3] == 5;
}

static void test_exact(fa_dtype dtype) {
  fixture f = make(dtype);
  const fa_verdict *v = fixture_compare(&f);
  CHECK(v->judged && !v->fail && v->bad == 0 && v->count == N && v->where[0] == 0);
  CHECK(v->worst_ratio > 0 && v->worst_ratio < 1);
  CHECK_MSG(v->vacuous[0] == 0, "%s", v->vacuous);
  fixture_free(&f);
}

/* Every bit of one element's exponent, one at a time. */
static void test_exponent_bits(fa_dtype dtype, int fraction_bits, int exponent_bits) {
  for (int bit = fraction_bits; bit < fraction_bits + exponent_bits; ++bit) {
    fixture f = make(dtype);
    fixture_bytes(&f, AT)[bit / 8] ^= (char)(1 << bit % 8);
    const fa_verdict *v = fixture_compare(&f);
    CHECK_MSG(v->fail && v->bad == 1 && v->n_worst >= 1 && is_at(&v->worst[0]), "bit %d of %s: bad %lld", bit,
              fa_dtype_name(dtype), (long long)v->bad);
    CHECK_MSG(strcmp(v->where, "1 element: b 1, q 4, h 0, d 5") == 0, "%s", v->where);
    fixture_free(&f);
  }
}

static void test_classes(fa_dtype dtype) {
  const double given[] = {NAN, INFINITY, -INFINITY};
  for (int k = 0; k < 3; ++k) {
    fixture f = make(dtype);
    fixture_set(&f, AT, given[k]);
    const fa_verdict *v = fixture_compare(&f);
    CHECK(v->fail && v->bad == 1 && v->class_bad == 1 && v->unwritten == 0);
    CHECK(is_at(&v->worst[0]) && v->worst[0].class_bad && isinf(v->worst_ratio));
    /* infinity is expected: only the same infinity is right */
    f.w.value[AT] = -INFINITY;
    f.w.quant[AT] = f.w.accum[AT] = 0;
    v = fixture_compare(&f);
    CHECK(v->fail == (k != 2) && v->class_bad == (k != 2));
    f.w.value[AT] = NAN; /* not compared */
    v = fixture_compare(&f);
    CHECK(!v->fail && v->count == N - 1);
    fixture_free(&f);
  }
  fixture f = make(dtype);
  f.w.value[AT] = INFINITY;
  const fa_verdict *v = fixture_compare(&f); /* finite where infinity is wanted */
  CHECK(v->fail && v->class_bad == 1 && is_at(&v->worst[0]));
  f.w.quant[AT] = NAN; /* a NaN bound accepts nothing */
  f.w.value[AT] = fixture_get(&f, AT);
  v = fixture_compare(&f);
  CHECK(v->fail && v->bad == 1);
  fixture_free(&f);
}

static void test_unwritten(fa_dtype dtype) {
  fixture f = make(dtype);
  fa_tensors_poison(&f.set, FA_T_O, FA_POISON_A);
  for (int64_t e = 0; e < N - 5; ++e) fixture_set(&f, e, f.w.value[e]);
  fixture_set(&f, N - 1, NAN); /* a NaN that was written */
  const fa_verdict *v = fixture_compare(&f);
  CHECK_MSG(v->fail && v->bad == 5 && v->class_bad == 5 && v->unwritten == 4, "%lld",
            (long long)v->unwritten);
  CHECK(v->worst[0].poison == 1 && v->worst[0].index[3] == 3 && v->worst[4].poison == 0);
  fixture_free(&f);
}

static void test_zeros(void) {
  fixture f = make(FA_F16);
  f.w.value[AT] = f.w.quant[AT] = f.w.accum[AT] = 0;
  fixture_set(&f, AT, -0.0);
  CHECK(!fixture_compare(&f)->fail);
  fixture_set(&f, AT, 0x1p-24); /* the smallest subnormal */
  const fa_verdict *v = fixture_compare(&f);
  CHECK(v->fail && v->bad == 1 && isinf(v->worst_ratio) && !v->worst[0].class_bad && is_at(&v->worst[0]));
  fixture_free(&f);
}

static void test_slack(void) {
  fixture f = make(FA_F32);
  f.w.value[AT] = 1;
  f.w.quant[AT] = 0x1p-9f - 0x1p-20f - 0x1p-24f; /* bound: 2^-9 */
  fixture_set(&f, AT, 1 + 0x1p-9 * (1 + 0x1p-7));
  const fa_verdict *v = fixture_compare(&f);
  CHECK_MSG(!v->fail && v->worst_ratio == 1 + 0x1p-7, "%.17g", v->worst_ratio);
  CHECK(v->worst[0].quant == (double)f.w.quant[AT] && v->worst[0].accum == 0x1p-20 &&
        v->worst[0].half_ulp == 0x1p-24);
  fixture_set(&f, AT, 1 + 0x1p-9 * (1 + 0x1p-5));
  v = fixture_compare(&f);
  CHECK(v->fail && v->bad == 1 && v->worst_ratio == 1 + 0x1p-5);
  fixture_free(&f);
}

static void test_overflow(void) {
  fixture f = make(FA_F16);
  f.w.value[AT] = 65519;
  f.w.quant[AT] = 2; /* up to 65521: from 65520 on f16 is infinite */
  fixture_set(&f, AT, INFINITY);
  CHECK(!fixture_compare(&f)->fail);
  fixture_set(&f, AT, -INFINITY);
  CHECK(fixture_compare(&f)->class_bad == 1);
  fixture_set(&f, AT, 65504);
  CHECK(!fixture_compare(&f)->fail);
  f.w.value[AT] = 65504;
  f.w.quant[AT] = 1;
  f.w.accum[AT] = 0;
  fixture_set(&f, AT, INFINITY);
  CHECK(fixture_compare(&f)->class_bad == 1);
  f.w.value[AT] = -1e9;
  CHECK(fixture_compare(&f)->class_bad == 1);
  fixture_set(&f, AT, -INFINITY);
  CHECK(!fixture_compare(&f)->fail);
  fixture_free(&f);
}

/* More bad elements than places: the worst are kept, in order, NaN first. */
static void test_worst_order(void) {
  fixture f = make(FA_F32);
  for (int k = 0; k < 20; ++k) fixture_set(&f, 10 * k + 3, f.w.value[10 * k + 3] + 1 + (k * 7) % 20);
  fixture_set(&f, 11, NAN);
  const fa_verdict *v = fixture_compare(&f);
  CHECK(v->bad == 21 && v->n_worst == FA_WORST_POINTS && v->worst[0].class_bad);
  for (int k = 1; k < FA_WORST_POINTS; ++k) CHECK(fabs(v->worst[k].err - (21 - k)) < 1e-5);
  fixture_free(&f);
}

static void test_strides_and_errors(void) {
  fixture f = make(FA_BF16);
  fa_tensors other = {0};
  const int64_t stride[] = {3, 6, 700, 70}; /* heads slowest, batch next to fastest */
  REQUIRE(fa_tensors_add(&other, FA_T_O, FA_BF16, 4, shape, stride, 3, NULL) == FA_OK);
  for (int64_t e = 0; e < N; ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(&other.t[FA_T_O], e, index);
    fa_tensor_set(&other.t[FA_T_O], index, f.w.value[e]);
  }
  const fa_compare_options opt = {.poison = FA_POISON_A};
  fa_error err = {""};
  fa_tensor *got = &other.t[FA_T_O];
  CHECK(fa_compare_tensor(FA_T_O, &f.p, &f.set, &f.w, got, &opt, &f.v, &err) == FA_OK && !f.v.fail);
  fa_tensor_set(got, (int64_t[]){1, 4, 0, 5, 0}, 50);
  CHECK(fa_compare_tensor(FA_T_O, &f.p, &f.set, &f.w, got, &opt, &f.v, &err) == FA_OK && f.v.bad == 1 &&
        is_at(&f.v.worst[0]));
  got->shape[1] = 8;
  CHECK(fa_compare_tensor(FA_T_O, &f.p, &f.set, &f.w, got, &opt, &f.v, &err) == FA_ERR_INPUT && err.text[0]);
  got->data = NULL;
  CHECK(fa_compare_tensor(FA_T_O, &f.p, &f.set, &f.w, got, &opt, &f.v, &err) == FA_ERR_INPUT);
  f.w.n = 0;
  CHECK(fa_compare_tensor(FA_T_O, &f.p, &f.set, &f.w, got, &opt, &f.v, &err) == FA_OK && !f.v.judged);
  f.w.n = N;
  fa_tensors_free(&other);
  fixture_free(&f);
}

/* P_DEBUG with bounds: the magnitude counts too, and what is reported is the nearest that may be. */
static void test_magnitudes(void) {
  static const struct {
    double got;
    bool kept, good;
    double want;
  } all[] = {{0.5, true, true, 0},      {0.25, true, true, 0},         {1, true, true, 0},
             {-0.5, false, true, 0},    {0.125, true, false, 0.25},    {2, true, false, 1},
             {-2, false, false, -1},    {-0.125, false, false, -0.25}, {-0.5, true, false, 1},
             {0.5, false, false, 0},    {0, true, false, 0.25},        {NAN, true, false, 1},
             {INFINITY, true, false, 1}};
  const int64_t shape[] = {1, 1, 4, 4};
  for (size_t k = 0; k < sizeof all / sizeof *all; ++k) {
    fixture f = {0};
    fa_problem_init(&f.p);
    fixture_make(&f, FA_T_P_DEBUG, FA_F16, 4, shape);
    free(f.w.quant);
    free(f.w.accum);
    free(f.w.noise);
    free(f.w.scale);
    f.w.quant = f.w.accum = f.w.noise = f.w.scale = NULL;
    f.w.least = calloc(16, sizeof(float));
    f.w.most = calloc(16, sizeof(float));
    REQUIRE(f.w.least && f.w.most);
    for (int e = 0; e < 16; ++e) {
      f.w.value[e] = e == 7 && !all[k].kept ? 0 : 1;
      f.w.least[e] = 0.25f, f.w.most[e] = 1;
      fixture_set(&f, e, e == 7 ? all[k].got : 1);
    }
    const fa_verdict *v = fixture_compare(&f);
    CHECK_MSG(v->judged && v->fail == !all[k].good && v->bad == !all[k].good, "%g: %d bad", all[k].got,
              (int)v->bad);
    const fa_point *worst = &v->worst[0];
    CHECK_MSG(all[k].good || isinf(worst->err) || worst->err == fabs(worst->got - worst->want),
              "%g: off by %g", all[k].got, worst->err);
    if (!all[k].good)
      CHECK_MSG(v->worst[0].want == all[k].want && v->worst[0].ratio > 1, "%g: want %g, ratio %g", all[k].got,
                v->worst[0].want, v->worst[0].ratio);
    fixture_free(&f);
  }
}

/* P_DEBUG without bounds: only the sign bit counts. DROPOUT_KEEP: 0 or 1. NaN wants are not compared. */
static void test_keep_masks(void) {
  const fa_tensor_id ids[] = {FA_T_P_DEBUG, FA_T_DROPOUT_KEEP};
  for (int k = 0; k < 2; ++k) {
    const fa_dtype dtype = k == 0 ? FA_F16 : FA_U8;
    const int64_t mask_shape[] = {1, 1, 4, 4};
    fixture f = {0};
    fa_problem_init(&f.p);
    fixture_make(&f, ids[k], dtype, 4, mask_shape);
    free(f.w.quant);
    free(f.w.accum);
    free(f.w.noise);
    free(f.w.scale);
    f.w.quant = f.w.accum = f.w.noise = f.w.scale = NULL;
    for (int e = 0; e < 16; ++e) {
      f.w.value[e] = e % 3 != 0;
      fixture_set(&f, e, k == 1 ? f.w.value[e] : e % 3 != 0 ? 0.25 : -0.0);
    }
    f.w.value[15] = NAN;
    const fa_verdict *v = fixture_compare(&f);
    CHECK(v->judged && !v->fail && v->count == 15);
    fixture_set(&f, 6, k == 1 ? 1 : 0.5);
    v = fixture_compare(&f);
    CHECK(v->fail && v->bad == 1 && v->worst[0].index[2] == 1 && v->worst[0].index[3] == 2);
    fixture_free(&f);
  }
}

int main(void) {
  const fa_dtype dtypes[] = {FA_F16, FA_BF16, FA_F32};
  for (int k = 0; k < 3; ++k) {
    test_exact(dtypes[k]);
    test_classes(dtypes[k]);
    test_unwritten(dtypes[k]);
  }
  test_exponent_bits(FA_F16, 10, 5);
  test_exponent_bits(FA_BF16, 7, 8);
  test_exponent_bits(FA_F32, 23, 8);
  test_zeros();
  test_slack();
  test_overflow();
  test_worst_order();
  test_strides_and_errors();
  test_keep_masks();
  test_magnitudes();
  return check_done();
}
