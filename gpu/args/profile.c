/* The arithmetic of a case's kernels: from the plans that its calls may be given. */
#include "gpu/args/calls.h"

#include "cases/arithmetic/fields.h"

#include <math.h>

/* What all of them have in common, or the least or most of any. */
typedef struct plans {
  fa_plan forward, backward; /* the last ones: family, sums in memory; not made: no launches, FLASH */
  bool is_hopper;            /* of some forward plan */
  bool is_hopper_backward;   /* of some backward plan: few rows have a portable forward beside it */
  int block_n;               /* keys at a time, the least; 0: no plan was made */
  int block_m;               /* rows that are added to dK and dV at a time, the least; 0: they are not */
  int n_splits;              /* the most */
} plans;

static void least(int *so_far, int n) {
  if (n > 0 && (*so_far == 0 || n < *so_far)) *so_far = n;
}

static void add_plans(const fa_problem *p, bool aligned, const fa_kernel_device *device, int n_processors,
                      plans *x) {
  fa_args args;
  const char *why;
  if (fa_args_stand_in(p, aligned, n_processors, &args, &why, NULL) == FA_OK && !why) {
    if (fa_plan_make(&args.forward, device, &x->forward, NULL) == FA_OK) {
      least(&x->block_n, x->forward.block_n);
      x->is_hopper |= x->forward.is_hopper;
      if (x->forward.n_splits > x->n_splits) x->n_splits = x->forward.n_splits;
    }
    if (p->family != FA_KVCACHE && fa_plan_make(&args.backward, device, &x->backward, NULL) == FA_OK) {
      x->is_hopper_backward |= x->backward.is_hopper;
      if (x->backward.adds_dkv) least(&x->block_m, x->backward.block_m);
    }
  }
  fa_args_free(&args);
}

/* Aligned or not; and a kernel for sm_90a gives way where it cannot be had. */
static void make_plans(const fa_problem *p, const fa_kernel_device *device, int n_processors, plans *x) {
  fa_kernel_device portable = device ? *device : (fa_kernel_device){0};
  portable.hopper = 0;
  for (int aligned = 0; aligned < 2; ++aligned) {
    if (device && device->hopper) add_plans(p, aligned, device, n_processors, x);
    add_plans(p, aligned, device ? &portable : NULL, n_processors, x);
  }
}

/* The memeff kernels keep P and dS in float and multiply by three tf32 products whatever the elements are, and
 * subtract the maximum before they scale to base 2. */
static void memeff_profile(const fa_problem *p, const plans *x, bool hopper, fa_profile *out) {
  *out = fa_profile_get("3xtf32", FA_F32);
  out->exp_scaled = false;
  out->dq_atomic = x->backward.adds_dq;
  /* what is added is scaled already */
  out->floor_dq = out->dq_atomic && p->scale != 0 ? 0x1p-126 / fabs(p->scale) : 0;
  if (!hopper) out->mma_block = 2; /* three tf32 products of two blocks of four to every eight columns */
}

/* A gradient of the bias that is summed is added up in memory, or comes from a memeff kernel, whatever kernels
 * the others come from. */
static void add_dbias(const fa_problem *p, const plans *x, bool hopper, fa_profile *out) {
  const fa_bias *b = &p->bias;
  if (!b->present || !b->grad || (b->per_batch && b->per_head && b->per_query)) return;
  if (x->backward.adds_dbias) {
    fa_profile_add_bias_in_memory(out);
    return;
  }
  const fa_profile memeff = fa_profile_get("3xtf32", FA_F32);
  out->mma_block = hopper ? memeff.mma_block : 2; /* as memeff_profile */
  out->mma_extra_bits = memeff.mma_extra_bits;
}

/* The portable kernels of f32 are memeff ones; those of 16-bit elements round P and dS to them. They add
 * nothing up in memory but the gradients of buffers. Where those for sm_90a may do the work, they may too.
 * Expressions of 16-bit calls go through the device's approximations whatever the kernels. */
static void flex_profile(const fa_problem *p, const plans *x, bool hopper, fa_profile *out) {
  const fa_profile memeff = fa_profile_get("3xtf32", FA_F32);
  const bool is_hopper = x->is_hopper || x->is_hopper_backward;
  if (p->dtype == FA_F32 && !is_hopper)
    *out = memeff;
  else
    out->name = "flex-hopper"; /* errors may be smaller than its own: no lower edge of their statistics */
  if (!is_hopper) {
    out->exp_scaled = out->dq_atomic = false;
    out->floor_dq = 0;
  }
  out->mma_block = hopper ? memeff.mma_block : 2; /* as memeff_profile */
  out->mma_extra_bits = memeff.mma_extra_bits;
  out->fast_functions = p->dtype != FA_F32;
  out->dbuffer_atomic = true;
}

/* hopper_forward_config's LAZY = 2. */
static bool keeps_maximum(const fa_problem *p) {
  return p->head_dim > 128 || p->head_dim_v > 128;
}

static void flash_profile(const fa_problem *p, const plans *x, bool hopper, fa_profile *out) {
  const bool is_linear = p->dropout.p > 0 && p->family == FA_MEMEFF;
  out->max_rounded = hopper && keeps_maximum(p);
  if (p->bias.present || is_linear)
    out->exp_scaled = false; /* the biased and mixed kernels subtract the maximum first */
  add_dbias(p, x, hopper, out);
  if (x->block_m) fa_profile_add_keys_in_memory(out, x->block_m);
  /* gradients of memeff kernels have smaller errors than these: no lower edge of their statistics */
  if (x->backward.family == FA_PLAN_MEMEFF) out->name = "flash-memeff";
}

/* Over a cache of 8 bits: its numbers become elements exactly, and descales are multiplied by in f32. Tiles are multiplied
 * by theirs as they are loaded, and the products rounded to elements. */
static void add_cache_descales(const fa_problem *p, fa_profile *out) {
  fa_arithmetic a;
  if (!p->quantized.present) return;
  FA_ASSERT(fa_arithmetic_named("mma-hopper", p->dtype, &a));
  if (p->quantized.per == FA_PER_TILE)
    a.k_descaled = a.v_descaled = p->dtype == FA_BF16 ? FA_FORMAT_BF16 : FA_FORMAT_F16;
  fa_arithmetic_add_descales(&a, p->dtype, false, fa_problem_has_descales_of_keys(p), out);
}

/* The kernels for e4m3: their own maximum is the newest, and descales are multiplied by in f32. */
static void eight_profile(const fa_problem *p, fa_profile *out) {
  const fa_dtype dtype = fa_problem_operand_dtype(p);
  fa_arithmetic a;
  FA_ASSERT(fa_arithmetic_named("fp8-sm90", dtype, &a));
  a.max_lags = false;
  *out = fa_arithmetic_profile(&a, dtype);
  fa_arithmetic_add_descales(&a, p->dtype, true, false, out);
}

void fa_args_profile(const fa_problem *p, bool hopper, const fa_kernel_device *device, int n_processors,
                     fa_profile *out) {
  plans x = {.n_splits = 1};
  *out = fa_profile_get(hopper ? "mma-hopper" : "mma-ampere", p->dtype);
  if (p->family == FA_MERGE) { /* the maximum is subtracted first, and nothing is multiplied as a matrix */
    out->exp_scaled = false;
    return;
  }
  if (p->quantized.present && p->family != FA_KVCACHE) {
    eight_profile(p, out);
    return;
  }
  out->gqa_partials_in_io = false; /* a group's dK and dV are summed in float */
  make_plans(p, device, n_processors, &x);
  if (x.block_n == 0) return;
  switch (x.forward.family) {
  case FA_PLAN_MEMEFF:
    memeff_profile(p, &x, hopper, out);
    break;
  case FA_PLAN_FLEX:
    flex_profile(p, &x, hopper, out);
    break;
  case FA_PLAN_CACHE: /* or over ordinary keys that are split, with the flash kernels' backward */
    out->max_splits = x.n_splits;
    out->max_rounded = x.is_hopper && keeps_maximum(p);
    add_cache_descales(p, out);
    if (x.block_m) fa_profile_add_keys_in_memory(out, x.block_m);
    break;
  default:
    flash_profile(p, &x, hopper, out);
  }
  out->block_n = x.block_n;
}
