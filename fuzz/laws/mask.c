/* Laws about masks: two ways to mask the same pairs, or none. */
#include "fuzz/laws/parts.h"

#include <math.h>
#include <string.h>

fa_status fa_law_window_open(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  const int64_t far = (p->seqlen_q > p->seqlen_k ? p->seqlen_q : p->seqlen_k) + 7;
  FA_SKIP_IF(fa_mask_has_left(&p->mask), "it has a window");
  FA_SKIP_IF(p->family == FA_MEMEFF && p->mask.type == FA_MASK_NONE,
             "this family has windows under a causal mask only");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  const fa_window window = fa_mask_window(&p->mask);
  FA_SKIP_IF(p->kvcache.rotary_dim > 0 && p->mask.type == FA_MASK_NONE, "a window moves the rotation");
  fa_mask_set_window(&w->other.p.mask, far, window.right >= 0 ? window.right : far);
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  return fa_law_compare_all(w, &w->other, fa_law_modes_all(FA_LAW_BITS), NULL, NULL, err);
}

/* Dropout that is on but keeps every pair with factor 1: 1 - p is 1 in f32, and every byte or word passes. */
fa_status fa_law_dropout_none(fa_law_work *w, fa_error *err) {
  FA_LAW_TRY(fa_law_make_base(w, err));
  w->base.p.dropout.p = 0;
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  w->other.p.dropout.p = 0x1p-40;
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  /* Kernels with dropout may use other tiles than those without. */
  const fa_law_modes modes = fa_law_modes_all(FA_LAW_BOUND);
  return fa_law_compare_all(w, &w->other, modes, NULL, NULL, err);
}

/* ---- the mask in the bias ---- */

static bool is_visible(const fa_problem *p, int64_t i, int64_t j) {
  const fa_mask *m = &p->mask;
  const int64_t row = i + (m->align == FA_ALIGN_TOP_LEFT ? 0 : p->seqlen_k - p->seqlen_q);
  const fa_window window = fa_mask_window(m);
  const int64_t chunk = fa_mask_chunk(m);
  if (chunk > 0 && j < fa_mask_chunk_begin(chunk, row)) return false;
  return (window.left < 0 || j >= row - window.left) && (window.right < 0 || j <= row + window.right);
}

/* Copies all inputs but the bias; the bias has every row, -inf where the mask hides a pair. */
static void copy_with_mask(fa_law_work *w) {
  static const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_BIAS, FA_T_DO, FA_T_DLSE};
  const fa_problem *p = &w->base.p;
  for (size_t k = 0; k < sizeof ids / sizeof *ids; ++k) {
    const fa_tensor *from = &w->base.in.t[ids[k]], *to = &w->other.in.t[ids[k]];
    int64_t index[FA_MAX_RANK], n = fa_tensor_count(to);
    for (int64_t e = 0; e < n; ++e) {
      fa_tensor_unravel(to, e, index);
      int64_t at[FA_MAX_RANK];
      memcpy(at, index, sizeof at);
      const bool bias = ids[k] == FA_T_BIAS;
      if (bias && !p->bias.per_query) at[2] = 0;
      const bool hide = bias && !is_visible(p, index[2], index[3]);
      fa_tensor_set(to, index, hide ? -INFINITY : fa_tensor_get(from, at));
    }
  }
}

fa_status fa_law_bias_mask(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(!p->bias.present, "no bias");
  FA_SKIP_IF(p->mask.type == FA_MASK_NONE, "no mask");
  FA_SKIP_IF(p->block_sparse.present || p->seqused_k.n || p->leftpad_k.n, "hidden in other ways too");
  FA_SKIP_IF(fa_problem_is_varlen(p) || p->family == FA_KVCACHE,
             "entries have different masks, and one bias");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  fa_problem q;
  if (fa_problem_copy(&q, &w->base.p) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  q.mask = (fa_mask){.type = FA_MASK_NONE, .left = -1, .right = -1};
  q.bias.per_query = true;
  fa_status status = fa_law_make_for(w, &w->other, &q, err);
  fa_problem_free(&q);
  FA_LAW_TRY(status);
  copy_with_mask(w);
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  fa_law_modes modes = fa_law_modes_all(FA_LAW_BOUND);
  if (!p->bias.per_query) fa_law_modes_dbias(&modes, FA_LAW_NOT);
  return fa_law_compare_all(w, &w->other, modes, NULL, NULL, err);
}

/* ---- no sink ---- */

/* The base's inputs, sinks aside, into the side that has none. */
static void copy_without_sinks(fa_law_work *w) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_tensor *from = &w->base.in.t[id], *to = &w->other.in.t[id];
    if (!fa_tensor_id_is_output((fa_tensor_id)id) && from->data && to->data) fa_tensor_copy(to, from);
  }
}

static void break_if_any_gradient(fa_law_work *w) {
  const fa_tensor *t = &w->base.out.t[FA_T_DSINKS];
  if (!t->data || !(w->passes & FA_PASS_BACKWARD)) return;
  for (int64_t h = 0; h < fa_tensor_count(t); ++h)
    if (fa_tensor_get(t, &h) != 0)
      fa_law_break(w, FA_T_DSINKS, false, "head %lld: %g, where the sink is -inf", (long long)h,
                   fa_tensor_get(t, &h));
}

fa_status fa_law_sink_none(fa_law_work *w, fa_error *err) {
  fa_problem q;
  FA_SKIP_IF(!w->c->problem.sinks.present, "it has no sinks");
  FA_LAW_TRY(fa_law_make_base(w, err));
  const fa_tensor *sinks = &w->base.in.t[FA_T_SINKS];
  for (int64_t h = 0; h < fa_tensor_count(sinks); ++h) fa_tensor_set(sinks, &h, -INFINITY);
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  break_if_any_gradient(w);
  if (fa_problem_copy(&q, &w->base.p) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  q.sinks = (fa_sinks){0};
  const fa_status status = fa_law_make_for(w, &w->other, &q, err);
  fa_problem_free(&q);
  FA_LAW_TRY(status);
  copy_without_sinks(w);
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  fa_law_modes modes = fa_law_modes_all(FA_LAW_BOUND);
  modes.of[FA_T_DSINKS] = FA_LAW_NOT;
  return fa_law_compare_all(w, &w->other, modes, NULL, NULL, err);
}
