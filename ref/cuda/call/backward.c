/* dQ, dK and dV on a machine. */
#include "ref/cuda/judge.h"
#include "ref/cuda/run.h"

/* In place; a long row in parts, so that a wave of few rows has something for all processors. */
static fa_status differentiate(fa_judge_run *run, const fa_judge_wave *w, fa_error *err) {
  const int64_t parts = w->parts > 0 ? w->parts / w->rows : 1;
  fa_status status = FA_OK;
  run->x.row_parts = parts;
  if (parts > 1) status = fa_judge_launch(run, FA_JUDGE_KERNEL_spread, w->rows * parts, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_differentiate, w->rows * parts, err);
  if (status == FA_OK && parts > 1) status = fa_judge_launch(run, FA_JUDGE_KERNEL_join_row, w->rows, err);
  return status;
}

static fa_status pairs(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *w, fa_error *err) {
  const fa_ref_call *c = run->c;
  const fa_judge_job *x = &run->x;
  const fa_judge_factors products[] = {
      {FA_JUDGE_ROW_BY_KEY, false, x->q64, x->k64, x->s, c->d, c->p->scale},
      {FA_JUDGE_ROW_BY_KEY, true, x->q1, x->k1, x->e, c->d, 1},
      {FA_JUDGE_ROW_BY_KEY, false, x->do64, x->v64, x->dp, c->dv, 1},
      {FA_JUDGE_ROW_BY_KEY, true, x->do1, x->v1, x->d, c->dv, 1},
  };
  fa_status status = fa_judge_launch(run, FA_JUDGE_KERNEL_load_query, w->rows, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_load_do, w->rows, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_delta, w->rows, err);
  if (status == FA_OK) status = fa_judge_multiply(run, turn, w, products, 4, err);
  if (status == FA_OK) status = fa_judge_modify(run, w, err);
  if (status == FA_OK) status = differentiate(run, w, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_add_dbias, c->out->t[FA_T_DBIAS].n, err);
  if (status == FA_OK)
    status = fa_judge_launch(run, FA_JUDGE_KERNEL_add_dsinks, c->out->t[FA_T_DSINKS].n, err);
  if (status == FA_OK) status = fa_judge_add_dbuffers(run, w, err);
  return status;
}

static fa_status sums(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *w, fa_error *err) {
  const fa_ref_call *c = run->c;
  const fa_judge_job *x = &run->x;
  const double scale = c->p->scale;
  const fa_judge_factors products[] = {
      {FA_JUDGE_KEY, false, x->s, x->do64, x->dv.value, c->dv, 1},
      {FA_JUDGE_KEY, true, x->w, x->do1, x->dv.worst, c->dv, 1},
      {FA_JUDGE_KEY, true, x->we, x->do1, x->dv.errors, c->dv, 1},
      {FA_JUDGE_KEY, false, x->dp, x->q64, x->dk.value, c->d, scale},
      {FA_JUDGE_KEY, true, x->g, x->q1, x->dk.worst, c->d, 1},
      {FA_JUDGE_KEY, true, x->ge, x->q1, x->dk.errors, c->d, 1},
      {FA_JUDGE_ROW, false, x->dp, x->k64, x->acc.value, c->d, scale},
      {FA_JUDGE_ROW, true, x->g, x->k1, x->acc.worst, c->d, 1},
      {FA_JUDGE_ROW, true, x->ge, x->k1, x->acc.errors, c->d, 1},
      {FA_JUDGE_KEY, true, x->w2, x->do2, x->dv.squares, c->dv, 1}, /* these three where data are generic */
      {FA_JUDGE_KEY, true, x->g2, x->q2, x->dk.squares, c->d, 1},
      {FA_JUDGE_ROW, true, x->g2, x->k2, x->acc.squares, c->d, 1},
  };
  fa_status status = fa_judge_multiply(run, turn, w, products, c->generic ? 12 : 9, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_sum_rows, w->keys, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_sum_blocks, turn->keys, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_settle_dq, w->rows, err);
  return status;
}

static fa_status wave(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *w, fa_error *err) {
  const fa_status status = pairs(run, turn, w, err);
  return status == FA_OK ? sums(run, turn, w, err) : status;
}

static fa_status end(fa_judge_run *run, const fa_judge_turn *turn, const fa_judge_wave *w, fa_error *err) {
  (void)w;
  fa_status status = FA_OK;
  if (run->x.parts_dk) status = fa_judge_launch(run, FA_JUDGE_KERNEL_join_key, turn->keys, err);
  return status == FA_OK ? fa_judge_launch(run, FA_JUDGE_KERNEL_settle_key, turn->keys, err) : status;
}

/* What takes all heads: how steep the score chain is, and gradients that are summed over rows. */
static fa_status finish(fa_judge_run *run, fa_error *err) {
  const fa_wants *out = run->c->out;
  const bool steep = fa_bound_has_chain(run->c->p) && run->c->profile->floor_operand > 0;
  fa_status status = FA_OK;
  if (steep)
    status = fa_judge_launch(run, FA_JUDGE_KERNEL_steepen, out->t[FA_T_DQ].n + out->t[FA_T_DK].n, err);
  if (status == FA_OK) status = fa_judge_launch(run, FA_JUDGE_KERNEL_settle_dbias, out->t[FA_T_DBIAS].n, err);
  if (status == FA_OK)
    status = fa_judge_launch(run, FA_JUDGE_KERNEL_settle_dsinks, out->t[FA_T_DSINKS].n > 0, err);
  if (status == FA_OK) status = fa_judge_settle_dbuffers(run, err);
  return status;
}

fa_status fa_judge_compute_backward(fa_judge_run *run, fa_error *err) {
  const fa_status status = fa_judge_run_turns(run, wave, end, err);
  return status == FA_OK ? finish(run, err) : status;
}

static fa_status compute(fa_judge_run *run, fa_judge_found *found, fa_error *err) {
  fa_wants *out = run->c->out;
  fa_status status = fa_judge_run_open(&run, 1, err);
  if (status == FA_OK) status = fa_judge_compute_backward(run, err);
  if (status == FA_OK) status = fa_judge_run_found(run, found, err);
  if (status == FA_OK) status = fa_judge_run_fetch(run, &run->x.want_dq, &out->t[FA_T_DQ], err);
  if (status == FA_OK) status = fa_judge_run_fetch(run, &run->x.want_dk, &out->t[FA_T_DK], err);
  if (status == FA_OK) status = fa_judge_run_fetch(run, &run->x.want_dv, &out->t[FA_T_DV], err);
  if (status == FA_OK) status = fa_judge_run_fetch(run, &run->x.want_dbias, &out->t[FA_T_DBIAS], err);
  if (status == FA_OK) status = fa_judge_run_fetch(run, &run->x.want_dsinks, &out->t[FA_T_DSINKS], err);
  for (int k = 0; status == FA_OK && k < FA_MAX_CAPTURES; ++k)
    status = fa_judge_run_fetch(run, &run->want_dbuffer[k], &out->t[FA_T_DBUFFER_0 + k], err);
  return status;
}

fa_status fa_judge_backward(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in,
                            const fa_tensor *given_o, const fa_tensor *given_lse, const fa_ref_options *opt,
                            fa_wants *out, fa_error *err) {
  fa_ref_call c;
  fa_judge_found found = {0};
  fa_judge_run run = {.m = m, .c = &c, .backward = true};
  fa_judge_run_take(&run, in, NULL);
  run.input[FA_JUDGE_IN_O] = *given_o;
  run.input[FA_JUDGE_IN_LSE] = *given_lse;
  fa_status status = fa_judge_call_init(&c, p, in, opt, true, out, err);
  if (status == FA_OK && out->t[FA_T_DQ].n + out->t[FA_T_DK].n + out->t[FA_T_DSINKS].n > 0)
    status = compute(&run, &found, err);
  out->t[FA_T_DQ].steepest = out->t[FA_T_DK].steepest = fa_bound_has_chain(p) ? found.steepest : 1;
  fa_judge_run_close(&run);
  fa_judge_call_free(&c);
  if (status != FA_OK) fa_wants_free(out);
  return status;
}
