/* Drawing inside what a subject supports: nearly every case suits it, the choice is a pure function of number and
 * subject, seeds keep their meaning, and the subject is not asked more than necessary. -v prints shares and costs. */
#include "cases/codec/json.h"
#include "cases/tensors/table.h"
#include "fuzz/generate/within.h"
#include "report/text/progress.h"
#include "tests/support/check.h"

#include <string.h>

enum { BOTH = FA_PASS_FORWARD | FA_PASS_BACKWARD };

/* ---- subjects ---- */

static bool has_extras(const fa_problem *p) {
  return p->softcap > 0 || p->alibi.present || p->bias.present || p->dropout.p > 0 || p->score_mod ||
         p->mask_mod || p->block_sparse.present || p->seqused_k.n || p->leftpad_k.n || p->splits ||
         p->return_softmax || p->deterministic || p->grad_lse ||
         p->empty_lse != fa_family_default_empty_lse(p->family);
}

static unsigned everything(const fa_problem *p) {
  return p->kvcache.present ? FA_PASS_FORWARD : BOTH;
}

static unsigned nothing(const fa_problem *p) {
  (void)p;
  return 0;
}

static unsigned forward_only(const fa_problem *p) {
  return p->family == FA_FLASH ? FA_PASS_FORWARD : 0;
}

/* A backward for D <= 64 alone. */
static unsigned small_backward(const fa_problem *p) {
  return p->head_dim <= 64 ? BOTH : FA_PASS_FORWARD;
}

static unsigned f32_causal(const fa_problem *p) {
  return p->family == FA_FLASH && p->dtype == FA_F32 && p->mask.type == FA_MASK_CAUSAL &&
                 !p->cu_seqlens_q.n && !has_extras(p) && p->heads_q == p->heads_kv
             ? FA_PASS_FORWARD
             : 0;
}

static unsigned bf16_varlen(const fa_problem *p) {
  return p->family == FA_FLASH && p->dtype == FA_BF16 && (p->head_dim == 64 || p->head_dim == 128) &&
                 p->cu_seqlens_q.n && !has_extras(p)
             ? BOTH
             : 0;
}

static unsigned bf16_causal_64(const fa_problem *p) {
  return p->family == FA_FLASH && p->dtype == FA_BF16 && p->head_dim == 64 &&
                 p->mask.type == FA_MASK_CAUSAL && !p->cu_seqlens_q.n && !has_extras(p)
             ? FA_PASS_FORWARD
             : 0;
}

static unsigned paged(const fa_problem *p) {
  const bool plain = !has_extras(p) && p->kvcache.batch_idx.n == 0 && p->kvcache.rotary_dim == 0;
  return p->family == FA_KVCACHE && p->kvcache.page_size > 0 && p->kvcache.n_new == 0 && plain
             ? FA_PASS_FORWARD
             : 0;
}

/* As the tutorials have it: whole tiles, as many queries as keys, one head dim. */
static unsigned whole_tiles(const fa_problem *p) {
  return p->family == FA_FLASH && p->dtype == FA_F16 && p->head_dim == 64 && p->seqlen_q == p->seqlen_k &&
                 p->seqlen_q > 0 && p->seqlen_q % 128 == 0 && p->mask.type != FA_MASK_WINDOW &&
                 !has_extras(p) && !p->cu_seqlens_q.n && p->heads_q == p->heads_kv
             ? FA_PASS_FORWARD
             : 0;
}

typedef struct subject {
  const char *name, *profile;
  unsigned (*takes)(const fa_problem *p);
  double share; /* of the cases that must suit it */
} subject;

typedef struct counter {
  const subject *s;
  int64_t n_asked;
  uint64_t last; /* data seed of the case... of the problem that was asked about last, as its hash */
} counter;

static uint64_t hash_of(const fa_problem *p) {
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem_free(&c.problem);
  REQUIRE(fa_problem_copy(&c.problem, p) == FA_OK);
  char *line = fa_case_to_line(&c);
  uint64_t h = 1469598103934665603u;
  for (const char *at = line; *at; ++at) h = (h ^ (unsigned char)*at) * 1099511628211u;
  free(line);
  fa_case_free(&c);
  return h;
}

static unsigned able(void *ctx, const fa_problem *p) {
  counter *k = ctx;
  ++k->n_asked;
  return k->s->takes(p);
}

static unsigned able_and_remember(void *ctx, const fa_problem *p) {
  ((counter *)ctx)->last = hash_of(p);
  return able(ctx, p);
}

/* ---- the checks ---- */

static int64_t choose(fa_drawing *d, const char *profile, int64_t index) {
  int64_t draw = -1;
  fa_error err = {""};
  CHECK_MSG(fa_drawing_choose(d, profile, 7, index, &draw, &err) == FA_OK, "%s", err.text);
  return draw;
}

static void check_share(const subject *s, bool verbose) {
  enum { N = 400 };
  counter k = {.s = s};
  fa_drawing d = {.able = able, .ctx = &k};
  int64_t n_suit = 0, n_first = 0, n_kept = 0;
  const double start = fa_seconds_now();
  for (int64_t i = 0; i < N; ++i) {
    const int64_t draw = choose(&d, s->profile, i);
    fa_case c;
    fa_error err = {""};
    REQUIRE(fa_generate(s->profile, 7, i, &c, &err) == FA_OK);
    const bool first = s->takes(&c.problem) & FA_PASS_FORWARD;
    n_first += first;
    n_kept += first && draw == 0;
    fa_case_free(&c);
    REQUIRE(fa_generate_draw(s->profile, 7, i, draw, &c, &err) == FA_OK);
    n_suit += (s->takes(&c.problem) & FA_PASS_FORWARD) != 0;
    fa_case_free(&c);
  }
  const double us = (fa_seconds_now() - start) / N * 1e6;
  CHECK_MSG((double)n_suit >= s->share * N, "%s: %lld of %d cases suit it", s->name, (long long)n_suit, N);
  if (verbose)
    printf("%-16s %-10s as drawn %5.1f %%, drawn within %5.1f %%, %6.1f questions and %7.1f us a case\n",
           s->name, s->profile, 100.0 * (double)n_first / N, 100.0 * (double)n_suit / N,
           (double)k.n_asked / N, us);
  if (s->takes != small_backward)
    CHECK_MSG(n_kept == n_first, "%s: a case that suits it was drawn again", s->name);
}

/* The same alone, after others, and in another process that asks in another order. */
static void check_purity(const subject *s) {
  counter k = {.s = s};
  fa_drawing up = {.able = able, .ctx = &k}, down = up;
  int64_t draw[30];
  for (int i = 0; i < 30; ++i) draw[i] = choose(&up, s->profile, i);
  for (int i = 29; i >= 0; --i) CHECK_MSG(choose(&down, s->profile, i) == draw[i], "%s %d", s->name, i);
}

/* A child that caches its last answer is then not asked again about the case that runs. */
static void check_last_question(const subject *s) {
  counter k = {.s = s};
  fa_drawing d = {.able = able_and_remember, .ctx = &k};
  int n_last = 0;
  for (int64_t i = 0; i < 60; ++i) {
    fa_case c;
    const int64_t draw = choose(&d, s->profile, i);
    REQUIRE(fa_generate_draw(s->profile, 7, i, draw, &c, NULL) == FA_OK);
    n_last += hash_of(&c.problem) == k.last;
    fa_case_free(&c);
  }
  CHECK_MSG(n_last >= 57, "%s: only %d of 60 questions were about the case", s->name, n_last);
}

/* Whoever takes nothing is asked about a sample once, not about thousands of draws of each case. */
static void check_refuser(void) {
  const subject s = {"nothing", "causal", nothing, 0};
  counter k = {.s = &s};
  fa_drawing d = {.able = able, .ctx = &k};
  for (int64_t i = 0; i < 100; ++i) CHECK(choose(&d, "causal", i) == 0);
  CHECK_MSG(k.n_asked == 100 + FA_MAX_DRAWS, "%lld questions", (long long)k.n_asked);
}

/* Cases with a backward pass that the subject does are preferred, where it has one. */
static void check_backward(void) {
  const subject s = {"small backward", "gqa", small_backward, 1};
  counter k = {.s = &s};
  fa_drawing d = {.able = able, .ctx = &k};
  int n_whole = 0, n_wanted = 0;
  for (int64_t i = 0; i < 200; ++i) {
    fa_case c;
    REQUIRE(fa_generate_draw("gqa", 7, i, choose(&d, "gqa", i), &c, NULL) == FA_OK);
    n_wanted += c.problem.backward;
    n_whole += c.problem.backward && small_backward(&c.problem) == BOTH;
    fa_case_free(&c);
  }
  CHECK_MSG(n_wanted >= 150 && n_whole == n_wanted, "%d of %d", n_whole, n_wanted);
}

static void check_names(void) {
  fa_case a, b;
  REQUIRE(fa_generate("causal", 7, 559, &a, NULL) == FA_OK);
  REQUIRE(fa_generate_draw("causal", 7, 559, 0, &b, NULL) == FA_OK);
  CHECK(fa_case_equal(&a, &b) && strcmp(b.name, "causal-7-559") == 0);
  fa_case_free(&b);
  REQUIRE(fa_generate_draw("causal", 7, 559, 12, &b, NULL) == FA_OK);
  CHECK(strcmp(b.name, "causal-7-559.12") == 0 && a.data_seed != b.data_seed);
  fa_case_free(&a);
  fa_case_free(&b);
  fa_error err;
  CHECK(fa_generate_draw("causal", 7, 1, -1, &a, &err) == FA_ERR_INPUT);
}

int main(int argc, char **argv) {
  static const subject subjects[] = {{"everything", "everything", everything, 1},
                                     {"forward only", "causal", forward_only, 1},
                                     {"small backward", "gqa", small_backward, 1},
                                     {"f32 causal", "causal", f32_causal, 0.99},
                                     {"bf16 causal D 64", "causal", bf16_causal_64, 0.99},
                                     {"bf16 varlen", "varlen", bf16_varlen, 0.99},
                                     {"bf16 varlen", "causal", bf16_varlen, 0.95},
                                     {"paged", "kvcache", paged, 0.99},
                                     {"paged", "everything", paged, 0.95},
                                     {"whole tiles", "causal", whole_tiles, 0.9}};
  const bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; ++i) {
    check_share(&subjects[i], verbose);
    check_purity(&subjects[i]);
    if (subjects[i].takes != small_backward) check_last_question(&subjects[i]);
  }
  check_refuser();
  check_backward();
  check_names();
  return check_done();
}
