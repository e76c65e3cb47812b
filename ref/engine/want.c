/* Memory of the reference's expected outputs, and the bound of one element. */
#include "ref/engine/want.h"

#include <math.h>
#include <stdlib.h>

double fa_want_bound(const fa_want *w, int64_t element) {
  double value = fabs(w->value[element]);
  double quant = w->quant ? w->quant[element] : 0, accum = w->accum ? w->accum[element] : 0;
  if (value == 0 && quant == 0 && accum == 0) return 0;
  double reach = value + quant + accum;
  return quant + accum + (w->exact ? 0 : fa_half_ulp(w->dtype, reach));
}

int64_t fa_want_spans(const fa_want *w) {
  if (w->span || w->n == 0) return w->n_spans;
  return w->n / w->shape[w->rank - 1];
}

fa_want_span fa_want_span_at(const fa_want *w, int64_t at) {
  if (w->span) return w->span[at];
  const int64_t width = w->shape[w->rank - 1];
  return (fa_want_span){at * width, width};
}

static void *unset(size_t n, size_t size) {
  return malloc(n * size);
}

static fa_status init(fa_want *w, fa_dtype dtype, int rank, const int64_t *shape, bool bounds,
                      void *(*take)(size_t n, size_t size), fa_error *err) {
  *w = (fa_want){.dtype = dtype, .rank = rank, .n = 1};
  for (int a = 0; a < rank; ++a) w->n *= w->shape[a] = shape[a];
  if (w->n == 0) return FA_OK;
  size_t n = (size_t)w->n, rows = n / (size_t)shape[rank - 1];
  w->value = take(n, sizeof *w->value);
  if (!w->value) goto out_of_memory;
  if (!bounds) return FA_OK;
  w->quant = take(n, sizeof *w->quant);
  w->accum = take(n, sizeof *w->accum);
  w->noise = take(n, sizeof *w->noise);
  w->scale = take(rows, sizeof *w->scale);
  if (w->quant && w->accum && w->noise && w->scale) return FA_OK;
out_of_memory:
  return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory for an output of %lld elements",
                 (long long)w->n);
}

fa_status fa_want_init(fa_want *w, fa_dtype dtype, int rank, const int64_t *shape, bool bounds,
                       fa_error *err) {
  return init(w, dtype, rank, shape, bounds, calloc, err);
}

fa_status fa_want_init_unset(fa_want *w, fa_dtype dtype, int rank, const int64_t *shape, bool bounds,
                             fa_error *err) {
  return init(w, dtype, rank, shape, bounds, unset, err);
}

void fa_wants_free(fa_wants *w) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    free(w->t[id].value);
    free(w->t[id].rest);
    free(w->t[id].sum_error);
    free(w->t[id].quant);
    free(w->t[id].accum);
    free(w->t[id].noise);
    free(w->t[id].scale);
    free(w->t[id].span);
    free(w->t[id].least);
    free(w->t[id].most);
    w->t[id] = (fa_want){0};
  }
}

fa_ulp fa_want_ulp(fa_dtype t) {
  if (t == FA_E4M3) return (fa_ulp){1023 - 6, 1023 + 8, 4};
  if (t == FA_E5M2) return (fa_ulp){1023 - 14, 1023 + 15, 3};
  const int fraction = t == FA_F16 ? 10 : t == FA_BF16 ? 7 : 23, bias = t == FA_F16 ? 15 : 127;
  return (fa_ulp){1023 + 1 - bias, 1023 + bias, fraction + 1};
}
