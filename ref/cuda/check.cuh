/* Outputs against what is wanted of them, a warp a row (or a piece of a row of LSEs): classes, errors against bounds, the
 * statistics' sums, and trivially wrong answers. Nothing is decided here but what is surely right. */
#ifndef FA_REF_CUDA_CHECK_CUH
#define FA_REF_CUDA_CHECK_CUH

#include "ref/cuda/load.cuh"

FA_DEVICE bool is_nan(double x) {
  return x != x;
}
FA_DEVICE bool is_finite(double x) {
  return fabs(x) < INFINITY;
}

/* fa_want_bound. */
FA_DEVICE double bound_at(const fa_judge_want *w, const fa_ulp *ulp, int64_t at) {
  const double size = fabs(w->value[at]), quant = w->quant[at], accum = w->accum[at];
  if (size == 0 && quant == 0 && accum == 0) return 0;
  return quant + accum + fa_element_half_ulp(size + quant + accum, ulp);
}

/* An answer that is so far off is surely not another one, though both values may be off by a millionth of a bound. */
FA_DEVICE bool is_same(const fa_judge_output *o, double err, double bound, double scale) {
  return err + 0x1p-19 * bound <= (o->by_scale * scale + o->floor) * (1 - 0x1p-10);
}

/* An element, with what is read of it once. */
typedef struct fa_judge_element {
  int64_t at;
  double want, bound;
} fa_judge_element;

/* Whether a candidate in place of the element would be let pass, and whether it is right: clears bits of c->passes. */
FA_DEVICE void try_candidate(const fa_judge_output *o, const fa_judge_element *e, double candidate,
                             uint32_t bit, fa_judge_check *c) {
  const double want = e->want, err = fabs(candidate - want);
  if (!(c->passes & bit) || is_nan(want)) return;
  if (!is_finite(want) || !is_finite(candidate)) {
    if (want != candidate) c->passes &= ~bit;
    return;
  }
  const double scale = o->is_lse ? 1 + fabs(want) : o->want.scale[e->at / o->width];
  if (!(err <= e->bound * o->wide)) c->passes &= ~bit;
  if (!is_same(o, err, e->bound, scale)) c->passes &= ~(bit << FA_JUDGE_SAME);
}

/* The neighbouring row on an axis in its place; the last one's neighbour is the first. */
FA_DEVICE void try_neighbour(const fa_judge_output *o, const fa_judge_element *e, int64_t n, int64_t step,
                             uint32_t bit, fa_judge_check *c) {
  if (n < 2) c->passes &= ~bit;
  if (!(c->passes & bit)) return;
  const bool is_last = e->at / o->width / step % n == n - 1;
  try_candidate(o, e, o->want.value[e->at + (is_last ? -(n - 1) : 1) * step * o->width], bit, c);
}

FA_DEVICE void compare_numbers(const fa_judge_output *o, const fa_judge_element *e, double got,
                               fa_judge_check *c) {
  const double want = e->want, bound = e->bound, err = fabs(got - want);
  const int64_t at = e->at;
  const double ratio = bound > 0 ? err / bound : err == 0 ? 0 : INFINITY;
  const fa_statistic_part part =
      fa_element_statistic(bound > 0, got - want, fa_element_half_ulp(want, &o->ulp), o->want.quant[at],
                           o->want.accum[at], o->want.noise[at]);
  if (!o->is_lse) c->print ^= fa_element_print(got, want, at % o->width);
  c->odd += !(err <= bound * o->narrow);
  c->wrong += err > bound * o->wide;
  c->widest = bound > c->widest ? bound : c->widest;
  c->n += part.used;
  c->n_diffuse += part.diffuse;
  c->sum += part.part;
  c->sum_squares += part.square;
  if (part.diffuse) c->diffuse_squares += part.square;
  if (!(ratio > c->ratio)) return;
  c->ratio = ratio;
  c->worst = at;
}

FA_DEVICE void compare_element(const fa_judge_output *o, int64_t at, fa_judge_check *c) {
  const double want = o->want.value[at], got = load_element(&o->got, at);
  const fa_judge_element e = {at, want, bound_at(&o->want, &o->ulp, at)};
  try_candidate(o, &e, 0, FA_JUDGE_ZEROS, c);
  try_neighbour(o, &e, o->n_heads, o->head_step, FA_JUDGE_HEAD, c);
  try_neighbour(o, &e, o->n_batch, o->batch_step, FA_JUDGE_BATCH, c);
  if (o->is_lse) c->scale = fmax(c->scale, is_finite(want) ? (double)(float)(1 + fabs(want)) : 1.0);
  if (is_nan(want)) return;
  c->count += 1;
  if (o->want.accum[at] == INFINITY) return; /* the kernel may overflow on the way */
  if (is_finite(want) && is_finite(got)) {
    compare_numbers(o, &e, got, c);
    return;
  }
  if (want == got) return;
  c->odd += 1; /* an overflow that may be is the CPU's to see */
  c->wrong += is_nan(got) || is_finite(got);
  c->ratio = INFINITY;
  c->worst = at;
}

/* One record of all lanes' parts. The worst element of equal ones is the first. */
FA_DEVICE fa_judge_check joined(const fa_judge_check *part) {
  fa_judge_check c = *part;
  c.count = warp_count(part->count);
  c.odd = warp_count(part->odd);
  c.wrong = warp_count(part->wrong);
  c.n = warp_count(part->n);
  c.n_diffuse = warp_count(part->n_diffuse);
  c.passes = warp_all(part->passes);
  c.print = warp_xor(part->print);
  c.sum = warp_sum(part->sum);
  c.sum_squares = warp_sum(part->sum_squares);
  c.diffuse_squares = warp_sum(part->diffuse_squares);
  c.widest = warp_max(part->widest);
  c.scale = warp_max(part->scale);
  c.ratio = warp_max(part->ratio);
  c.worst = -warp_max(part->ratio == c.ratio ? -part->worst : -INT64_MAX);
  return c;
}

FA_DEVICE void fa_judge_compare(const fa_judge_job *x, int64_t item) {
  const fa_judge_output *o = &x->output;
  const int64_t pieces = (o->width + o->piece - 1) / o->piece, row = item / pieces,
                first = item % pieces * o->piece;
  const int64_t end = first + o->piece < o->width ? first + o->piece : o->width;
  fa_judge_check part;
  memset(&part, 0, sizeof part);
  part.passes = FA_JUDGE_ALL | FA_JUDGE_ALL << FA_JUDGE_SAME;
  part.worst = row * o->width + first;
  for (int64_t i = first + lane(); i < end; i += WARP) compare_element(o, row * o->width + i, &part);
  fa_judge_check c = joined(&part);
  if (lane() != 0) return;
  c.nonce = x->nonce;
  if (!o->is_lse) c.scale = o->want.scale[row];
  c.got = load_element(&o->got, c.worst);
  c.want = o->want.value[c.worst];
  c.bound = bound_at(&o->want, &o->ulp, c.worst);
  c.quant = o->want.quant[c.worst];
  c.accum = o->want.accum[c.worst];
  o->check[item] = c;
}

/* A row must be exactly 0: it says nothing about means. */
FA_DEVICE bool is_exact_zero(const fa_judge_job *x, int64_t row) {
  bool some = false;
  for (int64_t i = row * x->c->dv + lane(); i < (row + 1) * x->c->dv; i += WARP)
    some |= x->want_o.value[i] != 0 || bound_at(&x->want_o, &x->output.ulp, i) != 0;
  return !warp_any(some);
}

/* Columns of a lane that are summed at once: a sum waits for the one before it, but not for another column's. */
enum { AT_ONCE = 4 };

/* sum[u] = of column first + u WARP of V, of the keys that a row sees. */
FA_DEVICE void sum_columns(const fa_judge_job *x, const fa_judge_place *p, int64_t first, double *sum) {
  const int64_t dv = x->c->dv;
  const double *v = x->v64 + (p->head->key + p->b->j_begin) * dv + first;
  FA_UNROLL
  for (int u = 0; u < AT_ONCE; ++u) sum[u] = 0;
  FA_FEW
  for (int64_t j = p->begin; j < p->end; ++j) {
    FA_UNROLL
    for (int u = 0; u < AT_ONCE; ++u)
      if (first + u * WARP < dv) sum[u] += v[j * dv + u * WARP];
  }
}

/* The mean of the values that a row sees, in place of its O. */
FA_DEVICE void try_mean_of_row(const fa_judge_job *x, const fa_judge_place *p) {
  const int64_t dv = x->c->dv, row = want_of(x, p);
  const double n = (double)(p->end - p->begin);
  bool fails = false, differs = false;
  if (p->begin >= p->end || is_exact_zero(x, row)) return;
  for (int64_t first = lane(); first < dv; first += AT_ONCE * WARP) {
    double sum[AT_ONCE];
    sum_columns(x, p, first, sum);
    FA_UNROLL
    for (int u = 0; u < AT_ONCE; ++u) {
      const int64_t i = row * dv + first + u * WARP;
      if (first + u * WARP >= dv || is_nan(x->want_o.value[i])) continue;
      const double err = fabs(sum[u] / n - x->want_o.value[i]),
                   bound = bound_at(&x->want_o, &x->output.ulp, i);
      fails |= err > bound * x->output.wide;
      differs |= !is_same(&x->output, err, bound, x->want_o.scale[row]);
    }
  }
  if (fails) raise_flag(&x->found->flags, FA_JUDGE_MEAN_FAILS);
  if (differs) raise_flag(&x->found->flags, FA_JUDGE_MEAN_DIFFERS);
}

/* Some rows of a block, once its O is settled: mostly one of them fails. */
FA_DEVICE void fa_judge_try_mean(const fa_judge_job *x, int64_t item) {
  const fa_judge_block *b = x->block + item / FA_JUDGE_MEANS;
  if (x->found->flags & FA_JUDGE_MEAN_FAILS) return; /* one is enough, and a row of many keys takes long */
  const fa_judge_place p = place_of_row(x, b, (item % FA_JUDGE_MEANS * 2 + 1) * b->n / (2 * FA_JUDGE_MEANS));
  try_mean_of_row(x, &p);
}

/* All rows. */
FA_DEVICE void fa_judge_try_means(const fa_judge_job *x, int64_t at) {
  const fa_judge_place p = place_of(x, at);
  try_mean_of_row(x, &p);
}

#endif
