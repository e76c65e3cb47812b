/* O in 8 bits: times its scale, and never beyond the largest number of its type. */
#include "ref/bounds/stored.h"

#include "cases/tensors/descale.h"

#include <math.h>

/* What is beyond the largest number by more than the kernel may be off is that number, exactly; of the rest, only what an error
 * may come to below it counts. The statistics leave out what an error may carry over the edge, where errors have one sign. */
static void saturate(fa_want *o, int64_t e, double most) {
  const double size = fabs(o->value[e]), error = o->quant ? (double)o->quant[e] + o->accum[e] : 0;
  if (!(size + error >= most)) return;
  if (size > most) o->value[e] = copysign(most, o->value[e]);
  if (!o->quant || !isfinite(error)) return;
  const double left = fmax(error - fmax(size - most, 0), 0), part = error > 0 ? left / error : 0;
  o->quant[e] = (float)(o->quant[e] * part);
  o->accum[e] = (float)(o->accum[e] * part);
  o->noise[e] = (float)(2 * most);
}

/* The product with the scale, and what a factor that holds it is rounded by: 3u. */
static void multiply(fa_want *o, int64_t e, double scale) {
  o->value[e] *= scale;
  if (!o->quant) return;
  o->quant[e] = (float)(o->quant[e] * scale);
  o->noise[e] = (float)(o->noise[e] * scale);
  o->accum[e] = (float)(o->accum[e] * scale + 3 * 0x1p-24 * fabs(o->value[e]));
}

void fa_bound_stored_o(const fa_problem *p, const fa_tensors *in, int64_t first, int64_t n, fa_want *o) {
  if (!fa_quantizes_o(&p->quantized)) return;
  const double scale = fa_o_scale(p, in), most = fa_dtype_max(p->quantized.o);
  for (int64_t e = first; e < first + n; ++e) {
    multiply(o, e, scale);
    saturate(o, e, most);
  }
}

void fa_bound_store_o(const fa_problem *p, const fa_tensors *in, fa_want *o) {
  if (!fa_quantizes_o(&p->quantized) || o->n == 0) return;
  const int64_t rows = o->n / o->shape[o->rank - 1];
  fa_bound_stored_o(p, in, 0, o->n, o);
  for (int64_t row = 0; o->scale && row < rows; ++row)
    o->scale[row] = (float)(o->scale[row] * fa_o_scale(p, in));
  o->dtype = p->quantized.o;
  o->saturates = true;
}
