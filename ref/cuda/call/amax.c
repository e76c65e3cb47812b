/* The largest P and O of a call that was judged on a machine: two numbers, compared here. */
#include "ref/attention/amax.h"
#include "ref/cuda/try.h"

/* A 0 in place of a number would pass. */
static bool zero_passes(const fa_want *w, const fa_judge_zone *zone) {
  return w->value[0] > 0 && w->value[0] <= fa_want_bound(w, 0) * zone->wide;
}

static fa_status set_wants(fa_ref_call *c, const fa_judge_found *found, fa_error *err) {
  const fa_status status = fa_ref_amax_outputs(c, err);
  const fa_bound_amax of_p = {found->least_amax_p, found->most_amax_p};
  if (status != FA_OK) return status;
  fa_ref_amax_set(&c->out->t[FA_T_AMAX_P], found->amax_p, of_p);
  fa_ref_amax_o_of(c->out->t[FA_T_O].dtype, 1, found->amax_o, found->amax_o == 0 && !found->some_o,
                   &c->out->t[FA_T_AMAX_O]);
  return FA_OK;
}

fa_status fa_judge_compare_amax(fa_ref_call *c, const fa_judge_found *found, const fa_tensors *got,
                                const fa_compare_options *options, const fa_judge_zone *zone,
                                fa_judge_trial *t, const char **doubt, fa_error *err) {
  static const fa_tensor_id ids[] = {FA_T_AMAX_P, FA_T_AMAX_O};
  fa_status status = set_wants(c, found, err);
  for (int i = 0; i < 2 && status == FA_OK; ++i) {
    const fa_tensor *x = &got->t[ids[i]];
    const fa_want *w = &c->out->t[ids[i]];
    fa_verdict *v = &t->verdict[t->n];
    if (!x->data) continue;
    status = fa_compare_tensor(ids[i], c->p, c->in, w, x, options, v, err);
    v->rank = x->rank;
    v->dtype = x->dtype;
    t->wrong[t->n++] = v->worst_ratio > zone->wide;
    if (zero_passes(w, zone)) *doubt = "not surely right: a trivial answer";
    if (v->fail || !(v->worst_ratio <= zone->narrow) || !got->t[FA_T_O].data)
      *doubt = "not surely right: the largest P or O";
  }
  return status;
}
