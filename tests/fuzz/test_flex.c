/* Flex cases and the judge: buffers, the lists that mask_mod makes, expressions without a value, recorded
 * runs. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "fuzz/one/recorded.h"
#include "gpu/backend.h"
#include "ref/mods/tile.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

#define SMALL "\"family\": \"flex\", \"head_dim\": 32, "
#define TABLE                                                                                                \
  "{" SMALL "\"seqlen_q\": 50, \"heads_q\": 2, \"score_mod\": \"score + table[h, min(max(q_idx - kv_idx + "  \
  "8, 0), 16)]\", \"buffers\": {\"table\": {\"shape\": [2, 17]}}}"
/* ---- buffers ---- */

static bool make(const char *json, fa_case *c, fa_tensors *set) {
  fa_error err = {""};
  const bool good = fa_case_from_text(json, c, &err) == FA_OK && fa_case_build(c, set, &err) == FA_OK;
  CHECK_MSG(good, "%s: %s", json, err.text);
  return good;
}

/* Shapes, which buffers have gradients, and that values depend only on the buffer's name and the seed. */
static void test_buffers(void) {
  fa_case c, other;
  fa_tensors set, other_set;
  if (!make(
          "{" SMALL
          "\"score_mod\": \"score + x[0] + frozen[0] + one\", \"mask_mod\": \"doc[1, 2] >= 0\", \"buffers\": "
          "{\"x\": {\"shape\": [5]}, \"frozen\": {\"shape\": [2], \"grad\": false}, \"unread\": {\"shape\": "
          "[3]}, "
          "\"one\": {}, \"doc\": {\"shape\": [3, 500], \"dtype\": \"i32\", \"below\": 7, \"sorted\": true}}}",
          &c, &set) ||
      !make("{" SMALL "\"buffers\": {\"doc\": {\"shape\": [3, 500], \"dtype\": \"i32\", \"below\": 7}, "
            "\"x\": {\"shape\": "
            "[9]}}}",
            &other, &other_set))
    return;
  const fa_tensor *t = &set.t[FA_T_BUFFER_0], *d = &set.t[FA_T_DBUFFER_0], *doc = &t[4];
  CHECK(t[0].dtype == FA_F32 && t[0].rank == 1 && t[0].shape[0] == 5 && t[3].rank == 1 && t[3].shape[0] == 1);
  CHECK(doc->dtype == FA_I32 && doc->rank == 2 && doc->shape[1] == 500 && !t[5].data);
  CHECK(d[0].data && !d[1].data && !d[2].data && d[3].data && !d[4].data && d[0].dtype == FA_F32);
  CHECK(memcmp(t[0].data, other_set.t[FA_T_BUFFER_0 + 1].data, 5 * 4) == 0); /* longer, at another place */
  CHECK(!other_set.t[FA_T_DBUFFER_0].data && !other_set.t[FA_T_DBUFFER_0 + 1].data);
  int64_t seen = 0, n_steps = 0, n_down = 0;
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t k = 0; k < 500; ++k) {
      const int64_t at[2] = {row, k}, before[2] = {row, k - 1};
      const double x = fa_tensor_get(doc, at), y = fa_tensor_get(&other_set.t[FA_T_BUFFER_0], at);
      CHECK(x >= 0 && x < 7 && y >= 0 && y < 7);
      seen |= 1 << (int)y;
      if (k == 0) continue;
      CHECK(x >= fa_tensor_get(doc, before));
      n_steps += x > fa_tensor_get(doc, before);
      n_down += y < fa_tensor_get(&other_set.t[FA_T_BUFFER_0], before);
    }
  CHECK(n_steps > 9 && n_steps <= 18 && seen == 127 && n_down > 300);
  fa_tensors_free(&set);
  fa_tensors_free(&other_set);
  fa_case_free(&c);
  fa_case_free(&other);
}

/* ---- lists from mask_mod ---- */

typedef bool mask_fn(int64_t b, int64_t h, int64_t i, int64_t j);
static bool is_causal(int64_t b, int64_t h, int64_t i, int64_t j) {
  (void)b, (void)h;
  return i >= j;
}
static bool is_band(int64_t b, int64_t h, int64_t i, int64_t j) {
  return llabs(i - j) < 10 + 15 * b + 5 * h;
}
static bool is_head(int64_t b, int64_t h, int64_t i, int64_t j) {
  (void)b, (void)i;
  return h == 1 ? j < 32 : h == 0;
}

static void check_lists(const char *text, mask_fn *mask, int64_t sq, int64_t sk, int64_t q_block,
                        int64_t kv_block) {
  char json[512];
  fa_case c;
  fa_tensors set;
  fa_error err = {""};
  fa_int32_array list[4];
  snprintf(json, sizeof json,
           "{" SMALL
           "\"batch\": 2, \"heads_q\": 3, \"seqlen_q\": %lld, \"seqlen_k\": %lld, \"mask_mod\": \"%s\", "
           "\"block_sparse\": {\"from\": \"mask_mod\", \"q_block\": %lld, \"kv_block\": %lld}}",
           (long long)sq, (long long)sk, text, (long long)q_block, (long long)kv_block);
  if (fa_case_from_text(json, &c, &err) != FA_OK || fa_case_build(&c, &set, &err) != FA_OK) {
    CHECK_MSG(false, "%s: %s", json, err.text);
    return;
  }
  REQUIRE(fa_ref_block_lists(&c.problem, &set, list, &err) == FA_OK);
  const int64_t n_q = (sq + q_block - 1) / q_block, n_kv = (sk + kv_block - 1) / kv_block;
  CHECK(list[0].n == 6 * n_q && list[1].n == 6 * n_q * n_kv && list[2].n == list[0].n &&
        list[3].n == list[1].n);
  for (int64_t row = 0; row < 6 * n_q; ++row) {
    int32_t n[2] = {0, 0};
    for (int64_t k = 0; k < n_kv; ++k) {
      int64_t seen = 0, exist = 0;
      for (int64_t i = row % n_q * q_block; i < sq && i < (row % n_q + 1) * q_block; ++i)
        for (int64_t j = k * kv_block; j < sk && j < (k + 1) * kv_block; ++j) {
          ++exist;
          seen += mask(row / n_q / 3, row / n_q % 3, i, j);
        }
      if (seen == 0) continue;
      const int full = seen == exist;
      CHECK_MSG(n[full] < list[2 * full].v[row] && list[2 * full + 1].v[row * n_kv + n[full]] == k,
                "%s: row %lld, tile %lld is %s", text, (long long)row, (long long)k,
                full ? "full" : "partial");
      ++n[full];
    }
    CHECK(n[0] == list[0].v[row] && n[1] == list[2].v[row]);
  }
  for (int k = 0; k < 4; ++k) free(list[k].v);
  fa_tensors_free(&set);
  fa_case_free(&c);
}

/* ---- no value ---- */

/* The error is the same on any number of threads: the first pair in order. */
static void refused(const char *keys, const char *why) {
  char json[1024];
  fa_case c;
  fa_tensors set;
  fa_error err = {""};
  snprintf(json, sizeof json, "{" SMALL "\"heads_q\": 2, \"seqlen_q\": 300, %s}", keys);
  if (fa_case_from_text(json, &c, &err) != FA_OK || fa_case_build(&c, &set, &err) != FA_OK) {
    CHECK_MSG(false, "%s: %s", json, err.text);
    return;
  }
  const fa_profile profile = fa_profile_get("simt-f32", c.problem.dtype);
  for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
    const fa_ref_options options = {.n_threads = n_threads, .profile = &profile};
    fa_wants forward = {0};
    CHECK(fa_ref_forward(&c.problem, &set, &options, &forward, &err) == FA_ERR_INPUT);
    CHECK_MSG(strncmp(err.text, why, strlen(why)) == 0, "%s", err.text);
    fa_wants_free(&forward);
  }
  fa_tensors_free(&set);
  fa_case_free(&c);
}

static void test_no_value(void) {
  refused("\"score_mod\": \"score + t[q_idx - kv_idx]\", \"buffers\": {\"t\": {\"shape\": [290]}}",
          "$.score_mod: column 9: index 0 is -1, not in 0 .. 289, at b 0, h 0, q_idx 0, kv_idx 1");
  refused(
      "\"score_mod\": \"score + t[q_idx - kv_idx]\", \"mask_mod\": \"q_idx >= kv_idx\", \"buffers\": {\"t\": "
      "{\"shape\": [290]}}",
      "$.score_mod: column 9: index 0 is 290, not in 0 .. 289, at b 0, h 0, q_idx 290, kv_idx 0");
  refused("\"mask_mod\": \"100 / (q_idx - 7) < kv_idx\"",
          "$.mask_mod: column 5: 100 / 0 has no value in int32, at b 0, h 0, q_idx 7, kv_idx 0");
  refused("\"mask_mod\": \"h == 0 || sin(x[kv_idx % 3]) < sin(x[q_idx % 3])\", \"buffers\": {\"x\": "
          "{\"shape\": [3]}}",
          "$.mask_mod: column 30: rounding decides it, at b 0, h 1, q_idx 0, kv_idx 0");
  refused("\"score_mod\": \"q_idx == 9 ? inf : score\"",
          "$.score_mod: column 1: the score becomes +inf, at b 0, h 0, q_idx 9, kv_idx 0");
  refused("\"score_mod\": \"sqrt(score - score)\"",
          "$.score_mod: column 1: rounding decides whether there is a value, at b 0, h 0, q_idx 0, kv_idx 0");
  refused("\"score_mod\": \"kv_idx == 7 ? score * 1e9 : score\"",
          "$.score_mod: column 1: rounding in f32 may move the score by ");
}

/* An infinite derivative shows in the backward pass. */
static void test_no_slope(void) {
  fa_case c;
  fa_tensors set;
  fa_error err = {""};
  const fa_profile profile = fa_profile_get("simt-f32", FA_F16);
  const fa_ref_options options = {.n_threads = 1, .profile = &profile};
  fa_wants forward = {0}, backward = {0};
  REQUIRE(fa_case_from_text("{" SMALL "\"seqlen_q\": 9, \"scale\": 0, \"score_mod\": \"sqrt(abs(score))\"}",
                            &c, &err) == FA_OK);
  REQUIRE(fa_case_build(&c, &set, &err) == FA_OK);
  CHECK(fa_ref_forward(&c.problem, &set, &options, &forward, &err) == FA_OK);
  CHECK(fa_ref_backward(&c.problem, &set, NULL, NULL, &forward, &options, &backward, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "no finite derivative, at b 0, h 0, q_idx 0, kv_idx 0"), "%s", err.text);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&set);
  fa_case_free(&c);
}

/* A recorded run may refer to buffers and their gradients by name; one that lacks a buffer is rejected. */
static void test_recorded(void) {
  static const fa_tensor_id ids[] = {FA_T_Q,   FA_T_K,  FA_T_V,        FA_T_DO,       FA_T_O,
                                     FA_T_LSE, FA_T_DQ, FA_T_BUFFER_0, FA_T_DBUFFER_0};
  enum { N = sizeof ids / sizeof *ids };
  static const char *const names[N] = {
      "r/q", "r/k", "r/v", "r/do", "r/o", "r/lse", "r/dq", "r/buffer_table", "r/dbuffer_table"};
  const fa_tensor *tensors[N];
  const char *key = "r", *without[N];
  fa_case c;
  fa_tensors set;
  fa_error err = {""};
  fa_outcome outcome;
  fa_safetensors f;
  fa_recorded recorded;
  char *text = NULL;
  size_t n = 0;
  REQUIRE(fa_case_from_text(TABLE, &c, &err) == FA_OK && fa_case_build(&c, &set, &err) == FA_OK);
  const fa_run_options run = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 1};
  REQUIRE(fa_backend_ref_f32.run(NULL, &c.problem, &set, &run, &outcome, &err) == FA_OK);
  for (int k = 0; k < N; ++k) tensors[k] = &set.t[ids[k]], without[k] = names[k];
  char *line = fa_case_to_line(&c);
  REQUIRE(line);
  for (int complete = 0; complete < 2; ++complete) {
    FILE *file = open_memstream(&text, &n);
    REQUIRE(file);
    if (!complete) without[7] = "r/buffer_other";
    REQUIRE(fa_safetensors_print(file, "memory", complete ? names : without, tensors, N, &key,
                                 (const char *const *)&line, 1, &err) == FA_OK);
    fclose(file);
    REQUIRE(fa_safetensors_parse(text, n, "memory", &f, &err) == FA_OK);
    const fa_status status = fa_recorded_load(&f, "memory", "r", &recorded, &err);
    CHECK_MSG(complete ? status == FA_OK : status == FA_ERR_INPUT && strstr(err.text, "buffer_0: missing"),
              "%s", err.text);
    if (status == FA_OK) {
      CHECK(recorded.backward && recorded.got.t[FA_T_DBUFFER_0].data && recorded.got.t[FA_T_DQ].data);
      CHECK(memcmp(recorded.in.t[FA_T_BUFFER_0].data, set.t[FA_T_BUFFER_0].data, 2 * 17 * 4) == 0);
      fa_recorded_free(&recorded);
    }
    fa_safetensors_close(&f);
    free(text);
  }
  free(line);
  fa_tensors_free(&set);
  fa_case_free(&c);
}

int main(void) {
  check_lists("q_idx >= kv_idx", is_causal, 100, 150, 32, 64);
  check_lists("q_idx >= kv_idx", is_causal, 128, 128, 64, 64);
  check_lists("abs(q_idx - kv_idx) < 10 + 15 * b + 5 * h", is_band, 90, 70, 32, 48);
  check_lists("h == 1 ? kv_idx < 32 : h == 0", is_head, 65, 65, 64, 32);
  test_buffers();
  test_no_value();
  test_no_slope();
  test_recorded();
  return check_done();
}
