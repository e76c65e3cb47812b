/* What the judge expects of the small named cases, values and bounds, is what tests/ref/recorded holds: a line for each case,
 * way and output, with sums over its elements, and one for its inputs. Most slips in a bound leave it a bound, if another one,
 * and no kernel notices.
 *
 * usage: test_ref_recorded [--write] [CASE FILE'S NAME, or drawn...]    (default: all that are recorded; from the top of the tree)
 * After an intended change: test_ref_recorded --write, and the commit says what became larger or smaller, and why. */
#include "cases/arithmetic/fields.h"
#include "cases/codec/file.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/held/digest.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static const char *const all_files[] = {
    "causal",      "window",       "edge",          "gqa",       "varlen",          "dropout",
    "alibi",       "softcap",      "headdim",       "offset",    "memeff",          "kvcache",
    "flex",        "mixed",        "masks",         "prefill",   "merge",           "sinks",
    "mla",         "topk",         "kvcache_large", "quantized", "quantized_cache", "mixed_cache",
    "mla_prefill", "kvcache_mods", "hopper_cache",  "amax",      "four_bit_cache",  "scaled_o"};
enum { N_FILES = sizeof all_files / sizeof *all_files };

static void hold_inputs(digest_book *b, const fa_case *c) {
  fa_tensors in = {0};
  fa_error err = {""};
  REQUIRE(fa_case_build(c, &in, &err) == FA_OK);
  const digest d = digest_of_inputs(&in);
  digest_hold(b, c->name, "inputs", FA_T_Q, &d);
  fa_tensors_free(&in);
}

static void hold_case(digest_book *b, const fa_case *c, const char *set, bool given) {
  const fa_problem *p = &c->problem;
  const fa_profile profile = fa_profile_get(set, p->dtype);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile, .generic = given};
  fa_tensors in = {0};
  fa_wants forward = {0}, backward = {0};
  fa_error err = {""};
  REQUIRE(fa_case_build(c, &in, &err) == FA_OK);
  fa_status status = fa_ref_forward(p, &in, &opt, &forward, &err);
  if (status == FA_OK) digest_hold_all(b, c->name, set, &forward);
  if (status == FA_OK && p->backward) {
    const fa_tensor o = digest_tensor_of(&forward.t[FA_T_O]), lse = digest_tensor_of(&forward.t[FA_T_LSE]);
    const bool has_lse = given && lse.data;
    status =
        fa_ref_backward(p, &in, given ? &o : NULL, has_lse ? &lse : NULL, &forward, &opt, &backward, &err);
    if (status == FA_OK) digest_hold_all(b, c->name, set, &backward);
  }
  CHECK_MSG(status == FA_OK || status == FA_ERR_INPUT, "%s: %s", c->name, err.text);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
}

static unsigned number_of(unsigned h, const char *x) {
  while (*x) h = (h ^ (unsigned char)*x++) * 16777619u;
  return h;
}

/* Of its name, so that a new case changes no other one's lines. */
static unsigned number_of_case(const fa_case *c) {
  return number_of(2166136261u, c->name) >> 4;
}

/* Of their names likewise: a new set is that of the cases in which its number is the largest, and changes no others. */
static const char *some_set(const fa_case *c) {
  const char *set = fa_arithmetic_name(0);
  unsigned most = 0;
  for (int i = 0; fa_arithmetic_name(i); ++i) {
    const unsigned at = number_of(number_of(number_of_case(c), fa_arithmetic_name(i)), "/");
    if (at < most) continue;
    most = at;
    set = fa_arithmetic_name(i);
  }
  return set;
}

/* Each case with another of the named sets, so that all of them are held. */
static void hold_with_some_set(digest_book *b, const fa_case *c) {
  const char *set = some_set(c);
  fa_arithmetic unused;
  if (fa_arithmetic_named(set, c->problem.dtype, &unused)) hold_case(b, c, set, number_of_case(c) % 3 == 0);
}

/* What takes the reference some milliseconds. */
static bool is_small(const fa_problem *p) {
  return p->heads_q * p->batch * (p->seqlen_q + 4) * p->seqlen_k * (p->head_dim + p->head_dim_v) < 6000000;
}

/* Three of the sets, by turns given what the forward made. */
static void hold_with_three_sets(digest_book *b, const fa_case *c) {
  const unsigned at = number_of_case(c);
  int n = 0;
  while (fa_arithmetic_name(n)) ++n;
  for (int k = 0; k < 3; ++k) {
    const char *set = fa_arithmetic_name((int)((at + (unsigned)k * 5) % (unsigned)n));
    fa_arithmetic unused;
    if (fa_arithmetic_named(set, c->problem.dtype, &unused)) hold_case(b, c, set, k == 1);
  }
}

/* Random cases, which tests/held/drawn.json keeps as they were drawn. */
static void hold_drawn(bool writes) {
  fa_case_list list = {0};
  fa_error err = {""};
  digest_book b = {.f = fopen("tests/held/recorded/drawn.txt", writes ? "w" : "r"), .writes = writes};
  REQUIRE(b.f);
  CHECK_MSG(fa_case_file_load("tests/held/drawn.json", NULL, &list, &err) == FA_OK, "%s", err.text);
  for (int64_t i = 0; i < list.n; ++i) {
    hold_inputs(&b, &list.v[i]);
    hold_with_three_sets(&b, &list.v[i]);
  }
  char more[8];
  CHECK_MSG(writes || !fgets(more, sizeof more, b.f), "more is recorded than there is");
  CHECK(fclose(b.f) == 0);
  fa_case_list_free(&list);
}

static void hold_file(const char *name, bool writes) {
  char path[200];
  fa_case_list list = {0};
  fa_error err = {""};
  snprintf(path, sizeof path, "tests/ref/recorded/%s.txt", name);
  digest_book b = {.f = fopen(path, writes ? "w" : "r"), .writes = writes};
  REQUIRE(b.f);
  snprintf(path, sizeof path, "cases/%s.json", name);
  REQUIRE(fa_case_file_load(path, NULL, &list, &err) == FA_OK);
  for (int64_t i = 0; i < list.n; ++i) {
    const fa_case *c = &list.v[i];
    if (c->expect == FA_EXPECT_REJECT || c->law != FA_LAW_NONE || !is_small(&c->problem)) continue;
    hold_inputs(&b, c);
    const unsigned at = number_of_case(c);
    hold_case(&b, c, at % 2 ? "simt-f32" : c->problem.dtype == FA_F32 ? "3xtf32" : "mma-hopper", at % 4 < 2);
    hold_with_some_set(&b, c);
  }
  char more[8];
  CHECK_MSG(writes || !fgets(more, sizeof more, b.f), "%s: more is recorded than there is", name);
  CHECK(fclose(b.f) == 0);
  fa_case_list_free(&list);
}

int main(int argc, char **argv) {
  const bool writes = argc > 1 && strcmp(argv[1], "--write") == 0;
  digest_check();
  for (int i = 1 + writes; i < argc; ++i)
    if (strcmp(argv[i], "drawn") == 0)
      hold_drawn(writes);
    else
      hold_file(argv[i], writes);
  for (int i = 0; argc == 1 + writes && i < N_FILES; ++i) hold_file(all_files[i], writes);
  if (argc == 1 + writes) hold_drawn(writes);
  return check_done();
}
