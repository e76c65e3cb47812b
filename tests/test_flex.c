/* The judge on flex cases with expressions: a subject that computes the expression of a slightly different
 * case fails where it must; the lists that mask_mod makes; what happens where an expression has no value. */
#include "cases/case.h"
#include "fuzz/judge.h"
#include "fuzz/recorded.h"
#include "gpu/backend.h"
#include "ref/mods.h"
#include "tests/check.h"
#include "tests/random_expr.h"

#include <math.h>
#include <string.h>

typedef struct planted {
  const char *what;
  const char *json;                   /* the case */
  const char *score_mod, *mask_mod;   /* what the subject computes instead; NULL: what the case says */
  void (*change)(fa_tensors *inputs); /* of the subject; may be NULL */
  void (*after)(fa_tensors *outputs); /* may be NULL */
  const char *fails;                  /* tensors that must fail, "" = none at all */
} planted;

static void swap_lists(fa_tensors *t) {
  for (int k = 0; k < 2; ++k) {
    char *partial = t->t[FA_T_KV_NUM_BLOCKS + k].data;
    t->t[FA_T_KV_NUM_BLOCKS + k].data = t->t[FA_T_FULL_KV_NUM_BLOCKS + k].data;
    t->t[FA_T_FULL_KV_NUM_BLOCKS + k].data = partial;
  }
}

static void scale(const fa_tensor *t, double by) {
  int64_t index[FA_MAX_RANK];
  for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
    fa_tensor_unravel(t, e, index);
    fa_tensor_set(t, index, by * fa_tensor_get(t, index));
  }
}

static void lose_gradient(fa_tensors *t) {
  scale(&t->t[FA_T_DBUFFER_0], 0);
}
static void double_gradient(fa_tensors *t) {
  scale(&t->t[FA_T_DBUFFER_0], 2);
}
static void nudge_gradient(fa_tensors *t) {
  scale(&t->t[FA_T_DBUFFER_0], 1.002);
}
static void leave_gradient(fa_tensors *t) {
  fa_tensors_poison(t, FA_T_DBUFFER_0, FA_POISON_A);
}

#define SMALL "\"family\": \"flex\", \"head_dim\": 32, "
#define ALIBI                                                                                                \
  "{" SMALL "\"seqlen_q\": 70, \"heads_q\": 4, \"score_mod\": \"score + 0.05 * slopes[h] * (kv_idx - "       \
  "q_idx)\", \"buffers\": {\"slopes\": {\"shape\": [4]}}}"
#define TABLE                                                                                                \
  "{" SMALL "\"seqlen_q\": 50, \"heads_q\": 2, \"score_mod\": \"score + table[h, min(max(q_idx - kv_idx + "  \
  "8, 0), 16)]\", \"buffers\": {\"table\": {\"shape\": [2, 17]}}}"
#define CAP "{" SMALL "\"seqlen_q\": 70, \"heads_q\": 2, \"score_mod\": \"10.0 * tanh(score / 10.0)\"}"
#define WINDOW                                                                                               \
  "{" SMALL "\"seqlen_q\": 90, \"heads_q\": 2, \"mask_mod\": \"q_idx >= kv_idx && q_idx - kv_idx <= 40\"}"
#define HEADS                                                                                                \
  "{" SMALL "\"seqlen_q\": 70, \"heads_q\": 4, \"heads_kv\": 2, \"mask_mod\": \"h % 2 == 0 ? q_idx >= "      \
  "kv_idx : abs(q_idx - kv_idx) < 20\"}"
#define LISTS                                                                                                \
  "{" SMALL "\"seqlen_q\": 64, \"seqlen_k\": 96, \"mask_mod\": \"(q_idx + kv_idx) % 2 == 0\", "              \
  "\"block_sparse\": {\"q_block\": 32, \"kv_block\": 32, \"kv_num_blocks\": [[[1, 1]]], \"kv_indices\": "    \
  "[[[[0, 0, 0], [2, 0, 0]]]], \"full_kv_num_blocks\": [[[1, 1]]], \"full_kv_indices\": [[[[1, 0, 0], [0, "  \
  "0, 0]]]]}}"
#define DIVIDE                                                                                               \
  "{" SMALL "\"seqlen_q\": 60, \"heads_q\": 2, \"score_mod\": \"score + 0.5 * ((q_idx - kv_idx) / 3)\"}"

static const planted errors[] = {
    {"nothing", ALIBI, NULL, NULL, NULL, NULL, ""},
    {"nothing", TABLE, NULL, NULL, NULL, NULL, ""},
    {"nothing", CAP, NULL, NULL, NULL, NULL, ""},
    {"nothing", WINDOW, NULL, NULL, NULL, NULL, ""},
    {"nothing", HEADS, NULL, NULL, NULL, NULL, ""},
    {"nothing", LISTS, NULL, NULL, NULL, NULL, ""},
    {"nothing", DIVIDE, NULL, NULL, NULL, NULL, ""},
    {"the slope of the next head", ALIBI, "score + 0.05 * slopes[(h + 1) % 4] * (kv_idx - q_idx)", NULL, NULL,
     NULL, "o lse dbuffer_0"},
    {"distance off by one", ALIBI, "score + 0.05 * slopes[h] * (kv_idx - q_idx + 1)", NULL, NULL, NULL,
     "lse"},
    {"gradient lost", ALIBI, NULL, NULL, NULL, lose_gradient, "dbuffer_0"},
    {"gradient doubled", ALIBI, NULL, NULL, NULL, double_gradient, "dbuffer_0"},
    {"gradient unwritten", ALIBI, NULL, NULL, NULL, leave_gradient, "dbuffer_0"},
    {"gradient lost", TABLE, NULL, NULL, NULL, lose_gradient, "dbuffer_0"},
    {"gradient off by 0.2 %", TABLE, NULL, NULL, NULL, nudge_gradient, "dbuffer_0"},
    {"clipped one too early", TABLE, "score + table[h, min(max(q_idx - kv_idx + 8, 0), 15)]", NULL, NULL,
     NULL, "o lse dbuffer_0"},
    {"no softcap", CAP, "score", NULL, NULL, NULL, "lse dq dk"},
    {"a coarse tanh", CAP, "10.0 * tanh(score / 10.0) * 1.0002", NULL, NULL, NULL, "lse"},
    {"one key too many", WINDOW, NULL, "q_idx >= kv_idx && q_idx - kv_idx <= 41", NULL, NULL, "o lse dk dv"},
    {"the diagonal lost", WINDOW, NULL, "q_idx > kv_idx && q_idx - kv_idx <= 40", NULL, NULL, "o lse"},
    {"the group's head", HEADS, NULL, "h / 2 % 2 == 0 ? q_idx >= kv_idx : abs(q_idx - kv_idx) < 20", NULL,
     NULL, "o lse dq dk dv"},
    {"no mask in partial tiles", LISTS, NULL, "true", NULL, NULL, "o lse dq dk dv"},
    {"full and partial tiles exchanged", LISTS, NULL, NULL, swap_lists, NULL, "o lse dq dk dv"},
    {"rounds towards -inf", DIVIDE, "score + 0.5 * floor((q_idx - kv_idx) / 3.0)", NULL, NULL, NULL, "o lse"},
};

static const fa_verdict *verdict_of(const fa_result *r, const char *name) {
  for (int k = 0; k < r->n_verdicts; ++k)
    if (strcmp(fa_tensor_id_name(r->verdict[k].id), name) == 0) return &r->verdict[k];
  return NULL;
}

static void check_failures(const planted *e, const fa_result *r) {
  char names[128], *save = NULL;
  if (!*e->fails) {
    CHECK_MSG(r->state != FA_FAIL && r->state != FA_VACUOUS, "%s: %s", e->what, e->json);
    return;
  }
  snprintf(names, sizeof names, "%s", e->fails);
  for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
    const fa_verdict *v = verdict_of(r, name);
    CHECK_MSG(v && v->fail, "%s: %s passes", e->what, name);
  }
}

static void run_planted(const planted *e) {
  fa_case c;
  fa_problem subject;
  fa_tensors set, got;
  fa_profile profile;
  fa_outcome outcome;
  fa_error err = {""};
  const fa_backend *b = &fa_backend_ref_f32;
  fa_status status = fa_case_from_text(e->json, &c, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  if (status != FA_OK) return;
  REQUIRE(fa_case_build(&c, &set, NULL) == FA_OK && fa_tensors_clone(&got, &set, NULL) == FA_OK);
  REQUIRE(fa_problem_copy(&subject, &c.problem) == FA_OK);
  if (e->score_mod) free(subject.score_mod), subject.score_mod = strdup(e->score_mod);
  if (e->mask_mod) free(subject.mask_mod), subject.mask_mod = strdup(e->mask_mod);
  if (e->change) e->change(&got);
  b->profile(NULL, &subject, &profile);
  const fa_run_options run = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 1};
  CHECK_MSG(b->run(NULL, &subject, &got, &run, &outcome, &err) == FA_OK, "%s: %s", e->what, err.text);
  if (e->after) e->after(&got);
  const fa_judge_config config = {.profile = &profile,
                                  .n_threads = 1,
                                  .generic = fa_case_is_generic(&c),
                                  .backward = true,
                                  .poison = FA_POISON_A};
  fa_result *r = malloc(sizeof *r);
  REQUIRE(r);
  fa_result_init(r);
  CHECK_MSG(fa_judge(&c.problem, &set, &got, &config, r, &err) == FA_OK, "%s: %s", e->what, err.text);
  check_failures(e, r);
  fa_result_free(r);
  free(r);
  fa_problem_free(&subject);
  fa_tensors_free(&got);
  fa_tensors_free(&set);
  fa_case_free(&c);
}

/* ---- random expressions, sane or not: no false alarm, no crash ---- */

static fa_case random_case(fa_rng *r, int round) {
  char text[16384];
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem *p = &c.problem;
  fa_problem_set_family(p, FA_FLEX);
  p->dtype = (fa_dtype)fa_rng_below(r, 3);
  p->batch = fa_rng_range(r, 1, 2);
  p->heads_q = p->heads_kv = RANDOM_EXPR_HEADS;
  p->head_dim = p->head_dim_v = 16;
  p->scale = fa_default_scale(16);
  p->seqlen_q = fa_rng_range(r, 1, 20);
  p->seqlen_k = fa_rng_range(r, 1, 30);
  c.data_seed = (uint64_t)round;
  random_expr_score(r, 1 + round % 5, round % 3 != 0, text, sizeof text);
  p->score_mod = strdup(text);
  random_expr_mask(r, round % 4, text, sizeof text);
  if (round % 2) p->mask_mod = strdup(text);
  p->n_captures = RANDOM_EXPR_BUFFERS;
  p->captures = malloc(sizeof random_expr_captures);
  REQUIRE(p->captures && p->score_mod);
  memcpy(p->captures, random_expr_captures, sizeof random_expr_captures);
  for (int k = 0; k < p->n_captures; ++k) snprintf(p->captures[k].fill, sizeof p->captures[k].fill, "normal");
  return c;
}

static void test_random(void) {
  fa_rng r = fa_rng_make(41, 0);
  int64_t n_judged = 0, n_gradients = 0, n_refused = 0;
  for (int round = 0; round < 400; ++round) {
    fa_case c = random_case(&r, round);
    fa_tensors set, got;
    fa_profile profile;
    fa_outcome outcome;
    fa_error err = {""};
    CHECK_MSG(fa_case_validate(&c, &err) == FA_OK, "%s", err.text);
    REQUIRE(fa_case_build(&c, &set, &err) == FA_OK && fa_tensors_clone(&got, &set, &err) == FA_OK);
    const fa_run_options run = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 1};
    fa_backend_ref_f32.profile(NULL, &c.problem, &profile);
    CHECK(fa_backend_ref_f32.run(NULL, &c.problem, &got, &run, &outcome, &err) == FA_OK);
    const fa_judge_config config = {.profile = &profile,
                                    .n_threads = 1,
                                    .generic = fa_case_is_generic(&c),
                                    .backward = true,
                                    .poison = FA_POISON_A};
    fa_result *result = malloc(sizeof *result);
    REQUIRE(result);
    fa_result_init(result);
    const fa_status status = fa_judge(&c.problem, &set, &got, &config, result, &err);
    CHECK_MSG(status == FA_OK || (status == FA_ERR_INPUT && strstr(err.text, ", at b ")), "%s", err.text);
    n_judged += status == FA_OK;
    n_refused += status != FA_OK;
    for (int k = 0; k < result->n_verdicts && status == FA_OK; ++k) {
      const fa_verdict *v = &result->verdict[k];
      n_gradients += v->id >= FA_T_DBUFFER_0;
      if (!v->fail) continue;
      char *line = fa_case_to_line(&c);
      CHECK_MSG(!v->fail, "%s: %lld bad, ratio %g, %s: %s", fa_tensor_id_name(v->id), (long long)v->bad,
                v->worst_ratio, v->stat_why, line);
      free(line);
    }
    fa_result_free(result);
    free(result);
    fa_tensors_free(&got);
    fa_tensors_free(&set);
    fa_case_free(&c);
  }
  printf("random: %lld judged, %lld gradients of buffers, %lld refused\n", (long long)n_judged,
         (long long)n_gradients, (long long)n_refused);
  CHECK(n_judged > 250 && n_gradients > 80 && n_refused > 10);
}

/* ---- buffers ---- */

static bool make(const char *json, fa_case *c, fa_tensors *set) {
  fa_error err = {""};
  const bool good = fa_case_from_text(json, c, &err) == FA_OK && fa_case_build(c, set, &err) == FA_OK;
  CHECK_MSG(good, "%s: %s", json, err.text);
  return good;
}

/* Shapes, which have gradients, and that values depend on the buffer's name and the seed alone. */
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

/* A recorded run may call buffers and their gradients by name; one that lacks a buffer is refused. */
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
  for (size_t k = 0; k < sizeof errors / sizeof *errors; ++k) run_planted(&errors[k]);
  check_lists("q_idx >= kv_idx", is_causal, 100, 150, 32, 64);
  check_lists("q_idx >= kv_idx", is_causal, 128, 128, 64, 64);
  check_lists("abs(q_idx - kv_idx) < 10 + 15 * b + 5 * h", is_band, 90, 70, 32, 48);
  check_lists("h == 1 ? kv_idx < 32 : h == 0", is_head, 65, 65, 64, 32);
  test_random();
  test_buffers();
  test_no_value();
  test_no_slope();
  test_recorded();
  return check_done();
}
