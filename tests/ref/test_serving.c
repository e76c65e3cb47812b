/* The reference against the slow attention in what serving stacks ask for beside latent caches (test_mla.c) and masks
 * (test_mixed.c): packed queries over a cache, large head dims there, splits, sinks, a padded LSE. */
#include "tests/ref/differing.h"
#include "tests/support/check.h"

#include "cases/vocabulary/problem.h"

/* ---- one change in what the slow one computes: some case must tell it ---- */

static bool begin_earlier(fa_problem *p) { /* the second sequence's rows */
  if (p->cu_seqlens_q.n < 3 || p->cu_seqlens_q.v[1] == 0) return false;
  --p->cu_seqlens_q.v[1];
  return true;
}
static bool lose_key(fa_problem *p) { /* the last one that the first sequence has left to see */
  if (!p->kvcache.present || p->kvcache.len.v[0] == 0 || p->leftpad_k.n || p->kvcache.n_new) return false;
  --p->kvcache.len.v[0];
  return true;
}
static bool turn_corner(fa_problem *p) {
  p->mask.align = p->mask.align == FA_ALIGN_TOP_LEFT ? FA_ALIGN_BOTTOM_RIGHT : FA_ALIGN_TOP_LEFT;
  return p->mask.type != FA_MASK_NONE;
}
static bool drop_sinks(fa_problem *p) {
  const bool had = p->sinks.present && !p->sinks.grad;
  p->sinks.present = false;
  return had;
}
static bool turn_sink_in_lse(fa_problem *p) {
  p->sinks.in_lse = !p->sinks.in_lse;
  return p->sinks.present && !p->backward;
}
static bool pack_lse(fa_problem *p) { /* one sequence has the same memory either way */
  const bool other = p->lse_padded && p->batch > 1 && !p->backward;
  p->lse_padded = false;
  return other;
}

int main(void) {
  static const problem_change rows[] = {begin_earlier, lose_key, turn_corner},
                              large[] = {lose_key, turn_corner}, sinks[] = {drop_sinks, turn_sink_in_lse},
                              lse[] = {pack_lse}, amax[] = {turn_sink_in_lse};
  check_case_file("cases/prefill.json", "", 15, rows, 3);
  check_case_file("cases/kvcache_large.json", "", 12, large, 2);
  check_case_file("cases/sinks.json", "", 20, sinks, 2);
  check_case_file("cases/varlen.json", "padded_lse", 9, lse, 1);
  check_case_file("cases/edge.json", "splits_", 8, NULL, 0);
  check_case_file("cases/four_bit_cache.json", "", 18, large, 2);
  check_case_file("cases/amax.json", "", 20, amax, 1);
  return check_done();
}
