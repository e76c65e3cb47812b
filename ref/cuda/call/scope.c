/* Which calls the judge on a device takes. Every reason is a few words, so that a campaign counts them. */
#include "ref/cuda/judge.h"

#include "ref/bounds/scattered.h"

static const char *of_problem(const fa_problem *p, const fa_tensors *in) {
  if (p->family == FA_MERGE) return fa_family_name(p->family);
  if (p->dtype != FA_F16 && p->dtype != FA_BF16 && p->dtype != FA_F32) return fa_dtype_name(p->dtype);
  if (p->quantized.dtype == FA_E2M1) return "numbers of 4 bits";
  if (fa_quantizes_o(&p->quantized)) return "an O of 8 bits";
  if (in->t[FA_T_DROPOUT_KEEP].data) return "a recorded mask of dropout";
  return NULL;
}

/* Sums in narrow accumulators are formulas, and a walk over a score's products; other formats on the way are not. */
static bool has_narrow_formats(const fa_ref_call *c, bool backward) {
  const fa_profile *f = c->profile;
  if (backward) return fa_bound_is_narrow(c);
  bool any = f->u_scores > 0 || f->max_partials < INFINITY;
  for (int i = 0; i < FA_N_PRODUCTS; ++i) any |= f->accumulator[i] > FA_ACCUMULATOR_NARROW;
  return any;
}

static const char *of_profile(const fa_problem *p, const fa_ref_options *opt, bool backward) {
  const fa_profile *f = opt->profile;
  const fa_ref_call c = {.p = p, .profile = f, .generic = opt->generic};
  if (has_narrow_formats(&c, backward)) return "narrow formats";
  if (fa_bound_scores_scatter(&c) || fa_bound_dp_scatters(&c)) return "coarse operands";
  if (!backward) return NULL;
  if (f->delta != FA_DELTA_STORED_O || f->u_delta > 0) return "another delta";
  if (f->p_kept) return "a P that is kept";
  return NULL;
}

const char *fa_judge_refused(const fa_problem *p, const fa_tensors *in, const fa_ref_options *opt,
                             bool backward) {
  if (!opt->profile) return "values alone";
  if (opt->twist) return "a mistake to compute with";
  if (opt->sample) return "a sample";
  const char *why = of_problem(p, in);
  return why ? why : of_profile(p, opt, backward);
}
