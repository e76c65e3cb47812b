/* Attention sinks: one more exponential in the denominator of every row of a head, added where a row's softmax is
 * finished (docs/reference/semantics.md, "Sinks"). P: parameters with sinks, sinks_in_lse and empty_lse. */
#ifndef FA_GPU_KERNELS_PARTS_SINK_CUH
#define FA_GPU_KERNELS_PARTS_SINK_CUH

#include "gpu/kernels/parts/traits.cuh"

namespace fa {

/* The logit of a query head's sink; -inf: it has none. */
template <class P> FA_DEVICE float sink_of(const P &p, int64_t head) {
  return may_have(FA_HAS_SINKS) && p.sinks ? load_global(p.sinks + head) : -infinity();
}

FA_DEVICE float exp_of(float x) {
  return exp2_approx(multiply(x, 1.44269504088896340736f));
}

/* log(exp(lse) + exp(sink)). -inf and +inf are rows without keys: +inf stays. */
FA_DEVICE float with_sink(float lse, float sink) {
  if (sink == -infinity() || lse == infinity()) return lse;
  const float top = sink > lse ? sink : lse;
  return top + natural_log(exp_of(lse - top) + exp_of(sink - top));
}

/* The LSE that P is made from, of a row whose forward pass returned this one. */
template <class P> FA_DEVICE float lse_of_p(const P &p, int64_t head, float lse) {
  return !may_have(FA_HAS_SINKS) || p.sinks_in_lse ? lse : with_sink(lse, sink_of(p, head));
}

/* The LSE of a row without keys. */
template <class P> FA_DEVICE float lse_without_keys(const P &p, int64_t head) {
  const float sink = p.sinks_in_lse ? sink_of(p, head) : -infinity();
  return sink == -infinity() ? p.empty_lse : sink;
}

/* What a row's accumulator is multiplied by, and its LSE. */
struct finished_row {
  float factor, lse;
};

/* max: of the row's logits, in natural units; sum: of the exponentials relative to it, 0 where there is no key; scale:
 * what O is multiplied by besides. */
FA_DEVICE finished_row finish_keys(float max, float sum, float scale, float empty_lse) {
  if (sum == 0.0f) return finished_row{0.0f, empty_lse};
  return finished_row{scale / sum, max + natural_log(sum)};
}

/* With the head's sink. The larger of max and sink is what all is relative to, so that nothing overflows. */
template <class P>
FA_DEVICE finished_row finish_row(const P &p, int64_t head, float max, float sum, float scale) {
  if (sum == 0.0f) return finished_row{0.0f, lse_without_keys(p, head)};
  const float sink = sink_of(p, head), lse = max + natural_log(sum);
  if (sink == -infinity()) return finished_row{scale / sum, lse};
  const float top = sink > max ? sink : max, keys = exp_of(max - top);
  const float all = fmaf(sum, keys, exp_of(sink - top));
  return finished_row{scale * keys / all, p.sinks_in_lse ? top + natural_log(all) : lse};
}

} // namespace fa

#endif
