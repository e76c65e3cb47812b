#include "fuzz/untrusted/narrow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEYS_A_SPLIT 64 /* shorter splits only cost time */
#define LARGEST_TILE 256

bool fa_arithmetic_may_be_pinned(const char *name) {
  fa_arithmetic unused;
  return fa_arithmetic_named(name, FA_F16, &unused) && strncmp(name, "recorded", strlen("recorded")) != 0;
}

/* ---- one kind of field each: true if the claim is as narrow as what is pinned ---- */

static bool error_is_within(fa_format_error claimed, fa_format_error pinned) {
  return claimed.u <= pinned.u && claimed.floor <= pinned.floor && claimed.max >= pinned.max;
}

static void take_format(fa_format *to, fa_format claimed, fa_dtype dtype) {
  if (error_is_within(fa_format_error_of(claimed, dtype, FA_ROUND_NEAREST),
                      fa_format_error_of(*to, dtype, FA_ROUND_NEAREST)))
    *to = claimed;
}

static void take_operand(fa_format *to, fa_format claimed, fa_dtype dtype) {
  if (error_is_within(fa_format_error_of_elements(claimed, dtype, FA_ROUND_NEAREST),
                      fa_format_error_of_elements(*to, dtype, FA_ROUND_NEAREST)))
    *to = claimed;
}

static void take_rounding(fa_rounding *to, fa_rounding claimed) {
  if (claimed == FA_ROUND_NEAREST) *to = claimed;
}

/* What is true of a kernel only if it does something that costs accuracy. */
static void take_flag(bool *to, bool claimed) {
  *to = *to && claimed;
}

static void take_smaller(double *to, double claimed) {
  *to = fmin(*to, claimed);
}

/* ---- the matrix unit ---- */

/* Of one truncated block: ref/bounds/terms.c has the formula. */
static double block_error(const fa_arithmetic *a) {
  return (a->mma_block + 1) * ldexp(1, -a->mma_extra_bits) + 1;
}

static bool adds_in_f32(const fa_arithmetic *a) {
  for (int i = 0; i < FA_N_PRODUCTS; ++i)
    if (a->accumulator[i] != FA_ACCUMULATOR_F32) return false;
  return true;
}

static void take_sums(fa_arithmetic *to, const fa_arithmetic *claimed) {
  const bool unit = claimed->mma_block > 0 && to->mma_block > 0;
  for (int i = 0; i < FA_N_PRODUCTS; ++i)
    if (claimed->accumulator[i] < to->accumulator[i]) to->accumulator[i] = claimed->accumulator[i];
  const bool finer = unit && block_error(claimed) <= block_error(to) &&
                     block_error(claimed) / claimed->mma_block <= block_error(to) / to->mma_block;
  if (!finer && !(claimed->mma_block == 0 && adds_in_f32(claimed))) return;
  to->mma_block = claimed->mma_block;
  to->mma_extra_bits = claimed->mma_extra_bits;
}

/* ---- the whole ---- */

static void take_formats(fa_arithmetic *to, const fa_arithmetic *claimed, fa_dtype dtype) {
  for (int i = 0; i < FA_N_PRODUCTS; ++i) take_operand(&to->operand[i], claimed->operand[i], dtype);
  take_format(&to->scores, claimed->scores, dtype);
  take_format(&to->p, claimed->p, dtype);
  take_format(&to->ds, claimed->ds, dtype);
  take_format(&to->dp, claimed->dp, dtype);
  take_format(&to->partials, claimed->partials, dtype);
  take_rounding(&to->operand_rounding, claimed->operand_rounding);
  take_rounding(&to->p_rounding, claimed->p_rounding);
  take_rounding(&to->ds_rounding, claimed->ds_rounding);
  if (claimed->p_scale > to->p_scale && claimed->p == to->p) to->p_scale = claimed->p_scale;
}

static void take_flags(fa_arithmetic *to, const fa_arithmetic *claimed) {
  take_flag(&to->q_scaled, claimed->q_scaled);
  take_flag(&to->p_in_ds, claimed->p_in_ds);
  take_flag(&to->delta_rounded, claimed->delta_rounded);
  take_flag(&to->dropout_rounded, claimed->dropout_rounded);
  take_flag(&to->max_lags, claimed->max_lags);
  take_flag(&to->exp_scaled, claimed->exp_scaled);
  take_flag(&to->fast_functions, claimed->fast_functions);
  take_flag(&to->gqa_partials_rounded, claimed->gqa_partials_rounded);
  take_flag(&to->dq_atomic, claimed->dq_atomic);
  take_flag(&to->dkv_atomic, claimed->dkv_atomic);
  take_flag(&to->dbias_atomic, claimed->dbias_atomic);
  take_flag(&to->dbuffer_atomic, claimed->dbuffer_atomic);
  take_flag(&to->dsinks_atomic, claimed->dsinks_atomic);
}

/* Where a backward takes P and delta from, and who multiplies, is no question of accuracy: the judge follows what the
 * candidate says. */
static void take_ways(fa_arithmetic *to, const fa_arithmetic *claimed) {
  to->delta = claimed->delta;
  to->p_kept = claimed->p_kept;
  to->library_products = claimed->library_products;
  to->ds_scaled = claimed->ds_scaled;
}

static void list_ignored(const fa_arithmetic *claimed, const fa_arithmetic *taken, char *out, size_t size) {
  const char *key;
  char said[40], used[40];
  size_t n = 0;
  if (size) out[0] = 0;
  for (int i = 0; fa_arithmetic_get(claimed, i, &key, said, sizeof said); ++i) {
    fa_arithmetic_get(taken, i, &key, used, sizeof used);
    if (strcmp(said, used) == 0 || n >= size) continue;
    n += (size_t)snprintf(out + n, size - n, "%s%s %s", n ? ", " : "", key, said);
  }
}

fa_arithmetic fa_arithmetic_narrow(const fa_arithmetic *pinned, const fa_arithmetic *claimed, fa_dtype dtype,
                                   char *ignored, size_t size) {
  fa_arithmetic a = *pinned;
  take_formats(&a, claimed, dtype);
  take_sums(&a, claimed);
  take_flags(&a, claimed);
  take_ways(&a, claimed);
  take_smaller(&a.eps_exp, claimed->eps_exp);
  take_smaller(&a.eps_log, claimed->eps_log);
  take_smaller(&a.eps_tanh, claimed->eps_tanh);
  if (claimed->block_n > a.block_n) a.block_n = claimed->block_n;
  if (claimed->block_m > a.block_m) a.block_m = claimed->block_m;
  if (claimed->max_splits < a.max_splits) a.max_splits = claimed->max_splits;
  list_ignored(claimed, &a, ignored, size);
  return a;
}

void fa_arithmetic_fit(fa_arithmetic *a, const fa_problem *p) {
  const int64_t useful = p->seqlen_k / KEYS_A_SPLIT > 1 ? p->seqlen_k / KEYS_A_SPLIT : 1;
  if (a->max_splits > useful) a->max_splits = (int)useful;
  if (a->block_n > LARGEST_TILE) a->block_n = LARGEST_TILE;
}
