/* What follows from the findings together. */
#include "fuzz/probe/format.h"
#include "fuzz/probe/questions.h"

#include <string.h>

/* 16-bit operands that came back short of bits which the accumulator does not have either: nothing is known of them. */
static void excuse_operands(probe *x) {
  fa_arithmetic *f = &x->r->found.arithmetic;
  for (int i = 0; x->dtype != FA_F32 && i < FA_N_PRODUCTS; ++i) {
    const fa_accumulator sums = f->accumulator[i];
    const int held = sums == FA_ACCUMULATOR_BF16     ? 7
                     : sums == FA_ACCUMULATOR_F16    ? 10
                     : sums == FA_ACCUMULATOR_NARROW ? 13
                                                     : 99;
    if (f->operand[i] == FA_FORMAT_IO || probe_fraction_bits(f->operand[i], x->dtype) < held) continue;
    f->operand[i] = FA_FORMAT_IO;
    for (int k = 0; k < x->r->n; ++k) {
      fa_finding *v = &x->r->v[k];
      if (strncmp(v->field, "operand_", 8) != 0 || strcmp(v->field + 8, fa_product_name(i)) != 0) continue;
      v->value[0] = 0;
      v->confidence = FA_PROBE_UNTOLD;
    }
  }
}

/* P and dS go through the same units as V and K: what is not found is taken from these. */
void probe_settle(probe *x) {
  fa_arithmetic *f = &x->r->found.arithmetic;
  excuse_operands(x);
  const fa_finding *p = fa_probe_find(x->r, "p"), *ds = fa_probe_find(x->r, "ds");
  const fa_finding *kept = fa_probe_find(x->r, "p_kept"), *divided = fa_probe_find(x->r, "p is divided");
  const fa_format v = f->operand[FA_PRODUCT_PV], k = f->operand[FA_PRODUCT_DQ];
  if (v == FA_FORMAT_3XTF32 && f->p == FA_FORMAT_F32) f->p = v;
  if (k == FA_FORMAT_3XTF32 && f->ds == FA_FORMAT_F32) f->ds = k;
  if (kept && kept->confidence == FA_PROBE_UNTOLD && divided && divided->value[0] == 'b') f->p_kept = true;
  if (f->p_kept && divided && divided->value[0] == 'b')
    f->p_in_ds = true; /* kept as the product with V took it */
  const fa_finding *dropped = fa_probe_find(x->r, "dropout_rounded");
  if (f->p_in_ds && dropped && dropped->confidence < FA_PROBE_LIKELY)
    f->dropout_rounded = true; /* dropout can take no other P than the narrow one that is kept */
  if (!(p && p->confidence >= FA_PROBE_LIKELY) && v != FA_FORMAT_IO && v != FA_FORMAT_3XTF32)
    f->p = v, f->p_rounding = f->operand_rounding;
  if (!(ds && ds->confidence >= FA_PROBE_LIKELY) && k != FA_FORMAT_IO && k != FA_FORMAT_3XTF32)
    f->ds = k, f->ds_rounding = f->operand_rounding;
}
