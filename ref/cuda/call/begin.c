/* A call of the reference, as far as both judges begin it alike. */
#include "ref/attention/outputs.h"
#include "ref/cuda/run.h"
#include "ref/mods/tile.h"

/* What makes the case itself wrong is the CPU's to say. */
static fa_status read_expressions(fa_ref_call *c, fa_error *err) {
  if (fa_ref_mods_init(c, NULL) == FA_OK && fa_ref_mods_status(c, NULL) == FA_OK) return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED, "an expression without a value");
}

static fa_status buffer_outputs(fa_ref_call *c, fa_error *err) {
  bool wanted[FA_MAX_CAPTURES] = {false};
  int64_t first[FA_MAX_CAPTURES + 1] = {0};
  return fa_ref_dbuffers_outputs(c, wanted, first, err);
}

fa_status fa_judge_call_init(fa_ref_call *c, const fa_problem *p, const fa_tensors *in,
                             const fa_ref_options *opt, bool backward, fa_wants *out, fa_error *err) {
  fa_status status = fa_ref_call_init(c, p, in, opt, out, err);
  if (status == FA_OK) status = backward ? fa_ref_backward_outputs(c, err) : fa_ref_forward_outputs(c, err);
  if (status == FA_OK && backward && p->bias.grad) status = fa_ref_dbias_output(c, err);
  if (status == FA_OK && backward && p->sinks.grad) status = fa_ref_dsinks_output(c, err);
  if (status == FA_OK && !backward) status = fa_ref_rotate_all(c, err);
  if (status == FA_OK) status = read_expressions(c, err);
  return status == FA_OK && backward && p->score_mod ? buffer_outputs(c, err) : status;
}

void fa_judge_call_free(fa_ref_call *c) {
  fa_ref_mods_free(c);
  fa_ref_call_free(c);
}
