/* From a named set to the constants of the bounds. */
#include "cases/arithmetic/fields.h"

#include "cases/arithmetic/sets.h"

#include <math.h>
#include <string.h>

static const fa_arithmetic_set_row *row_at(int i) {
  return i >= 0 && i < fa_n_arithmetic_sets ? &fa_arithmetic_sets[i] : NULL;
}

const char *fa_arithmetic_name(int i) {
  return row_at(i) ? row_at(i)->name : NULL;
}

const char *fa_arithmetic_what(int i) {
  return row_at(i) ? row_at(i)->what : NULL;
}

static bool is_narrow(fa_dtype dtype) {
  return dtype == FA_F16 || dtype == FA_BF16 || fa_dtype_is_float8(dtype);
}

static void apply_f32(const fa_arithmetic_of_f32 *f32, fa_arithmetic *a) {
  for (int i = 0; i < FA_N_PRODUCTS && f32->operands != FA_FORMAT_IO; ++i) a->operand[i] = f32->operands;
  if (f32->p != FA_FORMAT_IO) a->p = f32->p;
  if (f32->ds != FA_FORMAT_IO) a->ds = f32->ds;
  a->operand_rounding = a->p_rounding = a->ds_rounding = f32->rounding;
}

bool fa_arithmetic_named(const char *name, fa_dtype dtype, fa_arithmetic *out) {
  for (const fa_arithmetic_set_row *r = fa_arithmetic_sets; r < fa_arithmetic_sets + fa_n_arithmetic_sets;
       ++r) {
    if (strcmp(r->name, name) != 0) continue;
    *out = r->a;
    out->name = r->name;
    if (!is_narrow(dtype)) {
      apply_f32(&r->f32, out);
      out->fast_functions = false;
    }
    if (out->p == FA_FORMAT_3XTF32) out->fast_functions = false;
    return true;
  }
  return false;
}

/* ---- the profile ---- */

/* Three tf32 products omit low x low, 2^-22 relative, and cut each low part to 11 bits, 2^-22 again. Of elements
 * that are tf32 numbers they lose nothing. */
static double product_error(const fa_arithmetic *a, fa_product i, fa_dtype dtype) {
  const fa_format_error e = fa_format_error_of_elements(a->operand[i], dtype, a->operand_rounding);
  const bool both = i == FA_PRODUCT_QK || i == FA_PRODUCT_DP; /* the other operand of the others is P or dS */
  if (e.u == 0 || a->operand[i] == FA_FORMAT_INT8) return 0;
  if (a->operand[i] == FA_FORMAT_3XTF32) return 0x1p-21;
  return both ? 2 * e.u + e.u * e.u : e.u;
}

static void set_operands(const fa_arithmetic *a, fa_dtype dtype, fa_profile *out) {
  for (int i = 0; i < FA_N_PRODUCTS; ++i) {
    const fa_format_error e = fa_format_error_of_elements(a->operand[i], dtype, a->operand_rounding);
    out->accumulator[i] = a->accumulator[i];
    out->operand[i] = product_error(a, (fa_product)i, dtype);
    out->operand_max[i] = e.max;
    if (a->operand[i] == FA_FORMAT_INT8)
      out->operand_step[i] = e.floor;
    else if (e.u > 0 && a->operand[i] != FA_FORMAT_3XTF32)
      out->operand_floor[i] = e.floor;
    out->u_operand = fmax(out->u_operand, out->operand[i]);
  }
}

/* Queries that are multiplied by the scale first: the scale is rounded to their type, and so is each product. dK is made
 * of the same numbers, and dQ is multiplied by the rounded scale when it has been rounded itself. */
static void set_scaled_queries(const fa_arithmetic *a, fa_dtype dtype, fa_profile *out) {
  static const fa_product with[] = {FA_PRODUCT_QK, FA_PRODUCT_DQ, FA_PRODUCT_DK};
  const fa_format_error element = fa_format_error_of(FA_FORMAT_IO, dtype, FA_ROUND_NEAREST);
  if (!a->q_scaled) return;
  for (size_t i = 0; i < sizeof with / sizeof *with; ++i) {
    out->operand[with[i]] += 2 * element.u + element.u * element.u;
    out->u_operand = fmax(out->u_operand, out->operand[with[i]]);
  }
  out->operand_floor[FA_PRODUCT_DK] = fmax(out->operand_floor[FA_PRODUCT_DK], element.floor);
}

static void set_intermediates(const fa_arithmetic *a, fa_dtype dtype, fa_profile *out) {
  const fa_format_error p = fa_format_error_of(a->p, dtype, FA_ROUND_NEAREST),
                        ds = fa_format_error_of(a->ds, dtype, FA_ROUND_NEAREST),
                        dp = fa_format_error_of(a->dp, dtype, FA_ROUND_NEAREST),
                        partials = fa_format_error_of(a->partials, dtype, FA_ROUND_NEAREST),
                        scores = fa_format_error_of(a->scores, dtype, FA_ROUND_NEAREST);
  const double scale = a->p_scale > 0 ? a->p_scale : 1;
  out->u_p = p.u;
  out->floor_p = a->p_rounding == FA_ROUND_TRUNCATE ? 2 * p.floor / scale : p.floor / scale;
  out->u_ds = ds.u;
  out->floor_ds = a->ds_rounding == FA_ROUND_TRUNCATE ? 2 * ds.floor : ds.floor;
  out->max_p = fmin(ds.max, 0x1.fffffep127);
  out->truncated_p = a->p_rounding == FA_ROUND_TRUNCATE ? p.u : 0;
  out->truncated_ds = a->ds_rounding == FA_ROUND_TRUNCATE ? ds.u : 0;
  out->u_p_in_ds = a->p_in_ds ? p.u : 0;
  out->u_dropout = a->dropout_rounded ? p.u : 0;
  const fa_format_error element = fa_format_error_of(FA_FORMAT_IO, dtype, FA_ROUND_NEAREST);
  out->u_delta = a->delta_rounded ? element.u : 0;
  out->floor_delta = out->u_delta > 0 ? element.floor : 0;
  out->ds_scaled = a->ds_scaled;
  out->floor_operand = a->p == FA_FORMAT_3XTF32 ? 0x1p-126 : 0;
  out->operands_cut = a->operand_rounding == FA_ROUND_TRUNCATE;
  out->max_weight = p.u >= 0x1p-4 ? p.max / scale : INFINITY; /* of 8 bits */
  out->u_partials = partials.u;
  out->max_partials = partials.u > 0 ? partials.max : INFINITY;
  out->floor_partials = partials.u > 0 ? partials.floor : 0;
  out->u_dp = dp.u;
  out->floor_dp = dp.u > 0 ? dp.floor : 0;
  out->max_dp = dp.max;
  out->u_scores = scores.u;
  out->floor_scores = scores.u > 0 ? scores.floor : 0;
  out->max_scores = scores.max;
}

/* The largest weight, 1, times anything else is rounded. */
static bool is_power_of_two(double x) {
  int exponent;
  return frexp(x, &exponent) == 0.5 || x == 0;
}

fa_profile fa_arithmetic_profile(const fa_arithmetic *a, fa_dtype dtype) {
  fa_profile out = {.name = a->name,
                    .delta = a->delta,
                    .p_kept = a->p_kept,
                    .library_products = a->library_products || a->p_kept, /* a whole P is for a library */
                    .max_rounded = a->max_lags || !is_power_of_two(a->p_scale),
                    .accumulator_keys = a->accumulator_keys,
                    .exp_scaled = a->exp_scaled,
                    .mma_block = a->mma_block,
                    .mma_extra_bits = a->mma_extra_bits,
                    .eps_exp = a->eps_exp,
                    .eps_log = a->eps_log,
                    .eps_tanh = a->eps_tanh,
                    .fast_functions = a->fast_functions,
                    .block_n = a->block_n,
                    .block_m = a->dkv_atomic ? a->block_m : 0,
                    .max_splits = a->max_splits,
                    .gqa_partials_in_io = a->gqa_partials_rounded,
                    .floor_dq = a->dq_atomic ? 0x1p-126 : 0,
                    .dq_atomic = a->dq_atomic,
                    .dbuffer_atomic = a->dbuffer_atomic,
                    .dsinks_atomic = a->dsinks_atomic};
  set_operands(a, dtype, &out);
  set_scaled_queries(a, dtype, &out);
  set_intermediates(a, dtype, &out);
  if (a->dkv_atomic) fa_profile_add_keys_in_memory(&out, a->block_m > 0 ? a->block_m : 1);
  if (a->dbias_atomic) fa_profile_add_bias_in_memory(&out);
  return out;
}

/* An operand that was stored in 8 bits, times its descale, in a format: rounded once. */
static void add_operand(fa_format f, fa_dtype dtype, fa_product which, int n_operands, fa_profile *out) {
  const fa_format_error e = fa_format_error_of(f, dtype, FA_ROUND_NEAREST);
  const double u = f == FA_FORMAT_F32 ? 0x1p-24 : e.u;
  if (f == FA_FORMAT_IO) return;
  out->operand[which] += n_operands * u;
  out->u_operand = fmax(out->u_operand, out->operand[which]);
  if (f == FA_FORMAT_F32) return;
  out->operand_floor[which] = fmax(out->operand_floor[which], e.floor);
  out->operand_max[which] = fmin(out->operand_max[which], e.max);
}

void fa_arithmetic_add_descales(const fa_arithmetic *a, fa_dtype dtype, bool queries, bool per_key,
                                fa_profile *out) {
  out->descales = true;
  add_operand(a->k_descaled, dtype, FA_PRODUCT_QK, queries ? 2 : 1, out);
  add_operand(a->v_descaled, dtype, FA_PRODUCT_PV, 1, out);
  out->p_descaled = per_key && a->v_descaled == FA_FORMAT_IO;
  if (out->p_descaled) out->max_rounded = true;
  if (!a->o_descaled_late) return;
  const fa_format_error o = fa_format_error_of(FA_FORMAT_IO, dtype, FA_ROUND_NEAREST);
  out->u_o_descaled = o.u;
  out->floor_o_descaled = o.floor;
}
