/* What subjects are asked that can run nothing, or die of a question, before a tier begins; and what it looks for on where its
 * samples have nothing new. */
#include "fuzz/campaign/tier.h"
#include "fuzz/campaign/tier_ask.h"
#include "fuzz/generate/draw.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);

static bool no_memory;

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
  return no_memory ? MAP_FAILED : __real_mmap(at, n, prot, flags, fd, offset);
}

static long dies_after; /* questions; < 0: never */

static unsigned runs_nothing(void *self, const fa_problem *p, char *why, size_t size) {
  (void)self, (void)p;
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
  REQUIRE(ask(-1, &answers) == FA_OK);
  check_all(&answers, false, -1);
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
  fa_tier_free(&tier);
  fa_case_list_free(&list);
}

int main(void) {
  fa_lane *lane = calloc(1, sizeof *lane);
  REQUIRE(lane);
  cli.as_drawn = true; /* draws are not looked for: a question for each case */
  s = (fa_session){.cli = &cli, .lane = lane, .n_choices = 1};
  test_answers();
  test_nothing_new();
  free(lane);
  return check_done();
}
