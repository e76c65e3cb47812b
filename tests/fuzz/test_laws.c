/* The laws: silent on a correct subject, and each fails on a subject that breaks it and little else. */
#include "cases/codec/json.h"
#include "fuzz/generate/draw.h"
#include "fuzz/laws/check.h"
#include "fuzz/one/run_case.h"
#include "ref/math/blas.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

/* A correct subject with a fault; this law must notice it. */
static fa_law spoilt_for;
static int n_runs;

/* A value written to one element of one tensor, whatever the law: in all runs, or only in the first. */
static struct {
  fa_tensor_id id; /* 0: none */
  double value;
  bool first_only;
  int64_t slot; /* of a cache's first row */
} planted;

static void spoil_element(const fa_tensor *t, int64_t position, double by) {
  int64_t index[FA_MAX_RANK];
  if (fa_tensor_count(t) <= position) return;
  fa_tensor_unravel(t, position, index);
  const double x = fa_tensor_get(t, index);
  fa_tensor_set(t, index, isfinite(x) ? x + by : 0);
}

static void plant(const fa_tensors *t) {
  const int64_t first[FA_MAX_RANK] = {0, planted.slot};
  const fa_tensor *x = &t->t[planted.id];
  if (x->data && fa_tensor_count(x) > 0) fa_tensor_set(x, first, planted.value);
}

/* True if the fault shows in this run. */
static bool has_fault(const fa_problem *p, const fa_tensors *t) {
  const fa_tensor *q = &t->t[FA_T_Q], *v = &t->t[FA_T_V], *d = &t->t[FA_T_DO];
  const int64_t zero[FA_MAX_RANK] = {0};
  switch (spoilt_for) {
  case FA_LAW_BATCH_ALONE:
    return p->batch == 1;
  case FA_LAW_VARLEN_SEPARATE:
    return p->cu_seqlens_q.n > 0;
  case FA_LAW_WINDOW_OPEN:
    return p->mask.type == FA_MASK_WINDOW;
  case FA_LAW_BIAS_MASK:
    return p->mask.type != FA_MASK_NONE;
  case FA_LAW_SPLIT_COUNT:
    return p->splits > 1;
  case FA_LAW_DROPOUT_NONE:
    return p->dropout.p > 0;
  case FA_LAW_SINK_NONE:
    return p->sinks.present;
  case FA_LAW_CAUSAL_PREFIX:
    return p->seqlen_q == 96;
  case FA_LAW_MERGE_RANGES:
    return p->seqlen_k == 96;
  case FA_LAW_SCALE_POWER:
    return p->scale < 0.1;
  case FA_LAW_VALUE_POWER:
    return fabs(fa_tensor_get(v, zero)) > 1.5;
  case FA_LAW_GRAD_POWER:
    return fabs(fa_tensor_get(d, zero)) > 1.5;
  case FA_LAW_PART_EMPTY:
    return p->merge.parts == 3;
  case FA_LAW_PART_PERMUTATION:
  case FA_LAW_PART_NESTED:
    return n_runs > 1;
  default: /* by order: repeat, permutations, shift */
    return q && n_runs > 1;
  }
}

static fa_status spoilt_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                            fa_outcome *out, fa_error *err) {
  fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  ++n_runs;
  if (status == FA_OK && planted.id && (n_runs == 1 || !planted.first_only)) plant(t);
  if (status != FA_OK || spoilt_for == FA_LAW_NONE || !has_fault(p, t)) return status;
  if (spoilt_for == FA_LAW_GRAD_POWER)
    spoil_element(&t->t[FA_T_DV], 5, 0.25);
  else
    spoil_element(&t->t[FA_T_O], 5, 0.25);
  return status;
}

static void judge(const char *json, fa_law law, fa_law spoilt, fa_result *r) {
  fa_case c;
  fa_error err = {""};
  fa_backend b = fa_backend_ref_f32;
  b.run = spoilt_run;
  fa_status status = fa_case_from_text(json, &c, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(status == FA_OK);
  c.law = law;
  spoilt_for = spoilt;
  n_runs = 0;
  const fa_run_config config = {.backend = &b, .n_threads = 1};
  status = fa_run_case(&c, &config, r, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  fa_case_free(&c);
}

static void expect(const char *json, fa_law law, fa_law spoilt, fa_state state) {
  static fa_result r;
  fa_result_init(&r);
  judge(json, law, spoilt, &r);
  CHECK_MSG(r.state == state, "%s, %s: %s, not %s: %s", fa_law_describe(law)->name,
            spoilt ? "spoilt" : "as it is", fa_state_name(r.state), fa_state_name(state), r.reason);
  if (state == FA_FAIL) CHECK_MSG(strstr(r.reason, fa_law_describe(law)->name) != NULL, "%s", r.reason);
  fa_result_free(&r);
}

/* A case for each law, whose v[0] and do[0] are between 0.75 and 1.5, or 1 and more after doubling. */
static const struct {
  fa_law law;
  const char *json;
} breakable[] = {
    {FA_LAW_REPEAT, "{\"seqlen_q\":40}"},
    {FA_LAW_KEY_PERMUTATION, "{\"seqlen_q\":40,\"heads_q\":2}"},
    {FA_LAW_HEAD_PERMUTATION, "{\"seqlen_q\":40,\"heads_q\":4,\"heads_kv\":2}"},
    {FA_LAW_BATCH_ALONE, "{\"seqlen_q\":40,\"batch\":3}"},
    {FA_LAW_VARLEN_SEPARATE, "{\"cu_seqlens_q\":[0,5,5,40],\"cu_seqlens_k\":[0,9,12,50]}"},
    {FA_LAW_CAUSAL_PREFIX, "{\"seqlen_q\":96,\"mask\":{\"type\":\"causal\"}}"},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":40,\"seqlen_k\":96,\"mask\":{\"type\":\"causal\"}}"},
    {FA_LAW_WINDOW_OPEN, "{\"seqlen_q\":40,\"mask\":{\"type\":\"causal\"}}"},
    {FA_LAW_BIAS_SHIFT, "{\"family\":\"memeff\",\"seqlen_q\":40,\"bias\":{\"shape\":[1,\"h\",\"q\",\"k\"]}}"},
    {FA_LAW_BIAS_MASK, "{\"family\":\"memeff\",\"seqlen_q\":40,\"bias\":{\"shape\":[1,1,1,\"k\"]},\"mask\":{"
                       "\"type\":\"causal\"}}"},
    {FA_LAW_SCALE_POWER, "{\"seqlen_q\":40}"},
    {FA_LAW_VALUE_POWER, "{\"seqlen_q\":40,\"fill\":{\"v\":\"uniform\"}}"},
    {FA_LAW_GRAD_POWER, "{\"seqlen_q\":40,\"fill\":{\"do\":\"uniform\"}}"},
    {FA_LAW_DROPOUT_NONE, "{\"seqlen_q\":40}"},
    {FA_LAW_SPLIT_COUNT, "{\"seqlen_q\":40,\"seqlen_k\":200}"},
    {FA_LAW_PAGE_PERMUTATION,
     "{\"family\":\"kvcache\",\"batch\":2,\"seqlen_k\":64,\"kvcache\":{\"len\":[40,63],\"page_size\":16}}"},
    {FA_LAW_CACHE_CONTIGUOUS, "{\"family\":\"kvcache\",\"batch\":2,\"seqlen_k\":64,\"kvcache\":{\"len\":[40,"
                              "62],\"new\":2,\"page_size\":16}}"},
    {FA_LAW_CACHE_APPENDED,
     "{\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":64,\"kvcache\":{\"len\":[40,61],"
     "\"new\":3,\"batch_idx\":[2,0]}}"},
    {FA_LAW_PART_PERMUTATION, "{\"family\":\"merge\",\"seqlen_q\":40,\"merge\":{\"parts\":3}}"},
    {FA_LAW_PART_EMPTY, "{\"family\":\"merge\",\"seqlen_q\":40,\"merge\":{\"parts\":2,\"base\":\"2\"}}"},
    {FA_LAW_PART_NESTED, "{\"family\":\"merge\",\"seqlen_q\":40,\"merge\":{\"parts\":5}}"},
    {FA_LAW_SINK_NONE, "{\"seqlen_q\":40,\"heads_q\":2,\"sinks\":true}"},
    {FA_LAW_LIST_ORDER,
     "{\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":64,\"kvcache\":{\"len\":[40,63],"
     "\"page_size\":16},\"topk\":{\"k\":16}}"}};

/* data_seed for which |v[0]| or |do[0]| crosses 1.5 when doubled: found by search. */
static void test_breakable(void) {
  for (size_t i = 0; i < sizeof breakable / sizeof *breakable; ++i) {
    expect(breakable[i].json, breakable[i].law, FA_LAW_NONE, FA_PASS);
    const bool by_size = breakable[i].law == FA_LAW_VALUE_POWER || breakable[i].law == FA_LAW_GRAD_POWER;
    if (!by_size) {
      expect(breakable[i].json, breakable[i].law, breakable[i].law, FA_FAIL);
      continue;
    }
    int failed = 0;
    for (int seed = 1; seed <= 12 && !failed; ++seed) {
      static fa_result r;
      char json[200];
      snprintf(json, sizeof json, "%.*s,\"data_seed\":\"%d\"}", (int)strlen(breakable[i].json) - 1,
               breakable[i].json, seed);
      fa_result_init(&r);
      judge(json, breakable[i].law, breakable[i].law, &r);
      failed += r.state == FA_FAIL;
      fa_result_free(&r);
    }
    CHECK_MSG(failed == 1, "%s never failed", fa_law_describe(breakable[i].law)->name);
  }
  CHECK(sizeof breakable / sizeof *breakable == FA_N_LAWS - 1);
}

static void expect_planted(int which, fa_tensor_id id, double value, bool first_only) {
  static fa_result r;
  planted.id = id, planted.value = value, planted.first_only = first_only;
  fa_result_init(&r);
  judge(breakable[which].json, breakable[which].law, FA_LAW_NONE, &r);
  const fa_tensor_bits bit = FA_TENSOR_BIT(id);
  CHECK_MSG(r.state == FA_FAIL && (r.law_broken & bit) && !(r.law_nan & bit) == !isnan(value),
            "%s, %s %g%s: %s: %s", fa_law_describe(breakable[which].law)->name, fa_tensor_id_name(id), value,
            first_only ? " once" : "", fa_state_name(r.state), r.reason);
  fa_result_free(&r);
  planted.id = 0;
}

/* A NaN never passes: neither in all runs, nor only in the first, where bounds computed from it are NaN
 * too. */
static void test_nan(void) {
  for (int i = 0; i < (int)(sizeof breakable / sizeof *breakable); ++i) {
    const bool cache = strstr(breakable[i].json, "kvcache") != NULL;
    const bool parts = strstr(breakable[i].json, "parts") != NULL;
    for (int once = 0; once < 2; ++once) {
      expect_planted(i, FA_T_O, NAN, once);
      expect_planted(i, FA_T_LSE, NAN, once);
      if (parts && breakable[i].law != FA_LAW_PART_NESTED) {
        expect_planted(i, FA_T_DO_PARTS, NAN, once);
        expect_planted(i, FA_T_DLSE_PARTS, NAN, once);
      }
      if (!cache && !parts && breakable[i].law != FA_LAW_MERGE_RANGES) { /* no backward */
        expect_planted(i, FA_T_DQ, NAN, once);
        expect_planted(i, FA_T_DV, NAN, once);
      }
    }
  }
}

/* A row that only the first run treats as fully masked: its infinite LSE is within no bound. */
static void test_infinite(void) {
  for (int i = 0; i < (int)(sizeof breakable / sizeof *breakable); ++i)
    if (breakable[i].law != FA_LAW_VARLEN_SEPARATE && breakable[i].law != FA_LAW_BATCH_ALONE)
      expect_planted(i, FA_T_LSE, INFINITY, true);
}

/* A dS too large for its type legitimately makes NaN in dQ, dK and dBias, and nowhere else. */
static void test_overflow(void) {
  static const char json[] = "{\"seqlen_q\":40,\"dtype\":\"f16\",\"head_dim\":256,\"fill\":{\"v\":\"near_"
                             "max\",\"do\":\"heavy_tail\"}}";
  static fa_result r;
  for (int which = 0; which < 2; ++which) {
    fa_result_init(&r);
    planted.id = which ? FA_T_DV : FA_T_DQ, planted.value = NAN, planted.first_only = false;
    judge(json, FA_LAW_REPEAT, FA_LAW_NONE, &r);
    CHECK_MSG(r.state == (which ? FA_FAIL : FA_PASS), "%s: %s", fa_state_name(r.state), r.reason);
    fa_result_free(&r);
    planted.id = 0;
  }
}

/* A law that does not apply is a skip with a reason. */
static void test_skips(void) {
  expect("{\"seqlen_q\":4}", FA_LAW_LIST_ORDER, FA_LAW_NONE, FA_SKIP);
  expect("{\"family\":\"kvcache\",\"seqlen_k\":16,\"kvcache\":{\"len\":[9]},\"mla\":{\"kv_lora_rank\":8}}",
         FA_LAW_VALUE_POWER, FA_LAW_NONE, FA_SKIP);
  expect(
      "{\"family\":\"kvcache\",\"seqlen_k\":16,\"kvcache\":{\"len\":[9],\"page_size\":4},\"topk\":{\"k\":4}}",
      FA_LAW_PAGE_PERMUTATION, FA_LAW_NONE, FA_SKIP);
  expect("{\"seqlen_q\":4,\"mask\":{\"type\":\"causal\"}}", FA_LAW_KEY_PERMUTATION, FA_LAW_NONE, FA_SKIP);
  expect("{\"seqlen_q\":4}", FA_LAW_HEAD_PERMUTATION, FA_LAW_NONE, FA_SKIP);
  expect("{\"seqlen_q\":4}", FA_LAW_PAGE_PERMUTATION, FA_LAW_NONE, FA_SKIP);
  expect("{\"seqlen_q\":4}", FA_LAW_CACHE_CONTIGUOUS, FA_LAW_NONE, FA_SKIP);
  expect("{\"seqlen_q\":4}", FA_LAW_CACHE_APPENDED, FA_LAW_NONE, FA_SKIP);
  expect("{\"seqlen_q\":8,\"seqlen_k\":5,\"mask\":{\"type\":\"causal\"},\"empty_lse\":\"0\"}",
         FA_LAW_MERGE_RANGES, FA_LAW_NONE, FA_SKIP);
  expect("{\"seqlen_q\":4,\"expect\":\"reject\"}", FA_LAW_REPEAT, FA_LAW_NONE, FA_SKIP);
}

/* Too long for the reference's bounds: the a-priori ones hold, and detect a fault of the size of O. */
static void test_long(void) {
  static const char json[] = "{\"seqlen_q\":64,\"seqlen_k\":12000,\"head_dim\":128}";
  expect(json, FA_LAW_KEY_PERMUTATION, FA_LAW_NONE, FA_PASS);
  expect(json, FA_LAW_KEY_PERMUTATION, FA_LAW_KEY_PERMUTATION, FA_FAIL);
  expect("{\"seqlen_q\":64,\"seqlen_k\":12000,\"head_dim\":128}", FA_LAW_MERGE_RANGES, FA_LAW_NONE, FA_PASS);
  static const char decode[] = "{\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":4,\"seqlen_k\":26000,"
                               "\"heads_q\":16,\"heads_kv\":2,\"kvcache\":{"
                               "\"len\":[25990,600],\"new\":3,\"page_size\":16}}";
  expect(decode, FA_LAW_SPLIT_COUNT, FA_LAW_NONE, FA_PASS);
  expect(decode, FA_LAW_SPLIT_COUNT, FA_LAW_SPLIT_COUNT, FA_FAIL);
}

/* Gradients so small that intermediate products underflow: doubling and halving then round. */
static void test_underflow(void) {
  static const char tiny[] =
      "{\"dtype\":\"f32\",\"seqlen_q\":17,\"seqlen_k\":6,\"head_dim\":128,\"scale\":0.125,"
      "\"mask\":{\"type\":\"causal\"},\"fill\":{\"v\":\"uniform\",\"do\":\"denormal\"},"
      "\"data_seed\":\"13610167984196412173\"}";
  expect(tiny, FA_LAW_SCALE_POWER, FA_LAW_NONE, FA_PASS);
  expect(tiny, FA_LAW_SCALE_POWER, FA_LAW_SCALE_POWER, FA_FAIL);
}

/* One sequence of a decoding call, whose part of the cache is elsewhere when it is alone. */
static void test_cached_entry(void) {
  static const char *const json[] = {
      "{\"family\":\"kvcache\",\"batch\":3,\"seqlen_q\":2,\"seqlen_k\":64,\"kvcache\":{\"len\":[40,7,61],"
      "\"new\":3,"
      "\"batch_idx\":[2,0,4],\"leftpad\":[0,5,9]}}",
      "{\"family\":\"kvcache\",\"batch\":3,\"seqlen_q\":1,\"seqlen_k\":64,\"heads_q\":4,\"heads_kv\":2,"
      "\"kvcache\":{\"len\":"
      "[64,64,50],\"page_size\":16,\"shared_pages\":2,\"rotary\":{\"dim\":16}}}"};
  for (int i = 0; i < 2; ++i) {
    expect(json[i], FA_LAW_BATCH_ALONE, FA_LAW_NONE, FA_PASS);
    expect(json[i], FA_LAW_BATCH_ALONE, FA_LAW_BATCH_ALONE, FA_FAIL);
  }
  /* A new key that only one of the two runs appends. */
  static fa_result r;
  planted.id = FA_T_K, planted.value = 77, planted.first_only = true, planted.slot = 61;
  fa_result_init(&r);
  judge("{\"family\":\"kvcache\",\"batch\":2,\"seqlen_k\":64,\"kvcache\":{\"len\":[61,61],\"new\":3,\"batch_"
        "idx\":[1,0]}}",
        FA_LAW_BATCH_ALONE, FA_LAW_NONE, &r);
  CHECK_MSG(r.state == FA_FAIL && (r.law_broken & FA_TENSOR_BIT(FA_T_K)), "%s: %s", fa_state_name(r.state),
            r.reason);
  fa_result_free(&r);
  planted.id = 0, planted.slot = 0;
}

/* A backend that splits the keys of a small batch into more parts: another order of summation. */
static void parts_profile(void *self, const fa_problem *p, fa_profile *out) {
  fa_backend_ref_f32.profile(self, p, out);
  if (p->splits == 0) out->max_splits = p->batch == 1 ? 3 : 1;
}

static fa_status parts_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                           fa_outcome *out, fa_error *err) {
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  if (status == FA_OK && p->batch == 1) t->t[FA_T_O].data[0] ^= 1;
  return status;
}

static void test_parts(void) {
  static const char *const json[] = {
      "{\"law\":\"batch-alone\",\"seqlen_q\":40,\"batch\":2,\"backward\":false,\"splits\":%d}",
      "{\"law\":\"batch-alone\",\"family\":\"kvcache\",\"batch\":2,\"seqlen_k\":64,\"kvcache\":{\"len\":[61,"
      "64]},\"splits\":%d}"};
  static fa_result r;
  fa_backend b = fa_backend_ref_f32;
  b.profile = parts_profile;
  b.run = parts_run;
  const fa_run_config config = {.backend = &b, .n_threads = 1};
  for (int i = 0; i < 4; ++i) {
    char text[200];
    fa_error err = {""};
    fa_case c;
    snprintf(text, sizeof text, json[i / 2], i % 2);
    fa_result_init(&r);
    REQUIRE(fa_case_from_text(text, &c, &err) == FA_OK && fa_run_case(&c, &config, &r, &err) == FA_OK);
    CHECK_MSG(r.state == (i % 2 ? FA_FAIL : FA_PASS), "%s: %s: %s", text, fa_state_name(r.state), r.reason);
    fa_result_free(&r);
    fa_case_free(&c);
  }
}

/* Subjects whose bits depend on the call: products are a library's, or queries and keys are
 * multiplied by the scale's root each, which a quarter of the scale halves. */
static bool calls_library, scales_ds, rounds_parts, adds_in_f16;

static void kept_profile(void *self, const fa_problem *p, fa_profile *out) {
  fa_backend_ref_f32.profile(self, p, out);
  out->library_products = calls_library;
  if (adds_in_f16) out->accumulator[FA_PRODUCT_DV] = FA_ACCUMULATOR_F16;
  out->ds_scaled = scales_ds;
  out->gqa_partials_in_io = rounds_parts;
}

static fa_status root_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                          fa_outcome *out, fa_error *err) {
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  int exponent;
  if (status == FA_OK && frexp(sqrt(p->scale), &exponent) != frexp(sqrt(0.125), &exponent))
    t->t[FA_T_O].data[0] ^= 1;
  return status;
}

/* A result below every float, which is 0 in one of the calls before it gets its sign. */
static fa_status zero_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                          fa_outcome *out, fa_error *err) {
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  if (status == FA_OK) fa_tensor_set(&t->t[FA_T_O], (int64_t[FA_MAX_RANK]){0}, p->scale < 0.1 ? -0.0 : 0.0);
  return status;
}

/* dS is rounded after it was multiplied by the scale, to one of fewer numbers. */
static fa_status small_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                           fa_outcome *out, fa_error *err) {
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  if (status == FA_OK && p->scale < 0.1 && (opt->passes & FA_PASS_BACKWARD)) t->t[FA_T_DK].data[0] ^= 1;
  return status;
}

/* A part of dV that is subnormal in the first call, and not in the one whose dO is twice as large. */
static fa_status parts_of_dv_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                                 fa_outcome *out, fa_error *err) {
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  if (status == FA_OK && (opt->passes & FA_PASS_BACKWARD) && n_runs++ == 0) t->t[FA_T_DV].data[0] ^= 1;
  return status;
}

static fa_state state_of(const char *json, const fa_backend *b) {
  static fa_result r;
  fa_error err = {""};
  fa_case c;
  const fa_run_config config = {.backend = b, .n_threads = 1};
  fa_result_init(&r);
  REQUIRE(fa_case_from_text(json, &c, &err) == FA_OK && fa_run_case(&c, &config, &r, &err) == FA_OK);
  const fa_state state = r.state;
  fa_result_free(&r);
  fa_case_free(&c);
  return state;
}

static void test_products(void) {
  static const char alone[] = "{\"law\":\"batch-alone\",\"seqlen_q\":40,\"batch\":2,\"backward\":false}";
  fa_backend b = fa_backend_ref_f32;
  b.profile = kept_profile;
  b.run = parts_run;
  for (int kept = 0; kept < 2; ++kept) {
    calls_library = kept;
    CHECK(state_of(alone, &b) == (kept ? FA_PASS : FA_FAIL));
  }
  b.run = root_run;
  CHECK(state_of("{\"law\":\"scale-power\",\"seqlen_q\":40,\"scale\":0.125}", &b) == FA_PASS);
  b.run = small_run;
  for (int scaled = 0; scaled < 2; ++scaled) {
    scales_ds = scaled;
    CHECK(state_of("{\"law\":\"scale-power\",\"dtype\":\"f16\",\"seqlen_q\":40,\"scale\":0.125}", &b) ==
          (scaled ? FA_PASS : FA_FAIL));
  }
  b.run = parts_of_dv_run;
  for (int rounded = 0; rounded < 2; ++rounded) {
    rounds_parts = rounded;
    n_runs = 0;
    CHECK(state_of("{\"law\":\"grad-power\",\"dtype\":\"f16\",\"seqlen_q\":40,\"heads_q\":2,\"heads_kv\":1}",
                   &b) == (rounded ? FA_PASS : FA_FAIL));
  }
  rounds_parts = false;
  for (int added = 0; added < 2; ++added) {
    adds_in_f16 = added;
    n_runs = 0;
    CHECK(state_of("{\"law\":\"grad-power\",\"dtype\":\"f16\",\"seqlen_q\":40}", &b) ==
          (added ? FA_PASS : FA_FAIL));
  }
  b.run = small_run;
  scales_ds = false;
  for (int added = 0; added < 2; ++added) {
    adds_in_f16 = added;
    CHECK(state_of("{\"law\":\"scale-power\",\"dtype\":\"f16\",\"seqlen_q\":40,\"scale\":0.125}", &b) ==
          (added ? FA_PASS : FA_FAIL));
  }
  b.run = zero_run;
  CHECK(state_of("{\"law\":\"scale-power\",\"seqlen_q\":40,\"scale\":0.125}", &b) == FA_PASS);
}

/* Fully masked rows whose LSE is -inf: neither range has a share to add up. */
static void test_empty_rows(void) {
  expect("{\"family\":\"flex\",\"seqlen_q\":6,\"mask\":{\"type\":\"causal\"},\"bias\":{\"shape\":[1,1,\"q\","
         "\"k\"]},"
         "\"fill\":{\"bias\":\"neg_inf_rows\"}}",
         FA_LAW_MERGE_RANGES, FA_LAW_NONE, FA_PASS);
}

/* Rows that are not aligned are another kernel's on the host, with other tiles than that of the plain second call. */
static void test_alignment(void) {
  static const char *const texts[] = {
      "{\"law\":\"batch-alone\",\"batch\":3,\"seqlen_q\":17,\"seqlen_k\":191,\"head_dim\":16,\"backward\":"
      "false,\"strides\":{\"k\":{\"offset\":4}}}",
      "{\"law\":\"batch-alone\",\"batch\":3,\"seqlen_q\":17,\"seqlen_k\":191,\"head_dim\":16,\"backward\":"
      "false,\"strides\":{\"o\":{\"gap\":[0,3,0]}}}",
      "{\"law\":\"batch-alone\",\"batch\":3,\"seqlen_q\":17,\"seqlen_k\":191,\"head_dim\":16,\"backward\":"
      "false}"};
  const fa_run_config config = {.backend = &fa_backend_host, .n_threads = 1};
  fa_result r;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    fa_case c;
    fa_error err = {""};
    REQUIRE(fa_case_from_text(texts[i], &c, &err) == FA_OK);
    fa_result_init(&r);
    CHECK(fa_run_case(&c, &config, &r, &err) == FA_OK);
    CHECK_MSG(r.state == FA_PASS, "%s", r.reason);
    fa_result_free(&r);
    fa_case_free(&c);
  }
}

/* No law raises an alarm on a correct subject. */
static void test_silent(void) {
  static fa_result r;
  int n_passed = 0;
  for (int64_t i = 0; i < 8; ++i)
    for (int law = FA_LAW_NONE + 1; law < FA_N_LAWS; ++law) {
      fa_case c;
      fa_error err = {""};
      REQUIRE(fa_generate("edge", 77, i, &c, &err) == FA_OK);
      c.law = (fa_law)law;
      spoilt_for = FA_LAW_NONE;
      const fa_run_config config = {.backend = &fa_backend_ref_f32, .n_threads = 1};
      fa_result_init(&r);
      CHECK(fa_run_case(&c, &config, &r, &err) == FA_OK);
      CHECK_MSG(r.state == FA_PASS || r.state == FA_SKIP, "%s %s: %s", c.name, fa_law_describe(c.law)->name,
                r.reason);
      n_passed += r.state == FA_PASS;
      fa_result_free(&r);
      fa_case_free(&c);
    }
  CHECK_MSG(n_passed >= 40, "only %d law checks on random cases", n_passed);
}

int main(int argc, char **argv) {
  (void)argc;
  fa_blas_startup(argv);
  test_breakable();
  test_nan();
  test_infinite();
  test_overflow();
  test_skips();
  test_long();
  test_underflow();
  test_cached_entry();
  test_parts();
  test_products();
  test_empty_rows();
  test_alignment();
  test_silent();
  return check_done();
}
