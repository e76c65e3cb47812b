/* The table of arithmetic profiles. Where each number comes from: docs/reference/bounds.md, "Constants". */
#include "cases/vocabulary/profile.h"

#include "cases/base/status.h"

#include <string.h>

typedef struct fa_profile_row {
  const char *name;
  int mma_block, mma_extra_bits; /* 0, 0: scalar fma */
  bool narrow;                   /* P and dS are rounded to the I/O type before the second GEMM */
  double u_operand_f32;          /* operand rounding when the I/O type is f32 */
  double eps_exp, eps_log, eps_tanh;
  int block_n, max_splits;
  bool exp_scaled, gqa_partials_in_io, dq_atomic;
  bool p_only_narrow; /* P and dropout's factor exist only in the I/O type */
} fa_profile_row;

/* Hardware exponential and logarithm: the errors of ex2.approx (2^-22.71) and lg2.approx (2^-22.15) were
 * measured over all floats on one chip, tanh.approx is as documented; each is rounded up to the next power of
 * two, plus the f32 rounding of the multiplication before or after it. Scalar f32: a C library's expf, logf
 * and tanhf within 2 ulp. */
#define EXP_GPU (0x1p-22 + 0x1p-24)
#define LOG_GPU 0x1p-21
#define TANH_GPU 0x1p-11
#define EXP_CPU 0x1p-22
#define LOG_CPU 0x1p-22
#define TANH_CPU 0x1p-22

/* 3xtf32: an f32 product as three tf32 products omits low x low, 2^-22 relative, and cuts each low part to 11
 * bits, 2^-22 again. */
static const fa_profile_row table[] = {
    {"mma-hopper", 16, 2, true, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 64, 1, true, true, true, false},
    {"mma-ampere", 8, 1, true, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 64, 1, true, true, true, false},
    {"mma-volta", 4, 0, true, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 64, 1, true, true, true, false},
    {"simt-f32", 0, 0, true, 0, EXP_CPU, LOG_CPU, TANH_CPU, 64, 1, false, false, false, false},
    {"3xtf32", 4, 0, false, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 32, 1, true, false, true, false},
    {"recorded", 4, 0, true, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 32, 128, true, true, true, false},
    {"recorded-memeff", 4, 0, true, 0x1p-21, EXP_GPU, LOG_GPU, TANH_GPU, 32, 128, true, true, true, true},
};

static const fa_profile_row *find(const char *name) {
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
    if (strcmp(table[i].name, name) == 0) return &table[i];
  return NULL;
}

bool fa_profile_exists(const char *name) {
  return find(name) != NULL;
}

fa_profile fa_profile_get(const char *name, fa_dtype dtype) {
  const fa_profile_row *r = find(name);
  FA_ASSERT(r != NULL);
  bool narrow = r->narrow && (dtype == FA_F16 || dtype == FA_BF16);
  bool pair = !r->narrow && r->u_operand_f32 > 0; /* P and dS are pairs of tf32: not all bits of f32 */
  double u = narrow ? fa_dtype_unit_roundoff(dtype) : pair ? 0x1p-22 : 0;
  return (fa_profile){.name = r->name,
                      .u_p = u,
                      .u_ds = u,
                      .u_p_in_ds = r->p_only_narrow ? u : 0,
                      .u_dropout = r->p_only_narrow ? u : 0,
                      .floor_dq = r->dq_atomic ? 0x1p-126 : 0,
                      .floor_p = narrow && dtype == FA_F16 ? 0x1p-25 : 0x1p-125,
                      .floor_operand = pair ? 0x1p-126 : 0,
                      .max_p = narrow ? fa_dtype_max(dtype) : fa_dtype_max(FA_F32),
                      .exp_scaled = r->exp_scaled,
                      .mma_block = r->mma_block,
                      .mma_extra_bits = r->mma_extra_bits,
                      .u_operand = dtype == FA_F32 ? r->u_operand_f32 : 0,
                      .eps_exp = r->eps_exp,
                      .eps_log = r->eps_log,
                      .eps_tanh = r->eps_tanh,
                      .fast_functions = narrow && r->eps_tanh == TANH_GPU,
                      .block_n = r->block_n,
                      .max_splits = r->max_splits,
                      .gqa_partials_in_io = r->gqa_partials_in_io,
                      .dq_atomic = r->dq_atomic};
}

void fa_profile_add_keys_in_memory(fa_profile *p, int block_m) {
  p->dkv_atomic = true;
  p->floor_dkv = 0x1p-126;
  p->block_m = block_m;
}

void fa_profile_add_bias_in_memory(fa_profile *p) {
  p->dbias_atomic = true;
  p->floor_dbias = 0x1p-126;
}
