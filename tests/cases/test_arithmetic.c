/* Named sets of arithmetic: the profiles of our own kernels have not changed, fields are set and read by key, and what
 * fields mean for the bounds' constants. */
#include "cases/arithmetic/fields.h"
#include "tests/support/check.h"

#include <string.h>

/* ---- profiles as they were when each had a row of its own ---- */

typedef struct before {
  const char *name;
  int mma_block, mma_extra_bits;
  bool narrow;
  double u_operand_f32, eps_exp, eps_log, eps_tanh;
  int block_n, max_splits;
  bool exp_scaled, gqa_partials_in_io, dq_atomic, p_only_narrow;
} before;

#define EXP_GPU (0x1p-22 + 0x1p-24)
#define LOG_GPU 0x1p-21
#define TANH_GPU 0x1p-11

static const before profiles[] = {
    {"mma-hopper", 16, 2, true, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 64, 1, true, true, true, false},
    {"mma-ampere", 8, 1, true, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 64, 1, true, true, true, false},
    {"mma-volta", 4, 0, true, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 64, 1, true, true, true, false},
    {"simt-f32", 0, 0, true, 0, 0x1p-22, 0x1p-22, 0x1p-22, 64, 1, false, false, false, false},
    {"3xtf32", 4, 0, false, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 32, 1, true, false, true, false},
    {"recorded", 4, 0, true, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 32, 128, true, true, true, false},
    {"recorded-memeff", 4, 0, true, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 32, 128, true, true, true, true},
};

static void is_as_before(const before *r, fa_dtype dtype) {
  const fa_profile p = fa_profile_get(r->name, dtype);
  const bool narrow = r->narrow && dtype != FA_F32, pair = !r->narrow && r->u_operand_f32 > 0;
  const double u = narrow ? fa_dtype_unit_roundoff(dtype) : pair ? 0x1p-22 : 0;
  CHECK(strcmp(p.name, r->name) == 0 && p.u_p == u && p.u_ds == u);
  CHECK(p.u_p_in_ds == (r->p_only_narrow ? u : 0) && p.u_dropout == (r->p_only_narrow ? u : 0));
  CHECK(p.floor_dq == (r->dq_atomic ? 0x1p-126 : 0) && p.floor_dkv == 0 && p.floor_dbias == 0);
  CHECK(p.floor_p == (narrow && dtype == FA_F16 ? 0x1p-25 : 0x1p-125) && p.floor_ds == p.floor_p);
  CHECK(p.floor_operand == (pair ? 0x1p-126 : 0));
  CHECK(p.max_p == fa_dtype_max(narrow ? dtype : FA_F32) && !p.max_rounded);
  CHECK(p.exp_scaled == r->exp_scaled && p.mma_block == r->mma_block &&
        p.mma_extra_bits == r->mma_extra_bits);
  CHECK_MSG(p.u_operand == (dtype == FA_F32 ? r->u_operand_f32 : 0), "%s %g", r->name, p.u_operand);
  CHECK(p.eps_exp == r->eps_exp && p.eps_log == r->eps_log && p.eps_tanh == r->eps_tanh);
  CHECK(p.fast_functions == (narrow && r->eps_tanh == TANH_GPU));
  CHECK(p.block_n == r->block_n && p.max_splits == r->max_splits && p.block_m == 0);
  CHECK(p.gqa_partials_in_io == r->gqa_partials_in_io && p.dq_atomic == r->dq_atomic);
  CHECK(!p.dkv_atomic && !p.dbias_atomic && !p.dbuffer_atomic);
}

/* Nothing of what only foreign kernels do. */
static void is_one_of_ours(const before *r, fa_dtype dtype) {
  const fa_profile p = fa_profile_get(r->name, dtype);
  CHECK(p.delta == FA_DELTA_STORED_O && !p.p_kept && p.u_scores == 0 && p.u_dp == 0 && p.u_lse == 0 &&
        p.u_partials == 0);
  CHECK(p.truncated_p == 0 && p.truncated_ds == 0);
  for (int i = 0; i < FA_N_PRODUCTS; ++i) {
    CHECK(p.accumulator[i] == (r->mma_block ? FA_ACCUMULATOR_MMA : FA_ACCUMULATOR_F32));
    CHECK(p.operand[i] == p.u_operand && p.operand_floor[i] == 0 && p.operand_step[i] == 0);
  }
}

/* ---- fields ---- */

static fa_status set(fa_arithmetic *a, const char *key, fa_arithmetic_value value, fa_error *err) {
  return fa_arithmetic_set(a, key, &value, err);
}
static fa_status set_word(fa_arithmetic *a, const char *key, const char *word, fa_error *err) {
  return set(a, key, (fa_arithmetic_value){.word = word}, err);
}
static fa_status set_number(fa_arithmetic *a, const char *key, double x, fa_error *err) {
  return set(a, key, (fa_arithmetic_value){.is_number = true, .number = x}, err);
}
static fa_status set_flag(fa_arithmetic *a, const char *key, bool x, fa_error *err) {
  return set(a, key, (fa_arithmetic_value){.is_flag = true, .flag = x}, err);
}

static void refused(fa_status status, const fa_error *err, const char *text) {
  CHECK_MSG(status == FA_ERR_INPUT && strstr(err->text, text), "%s", err->text);
}

/* What get prints, set reads back. */
static void goes_round(const char *name, fa_dtype dtype) {
  fa_arithmetic a, b;
  const char *key;
  char text[64];
  REQUIRE(fa_arithmetic_named(name, dtype, &a) && fa_arithmetic_named("recorded-memeff", FA_F16, &b));
  int n = 0;
  for (; fa_arithmetic_get(&a, n, &key, text, sizeof text); ++n) {
    char *end;
    const double x = strtod(text, &end);
    fa_error err = {""};
    fa_status status = *end ? set_word(&b, key, text, &err) : set_number(&b, key, x, &err);
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
      status = set_flag(&b, key, *text == 't', &err);
    const bool unset = strcmp(key, "block_m") == 0 && x == 0;
    CHECK_MSG(status == FA_OK || unset, "%s", err.text);
  }
  CHECK_MSG(n == 50, "%d", n);
  b.name = a.name;
  const fa_profile pa = fa_arithmetic_profile(&a, dtype), pb = fa_arithmetic_profile(&b, dtype);
  CHECK_MSG(pa.u_p == pb.u_p && pa.eps_exp == pb.eps_exp && pa.delta == pb.delta && pa.p_kept == pb.p_kept &&
                pa.u_operand == pb.u_operand && pa.block_n == pb.block_n && pa.u_scores == pb.u_scores &&
                memcmp(pa.accumulator, pb.accumulator, sizeof pa.accumulator) == 0,
            "%s", name);
}

static void fields_by_key(void) {
  fa_arithmetic a;
  fa_error err = {""};
  REQUIRE(fa_arithmetic_named("simt-f32", FA_F32, &a));
  CHECK(set_word(&a, "operand_qk", "tf32", &err) == FA_OK && a.operand[FA_PRODUCT_QK] == FA_FORMAT_TF32);
  CHECK(a.operand[FA_PRODUCT_PV] == FA_FORMAT_IO);
  CHECK(set_word(&a, "accumulator", "f16", &err) == FA_OK &&
        a.accumulator[FA_PRODUCT_DK] == FA_ACCUMULATOR_F16);
  CHECK(set_number(&a, "block_n", 128, &err) == FA_OK && a.block_n == 128);
  CHECK(set_flag(&a, "p_kept", true, &err) == FA_OK && a.p_kept);
  refused(set_word(&a, "p", "f17", &err), &err, "p: \"f17\" is none of io, f32, 3xtf32");
  refused(set_number(&a, "p", 1, &err), &err, "p: ");
  refused(set_word(&a, "colour", "red", &err), &err, "colour is no field");
  refused(set_number(&a, "block_n", 0, &err), &err, "block_n must be a whole number from 1 to");
  refused(set_number(&a, "block_n", 1.5, &err), &err, "block_n");
  refused(set_number(&a, "eps_exp", 7, &err), &err, "eps_exp must be a number from 0 to 0.25");
  refused(set_word(&a, "p_kept", "yes", &err), &err, "p_kept must be true or false");
}

/* ---- what fields mean ---- */

static fa_profile changed(const char *name, fa_dtype dtype, const char *key, const char *word) {
  fa_arithmetic a;
  fa_error err = {""};
  REQUIRE(fa_arithmetic_named(name, dtype, &a) && set_word(&a, key, word, &err) == FA_OK);
  return fa_arithmetic_profile(&a, dtype);
}

static fa_profile flagged(fa_dtype dtype, const char *key) {
  fa_arithmetic a;
  fa_error err = {""};
  REQUIRE(fa_arithmetic_named("triton", dtype, &a) && set_flag(&a, key, true, &err) == FA_OK);
  return fa_arithmetic_profile(&a, dtype);
}

/* A delta in the element type: in f32 there is nothing to lose. */
static void flags(void) {
  CHECK(flagged(FA_F16, "ds_scaled").ds_scaled && !flagged(FA_F16, "delta_rounded").ds_scaled);
  CHECK(flagged(FA_F16, "delta_rounded").u_delta == 0x1p-11 && flagged(FA_F16, "ds_scaled").u_delta == 0);
  CHECK(flagged(FA_F16, "delta_rounded").floor_delta == 0x1p-25);
  const fa_profile scaled = flagged(FA_F16, "q_scaled"), plain = flagged(FA_F16, "delta_rounded");
  CHECK(scaled.operand[FA_PRODUCT_QK] == 0x1p-10 + 0x1p-22 && plain.operand[FA_PRODUCT_QK] == 0);
  CHECK(scaled.operand[FA_PRODUCT_DQ] > 0 && scaled.operand[FA_PRODUCT_PV] == 0);
  CHECK(scaled.operand_floor[FA_PRODUCT_DK] == 0x1p-25 && plain.operand_floor[FA_PRODUCT_DK] == 0);
  CHECK(flagged(FA_F16, "dkv_atomic").dkv_atomic && flagged(FA_F16, "dkv_atomic").block_m > 0 &&
        plain.block_m == 0);
  CHECK(flagged(FA_F32, "delta_rounded").u_delta == 0 && flagged(FA_F32, "delta_rounded").floor_delta == 0);
}

/* Of stored numbers: an O that is rounded before V's descale. */
static void late_descales(void) {
  fa_arithmetic a;
  fa_error err = {""};
  for (int late = 0; late < 2; ++late) {
    REQUIRE(fa_arithmetic_named("simt-f32", FA_BF16, &a) &&
            set_flag(&a, "o_descaled_late", late, &err) == FA_OK);
    fa_profile p = fa_arithmetic_profile(&a, FA_BF16);
    fa_arithmetic_add_descales(&a, FA_BF16, false, false, &p);
    CHECK(p.descales && p.u_o_descaled == (late ? 0x1p-8 : 0) && (p.floor_o_descaled > 0) == (late == 1));
  }
}

static void constants(void) {
  fa_profile p = changed("simt-f32", FA_F32, "operand", "tf32");
  CHECK(p.operand[FA_PRODUCT_PV] == 0x1p-11 && p.operand[FA_PRODUCT_QK] == 0x1p-10 + 0x1p-22);
  p = changed("simt-f32", FA_F16, "operand", "tf32"); /* which has all of f16's numbers */
  CHECK(p.u_operand == 0 && p.operand_floor[FA_PRODUCT_QK] == 0);
  p = changed("simt-f32", FA_BF16, "operand", "f16"); /* bf16 reaches further */
  CHECK(p.operand[FA_PRODUCT_PV] == 0x1p-11 && p.operand_max[FA_PRODUCT_PV] == 65504);
  p = changed("simt-f32", FA_F16, "operand", "int8"); /* a step of the tensor, and no part of an element */
  CHECK(p.operand[FA_PRODUCT_QK] == 0 && p.operand_step[FA_PRODUCT_QK] > 0 &&
        p.operand_floor[FA_PRODUCT_QK] == 0);
  p = changed("simt-f32", FA_F16, "p", "e4m3");
  CHECK(p.u_p == 0x1p-4 && p.floor_p == 0x1p-10 && p.max_weight == 448 && p.u_ds == 0x1p-11);
  p = changed("simt-f32", FA_BF16, "p_rounding", "truncate");
  CHECK(p.u_p == 0x1p-8 && p.truncated_p == 0x1p-8 && p.truncated_ds == 0);
  p = fa_profile_get("numpy-f32", FA_F32);
  CHECK(p.u_p == 0 && p.u_ds == 0 && p.mma_block == 0 && p.p_kept && p.delta == FA_DELTA_SUM_P_DP);
  p = fa_profile_get("torch-eager", FA_BF16);
  CHECK(p.u_scores == 0x1p-8 && p.u_dp == 0x1p-8 && p.u_p_in_ds == 0x1p-8 && p.u_dropout == 0x1p-8);
  p = fa_profile_get("torch-eager", FA_F32);
  CHECK(p.u_scores == 0 && p.u_dp == 0 && p.u_p == 0);
  CHECK(fa_profile_get("mma-sm80", FA_F32).u_ds == 0x1p-11 &&
        fa_profile_get("triton", FA_F16).u_operand == 0);
  p = fa_profile_get("triton", FA_F32);
  CHECK(p.u_ds == 0x1p-11 && p.u_operand > 0x1p-9 && p.operands_cut && p.truncated_p == 0x1p-11);
  CHECK(fa_profile_get("triton", FA_F16).truncated_p == 0 && !fa_profile_get("triton", FA_F16).operands_cut);
}

int main(void) {
  static const fa_dtype dtypes[] = {FA_F16, FA_BF16, FA_F32};
  for (int t = 0; t < 3; ++t) {
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; ++i) {
      is_as_before(&profiles[i], dtypes[t]);
      is_one_of_ours(&profiles[i], dtypes[t]);
    }
    for (int i = 0; fa_arithmetic_name(i); ++i) {
      CHECK(fa_arithmetic_what(i) != NULL && fa_profile_exists(fa_arithmetic_name(i)));
      goes_round(fa_arithmetic_name(i), dtypes[t]);
    }
  }
  CHECK(!fa_profile_exists("simt") && fa_arithmetic_name(-1) == NULL);
  fields_by_key();
  constants();
  flags();
  late_descales();
  return check_done();
}
