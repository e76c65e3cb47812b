/* What a tier chooses: the order by planted worth and cost, the turns of named and random cases, and when it is over. */

#include "tests/support/check.h"

#include "fuzz/campaign/tier.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Features as letters: "abd". */
static fa_worth worth(const char *features, double seconds) {
  fa_worth w = {.seconds = seconds};
  for (; *features; ++features)
    w.has[(*features - 'a') * 5 / 64] |= (uint64_t)1 << (*features - 'a') * 5 % 64;
  return w;
}

/* want: the places in order, the number that bring something new before the bar. */
static void test_order(const fa_worth *v, int64_t n, const char *want) {
  uint64_t seen[FA_WORTH_WORDS] = {0};
  int64_t order[16], n_order;
  char got[64] = "";
  const int64_t n_first = fa_worth_order(v, n, seen, order, &n_order);
  for (int64_t i = 0; i <= n_order; ++i) {
    if (i == n_first) strcat(got, "|");
    if (i < n_order) sprintf(got + strlen(got), "%lld", (long long)order[i]);
  }
  CHECK_MSG(strcmp(got, want) == 0, "%s, not %s", got, want);
  for (int64_t i = 0; i < n; ++i)
    for (int k = 0; k < FA_WORTH_WORDS; ++k)
      CHECK(!isfinite(v[i].seconds) || (v[i].has[k] & ~seen[k]) == 0); /* everything is seen in the end */
}

static void test_orders(void) {
  const double never = INFINITY;
  /* Two features in a second are worth more than three in two; what is left of the three is then worth 0.5. */
  test_order((fa_worth[]){worth("abc", 2), worth("ab", 1), worth("d", 1)}, 3, "120|");
  /* The dear one brings nothing that the cheap ones have not brought; it comes behind the bar, the cheapest first. */
  test_order((fa_worth[]){worth("ab", 9), worth("a", 1), worth("b", 1), worth("b", 0.5)}, 4, "31|20");
  /* Equal ones in their order. */
  test_order((fa_worth[]){worth("a", 1), worth("b", 1), worth("c", 1)}, 3, "012|");
  /* What cannot be run is not there, whatever it has. */
  test_order((fa_worth[]){worth("abcdefg", never), worth("a", 1), worth("", never), worth("", 1)}, 4, "1|3");
  test_order(NULL, 0, "|");
}

/* ---- turns ---- */

static fa_tier tier_of(int64_t *order, double *seconds, int64_t n_named, int64_t n_first, int n_profiles) {
  fa_tier t = {.name = "smoke",
               .seconds = 30,
               .seed = 7,
               .order = order,
               .seconds_of = seconds,
               .n_named = n_named,
               .n_first = n_first,
               .n_profiles = n_profiles};
  static const char *const names[] = {"causal", "window", "mixed"};
  for (int64_t i = 0; i < n_named; ++i) order[i] = 100 + i, seconds[i] = 1;
  for (int p = 0; p < n_profiles; ++p) t.profile[p] = names[p], t.profile_seconds[p] = 2;
  return t;
}

/* "n0 n1 r causal 0 ..." of the first n cases. */
static void test_turns(int64_t n_named, int64_t n_first, int n_profiles, int64_t n, const char *want) {
  int64_t order[16], place;
  double seconds[16];
  fa_case_origin origin;
  char got[300] = "";
  const fa_tier t = tier_of(order, seconds, n_named, n_first, n_profiles);
  for (int64_t i = 0; i < n; ++i) {
    const bool there = fa_tier_at(&t, i, &place, &origin);
    if (!there)
      strcat(got, "end ");
    else if (place >= 0)
      sprintf(got + strlen(got), "n%lld ", (long long)place - 100);
    else
      sprintf(got + strlen(got), "%s%lld ", origin.profile, (long long)origin.index);
    CHECK((origin.profile != NULL) == (there && place < 0) && (!origin.profile || origin.seed == 7));
  }
  CHECK_MSG(strcmp(got, want) == 0, "\n  got:  %s\n  want: %s", got, want);
}

static void test_time(void) {
  int64_t order[4];
  double seconds[4];
  fa_tier t = tier_of(order, seconds, 2, 2, 1);
  const double end = 1000;
  seconds[0] = 2, seconds[1] = 8;
  CHECK(!fa_tier_is_over(&t, 0, end, end - 30) && !fa_tier_is_over(&t, 1, end, end - 30));
  CHECK(fa_tier_is_over(&t, 0, end, end) && fa_tier_is_over(&t, 0, end, end + 1));
  /* In the last tenth, 3 s: what would take longer than what is left and a tenth more is not begun. */
  CHECK(!fa_tier_is_over(&t, 0, end, end - 0.1) && fa_tier_is_over(&t, 1, end, end - 2.9));
  CHECK(!fa_tier_is_over(&t, 1, end, end - 5)); /* before that, everything is */
  /* The first cases took four times as long as estimated: then 2 s are 8. */
  fa_tier_note(&t, 0, NULL, true, 8);
  CHECK(t.n_run[0] == 1 && t.estimated == 2 && t.measured == 8);
  CHECK(fa_tier_is_over(&t, 0, end, end - 2.9));
  CHECK(fa_tier_is_over(&t, 2, end, end - 2.9)); /* a random one of 2 s */
  /* Twice as fast: 8 s are 4. */
  t.measured = 1;
  CHECK(!fa_tier_is_over(&t, 1, end, end - 2.9));
  fa_tier_note(&t, 5, NULL, false, 1e9); /* skipped: no measure */
  CHECK(t.n_run[1] == 1 && t.measured == 1);
  t.n_profiles = 0; /* then there are two cases, and no third */
  fa_tier_note(&t, 2, NULL, true, 1e9);
  CHECK(t.n_run[0] == 1 && t.n_run[1] == 1 && t.measured == 1);
}

static void test_count(void) {
  uint64_t has[FA_WORTH_WORDS + 2];
  memset(has, 0xff, sizeof has);
  CHECK(fa_worth_count(has + 1) == 64 * FA_WORTH_WORDS);
  memset(has + 1, 0, FA_WORTH_WORDS * sizeof *has);
  has[1] = 5;
  CHECK(fa_worth_count(has + 1) == 2);
}

static void test_json(void) {
  int64_t order[4];
  double seconds[4];
  const fa_tier t = tier_of(order, seconds, 2, 2, 2);
  cJSON *o = fa_tier_to_json(&t);
  char *text = cJSON_PrintUnformatted(o);
  CHECK_MSG(text && strstr(text, "\"profiles\":[\"causal\",\"window\"]"), "%s", text);
  free(text);
  cJSON_Delete(o);
}

/* What is told before the first case. */
static void test_choice(int n_profiles, const char *want) {
  int64_t order[4];
  double seconds[4];
  char *text = NULL;
  size_t n;
  const fa_tier t = tier_of(order, seconds, 2, 1, n_profiles);
  FILE *out = open_memstream(&text, &n);
  REQUIRE(out);
  fa_tier_print_choice(out, &t);
  REQUIRE(fclose(out) == 0);
  CHECK_MSG(strstr(text, want) && !strstr(text, "too long") && !strstr(text, "does not run"), "%s", text);
  free(text);
}

static void test_costs(void) {
  fa_case small, large;
  REQUIRE(fa_case_init(&small) == FA_OK && fa_case_init(&large) == FA_OK);
  large.problem.seqlen_q = large.problem.seqlen_k = 4096;
  static const char *const backends[] = {"host", "host:hopper", "mutant:x", "ref-f32",
                                         "cuda", "cuda:1",      "exec:a b", "plugin:./host.so"};
  for (size_t i = 0; i < sizeof backends / sizeof *backends; ++i) {
    const double a = fa_tier_cost(backends[i], &small), b = fa_tier_cost(backends[i], &large);
    CHECK_MSG(a > 0 && a < 0.2 && b > 5 * a, "%s: %g s and %g s", backends[i], a, b);
  }
  CHECK(fa_tier_cost("host:hopper", &large) == fa_tier_cost("host", &large));
  CHECK(fa_tier_cost("host", &large) > 10 * fa_tier_cost("plugin:./host.so", &large));
  fa_case_free(&small);
  fa_case_free(&large);
}

/* Seconds for a case and for its operations, of the judge, who computes what there is, and of a subject, in tiles of 32. */
static void test_exact_cost(void) {
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem *p = &c.problem;
  p->batch = 2, p->heads_q = 6, p->heads_kv = 3, p->seqlen_q = 31, p->seqlen_k = 95, p->head_dim = 64,
  p->head_dim_v = 33;
  for (int backward = 0; backward < 2; ++backward) {
    const double passes = backward ? 3.5 : 1,
                 elements = (2 * 31 * 6 + 2 * 95 * 3) * 97.0 * (backward ? 2 : 1);
    const double judged = 2 * 12 * 32.0 * 96 * 97 * passes, run = 2 * 12 * 32.0 * 96 * (64 + 64) * passes;
    const double want = elements / 1e8 + 5e-4 + judged / 1e9 + 2e-4 + run / 1.5e9;
    p->backward = backward;
    CHECK_MSG(fabs(fa_tier_cost("ref-f32", &c) - want) < 1e-12, "%.9g, not %.9g", fa_tier_cost("ref-f32", &c),
              want);
    for (c.repeat = 1; c.repeat < 6; ++c.repeat) { /* a case is run twice unless it says otherwise */
      const double more = c.repeat == 1 ? 0 : (double)c.repeat / 2 - 1,
                   now = want + more * (2e-4 + run / 1.5e9);
      CHECK_MSG(fabs(fa_tier_cost("ref-f32", &c) - now) < 1e-12, "%lld runs: %.9g, not %.9g",
                (long long)c.repeat, fa_tier_cost("ref-f32", &c), now);
    }
    c.repeat = 2;
  }
  fa_case_free(&c);
}

int main(void) {
  test_orders();
  test_turns(3, 2, 0, 5, "n0 n1 n2 end end ");
  test_turns(4, 2, 2, 9, "n0 n1 causal0 n2 window0 n3 causal1 window1 causal2 ");
  test_turns(2, 2, 1, 4, "n0 n1 causal0 causal1 ");
  test_turns(0, 0, 3, 4, "causal0 window0 mixed0 causal1 ");
  test_turns(0, 0, 0, 1, "end ");
  test_time();
  test_count();
  test_json();
  test_choice(0, "tier smoke: the first 1 have 0 of 0 features; random profiles: none\n");
  test_choice(2, "random profiles: causal, window\n");
  test_costs();
  test_exact_cost();
  CHECK(fa_tier_find("smoke")->seconds == 30 && fa_tier_find("standard")->seconds == 600 &&
        !fa_tier_find("Smoke"));
  return check_done();
}
