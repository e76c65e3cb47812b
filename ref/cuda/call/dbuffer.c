/* Gradients of captured buffers on a machine. */
#include "ref/cuda/run.h"

static int64_t elements_of(const fa_ref_call *c, int k) {
  return c->out->t[FA_T_DBUFFER_0 + k].n;
}

/* Each place has sums of all elements: as many as there is room for. */
void fa_judge_lay_out_dbuffers(fa_judge_run *run, fa_judge_arena *a) {
  enum { MOST = 512 };
  const size_t room = run->m->most_bytes / 8 < (size_t)64 << 20 ? run->m->most_bytes / 8 : (size_t)64 << 20;
  fa_judge_mod *mod = &run->x.mod;
  mod->elements = 0;
  for (int k = 0; k < FA_MAX_CAPTURES; ++k) {
    const int64_t n = elements_of(run->c, k);
    mod->first[k] = n > 0 ? mod->elements : -1;
    mod->elements += n;
    run->want_dbuffer[k] = fa_judge_lay_out_want(a, &run->c->out->t[FA_T_DBUFFER_0 + k]);
  }
  if (mod->elements == 0) return;
  mod->gradient_places = (int64_t)(room / sizeof *mod->sums) / mod->elements;
  if (mod->gradient_places > MOST) mod->gradient_places = MOST;
  if (mod->gradient_places < 1) mod->gradient_places = 1;
  mod->sums = fa_judge_take(a, mod->gradient_places * mod->elements, sizeof *mod->sums);
}

fa_status fa_judge_add_dbuffers(fa_judge_run *run, const fa_judge_wave *w, fa_error *err) {
  fa_judge_mod *mod = &run->x.mod;
  if (mod->elements == 0) return FA_OK;
  if (mod->gradient_places > mod->places) mod->gradient_places = mod->places; /* of the evaluator's scratch */
  mod->rows = w->rows;
  const int64_t n = w->rows < mod->gradient_places ? w->rows : mod->gradient_places;
  return fa_judge_launch(run, FA_JUDGE_KERNEL_add_dbuffer, n, err);
}

fa_status fa_judge_settle_dbuffers(fa_judge_run *run, fa_error *err) {
  fa_status status = FA_OK;
  for (int k = 0; k < FA_MAX_CAPTURES && status == FA_OK; ++k) {
    const fa_want *like = &run->c->out->t[FA_T_DBUFFER_0 + k];
    const fa_judge_want *w = &run->want_dbuffer[k];
    if (like->n == 0) continue;
    run->x.gradient =
        (fa_judge_gradient){w->value, w->accum, w->scale, run->x.mod.first[k], like->shape[like->rank - 1]};
    status = fa_judge_launch(run, FA_JUDGE_KERNEL_settle_dbuffer, like->n / run->x.gradient.width, err);
  }
  return status;
}
