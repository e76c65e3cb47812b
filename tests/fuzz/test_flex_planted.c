/* The judge on flex cases with expressions: a subject that computes the expression of a slightly different
 * case must fail where expected. On random expressions, sane or not, there is no false alarm and no crash. */
#include "cases/codec/json.h"
#include "tests/support/check.h"
#include "tests/support/judged_case.h"
#include "tests/support/random_expr.h"

#include <string.h>

typedef struct planted {
  const char *what;
  const char *json;                   /* the case */
  const char *score_mod, *mask_mod;   /* what the subject computes instead; NULL: as in the case */
  void (*before)(fa_tensors *inputs); /* of the subject; may be NULL */
  void (*after)(fa_tensors *outputs); /* may be NULL */
  const char *fails;                  /* tensors that must fail, "" = none */
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
  fa_error err = {""};
  const fa_status status = fa_case_from_text(e->json, &c, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  if (status != FA_OK) return;
  const subject_change change = {e->score_mod, e->mask_mod, e->before, e->after};
  judged_case j = judge_case(&c, &change);
  CHECK_MSG(j.status == FA_OK, "%s: %s", e->what, j.err.text);
  check_failures(e, j.r);
  judged_case_free(&j);
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
    fa_error err = {""};
    CHECK_MSG(fa_case_validate(&c, &err) == FA_OK, "%s", err.text);
    judged_case j = judge_case(&c, NULL);
    CHECK_MSG(j.status == FA_OK || (j.status == FA_ERR_INPUT && strstr(j.err.text, ", at b ")), "%s",
              j.err.text);
    n_judged += j.status == FA_OK;
    n_refused += j.status != FA_OK;
    for (int k = 0; k < j.r->n_verdicts && j.status == FA_OK; ++k) {
      const fa_verdict *v = &j.r->verdict[k];
      n_gradients += v->id >= FA_T_DBUFFER_0;
      if (!v->fail) continue;
      char *line = fa_case_to_line(&c);
      CHECK_MSG(!v->fail, "%s: %lld bad, ratio %g, %s: %s", fa_tensor_id_name(v->id), (long long)v->bad,
                v->worst_ratio, fa_statistic_finding(v), line);
      free(line);
    }
    judged_case_free(&j);
    fa_case_free(&c);
  }
  printf("random: %lld judged, %lld gradients of buffers, %lld refused\n", (long long)n_judged,
         (long long)n_gradients, (long long)n_refused);
  CHECK(n_judged > 250 && n_gradients > 80 && n_refused > 10);
}

int main(void) {
  for (size_t k = 0; k < sizeof errors / sizeof *errors; ++k) run_planted(&errors[k]);
  test_random();
  return check_done();
}
