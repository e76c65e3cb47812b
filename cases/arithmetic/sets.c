/* Named sets of arithmetic. Where each number comes from: docs/reference/arithmetic.md. */
#include "cases/arithmetic/sets.h"

/* Hardware exponential and logarithm: the errors of ex2.approx (2^-22.71) and lg2.approx (2^-22.15) were
 * measured over all floats on one chip, tanh.approx is as documented; each is rounded up to the next power of
 * two, plus the f32 rounding of the multiplication before or after it. CPU: a C library's expf, logf and tanhf
 * within 2 ulp. */
#define GPU .eps_exp = 0x1p-22 + 0x1p-24, .eps_log = 0x1p-21, .eps_tanh = 0x1p-11, .fast_functions = true
#define CPU .eps_exp = 0x1p-22, .eps_log = 0x1p-22, .eps_tanh = 0x1p-22
/* A part of the exponentials by a cubic polynomial. */
#define POLYNOMIAL .eps_exp = 0x1p-13, .eps_log = 0x1p-21, .eps_tanh = 0x1p-11, .fast_functions = true

#define ALL(x)                                                                                               \
  { x, x, x, x, x, x }
#define SCALAR .accumulator = ALL(FA_ACCUMULATOR_F32)
#define MATRIX(block, extra)                                                                                 \
  .accumulator = ALL(FA_ACCUMULATOR_MMA), .mma_block = block, .mma_extra_bits = extra
#define NARROW_P .p = FA_FORMAT_IO, .ds = FA_FORMAT_IO
#define WIDE_P .p = FA_FORMAT_F32, .ds = FA_FORMAT_F32
#define UNROUNDED .scores = FA_FORMAT_F32, .dp = FA_FORMAT_F32, .partials = FA_FORMAT_F32
#define COMMON UNROUNDED, .p_scale = 1
#define FLASH_8 UNROUNDED, NARROW_P, .exp_scaled = true
#define FLASH COMMON, NARROW_P, .exp_scaled = true, .gqa_partials_rounded = true, .dq_atomic = true
/* The whole matrix of P is there, and automatic differentiation uses it again. */
#define WHOLE .p_kept = true, .delta = FA_DELTA_SUM_P_DP, .block_n = 64, .max_splits = 1

/* f32: an operand as three tf32 products, unless a set says otherwise. */
#define F32_AS_3XTF32                                                                                        \
  { FA_FORMAT_3XTF32, FA_FORMAT_F32, FA_FORMAT_F32, FA_ROUND_NEAREST }
#define F32_AS_TF32                                                                                          \
  { FA_FORMAT_TF32, FA_FORMAT_TF32, FA_FORMAT_TF32, FA_ROUND_NEAREST }
#define F32_AS_CUT_TF32                                                                                      \
  { FA_FORMAT_TF32, FA_FORMAT_TF32, FA_FORMAT_TF32, FA_ROUND_TRUNCATE }
#define F32_AS_BF16                                                                                          \
  { FA_FORMAT_BF16, FA_FORMAT_BF16, FA_FORMAT_BF16, FA_ROUND_NEAREST }

const fa_arithmetic_set_row fa_arithmetic_sets[] = {
    {"mma-hopper",
     "the project's kernels on Hopper's tensor cores",
     {FLASH, GPU, MATRIX(16, 2), .block_n = 64, .max_splits = 1},
     F32_AS_3XTF32},
    {"mma-ampere",
     "the project's kernels on Ampere's tensor cores",
     {FLASH, GPU, MATRIX(8, 1), .block_n = 64, .max_splits = 1},
     F32_AS_3XTF32},
    {"mma-volta",
     "the project's kernels on Volta's tensor cores",
     {FLASH, GPU, MATRIX(4, 0), .block_n = 64, .max_splits = 1},
     F32_AS_3XTF32},
    {"flash",
     "what a kernel may do that adds up in float32 and rounds P to the elements: pinned for untrusted ones",
     {COMMON, NARROW_P, GPU, MATRIX(8, 1), .exp_scaled = true, .gqa_partials_rounded = true, .block_n = 32,
      .max_splits = 128},
     F32_AS_3XTF32},
    {"simt-f32",
     "scalar f32 with a C library's functions; P and dS rounded to 16-bit elements",
     {COMMON, NARROW_P, CPU, SCALAR, .block_n = 64, .max_splits = 1},
     {0}},
    {"3xtf32",
     "f32 as three tf32 products, whatever the elements are; P and dS the same",
     {COMMON, GPU, MATRIX(4, 0), .operand = ALL(FA_FORMAT_3XTF32), .p = FA_FORMAT_3XTF32,
      .ds = FA_FORMAT_3XTF32, .exp_scaled = true, .dq_atomic = true, .block_n = 32, .max_splits = 1},
     {0}},
    {"recorded",
     "a superset of tensor-core kernels, for runs of unknown ones",
     {FLASH, GPU, MATRIX(4, 0), .block_n = 32, .max_splits = 128},
     F32_AS_3XTF32},
    {"recorded-memeff",
     "the same for memory-efficient kernels: P passes through shared memory in 16 bits",
     {FLASH, GPU, MATRIX(4, 0), .block_n = 32, .max_splits = 128, .p_in_ds = true, .dropout_rounded = true},
     F32_AS_3XTF32},
    {"numpy-f32",
     "float32 throughout, as in NumPy: nothing is rounded before the end, P is kept",
     {COMMON, WIDE_P, CPU, SCALAR, WHOLE},
     {0}},
    {"torch-eager",
     "one operation at a time, as in PyTorch's eager mode: every intermediate result in the element type",
     {.scores = FA_FORMAT_IO,
      .dp = FA_FORMAT_IO,
      .partials = FA_FORMAT_F32,
      .p_scale = 1,
      NARROW_P,
      .p_in_ds = true,
      .dropout_rounded = true,
      CPU,
      SCALAR,
      WHOLE},
     {0}},
    {"torch-math",
     "PyTorch's math path: 16-bit elements in float32 throughout, rounded at the end",
     {COMMON, WIDE_P, CPU, SCALAR, WHOLE},
     {0}},
    {"triton",
     "a Triton kernel with tl.dot as it comes: tf32 products for f32, whose operands lose their lower bits",
     {COMMON, NARROW_P, GPU, MATRIX(8, 1), .exp_scaled = true, .block_n = 16, .max_splits = 1},
     F32_AS_CUT_TF32},
    {"mma-sm80",
     "16-bit tensor cores from Ampere on (mma.sync); f32 by tf32 products",
     {FLASH, GPU, MATRIX(8, 1), .block_n = 16, .max_splits = 128},
     F32_AS_TF32},
    {"wgmma-sm90",
     "Hopper's warpgroup products; the largest weight may not be 1",
     {FLASH, GPU, MATRIX(16, 2), .block_n = 16, .max_splits = 128, .max_lags = true},
     F32_AS_TF32},
    {"tcgen05-sm100",
     "Blackwell's tensor memory kernels; some exponentials by a polynomial, a maximum that lags behind",
     {FLASH, POLYNOMIAL, MATRIX(16, 2), .block_n = 16, .max_splits = 128, .max_lags = true},
     F32_AS_TF32},
    {"mfma-cdna3",
     "AMD's matrix cores (CK and AITER kernels)",
     {FLASH, GPU, MATRIX(4, 0), .block_n = 16, .max_splits = 128},
     F32_AS_TF32},
    {"fp8-sm90",
     "Hopper's products of 8 bits: queries, keys and values; a fresh accumulator every 128 keys, P times 2^8",
     {FLASH_8, GPU, .accumulator = ALL(FA_ACCUMULATOR_NARROW), .mma_block = 32, .mma_extra_bits = -10,
      .p_scale = 256, .accumulator_keys = 128, .block_n = 128, .max_splits = 1, .max_lags = true},
     {0}},
    {"amx-bf16",
     "Intel's tiles of bf16: pairs of products added to f32; f32 elements are rounded to bf16",
     {COMMON, NARROW_P, CPU, SCALAR, .block_n = 16, .max_splits = 1},
     F32_AS_BF16},
    {"avx512-bf16",
     "vector dot products of bf16 pairs; f32 elements are rounded to bf16",
     {COMMON, NARROW_P, CPU, SCALAR, .block_n = 16, .max_splits = 1},
     F32_AS_BF16},
};
const int fa_n_arithmetic_sets = sizeof fa_arithmetic_sets / sizeof *fa_arithmetic_sets;
