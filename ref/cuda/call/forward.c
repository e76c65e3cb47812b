/* O and LSE on a machine. */
#include "ref/attention/outputs.h"
#include "ref/cuda/judge.h"
#include "ref/cuda/run.h"

static fa_status wave(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *w, fa_error *err) {
  const fa_ref_call *c = run->c;
  const fa_judge_job *x = &run->x;
  const fa_judge_factors scores[] = {
      {FA_JUDGE_ROW_BY_KEY, false, x->q64, x->k64, x->s, c->d, c->p->scale},
      {FA_JUDGE_ROW_BY_KEY, true, x->q1, x->k1, x->e, c->d, 1},
      {FA_JUDGE_ROW_BY_KEY, true, x->turned_q, x->turned_k, x->w, 2 * c->d, 1}, /* with rotary embedding */
  };
  const fa_judge_factors values[] = {
      {FA_JUDGE_ROW, false, x->s, x->v64, x->acc.value, c->dv, 1},
      {FA_JUDGE_ROW, true, x->w, x->v1, x->acc.worst, c->dv, 1},
      {FA_JUDGE_ROW, true, x->we, x->v1, x->acc.errors, c->dv, 1},
      {FA_JUDGE_ROW, true, x->w2, x->v2, x->acc.squares, c->dv, 1},
  };
  const bool walks = fa_bound_walks_scores(c);
  fa_status status = fa_judge_launch(run, FA_JUDGE_KERNEL_load_query, w->rows, err);
  if (status == FA_OK) status = fa_judge_multiply(run, turn, w, scores, walks ? 1 : x->turned_q ? 3 : 2, err);
  if (status == FA_OK && walks) status = fa_judge_launch(run, FA_JUDGE_KERNEL_walk, w->rows, err);
  if (status == FA_OK) status = fa_judge_modify(run, w, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_scores, w->rows, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_weigh, w->rows, err);
  if (status == FA_OK) status = fa_judge_multiply(run, turn, w, values, c->generic ? 4 : 3, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_settle_forward, w->rows, err);
  if (status == FA_OK && run->compares)
    status = fa_judge_launch(run, FA_JUDGE_KERNEL_try_mean, w->n_blocks * FA_JUDGE_MEANS, err);
  if (status == FA_OK && x->debug.data)
    status = fa_judge_launch(run, FA_JUDGE_KERNEL_compare_debug, w->rows, err);
  return status;
}

fa_status fa_judge_compute_forward(fa_judge_run *run, fa_error *err) {
  const fa_ref_call *c = run->c;
  const fa_status status = fa_judge_run_turns(run, wave, NULL, err);
  return status == FA_OK && c->p->lse_padded
             ? fa_judge_launch(run, FA_JUDGE_KERNEL_pad_lse, c->out->t[FA_T_LSE].n, err)
             : status;
}

static fa_status compute(fa_judge_run *run, fa_error *err) {
  fa_wants *out = run->c->out;
  fa_judge_found found;
  fa_status status = fa_judge_run_open(&run, 1, err);
  if (status == FA_OK) status = fa_judge_compute_forward(run, err);
  if (status == FA_OK) status = fa_judge_run_found(run, &found, err);
  if (status == FA_OK) status = fa_judge_run_fetch(run, &run->x.want_o, &out->t[FA_T_O], err);
  if (status == FA_OK) status = fa_judge_run_fetch(run, &run->x.want_lse, &out->t[FA_T_LSE], err);
  return status;
}

fa_status fa_judge_forward(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in,
                           const fa_ref_options *opt, fa_wants *out, fa_error *err) {
  fa_ref_call c;
  fa_judge_run run = {.m = m, .c = &c};
  fa_judge_run_take(&run, in, NULL);
  fa_status status = fa_judge_call_init(&c, p, in, opt, false, out, err);
  if (status == FA_OK && out->t[FA_T_O].n > 0) status = compute(&run, err);
  if (status == FA_OK) fa_ref_forward_finish(&c);
  fa_judge_run_close(&run);
  fa_judge_call_free(&c);
  if (status != FA_OK) fa_wants_free(out);
  return status;
}
