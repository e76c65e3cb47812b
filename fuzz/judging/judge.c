#include "fuzz/judging/judge.h"
#include "ref/compare/map.h"
#include "ref/reference.h"

#include "cases/tensors/table.h"
#include "fuzz/judging/empty_rows.h"
#include "fuzz/judging/lse_column.h"
#include "fuzz/judging/lse_hint.h"
#include "fuzz/judging/sample.h"
#include "fuzz/judging/stage.h"
#include "fuzz/judging/two.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fa_result_note(fa_result *r, const char *format, ...) {
  char text[sizeof r->notes];
  size_t used = strlen(r->notes);
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  snprintf(r->notes + used, sizeof r->notes - used, "%s%s", used ? "; " : "", text);
}

static int rank_of(fa_state s) {
  static const fa_state order[] = {FA_UNTESTED, FA_PASS,           FA_VACUOUS, FA_NONDETERMINISTIC,
                                   FA_FAIL,     FA_INPUT_MODIFIED, FA_OOB};
  for (int i = 0; i < (int)(sizeof order / sizeof *order); ++i)
    if (order[i] == s) return i;
  return 100; /* crashes and the like: highest priority */
}

void fa_result_raise(fa_result *r, fa_state state, const char *format, ...) {
  char text[sizeof r->reason];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (rank_of(state) > rank_of(r->state)) {
    if (r->reason[0]) fa_result_note(r, "%s: %s", fa_state_name(r->state), r->reason);
    r->state = state;
    snprintf(r->reason, sizeof r->reason, "%s", text);
  } else if (text[0]) {
    fa_result_note(r, "%s: %s", fa_state_name(state), text);
  }
}

/* Signs of zeros mean nothing in a recorded debug matrix: a probability that underflowed has lost its
 * sign. */
static void ignore_zeros(const fa_tensor *got, fa_want *want) {
  int64_t index[FA_MAX_RANK];
  for (int64_t e = 0; e < want->n; ++e) {
    fa_tensor_unravel(got, e, index);
    if (fa_tensor_get(got, index) == 0) want->value[e] = NAN;
  }
}

typedef struct judge {
  const fa_problem *p;
  const fa_tensors *in, *got;
  const fa_judge_config *config;
  fa_result *r;
  fa_empty_rows empty; /* none unless the contract has values of its own for them */
  bool sampled;
  fa_sample_places places; /* of a sample */
  fa_ref_sample needed;    /* with the rows that only the gradients need; owns its rows */
  bool needed_all;         /* of its strips' heads */
} judge;

/* What an output is judged from: the subject's own, or the reference's. */
typedef struct fa_from {
  bool o, lse;
} fa_from;

static bool same_shape(const fa_want *want, const fa_tensor *got) {
  if (want->rank != got->rank) return false;
  for (int a = 0; a < want->rank; ++a)
    if (want->shape[a] != got->shape[a]) return false;
  return true;
}

bool fa_judge_is_left_out(const fa_judge_config *config, const fa_tensors *got, fa_tensor_id id) {
  const fa_contract *c = config->contract;
  if (config->recorded && !got->t[id].data) return true;
  return c && fa_tensor_id_is_output(id) && !(c->outputs >> id & 1);
}

static bool is_left_out(const judge *j, fa_tensor_id id) {
  return fa_judge_is_left_out(j->config, j->got, id);
}

/* Without the layer "bounds": what an allclose(atol=1e-2, rtol=1e-2) would let pass that skips what is not finite. What
 * nobody wrote is still seen: that is the layer "poison". */
#define LOOSE 1e-2
static void loosen(const judge *j, const fa_tensor *got, fa_want *want) {
  int64_t index[FA_MAX_RANK];
  free(want->least);
  free(want->most);
  want->least = want->most = NULL;
  for (int64_t e = 0; same_shape(want, got) && want->accum && e < want->n; ++e) {
    fa_tensor_unravel(got, e, index);
    const bool skipped = !isfinite(want->value[e]) || !isfinite(fa_tensor_get(got, index));
    want->quant[e] = 0;
    want->accum[e] = (float)(LOOSE + LOOSE * fabs(want->value[e]));
    if (skipped && !fa_tensor_is_poison(got, index, j->config->poison)) want->value[e] = NAN;
  }
}

static fa_status judge_tensor(judge *j, fa_tensor_id id, fa_want *want, const fa_from *from, fa_error *err) {
  const fa_tensor *got = &j->got->t[id];
  if (want->n == 0 || (want->span && want->n_spans == 0) || is_left_out(j, id)) return FA_OK;
  FA_ASSERT(j->r->n_verdicts < FA_T_COUNT);
  fa_verdict *v = &j->r->verdict[j->r->n_verdicts];
  if (id == FA_T_P_DEBUG && j->config->recorded && same_shape(want, got)) ignore_zeros(got, want);
  /* From the reference's forward, the bound includes the forward's error, which is a single error for a whole
   * row, not noise. */
  fa_compare_options options = {.poison = j->config->poison,
                                .generic = j->config->generic,
                                .judge_stats =
                                    j->config->generic && !j->config->recorded && from->o && from->lse,
                                .foreign = j->config->foreign,
                                .profile = j->config->profile};
  if (j->config->loose) {
    loosen(j, got, want);
    options.generic = options.judge_stats = false;
  }
  const fa_stage outer = fa_stage_enter(FA_STAGE_COMPARE);
  fa_status status = fa_compare_tensor(id, j->p, j->in, want, got, &options, v, err);
  if (j->config->loose) v->vacuous[0] = 0; /* it is meant to let trivial answers pass */
  if (status == FA_OK) fa_empty_rows_check_nan(&j->empty, got, j->config->poison, v);
  fa_stage_enter(outer);
  if (status != FA_OK || !v->judged) return status;
  v->rank = got->rank;
  v->dtype = got->dtype;
  if (v->fail && j->config->maps && !want->span)
    status = fa_map_make(id, j->p, want, got, j->config->poison, &j->r->map[j->r->n_verdicts], err);
  if (status != FA_OK) return status;
  j->r->end_to_end[j->r->n_verdicts++] = !from->o && !from->lse;
  if (v->worst_ratio > j->r->worst_ratio) j->r->worst_ratio = v->worst_ratio;
  if (v->finer)
    fa_result_note(j->r, "%s is more exact than %s: %s", fa_tensor_id_name(id), j->config->profile->name,
                   v->finer_why);
  if (v->fail)
    fa_result_raise(j->r, FA_FAIL, "%s", "");
  else if (v->vacuous[0])
    fa_result_raise(j->r, FA_VACUOUS, "%s", "");
  return FA_OK;
}

static const fa_verdict *verdict_of(const fa_result *r, fa_tensor_id id) {
  for (int i = 0; i < r->n_verdicts; ++i)
    if (r->verdict[i].id == id) return &r->verdict[i];
  return NULL;
}

/* Why the backward cannot be judged from the subject's own forward; NULL = it can. */
static const char *unusable_forward(const judge *j) {
  const fa_verdict *o = verdict_of(j->r, FA_T_O), *lse = verdict_of(j->r, FA_T_LSE);
  if (j->config->recorded && (!j->got->t[FA_T_O].data || !j->got->t[FA_T_LSE].data))
    return "there is no recorded o and lse";
  if ((o && o->class_bad) || (lse && lse->class_bad))
    return "o or lse has NaN or infinity in the wrong place";
  return NULL;
}

/* set: a bit for each tensor, 1 << id; skips those without a want. */
static fa_status judge_set(judge *j, fa_tensor_bits set, fa_wants *wants, const fa_from *from,
                           fa_error *err) {
  fa_status status = FA_OK;
  for (int id = 0; status == FA_OK && id < FA_T_COUNT; ++id)
    if (set >> id & 1) status = judge_tensor(j, (fa_tensor_id)id, &wants->t[id], from, err);
  return status;
}

/* The caches, which a call may write to. */
static fa_tensor_bits caches_of(const fa_problem *p) {
  fa_tensor_bits set = 0;
  for (int id = 0; id < FA_T_COUNT && p->kvcache.present; ++id)
    if (fa_tensor_describe((fa_tensor_id)id)->direction == FA_TENSOR_UPDATED) set |= FA_TENSOR_BIT(id);
  return set;
}

static fa_status judge_forward(judge *j, fa_wants *forward, const fa_ref_options *options, fa_error *err) {
  const fa_from itself = {true, true};
  const fa_contract *c = j->config->contract;
  fa_status status = fa_lse_widen_column(j->p, j->in, c, &forward->t[FA_T_LSE], err);
  if (status == FA_OK) status = fa_empty_rows_expect(&j->empty, j->in, options, forward, err);
  if (status == FA_OK && !is_left_out(j, FA_T_O))
    fa_ref_amax_of_given(j->p, j->in, &j->got->t[FA_T_O], forward);
  if (status == FA_OK) status = judge_set(j, fa_tensors_written_by(FA_PASS_FORWARD), forward, &itself, err);
  if (status == FA_OK) status = judge_set(j, caches_of(j->p), forward, &itself, err);
  fa_empty_rows_restore(&j->empty, forward);
  if (j->empty.n && (c->lse_of_empty == FA_LSE_EMPTY_ANY || c->o_of_empty == FA_O_EMPTY_ANY))
    fa_result_note(j->r, "%s of %lld rows without a visible key not compared",
                   c->o_of_empty != FA_O_EMPTY_ANY       ? "lse"
                   : c->lse_of_empty != FA_LSE_EMPTY_ANY ? "o"
                                                         : "o and lse",
                   (long long)j->empty.n);
  return status;
}

/* ---- gradients ---- */

/* What a backward can be judged from, apart from errors in the forward: what the subject's own used. */
static fa_from used_by(const judge *j) {
  const fa_contract *c = j->config->contract;
  const fa_profile *f = j->config->profile;
  fa_from from = {true, true};
  if (is_left_out(j, FA_T_O) || f->delta != FA_DELTA_STORED_O) from.o = false;
  if (is_left_out(j, FA_T_LSE) || f->p_kept) from.lse = false;
  if (c && c->lse_dtype != FA_F32 && c->lse_dtype != FA_F64) from.lse = false;
  return from;
}

static void note_stand_in(const judge *j, const fa_from *from) {
  if (!from->o && !from->lse)
    fa_result_note(j->r, "gradients judged end to end: it gives no o and lse that its backward uses");
  else if (!from->lse)
    fa_result_note(j->r, "gradients judged from its o and the reference's lse");
  else if (!from->o)
    fa_result_note(j->r, "gradients judged from its lse and the reference's o");
}

/* The sample, without its strips if nothing is known of their rows. */
static fa_ref_sample sample_of_gradients(const judge *j, const fa_from *from) {
  fa_ref_sample sample = fa_sample_of(&j->places);
  if (!j->needed_all && !(from->o && from->lse)) sample.n_strips = 0;
  if (j->sampled && sample.n_strips < j->places.n_strips)
    fa_result_note(j->r, "dk and dv not judged: of all rows of a strip's heads, o and lse are needed");
  return sample;
}

static fa_status judge_gradients(judge *j, const fa_wants *forward, const fa_from *from, fa_error *err) {
  fa_wants wants = {0};
  const fa_ref_sample sample = sample_of_gradients(j, from);
  fa_tensor lse = j->got->t[FA_T_LSE];
  fa_ref_options options = {
      .n_threads = j->config->n_threads, .profile = j->config->profile, .generic = j->config->generic};
  if (j->sampled) options.sample = &sample;
  char *copy = NULL;
  fa_status status = FA_OK;
  if (from->lse && j->empty.n) {
    status = fa_empty_rows_plain_lse(&j->empty, &j->got->t[FA_T_LSE], &lse, err);
    copy = status == FA_OK ? lse.data : NULL;
  }
  const fa_stage outer = fa_stage_enter(FA_STAGE_BACKWARD);
  if (status == FA_OK)
    status = fa_ref_backward(j->p, j->in, from->o ? &j->got->t[FA_T_O] : NULL, from->lse ? &lse : NULL,
                             forward, &options, &wants, err);
  fa_stage_enter(outer);
  if (status == FA_OK) status = judge_set(j, fa_tensors_written_by(FA_PASS_BACKWARD), &wants, from, err);
  if (j->config->keep && !j->config->keep->gradients.t[FA_T_DQ].value) {
    *j->config->keep = (fa_judged){
        .gradients = wants, .from_o = from->o, .from_lse = from->lse, .lse = lse, .lse_copy = copy};
    return status;
  }
  fa_wants_free(&wants);
  free(copy);
  return status;
}

static fa_status judge_backward(judge *j, const fa_wants *forward, fa_error *err) {
  const fa_from nothing = {false, false};
  fa_from from = used_by(j);
  if (j->empty.n && j->config->contract->o_of_empty != FA_O_EMPTY_ZERO) {
    fa_result_note(j->r, "gradients not judged: %lld rows have no visible key, and their o is not 0",
                   (long long)j->empty.n);
    j->r->backward_left_out = true;
    return FA_OK;
  }
  const char *why_not = unusable_forward(j);
  if (why_not) {
    fa_result_note(j->r, "gradients judged end to end: %s", why_not);
    from = nothing;
  } else {
    note_stand_in(j, &from);
  }
  fa_status status = judge_gradients(j, forward, &from, err);
  if (status == FA_OK && j->config->end_to_end && (from.o || from.lse))
    status = judge_gradients(j, forward, &nothing, err);
  return status;
}

void fa_judged_free(fa_judged *j) {
  fa_wants_free(&j->forward);
  fa_wants_free(&j->gradients);
  free(j->lse_copy);
  *j = (fa_judged){0};
}

/* ---- a sample ---- */

static void note_sampled(const judge *j) {
  const fa_sample_places *x = &j->places;
  j->r->sampled = (fa_sampled){.asked = j->config->sample,
                               .rows = x->n_rows - x->odd_rows,
                               .strips = x->n_strips - x->odd_strips,
                               .of_rows = x->of_rows,
                               .of_strips = x->of_strips,
                               .odd_rows = x->odd_rows,
                               .odd_strips = x->odd_strips};
}

/* Chooses the places, if not everything is to be judged. */
static fa_status choose_places(judge *j, fa_error *err) {
  const fa_judge_config *c = j->config;
  const fa_from from = used_by(j);
  if (!fa_sample_is_asked(&c->sample)) return FA_OK;
  const char *why = fa_sample_refused(j->p, j->in, c->contract, c->profile);
  if (why) {
    fa_result_note(j->r, "not sampled: %s", why);
    return FA_OK;
  }
  fa_status status = fa_sample_draw(j->p, j->in, &c->sample, c->sample_stream, c->backward, &j->places, err);
  if (status != FA_OK || fa_sample_is_whole(&j->places)) return status;
  status = fa_sample_add_odd(j->p, j->in, j->got, c->n_threads, c->backward, &j->places, err);
  j->needed_all = c->backward && (c->end_to_end || !(from.o && from.lse));
  if (status == FA_OK)
    status = fa_sample_rows_needed(j->p, j->in, &j->places, j->needed_all,
                                   c->backward && from.lse ? &j->got->t[FA_T_LSE] : NULL, &j->needed, err);
  j->sampled = status == FA_OK;
  if (j->sampled) note_sampled(j);
  return status;
}

static fa_status suggest_sample(const judge *j, fa_status status, fa_error *err) {
  if (status != FA_ERR_MEMORY || j->sampled || !err) return status;
  const size_t n = strlen(err->text);
  snprintf(err->text + n, sizeof err->text - n, "; --sample rows=2048,strips=64 judges a part of it");
  return status;
}

static void free_places(judge *j) {
  free((void *)j->needed.row);
  fa_sample_places_free(&j->places);
}

fa_status fa_judge_on_cpu(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                          const fa_judge_config *config, fa_result *r, fa_error *err) {
  judge j = {.p = p, .in = in, .got = got, .config = config, .r = r};
  fa_wants forward = {0};
  fa_ref_options options = {
      .n_threads = config->n_threads, .profile = config->profile, .generic = config->generic};
  const fa_stage outer = fa_stage_enter(FA_STAGE_FORWARD);
  fa_status status = choose_places(&j, err);
  if (j.sampled) options.sample = &j.needed;
  if (status == FA_OK)
    status = fa_empty_rows_forward(p, in, config->contract, &options, &forward, &j.empty, err);
  fa_stage_enter(outer);
  if (status != FA_OK) {
    free_places(&j);
    return suggest_sample(&j, status, err);
  }
  status = judge_forward(&j, &forward, &options, err);
  if (status == FA_OK && !config->keep && !is_left_out(&j, FA_T_LSE))
    fa_lse_hint(p, &forward.t[FA_T_LSE], &got->t[FA_T_LSE], r);
  if (config->keep) *config->keep = (fa_judged){0};
  if (status == FA_OK && config->backward) status = judge_backward(&j, &forward, err);
  if (config->keep) {
    fa_empty_rows_hide(&j.empty, &forward);
    config->keep->forward = forward;
  } else {
    fa_wants_free(&forward);
  }
  fa_empty_rows_free(&j.empty);
  free_places(&j);
  return status;
}

fa_status fa_judge(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                   const fa_judge_config *config, fa_result *r, fa_error *err) {
  if (config->machine) return fa_judge_by_two(p, in, got, config, r, err);
  return fa_judge_on_cpu(p, in, got, config, r, err);
}
