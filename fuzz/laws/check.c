#include "fuzz/laws/check.h"

#include "fuzz/judging/judge.h"
#include "fuzz/laws/parts.h"
#include "report/text/progress.h"

#include <stdio.h>

static fa_law_fn *const laws[FA_N_LAWS] = {
    [FA_LAW_REPEAT] = fa_law_repeat,
    [FA_LAW_KEY_PERMUTATION] = fa_law_key_permutation,
    [FA_LAW_HEAD_PERMUTATION] = fa_law_head_permutation,
    [FA_LAW_BATCH_ALONE] = fa_law_batch_alone,
    [FA_LAW_VARLEN_SEPARATE] = fa_law_varlen_separate,
    [FA_LAW_CAUSAL_PREFIX] = fa_law_causal_prefix,
    [FA_LAW_MERGE_RANGES] = fa_law_merge_ranges,
    [FA_LAW_WINDOW_OPEN] = fa_law_window_open,
    [FA_LAW_BIAS_SHIFT] = fa_law_bias_shift,
    [FA_LAW_BIAS_MASK] = fa_law_bias_mask,
    [FA_LAW_SCALE_POWER] = fa_law_scale_power,
    [FA_LAW_VALUE_POWER] = fa_law_value_power,
    [FA_LAW_GRAD_POWER] = fa_law_grad_power,
    [FA_LAW_DROPOUT_NONE] = fa_law_dropout_none,
    [FA_LAW_SPLIT_COUNT] = fa_law_split_count,
    [FA_LAW_PAGE_PERMUTATION] = fa_law_page_permutation,
    [FA_LAW_CACHE_CONTIGUOUS] = fa_law_cache_contiguous,
    [FA_LAW_CACHE_APPENDED] = fa_law_cache_appended,
    [FA_LAW_PART_PERMUTATION] = fa_law_part_permutation,
    [FA_LAW_PART_EMPTY] = fa_law_part_empty,
    [FA_LAW_PART_NESTED] = fa_law_part_nested,
    [FA_LAW_SINK_NONE] = fa_law_sink_none,
    [FA_LAW_LIST_ORDER] = fa_law_list_order,
};

static void conclude(fa_law_work *w) {
  if (w->over || w->r->state != FA_UNTESTED) return;
  if (w->n_compared > 0)
    w->r->state = FA_PASS;
  else
    fa_law_skip(w, "%s", "nothing to compare: no element, or none with a bound");
}

/* Laws that permute no keys, heads or sequences and change no scores. */
static bool is_blind_to_positions(fa_law law) {
  return law == FA_LAW_REPEAT || law == FA_LAW_VALUE_POWER || law == FA_LAW_GRAD_POWER;
}

static bool is_about_parts(fa_law law) {
  return law == FA_LAW_PART_PERMUTATION || law == FA_LAW_PART_EMPTY || law == FA_LAW_PART_NESTED;
}

/* Laws that hold with a sink in the denominator: those that leave rows whole, and change no row's scores. */
static bool holds_with_sinks(fa_law law) {
  static const bool yes[FA_N_LAWS] = {
      [FA_LAW_REPEAT] = true,      [FA_LAW_KEY_PERMUTATION] = true, [FA_LAW_HEAD_PERMUTATION] = true,
      [FA_LAW_WINDOW_OPEN] = true, [FA_LAW_DROPOUT_NONE] = true,    [FA_LAW_SPLIT_COUNT] = true,
      [FA_LAW_GRAD_POWER] = true,  [FA_LAW_VALUE_POWER] = true,     [FA_LAW_SCALE_POWER] = true,
      [FA_LAW_SINK_NONE] = true,   [FA_LAW_LIST_ORDER] = true};
  return yes[law];
}

fa_status fa_run_law(const fa_case *c, const fa_run_config *config, fa_result *out, fa_error *err) {
  const double start = fa_seconds_now();
  fa_error own = {""};
  if (!err) err = &own;
  fa_law_work w = {.c = c, .config = config, .r = out, .generic = fa_case_is_generic(c)};
  w.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD;
  FA_ASSERT(c->law > FA_LAW_NONE && c->law < FA_N_LAWS && laws[c->law]);
  fa_status status = FA_OK;
  out->law = c->law;
  if (c->expect == FA_EXPECT_REJECT)
    fa_law_skip(&w, "it must be refused");
  else if (is_about_parts(c->law) && c->problem.family != FA_MERGE)
    fa_law_skip(&w, "there are no parts");
  else if (c->problem.family == FA_MERGE && !is_about_parts(c->law) && c->law != FA_LAW_REPEAT)
    fa_law_skip(&w, "there are no queries and keys");
  else if ((c->problem.score_mod || c->problem.mask_mod) && !is_blind_to_positions(c->law))
    fa_law_skip(&w, "its expressions may look at positions, heads, entries and scores");
  else if (c->problem.mask_bits.present && !is_blind_to_positions(c->law))
    fa_law_skip(&w, "the bits of its mask belong to rows and keys at their places");
  else if (c->problem.topk.present && !is_blind_to_positions(c->law) && c->law != FA_LAW_LIST_ORDER)
    fa_law_skip(&w, "its lists name keys by their places");
  else if (c->problem.sinks.present && !holds_with_sinks(c->law))
    fa_law_skip(&w, "a sink counts once in each row, and the law takes rows or calls apart");
  else if (c->problem.quantized.present && c->law != FA_LAW_REPEAT)
    fa_law_skip(&w, "its operands are of 8 bits, and laws do not take their descales along");
  else if (c->problem.lse_padded)
    fa_law_skip(&w, "its LSE is padded, and laws compare tensors as a whole");
  else
    status = laws[c->law](&w, err);
  if (status == FA_ERR_UNSUPPORTED) {
    fa_law_skip(&w, "%s", err->text);
    status = FA_OK;
  }
  if (status != FA_OK) {
    out->state = FA_ERROR;
    out->malformed = status == FA_ERR_INPUT; /* an expression has no value */
    snprintf(out->reason, sizeof out->reason, "%s", err->text);
  }
  conclude(&w);
  fa_law_side_free(&w.base);
  fa_law_side_free(&w.other);
  out->seconds = fa_seconds_now() - start;
  return status;
}
