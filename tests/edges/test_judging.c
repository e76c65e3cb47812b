/* Small functions of the harness by hand: what an LSE looks like, which runs differ, which places of a sample are drawn or added. */
#include "fuzz/judging/lse_column.h"
#include "fuzz/judging/lse_hint.h"
#include "fuzz/judging/run_checks.h"
#include "fuzz/judging/sample.h"
#include "tests/held/case_of.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void fill(const fa_tensor *t, double value) {
  int64_t index[FA_MAX_RANK];
  for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
    fa_tensor_unravel(t, e, index);
    fa_tensor_set(t, index, value);
  }
}

/* ---- what an LSE seems to be ---- */

/* n elements, the last one infinite, of which the subject's are `factor` times as large. */
static const char *hint(double factor, int n, double scale, int64_t bad) {
  static fa_result r;
  static float got[4];
  double want[4] = {1.5, -2, 3, 4};
  const fa_problem p = {.scale = scale};
  const fa_want w = {.n = n, .rank = 1, .shape = {n}, .value = want};
  const fa_tensor t = {.dtype = FA_F32, .rank = 1, .shape = {n}, .stride = {1}, .data = (char *)got};
  want[n - 1] = -INFINITY;
  for (int i = 0; i < n; ++i) got[i] = (float)(factor * want[i]);
  memset(&r, 0, sizeof r);
  r.n_verdicts = 1, r.verdict[0].id = FA_T_LSE, r.verdict[0].bad = bad;
  fa_lse_hint(&p, &w, &t, &r);
  return r.notes;
}

static void test_hint(void) {
  const double log2_e = 1.4426950408889634;
  for (int n = 2; n <= 4; ++n) {
    CHECK_MSG(strstr(hint(log2_e, n, 0.5, 1), "lse seems to be in base 2: "), "%d", n);
    CHECK(strstr(hint(2, n, 0.5, 1), "divided by the scale: \"lse\": {\"scaled\": false}"));
    CHECK(strstr(hint(2 * log2_e, n, 0.5, 1), "in base 2 and divided by the scale"));
    CHECK(strstr(hint(-1, n, 0.5, 1), "negated, which nothing declares"));
  }
  CHECK(!*hint(-2, 4, 0.5, 1) && !*hint(1.1, 4, 0.5, 1) && !*hint(2, 1, 0.5, 1));
  CHECK(!*hint(log2_e, 4, 0.5, 0)); /* it is right */
}

/* ---- an LSE from the column ---- */

enum { BATCH = 2, HEADS = 2, ROWS = 3, KEYS = 5 };

/* What every element's bound grows by with slopes of heads, or of entries too: twice a roundoff, of the wider of the two types
 * that there are, of the slope times the row's place. By a contract that says nothing of a column: by nothing. */
static void check_column(bool by_entry, fa_lse_alibi alibi, fa_dtype lse_dtype) {
  static const double slopes[BATCH][HEADS] = {{0.5, 0.25}, {2, 4}};
  float accum[BATCH * HEADS * ROWS];
  fa_want w = {.n = BATCH * HEADS * ROWS, .accum = accum};
  fa_tensors in;
  fa_error err = {""};
  fa_contract contract;
  fa_case c =
      case_of(by_entry ? "{\"batch\":2,\"heads_q\":2,\"seqlen_q\":3,\"seqlen_k\":5,\"head_dim\":8,\"alibi\":{"
                         "\"slopes\":[[0.5,0.25],[2,4]]}}"
                       : "{\"batch\":2,\"heads_q\":2,\"seqlen_q\":3,\"seqlen_k\":5,\"head_dim\":8,\"alibi\":{"
                         "\"slopes\":[0.5,0.25]}}",
              &in);
  fa_contract_init(&contract);
  contract.lse_alibi = alibi;
  contract.lse_dtype = lse_dtype;
  for (int e = 0; e < w.n; ++e) accum[e] = 1;
  CHECK_MSG(fa_lse_widen_column(&c.problem, &in, &contract, &w, &err) == FA_OK, "%s", err.text);
  const double u = 2 * (lse_dtype == FA_F16 ? 0x1p-11 : lse_dtype == FA_BF16 ? 0x1p-8 : 0x1p-24);
  for (int e = 0; e < w.n; ++e) {
    const int b = e / ROWS / HEADS, h = e / ROWS % HEADS, place = e % ROWS + KEYS - ROWS;
    const double by = alibi == FA_LSE_ALIBI_COLUMN ? u * slopes[by_entry ? b : 0][h] * place : 0;
    CHECK_MSG(accum[e] == 1 + (float)by, "element %d: %.9g, not %.9g", e, accum[e], 1 + by);
  }
  w.accum = NULL; /* of what has no bounds, nothing grows */
  CHECK(fa_lse_widen_column(&c.problem, &in, &contract, &w, &err) == FA_OK);
  CHECK(fa_lse_widen_column(&c.problem, &in, NULL, &w, &err) == FA_OK);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

static void test_column(void) {
  static const fa_dtype types[] = {FA_F32, FA_F16, FA_BF16};
  for (int k = 0; k < 3; ++k)
    for (int by_entry = 0; by_entry < 2; ++by_entry) {
      check_column(by_entry, FA_LSE_ALIBI_COLUMN, types[k]);
      check_column(by_entry, FA_LSE_ALIBI_DISTANCE, types[k]);
    }
}

/* ---- two runs ---- */

/* Every second element of a row counts. */
static void test_strided_cache(void) {
  static fa_result r;
  float before[2][8], after[2][8];
  int32_t len[] = {0};
  const fa_tensor t = {.dtype = FA_F32, .rank = 4, .shape = {1, 2, 1, 4}, .stride = {16, 8, 8, 2}};
  const fa_problem p = {
      .family = FA_KVCACHE, .batch = 1, .kvcache = {.present = true, .n_new = 1, .len = {1, len}}};
  fa_tensors a = {0}, b = {0};
  for (int i = 0; i < 16; ++i) before[i / 8][i % 8] = after[i / 8][i % 8] = (float)i;
  a.t[FA_T_K] = b.t[FA_T_K] = t;
  a.t[FA_T_K].data = (char *)before, b.t[FA_T_K].data = (char *)after;
  REQUIRE(fa_tensor_is_updated(&p, FA_T_K));
  for (int way = 0; way < 3; ++way) {
    fa_result_init(&r);
    after[1][1] = way == 1 ? 99 : 9; /* between the elements */
    after[1][4] = way == 2 ? 99 : 12;
    a.t[FA_T_V] = a.t[FA_T_K], b.t[FA_T_V] = a.t[FA_T_K];
    fa_check_memory(&p, &a, &b, FA_POISON_A, &r);
    CHECK_MSG((r.state == FA_OOB) == (way == 2), "way %d: %s", way, r.reason);
    if (way == 2) CHECK_MSG(strstr(r.reason, "cache k[0,1,0,2] changed"), "%s", r.reason);
    fa_result_free(&r);
  }
}

/* dQ may be summed in any order; dV, behind it, may not. */
static void test_repeats(void) {
  static fa_result r;
  fa_tensors first, second;
  fa_case c = case_of("{\"seqlen_q\":3,\"head_dim\":8}", &first);
  const fa_profile any = {.dq_atomic = true}, none = {.dq_atomic = false};
  REQUIRE(fa_tensors_clone(&second, &first, NULL) == FA_OK);
  const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
  for (int i = 0; i < 5; ++i) fill(&first.t[ids[i]], 1), fill(&second.t[ids[i]], 1);
  const int64_t at[FA_MAX_RANK] = {0, 1, 0, 2};
  fa_result_init(&r);
  CHECK(!fa_check_repeats(&c.problem, &none, &first, &second, FA_POISON_B, &r));
  fa_tensor_set(&second.t[FA_T_DQ], at, 2);
  CHECK(!fa_check_repeats(&c.problem, &any, &first, &second, FA_POISON_B, &r) && !r.reason[0]);
  CHECK(fa_check_repeats(&c.problem, &none, &first, &second, FA_POISON_B, &r));
  CHECK_MSG(strcmp(r.reason, "dq: 1 elements differ between two runs, the first [0,1,0,2]: 1, then 2") == 0,
            "%s", r.reason);
  fa_result_free(&r);
  fa_result_init(&r);
  fa_tensor_set(&second.t[FA_T_Q], at, 100); /* an input, which is looked at elsewhere */
  CHECK(!fa_check_repeats(&c.problem, &any, &first, &second, FA_POISON_B, &r));
  fa_tensor_set(&second.t[FA_T_DV], at, 3);
  CHECK(fa_check_repeats(&c.problem, &any, &first, &second, FA_POISON_B, &r));
  CHECK_MSG(strncmp(r.reason, "dv: 1 elements differ", 21) == 0, "%s", r.reason);
  fa_result_free(&r);
  fa_tensors_free(&first);
  fa_tensors_free(&second);
  fa_case_free(&c);
}

/* ---- samples ---- */

static uint64_t number_of(const fa_ref_place *at, int64_t n) {
  uint64_t h = 14695981039346656037u;
  for (int64_t k = 0; k < n; ++k)
    h = (h ^ (uint64_t)((at[k].b * 100 + at[k].h) * 10000 + at[k].i)) * 1099511628211u;
  return h;
}

/* Rows and strips that were drawn at first, so that a sample asked for again is the same. */
static void test_draw(void) {
  static const char *const texts[] = {
      "{\"batch\":3,\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":700,\"seqlen_k\":1500,\"head_dim\":8}",
      "{\"cu_seqlens_q\":[0,300,301,900],\"cu_seqlens_k\":[0,900,1000,2700],\"heads_q\":3,\"head_dim\":8}",
      /* more of a head's rows than a block has places */
      "{\"heads_q\":2,\"seqlen_q\":1024,\"seqlen_k\":1,\"head_dim\":1}"};
  static const struct {
    int64_t rows, strips;
    uint64_t row, strip;
  } want[] = {{300, 9, 5561519554481431972u, 6119184427638153919u},
              {300, 9, 2768736861358735573u, 4418080684623871151u},
              {800, 1, 13854422874453692092u, 12629444983599736335u}};
  for (int k = 0; k < 3; ++k) {
    fa_tensors in;
    fa_sample_places out;
    const fa_sample sample = {.rows = want[k].rows, .strips = want[k].strips, .seed = 7};
    fa_case c = case_of(texts[k], &in);
    REQUIRE(fa_sample_draw(&c.problem, &in, &sample, 1, true, &out, NULL) == FA_OK);
    CHECK(out.n_rows == want[k].rows && out.n_strips == want[k].strips);
    CHECK_MSG(number_of(out.row, out.n_rows) == want[k].row &&
                  number_of(out.strip, out.n_strips) == want[k].strip,
              "sample %d: rows %llu, strips %llu", k, (unsigned long long)number_of(out.row, out.n_rows),
              (unsigned long long)number_of(out.strip, out.n_strips));
    fa_sample_places_free(&out);
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

/* The steepest of all pairs counts where the derivative of a cap meets operands with a floor. */
static void test_steepest(void) {
  fa_tensors in;
  fa_profile profile = {.floor_operand = 0};
  fa_case c = case_of("{\"seqlen_q\":9,\"head_dim\":8,\"softcap\":2}", &in);
  CHECK(!fa_sample_refused(&c.problem, &in, NULL, &profile));
  profile.floor_operand = 0x1p-24;
  CHECK(fa_sample_refused(&c.problem, &in, NULL, &profile));
  c.problem.softcap = 0;
  CHECK(!fa_sample_refused(&c.problem, &in, NULL, &profile));
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* Why a call is judged as a whole; NULL: it may be sampled. */
static void test_refused(void) {
  static const struct {
    const char *json, *why;
  } rows[] = {
      {"{\"seqlen_q\":9,\"head_dim\":8}", NULL},
      {"{\"family\":\"merge\",\"seqlen_q\":9,\"head_dim\":8,\"merge\":{\"parts\":2}}",
       "a merge of partial states has no strips of keys"},
      {"{\"seqlen_q\":9,\"head_dim\":8,\"sinks\":true}", "a sink's gradient sums over all rows of its head"},
      {"{\"family\":\"memeff\",\"seqlen_q\":9,\"head_dim\":8,\"bias\":{\"shape\":[1,1,\"q\",\"k\"],\"grad\":"
       "true}}",
       "the bias's gradient sums over all rows"},
      {"{\"family\":\"memeff\",\"seqlen_q\":9,\"head_dim\":8,\"bias\":{\"shape\":[1,1,\"q\",\"k\"],\"grad\":"
       "false}}",
       NULL},
      {"{\"family\":\"flex\",\"heads_q\":2,\"seqlen_q\":3,\"head_dim\":8,\"score_mod\":\"score + one[h] + "
       "two[h]\",\"buffers\":{\"one\":{\"shape\":[2],\"grad\":false},\"two\":{\"shape\":[2],\"grad\":true}}}",
       "a buffer's gradient sums over all rows"},
      {"{\"family\":\"flex\",\"heads_q\":2,\"seqlen_q\":3,\"head_dim\":8,\"score_mod\":\"score + "
       "one[h]\",\"buffers\":{\"one\":{\"shape\":[2],\"grad\":false}}}",
       NULL},
      {"{\"seqlen_q\":9,\"head_dim\":8,\"dropout\":{\"p\":0.3,\"seed\":\"1\"},\"return_softmax\":true}",
       "a matrix of all pairs is returned"},
      {"{\"seqlen_q\":9,\"head_dim\":8,\"dropout\":{\"p\":0.3,\"seed\":\"1\"}}", NULL},
      {"{\"seqlen_q\":9,\"head_dim\":8,\"softcap\":2}", "a bound depends on the steepest of all pairs"},
      {"{\"family\":\"flex\",\"seqlen_q\":3,\"head_dim\":8,\"score_mod\":\"score * 2\"}",
       "a bound depends on the steepest of all pairs"},
      {"{\"family\":\"flex\",\"seqlen_q\":3,\"head_dim\":8,\"mask_mod\":\"kv_idx < 2\"}", NULL}};
  const fa_profile coarse = {.floor_operand = 0x1p-24};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    fa_tensors in;
    fa_case c = case_of(rows[i].json, &in);
    const bool steep = rows[i].why && strstr(rows[i].why, "steepest");
    const char *why = fa_sample_refused(&c.problem, &in, NULL, steep ? &coarse : NULL);
    CHECK_MSG(why ? rows[i].why && strcmp(why, rows[i].why) == 0 : !rows[i].why, "%s: %s", rows[i].json, why);
    if (steep) CHECK(!fa_sample_refused(&c.problem, &in, NULL, NULL));
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

/* A matrix that a recorded run has is one of all pairs too; rows of a kind of their own have to be known all. */
static void test_refused_more(void) {
  static const char own[] =
      "rows without a visible key are of a kind of their own, and all of them have to be known";
  fa_tensors in;
  fa_contract contract;
  char byte = 0;
  fa_case c = case_of("{\"seqlen_q\":9,\"head_dim\":8}", &in);
  for (int k = 0; k < 2; ++k) {
    const fa_tensor_id id = k ? FA_T_DROPOUT_KEEP : FA_T_P_DEBUG;
    in.t[id].data = &byte;
    const char *why = fa_sample_refused(&c.problem, &in, NULL, NULL);
    CHECK(why && strcmp(why, "a matrix of all pairs is returned") == 0);
    in.t[id].data = NULL;
  }
  fa_contract_init(&contract);
  CHECK(!fa_sample_refused(&c.problem, &in, &contract, NULL));
  contract.o_of_empty = FA_O_EMPTY_NAN;
  CHECK(strcmp(fa_sample_refused(&c.problem, &in, &contract, NULL), own) == 0);
  contract.o_of_empty = FA_O_EMPTY_ZERO, contract.lse_of_empty = FA_LSE_EMPTY_ANY;
  CHECK(strcmp(fa_sample_refused(&c.problem, &in, &contract, NULL), own) == 0);
  contract.lse_of_empty = FA_LSE_EMPTY_NAN;
  CHECK(!fa_sample_refused(&c.problem, &in, &contract, NULL));
  c.problem.quantized.amax = true;
  CHECK(strcmp(fa_sample_refused(&c.problem, &in, NULL, NULL), "amax_p and amax_o are of all rows") == 0);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* As many as there are: all, in their order; and how many there are of. */
static void test_draw_all(void) {
  fa_tensors in;
  fa_case c = case_of(
      "{\"batch\":2,\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":3,\"seqlen_k\":257,\"head_dim\":1}", &in);
  for (int strips = 0; strips < 2; ++strips)
    for (int more = -1; more < 2; ++more) {
      fa_sample_places out;
      const fa_sample sample = {.rows = 24 + more, .strips = 8 + more, .seed = 7};
      REQUIRE(fa_sample_draw(&c.problem, &in, &sample, 1, strips, &out, NULL) == FA_OK);
      CHECK(out.of_rows == 24 && out.of_strips == (strips ? 8 : 0));
      CHECK(out.n_rows == (more < 0 ? 23 : 24) && out.n_strips == (!strips ? 0 : more < 0 ? 7 : 8));
      CHECK(fa_sample_is_whole(&out) == (more >= 0));
      for (int64_t n = 0; more >= 0 && n < out.n_rows; ++n)
        CHECK(out.row[n].b == n / 12 && out.row[n].h == n / 3 % 4 && out.row[n].i == n % 3);
      for (int64_t n = 0; more >= 0 && n < out.n_strips; ++n)
        CHECK(out.strip[n].b == n / 4 && out.strip[n].h == n / 2 % 2 && out.strip[n].i == n % 2 * 256);
      fa_sample_places_free(&out);
      CHECK(!out.row && !out.strip && out.n_rows == 0);
    }
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* All rows of the query heads that a strip's head serves, once for two strips of one head, and the sample's own. */
static void test_needed_all(void) {
  fa_tensors in;
  fa_ref_place row[] = {{0, 0, 5}, {1, 3, 8}}, strip[] = {{0, 0, 256}, {0, 1, 0}, {0, 1, 256}, {1, 0, 256}};
  const fa_sample_places places = {.row = row, .strip = strip, .n_rows = 2, .n_strips = 4};
  fa_ref_sample needed;
  fa_case c = case_of(
      "{\"batch\":2,\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":9,\"seqlen_k\":300,\"head_dim\":1}", &in);
  REQUIRE(fa_sample_rows_needed(&c.problem, &in, &places, true, NULL, &needed, NULL) == FA_OK);
  CHECK_MSG(needed.n_rows == 36 + 18 + 1 && needed.n_strips == 4, "%lld", (long long)needed.n_rows);
  for (int64_t n = 0; n < 54; ++n)
    CHECK(needed.row[n].b == n / 36 && needed.row[n].h == n % 36 / 9 && needed.row[n].i == n % 9);
  CHECK(needed.row[54].b == 1 && needed.row[54].h == 3 && needed.row[54].i == 8);
  free((void *)(uintptr_t)needed.row);
  REQUIRE(fa_sample_rows_needed(&c.problem, &in, &places, false, NULL, &needed, NULL) == FA_OK);
  CHECK(needed.n_rows == 2);
  free((void *)(uintptr_t)needed.row);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* Rows whose LSE is too large for one float are needed, once each; those without a key are not. */
static void test_needed(void) {
  fa_tensors in;
  fa_ref_place row = {0, 0, 5}, strip = {0, 0, 0};
  const fa_sample_places places = {.row = &row, .strip = &strip, .n_rows = 1, .n_strips = 1};
  fa_ref_sample needed;
  fa_case c = case_of("{\"seqlen_q\":9,\"head_dim\":8}", &in);
  fill(&in.t[FA_T_LSE], 1);
  for (int64_t i = 4; i < 8; ++i)
    fa_tensor_set(&in.t[FA_T_LSE], (int64_t[]){0, 0, i}, i < 6 ? 1e30 : i < 7 ? INFINITY : -INFINITY);
  REQUIRE(fa_sample_rows_needed(&c.problem, &in, &places, false, &in.t[FA_T_LSE], &needed, NULL) == FA_OK);
  CHECK(needed.n_rows == 2 && needed.row[0].i == 4 && needed.row[1].i == 5);
  free((void *)(uintptr_t)needed.row);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* NaN in O, in types whose low halves look like it; gradients that nobody wrote count only with a backward. */
static void test_odd(void) {
  static const char *const types[] = {"f16", "bf16", "f32"};
  for (int k = 0; k < 3; ++k) {
    char text[100];
    fa_tensors in;
    snprintf(text, sizeof text, "{\"dtype\":\"%s\",\"family\":\"%s\",\"seqlen_q\":9,\"head_dim\":8}",
             types[k], k < 2 ? "flash" : "memeff");
    fa_case c = case_of(text, &in);
    fill(&in.t[FA_T_O], 1.9999961853027344); /* in f32 0x3fffffe0: a half with an exponent of ones */
    fill(&in.t[FA_T_LSE], 1);
    for (int odd = 0; odd < 2; ++odd)
      for (int strips = 0; strips < 2; ++strips) {
        fa_sample_places out = {0};
        const int64_t at[FA_MAX_RANK] = {0, 4, 0, 3};
        fa_tensor_set(&in.t[FA_T_O], at, odd ? NAN : 1);
        REQUIRE(fa_sample_add_odd(&c.problem, &in, &in, 1, strips, &out, NULL) == FA_OK);
        CHECK_MSG(out.odd_rows == (strips ? 8 : odd) && out.odd_strips == strips,
                  "%s: %lld rows, %lld strips", types[k], (long long)out.odd_rows, (long long)out.odd_strips);
        fa_sample_places_free(&out);
      }
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

/* NaN in dK of a later sequence of variable length. */
static void test_odd_keys(void) {
  fa_tensors in;
  fa_sample_places out = {0};
  fa_case c = case_of(
      "{\"cu_seqlens_q\":[0,2,5],\"cu_seqlens_k\":[0,3,9],\"heads_q\":2,\"heads_kv\":2,\"head_dim\":8}", &in);
  const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
  for (int i = 0; i < 5; ++i) fill(&in.t[ids[i]], 1);
  fa_tensor_set(&in.t[FA_T_DK], (int64_t[]){7, 1, 3}, NAN);
  REQUIRE(fa_sample_add_odd(&c.problem, &in, &in, 1, true, &out, NULL) == FA_OK);
  CHECK(out.odd_rows == 0 && out.odd_strips == 1 && out.strip[0].b == 1 && out.strip[0].h == 1);
  fa_sample_places_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* NaN in dK of one head of several, in every sequence and place: found there and nowhere else. */
static void test_odd_heads(void) {
  enum { BATCH = 2, HEADS = 3, KEYS = 5 };
  fa_tensors in;
  fa_case c =
      case_of("{\"batch\":2,\"heads_q\":3,\"heads_kv\":3,\"seqlen_q\":5,\"seqlen_k\":5,\"head_dim\":8}", &in);
  const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
  for (int e = 0; e < BATCH * HEADS * KEYS; ++e) {
    fa_sample_places out = {0};
    const int64_t b = e / HEADS / KEYS, h = e / KEYS % HEADS, key = e % KEYS;
    for (int i = 0; i < 5; ++i) fill(&in.t[ids[i]], 1);
    fa_tensor_set(&in.t[FA_T_DK], (int64_t[FA_MAX_RANK]){b, key, h, 7}, NAN);
    REQUIRE(fa_sample_add_odd(&c.problem, &in, &in, 1, true, &out, NULL) == FA_OK);
    CHECK_MSG(out.odd_rows == 0 && out.odd_strips == 1 && out.strip[0].b == b && out.strip[0].h == h,
              "%lld %lld %lld", (long long)b, (long long)h, (long long)key);
    fa_sample_places_free(&out);
  }
  fa_tensors_free(&in);
  fa_case_free(&c);
}

int main(void) {
  test_hint();
  test_column();
  test_strided_cache();
  test_repeats();
  test_draw();
  test_steepest();
  test_refused();
  test_refused_more();
  test_draw_all();
  test_needed();
  test_needed_all();
  test_odd();
  test_odd_keys();
  test_odd_heads();
  return check_done();
}
