#include "tests/exec/simulated/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"io",   "f32",  "3xtf32", "tf32", "f16",
                                      "bf16", "e4m3", "e5m2",   "int8", NULL};
static const char *const sums[] = {"lanes", "sequential", "pairwise", "mma", "narrow", "f16", "bf16", NULL};
static const char *const deltas[] = {"stored_o", "exact_o", "sum_p_dp", NULL};
static const char *const exps[] = {"libm", "approx", "poly", NULL};
static const char *const empties[] = {"as_case", "+inf", "-inf", "0", "nan", "mean_v", NULL};
static const char *const calls[] = {"any", "packed", "cache", "paged", "decode", "paged_decode", NULL};
static const char *const bugs[] = {"none",      "next_head", "first_sequence", "next_key",
                                   "k_twice",   "v_twice",   "k_missing",      "v_missing",
                                   "q_missing", "swapped",   "reciprocal",     NULL};
static const char *const amax_bugs[] = {"none",          "first_keys", "first_rows", "first_head",
                                        "last_sequence", "relative",   "scaled",     "before_descale",
                                        "signed",        "dropped",    "uncleared",  NULL};
static const char *const four_bugs[] = {"none",         "high_first",     "next_block",  "blocks_of_32",
                                        "next_slot",    "scales_missing", "scales_of_k", "halves_lost",
                                        "six_is_eight", "sign_of_byte",   NULL};
static const char *const o_bugs[] = {"none",    "twice", "missing", "divided",       "overflows", "truncated",
                                     "flushed", "early", "amax",    "rounded_twice", NULL};
static const char *const failures[] = {"none", "hangs", "crashes", NULL};
static const char *const times[] = {"softcap", "backward", "always", NULL};
static const char *const layouts[] = {"as_family", "flash", "memeff", NULL};

/* words NULL: a number. count > 1: all of so many fields at once. */
static const struct key {
  const char *name;
  const char *const *words;
  size_t offset;
  int count;
  bool real;
} keys[] = {
#define INT(f)                                                                                               \
  { #f, NULL, offsetof(sim_config, f), 1, false }
#define REAL(f)                                                                                              \
  { #f, NULL, offsetof(sim_config, f), 1, true }
#define WORD(f, w)                                                                                           \
  { #f, w, offsetof(sim_config, f), 1, false }
#define PRODUCT(name, i)                                                                                     \
  {"operand_" name, formats, offsetof(sim_config, operand) + (i) * sizeof(int), 1, false}, {                 \
    "sum_" name, sums, offsetof(sim_config, sum) + (i) * sizeof(int), 1, false                               \
  }
    {"operand", formats, offsetof(sim_config, operand), SIM_N_PRODUCTS, false},
    {"sum", sums, offsetof(sim_config, sum), SIM_N_PRODUCTS, false},
    PRODUCT("qk", SIM_QK),
    PRODUCT("pv", SIM_PV),
    PRODUCT("dp", SIM_DP),
    PRODUCT("dv", SIM_DV),
    PRODUCT("dq", SIM_DQ),
    PRODUCT("dk", SIM_DK),
    INT(operand_truncate),
    INT(block),
    INT(extra_bits),
    WORD(scores, formats),
    WORD(p, formats),
    WORD(ds, formats),
    WORD(dp, formats),
    INT(p_truncate),
    INT(ds_truncate),
    REAL(p_scale),
    REAL(max_lag),
    INT(fresh_accumulator),
    INT(p_nan),
    WORD(k_descaled, formats),
    WORD(v_descaled, formats),
    INT(o_descaled_late),
    WORD(descale_bug, bugs),
    WORD(amax_bug, amax_bugs),
    INT(amax_from_lse),
    WORD(four_bug, four_bugs),
    WORD(o_bug, o_bugs),
    INT(normalise_before),
    INT(block_n),
    INT(splits),
    WORD(partial, formats),
    INT(partial_unnormalised),
    WORD(exp, exps),
    INT(exp_scaled),
    WORD(delta, deltas),
    INT(p_kept),
    INT(p_in_ds),
    INT(ds_scaled),
    INT(delta_rounded),
    INT(dropout_rounded),
    INT(gqa_partials_rounded),
    INT(lse_base2),
    INT(lse_unscaled),
    INT(lse_none),
    WORD(lse_of_empty, empties),
    WORD(o_of_empty, empties),
    INT(lse_alibi_column),
    INT(top_left),
    INT(window_left_more),
    INT(window_right_more),
    INT(gqa_modulo),
    INT(drop_last_key),
    INT(softcap_before_scale),
    INT(alibi_flipped),
    INT(tall_unmasked),
    INT(root_scale),
    REAL(scale_factor),
    INT(dq_unscaled),
    INT(dk_unscaled),
    INT(dlse_ignored),
    INT(dropout_rounds),
    WORD(dropout_layout, layouts),
    INT(nondeterministic),
    INT(f32_only),
    WORD(only, calls),
    WORD(fails, failures),
    WORD(fails_at, times),
#undef INT
#undef REAL
#undef WORD
#undef PRODUCT
};

/* Kernels of the world, as far as their arithmetic goes. */
static const struct variant {
  const char *name, *text;
} variants[] = {
    {"numpy-f32", "p_kept=1,normalise_before=1,delta=sum_p_dp"},
    {"torch-eager",
     "scores=io,p=io,ds=io,dp=io,p_in_ds=1,dropout_rounded=1,p_kept=1,normalise_before=1,delta=sum_p_dp"},
    {"torch-math", "p_kept=1,normalise_before=1,delta=sum_p_dp"},
    {"tf32", "operand=tf32,p=tf32,ds=tf32,sum=mma,block=4,extra_bits=1,block_n=64,exp=approx,exp_scaled=1"},
    {"tf32-truncated", "operand=tf32,operand_truncate=1,p=tf32,p_truncate=1,ds=tf32,ds_truncate=1,sum=mma,"
                       "block=4,extra_bits=1,block_n=64,exp=approx,exp_scaled=1"},
    {"3xtf32", "f32_only=1,operand=3xtf32,sum=mma,block=4,extra_bits=1,block_n=32,exp=approx,exp_scaled=1"},
    {"mma-sm80", "p=io,ds=io,sum=mma,block=8,extra_bits=1,block_n=64,exp=approx,exp_scaled=1"},
    {"wgmma", "p=io,ds=io,sum=mma,block=16,extra_bits=2,block_n=128,exp=approx,exp_scaled=1"},
    {"f16-accumulator", "p=io,ds=io,sum=f16,block=16,block_n=64"},
    {"bf16-accumulator", "p=io,ds=io,sum=bf16,block=16,block_n=64"},
    {"narrow-accumulator",
     "p=e4m3,p_scale=256,ds=io,sum_qk=narrow,sum_pv=narrow,block=32,extra_bits=-10,block_n=128"},
    {"fp8-sm90", "p=io,p_scale=256,sum=narrow,block=32,extra_bits=-10,block_n=128,fresh_accumulator=1,exp="
                 "approx,exp_scaled=1"},
    {"p-truncated", "p=io,p_truncate=1,ds=io,ds_truncate=1,block_n=64"},
    {"p-e4m3", "p=e4m3,p_scale=256,ds=io,block_n=64"},
    {"exact-o", "p=io,ds=io,block_n=64,delta=exact_o"},
    {"sum-p-dp", "p=io,ds=io,block_n=64,delta=sum_p_dp"},
    {"ds-scaled", "p=io,ds=io,block_n=64,ds_scaled=1"},
    {"delta-rounded", "p=io,ds=io,block_n=64,delta_rounded=1"},
    {"split-16-bit", "p=io,ds=io,block_n=32,splits=4,partial=io,partial_unnormalised=1"},
    {"int8-qk", "operand_qk=int8,p=io,ds=io,block_n=64"},
    {"exp-poly", "p=io,ds=io,block_n=64,exp=poly,exp_scaled=1"},
};

static bool set_number(sim_config *c, const struct key *k, const char *value) {
  char *end = NULL;
  const double x = strtod(value, &end);
  if (end == value || *end) return false;
  void *to = (char *)c + k->offset;
  if (k->real)
    *(double *)to = x;
  else
    *(int *)to = (int)x;
  return true;
}

static bool set_word(sim_config *c, const struct key *k, const char *value) {
  for (int i = 0; k->words[i]; ++i) {
    if (strcmp(k->words[i], value) != 0) continue;
    int *to = (int *)(void *)((char *)c + k->offset);
    for (int n = 0; n < k->count; ++n) to[n] = i;
    return true;
  }
  return false;
}

static bool set_key(sim_config *c, const char *name, const char *value) {
  for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i)
    if (strcmp(keys[i].name, name) == 0)
      return keys[i].words ? set_word(c, &keys[i], value) : set_number(c, &keys[i], value);
  return false;
}

static const char *variant_text(const char *name) {
  for (size_t i = 0; i < sizeof variants / sizeof *variants; ++i)
    if (strcmp(variants[i].name, name) == 0) return variants[i].text;
  return NULL;
}

static bool apply(sim_config *c, const char *text, char *message, size_t size) {
  char copy[1024], *rest = copy;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *part; (part = strsep(&rest, ",")) != NULL;) {
    char *value = strchr(part, '=');
    const char *variant = value ? NULL : variant_text(part);
    if (value) *value++ = 0;
    const bool good = value ? set_key(c, part, value) : variant && apply(c, variant, message, size);
    if (good || !*part) continue;
    snprintf(message, size, "FA_SIMULATED: what is %s%s%s?", part, value ? "=" : "", value ? value : "");
    return false;
  }
  return true;
}

bool sim_config_read(const char *text, sim_config *out, char *message, size_t size) {
  memset(out, 0, sizeof *out);
  out->p_scale = out->scale_factor = 1.0;
  out->block = 8;
  for (int i = 0; i < SIM_N_PRODUCTS; ++i) out->operand[i] = SIM_F32;
  out->scores = out->p = out->ds = out->dp = out->partial = SIM_F32;
  return apply(out, text ? text : "", message, size);
}
