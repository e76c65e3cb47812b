/* What subjects are asked that can run nothing, or die of a question, before a tier begins; and what it looks for on where its
 * samples have nothing new. */
#include "fuzz/campaign/tier.h"
#include "fuzz/campaign/tier_ask.h"
#include "fuzz/generate/draw.h"
#include "tests/support/check.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);

static bool no_memory;

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
  return no_memory ? MAP_FAILED : __real_mmap(at, n, prot, flags, fd, offset);
}

static long dies_after; /* questions; < 0: never */

static bool slow; /* to answer the first question */

static unsigned runs_nothing(void *self, const fa_problem *p, char *why, size_t size) {
  (void)self, (void)p;
  if (slow) usleep(50000);
  slow = false;
  if (dies_after >= 0 && dies_after-- == 0) _exit(1);
  snprintf(why, size, "nothing");
  return 0;
}

static fa_session s;
static fa_cli cli;
static fa_case_list list;

static fa_status ask(long questions, fa_tier_answers *a) {
  fa_error err = {""};
  dies_after = questions;
  return fa_tier_ask(&s, &list, 1, true, a, &err);
}

/* Every answer is `able` and this draw, of all profiles. */
static void check_all(const fa_tier_answers *a, bool able, int64_t draw) {
  CHECK(a->able[0] == able);
  for (int p = 0; fa_generate_profiles[p].name; ++p)
    for (int k = 0; k < FA_TIER_SAMPLE; ++k)
      CHECK_MSG(a->draw[p][k] == draw, "%s %d: %lld", fa_generate_profiles[p].name, k,
                (long long)a->draw[p][k]);
}

static void test_answers(void) {
  fa_backend backend = fa_backend_ref_f32;
  fa_tier_answers answers;
  fa_case c;
  backend.supports = runs_nothing;
  s.choice[0].backend = &backend;
  REQUIRE(fa_case_init(&c) == FA_OK && fa_case_list_push(&list, &c) == FA_OK);
  REQUIRE(fa_case_init(&c) == FA_OK);
  c.expect = FA_EXPECT_REJECT; /* which a subject that can run nothing is just the one to do */
  REQUIRE(fa_case_list_push(&list, &c) == FA_OK);
  REQUIRE(ask(-1, &answers) == FA_OK);
  check_all(&answers, false, -1);
  CHECK(answers.able[1]);
  CHECK(answers.bytes >= FA_DRAWING_PROFILES * sizeof *answers.draw + (size_t)list.n); /* in one block */
  fa_tier_forget(&answers);
  REQUIRE(ask(1 + FA_TIER_SAMPLE + 3, &answers) ==
          FA_OK); /* what it has said of the first profile is forgotten */
  check_all(&answers, true, 0);
  fa_tier_forget(&answers);
  no_memory = true;
  CHECK(ask(-1, &answers) == FA_ERR_MEMORY);
  no_memory = false;
  fa_case_list_free(&list);
}

static void ignore(int signal) {
  (void)signal;
}

/* A signal while the answers are waited for does not end the waiting. */
static void test_signal(void) {
  const struct sigaction handled = {.sa_handler = ignore};
  const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
  fa_backend backend = fa_backend_ref_f32;
  fa_tier_answers answers;
  fa_case c;
  list = (fa_case_list){0};
  backend.supports = runs_nothing;
  s.choice[0].backend = &backend;
  REQUIRE(fa_case_init(&c) == FA_OK && fa_case_list_push(&list, &c) == FA_OK);
  REQUIRE(sigaction(SIGALRM, &handled, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
  slow = true;
  const fa_status status = ask(-1, &answers);
  slow = false;
  REQUIRE(setitimer(ITIMER_REAL, &never, NULL) == 0 && status == FA_OK);
  check_all(&answers, false, -1);
  fa_tier_forget(&answers);
  fa_case_list_free(&list);
}

static unsigned runs_all(void *self, const fa_problem *p, char *why, size_t size) {
  (void)self, (void)p, (void)why, (void)size;
  return FA_PASS_FORWARD | FA_PASS_BACKWARD;
}

/* The samples of all profiles are among the named cases: one profile alone goes on. */
static void test_nothing_new(void) {
  fa_backend backend = fa_backend_ref_f32;
  fa_tier tier;
  fa_error err = {""};
  backend.supports = runs_all;
  s.choice[0].backend = &backend;
  snprintf(s.choice[0].spec, sizeof s.choice[0].spec, "ref-f32");
  cli.tier = "smoke";
  cli.seconds = 1e9;
  cli.seed = 1;
  for (int p = 0; fa_generate_profiles[p].name; ++p)
    for (int k = 0; k < FA_TIER_SAMPLE; ++k) {
      fa_case c;
      REQUIRE(fa_generate(fa_generate_profiles[p].name, 1, k, &c, &err) == FA_OK);
      REQUIRE(fa_case_list_push(&list, &c) == FA_OK);
    }
  CHECK_MSG(fa_tier_choose(&tier, &s, &list, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(tier.n_named == list.n && tier.n_profiles == 1, "%lld of %lld cases, %d profiles",
            (long long)tier.n_named, (long long)list.n, tier.n_profiles);
  double seconds = 0; /* its samples' on average */
  for (int k = 0; k < FA_TIER_SAMPLE; ++k) {
    fa_case c;
    REQUIRE(fa_generate(tier.profile[0], 1, k, &c, &err) == FA_OK);
    seconds += fa_tier_cost("ref-f32", &c) / FA_TIER_SAMPLE;
    fa_case_free(&c);
  }
  CHECK_MSG(fabs(tier.profile_seconds[0] - seconds) < 1e-9, "%g s, not %g", tier.profile_seconds[0], seconds);
  fa_tier_free(&tier);
  fa_case_list_free(&list);
}

static unsigned runs_f32(void *self, const fa_problem *p, char *why, size_t size) {
  return p->dtype == FA_F32 ? runs_all(self, p, why, size) : 0;
}

/* What a profile is expected to cost: the mean of those of its sample that the subject can run, wherever they are among the others. */
static void test_gaps(void) {
  fa_backend backend = fa_backend_ref_f32;
  fa_tier tier;
  fa_error err = {""};
  int gaps = 0;
  backend.supports = runs_f32;
  s.choice[0].backend = &backend;
  REQUIRE(fa_tier_choose(&tier, &s, &list, &err) == FA_OK && tier.n_profiles > 0);
  for (int p = 0; p < tier.n_profiles; ++p) {
    double seconds = 0;
    int n = 0;
    for (int k = 0; k < FA_TIER_SAMPLE; ++k) {
      fa_case c;
      REQUIRE(fa_generate(tier.profile[p], 1, k, &c, &err) == FA_OK);
      if (c.problem.dtype == FA_F32 || c.expect == FA_EXPECT_REJECT) {
        seconds += fa_tier_cost("ref-f32", &c);
        gaps += n++ < k; /* one before it is left out */
      }
      fa_case_free(&c);
    }
    CHECK_MSG(n > 0 && fabs(tier.profile_seconds[p] - seconds / n) < 1e-9, "%s: %g s, not %g",
              tier.profile[p], tier.profile_seconds[p], seconds / n);
  }
  CHECK(gaps > 0);
  fa_tier_free(&tier);
}

/* What is counted of a list of which some cases are filtered out, cannot be run, or would take too long; a candidate is held to no law. */
static void test_counts(fa_rules *rules) {
  static const struct {
    const char *name;
    fa_dtype dtype;
    int64_t n;
  } cases[] = {{"in-able", FA_F32, 4},      {"in-unable", FA_F16, 4},      {"out-able", FA_F32, 4},
               {"out-unable", FA_F16, 4},   {"in-long", FA_F32, 20000},    {"in-long-2", FA_F32, 20000},
               {"out-long", FA_F32, 20000}, {"in-long-un", FA_F16, 20000}, {"in-able-2", FA_F32, 5}};
  fa_backend backend = fa_backend_ref_f32;
  fa_tier tier;
  fa_error err = {""};
  backend.supports = runs_f32;
  s.choice[0].backend = &backend;
  cli.filter = "^in-";
  cli.seconds = 1;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    fa_case c;
    REQUIRE(fa_case_init(&c) == FA_OK && fa_case_set_name(&c, cases[i].name) == FA_OK);
    c.problem.dtype = cases[i].dtype;
    c.problem.seqlen_q = c.problem.seqlen_k = cases[i].n;
    REQUIRE(fa_case_list_push(&list, &c) == FA_OK);
  }
  if (rules) list.v[0].law = FA_LAW_REPEAT;
  s.rules = rules;
  CHECK_MSG(fa_tier_choose(&tier, &s, &list, &err) == FA_OK, "%s", err.text);
  s.rules = NULL;
  CHECK_MSG(tier.n_all == 6 && tier.n_unable == 2 + (rules != NULL) && tier.n_too_long == 2 &&
                tier.n_named == 2 - (rules != NULL) && tier.n_profiles == 0,
            "%lld, %lld unable, %lld too long, %lld chosen", (long long)tier.n_all, (long long)tier.n_unable,
            (long long)tier.n_too_long, (long long)tier.n_named);
  fa_tier_free(&tier);
  fa_case_list_free(&list);
  cli.filter = NULL;
}

int main(void) {
  fa_lane *lane = calloc(1, sizeof *lane);
  REQUIRE(lane);
  cli.as_drawn = true; /* draws are not looked for: a question for each case */
  s = (fa_session){.cli = &cli, .lane = lane, .n_choices = 1};
  test_answers();
  test_signal();
  test_nothing_new();
  test_gaps();
  test_counts(NULL);
  fa_rules rules = {0};
  test_counts(&rules);
  free(lane);
  return check_done();
}
