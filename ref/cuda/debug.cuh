/* Dropout's matrix, a warp a row, once its weights are known: signs say what is kept, magnitudes are exponentials. */
#ifndef FA_REF_CUDA_DEBUG_CUH
#define FA_REF_CUDA_DEBUG_CUH

#include "ref/cuda/chain.cuh"

/* What a magnitude may be, give or take what f32 makes of it here and there. */
enum { DEBUG_SURE, DEBUG_ODD, DEBUG_WRONG };
FA_DEVICE int fit_of_magnitude(double size, const fa_bound_magnitude *may) {
  const double doubt = 0x1p-22;
  if (size >= may->least * (1 + doubt) && size <= may->most * (1 - doubt)) return DEBUG_SURE;
  return size >= may->least * (1 - doubt) && size <= may->most * (1 + doubt) ? DEBUG_ODD : DEBUG_WRONG;
}

/* A row without a visible key has magnitudes of which nothing is known. */
FA_DEVICE int fit_of_debug(const fa_judge_job *x, const fa_judge_place *p, const fa_judge_row *row, int64_t j,
                           double got) {
  const bool kept = factor_of(x, p, j, factor_of_kept(x)) > 0, has_keys = row->key_sum > 0;
  if (!(fabs(got) < INFINITY) || (copysign(1.0, got) < 0) == kept) return DEBUG_WRONG;
  if (!has_keys) return DEBUG_SURE;
  const fa_bound_magnitude may =
      fa_bound_magnitude_of(x->e[p->pair + j], row->t.widest, row->t.kept, &x->debug_ulp);
  return fit_of_magnitude(fabs(got), &may);
}

FA_DEVICE void fa_judge_compare_debug(const fa_judge_job *x, int64_t at) {
  const fa_judge_place p = place_of(x, at);
  const fa_ref_call *c = x->c;
  const fa_judge_row *row = x->row + p.row;
  const int64_t head = p.head->b * c->heads_q + p.b->h,
                first = (head * x->debug_rows + p.i) * x->debug_keys + p.b->j_begin;
  int count = 0, odd = 0, wrong = 0;
  for (int64_t j = p.begin + lane(); j < p.end; j += WARP) {
    const double got = load_element(&x->debug, first + j);
    if (x->debug_without_zeros && got == 0) continue;
    const int fit = fit_of_debug(x, &p, row, j, got);
    ++count;
    odd += fit != DEBUG_SURE;
    wrong += fit == DEBUG_WRONG;
  }
  count = warp_count(count);
  odd = warp_count(odd);
  wrong = warp_count(wrong);
  if (lane() != 0) return;
  add_to(&x->found->debug_count, count);
  add_to(&x->found->debug_odd, odd);
  add_to(&x->found->debug_wrong, wrong);
}

#endif
