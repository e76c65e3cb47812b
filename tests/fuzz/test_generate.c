/* The generator: every case is valid and its text form stable; a case is a pure function of (profile, seed,
 * index); and everything that matters is drawn often enough. -v prints how often. */
#include "cases/codec/json.h"
#include "cases/recipe/case.h"
#include "fuzz/coverage/table.h"
#include "fuzz/generate/draw.h"
#include "tests/support/check.h"

#include <string.h>

#define N_CASES 21000

static fa_coverage coverage;

/* ---- the checks ---- */

static void generate(const char *profile, uint64_t seed, int64_t index, fa_case *c) {
  fa_error err = {""};
  fa_status status = fa_generate(profile, seed, index, c, &err);
  CHECK_MSG(status == FA_OK, "%s %lld: %s", profile, (long long)index, err.text);
  REQUIRE(status == FA_OK);
}

static void check_case(const char *profile, int64_t index) {
  fa_case c, again;
  fa_error err = {""};
  char name[128];
  generate(profile, 11, index, &c);
  snprintf(name, sizeof name, "%s-11-%lld", profile, (long long)index);
  CHECK_MSG(strcmp(c.name, name) == 0, "%s is not %s", c.name, name);
  CHECK_MSG(fa_case_validate(&c, &err) == FA_OK, "%s: %s", c.name, err.text);
  char *line = fa_case_to_line(&c), *line_again = NULL;
  REQUIRE(line);
  fa_status status = fa_case_from_text(line, &again, &err);
  CHECK_MSG(status == FA_OK, "%s: %s", c.name, err.text);
  if (status == FA_OK) {
    CHECK_MSG(fa_case_equal(&c, &again), "%s: text and back is another case: %s", c.name, line);
    line_again = fa_case_to_line(&again);
    CHECK_MSG(line_again && strcmp(line, line_again) == 0, "%s", c.name);
    fa_case_free(&again);
  }
  fa_coverage_add(&coverage, &c);
  free(line);
  free(line_again);
  fa_case_free(&c);
}

/* Case i is the same alone, after others, and in another order; other seeds give other cases. */
static void check_purity(const char *profile) {
  enum { N = 40 };
  fa_case forward[N], c;
  int n_same = 0;
  for (int i = 0; i < N; ++i) generate(profile, 5, i, &forward[i]);
  for (int i = N - 1; i >= 0; --i) {
    generate(profile, 5, i, &c);
    CHECK_MSG(fa_case_equal(&c, &forward[i]), "%s %d depends on the calls before it", profile, i);
    fa_case_free(&c);
    generate(profile, 6, i, &c);
    n_same += c.data_seed == forward[i].data_seed;
    fa_case_free(&c);
  }
  CHECK_MSG(n_same == 0, "%s: the seed does nothing", profile);
  for (int i = 0; i < N; ++i) fa_case_free(&forward[i]);
}

/* Cases that are drawn again are valid too, the late ones are tamer, and the profile's subject stays. */
static void check_later_draws(const char *profile) {
  fa_error err = {""};
  int64_t n_square = 0, n_dropout = 0;
  for (int64_t draw = 1; draw < 600; ++draw) {
    fa_case c;
    char name[128];
    REQUIRE(fa_generate_draw(profile, 11, draw % 7, draw, &c, &err) == FA_OK);
    snprintf(name, sizeof name, "%s-11-%lld.%lld", profile, (long long)(draw % 7), (long long)draw);
    CHECK_MSG(strcmp(c.name, name) == 0, "%s is not %s", c.name, name);
    CHECK_MSG(fa_case_validate(&c, &err) == FA_OK, "%s: %s", c.name, err.text);
    const fa_problem *p = &c.problem;
    n_square += p->seqlen_q == p->seqlen_k && p->seqlen_q > 0 && p->seqlen_q % 128 == 0;
    n_dropout += p->dropout.p > 0;
    fa_case_free(&c);
  }
  if (strcmp(profile, "causal") == 0) CHECK_MSG(n_square > 60, "%lld whole squares", (long long)n_square);
  if (strcmp(profile, "dropout") == 0) CHECK_MSG(n_dropout == 599, "%lld with dropout", (long long)n_dropout);
}

static void check_errors(void) {
  fa_case c;
  fa_error err = {""};
  CHECK(fa_generate("no such profile", 1, 0, &c, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "varlen") && strstr(err.text, "everything"), "%s", err.text);
  CHECK(fa_generate("causal", 1, -1, &c, &err) == FA_ERR_INPUT);
}

/* Every kind of bias has features. */
static void check_kinds(void) {
  int n[FA_COVER_N_KINDS] = {0};
  for (int k = 0; k < coverage.n_rows; ++k) ++n[coverage.row[k].kind];
  for (int kind = 1; kind < FA_COVER_N_KINDS; ++kind)
    CHECK_MSG(n[kind] >= 4, "%s: %d features", fa_bias_kind_name((fa_bias_kind)kind), n[kind]);
}

/* A feature that a profile cannot draw has a count of zero: the check above can fail. */
static void check_missing(void) {
  static fa_coverage v;
  int n_missing = 0;
  bool varlen = false;
  for (int64_t i = 0; i < 2000; ++i) {
    fa_case c;
    generate("kvcache", 3, i, &c);
    fa_coverage_add(&v, &c);
    fa_case_free(&c);
  }
  CHECK(v.n_cases == 2000 && v.n_rows == coverage.n_rows);
  for (int k = 0; k < v.n_rows; ++k) {
    n_missing += v.row[k].n == 0;
    if (strcmp(v.row[k].name, "variable length") == 0) varlen = v.row[k].n == 0;
  }
  CHECK_MSG(varlen && n_missing > 50, "%d features missing from the kvcache profile", n_missing);
}

int main(int argc, char **argv) {
  int n_profiles = 0;
  while (fa_generate_profiles[n_profiles].name) ++n_profiles;
  for (int k = 0; k < n_profiles; ++k)
    for (int64_t i = 0; i < N_CASES / n_profiles + 1; ++i) check_case(fa_generate_profiles[k].name, i);
  for (int k = 0; k < n_profiles; ++k) check_purity(fa_generate_profiles[k].name);
  for (int k = 0; k < n_profiles; ++k) check_later_draws(fa_generate_profiles[k].name);
  check_errors();
  for (int k = 0; k < coverage.n_rows; ++k) {
    const fa_coverage_row *row = &coverage.row[k];
    CHECK_MSG(row->n >= row->expected, "%s: drawn %lld times, at least %lld expected", row->name,
              (long long)row->n, (long long)row->expected);
  }
  check_kinds();
  check_missing();
  if (argc > 1 && strcmp(argv[1], "-v") == 0) fa_coverage_print(stdout, &coverage);
  return check_done();
}
