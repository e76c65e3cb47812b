#include "cases/vocabulary/combination.h"

static bool is_top_left(const fa_problem *p) {
  return p->mask.type != FA_MASK_NONE && p->mask.align == FA_ALIGN_TOP_LEFT;
}

static bool has_expressions(const fa_problem *p) {
  return p->score_mod || p->mask_mod;
}

bool fa_problem_has_mods(const fa_problem *p) {
  return has_expressions(p) || p->block_sparse.present;
}

/* ---- over a cache ---- */

static bool cu_seqlens_cache(const fa_problem *p) {
  return p->kvcache.present && fa_problem_is_varlen(p);
}
static bool bias_cache(const fa_problem *p) {
  return p->kvcache.present && p->bias.present;
}
static bool mods_cache(const fa_problem *p) {
  return p->kvcache.present && has_expressions(p);
}
static bool blocks_cache(const fa_problem *p) {
  return p->kvcache.present && p->block_sparse.present;
}
static bool dropout_cache(const fa_problem *p) {
  return p->kvcache.present && p->dropout.p > 0;
}
static bool head_dim_v_cache(const fa_problem *p) {
  return p->kvcache.present && p->head_dim_v != p->head_dim;
}
static bool top_left_cache(const fa_problem *p) {
  return p->kvcache.present && is_top_left(p);
}

/* ---- packed keys too ---- */

static bool bias_varlen(const fa_problem *p) {
  return fa_problem_has_packed_keys(p) && p->bias.present;
}
static bool blocks_varlen(const fa_problem *p) {
  return fa_problem_has_packed_keys(p) && p->block_sparse.present;
}

/* ---- by family ---- */

static bool dropout_flex(const fa_problem *p) {
  return p->family == FA_FLEX && p->dropout.p > 0;
}
static bool mods_anywhere(const fa_problem *p) {
  return (p->family == FA_FLASH || p->family == FA_MEMEFF) && fa_problem_has_mods(p);
}
static bool bias_flash(const fa_problem *p) {
  return p->family == FA_FLASH && p->bias.present;
}
static bool head_dim_v_flash(const fa_problem *p) {
  return p->family == FA_FLASH && p->head_dim_v != p->head_dim;
}
static bool top_left_flash(const fa_problem *p) {
  return p->family == FA_FLASH && is_top_left(p);
}

static const fa_combination_info table[FA_N_COMBINATIONS] = {
    [FA_COMBINE_CU_SEQLENS_CACHE] = {"cu_seqlens_cache", "packed queries over a KV cache", cu_seqlens_cache},
    [FA_COMBINE_BIAS_CACHE] = {"bias_cache", "a bias over a KV cache", bias_cache},
    [FA_COMBINE_MODS_CACHE] = {"mods_cache", "score_mod or mask_mod over a KV cache", mods_cache},
    [FA_COMBINE_BLOCKS_CACHE] = {"blocks_cache", "block lists over a KV cache", blocks_cache},
    [FA_COMBINE_DROPOUT_CACHE] = {"dropout_cache", "dropout over a KV cache", dropout_cache},
    [FA_COMBINE_HEAD_DIM_V_CACHE] = {"head_dim_v_cache", "a head_dim_v other than head_dim in a KV cache",
                                     head_dim_v_cache},
    [FA_COMBINE_TOP_LEFT_CACHE] = {"top_left_cache", "a top-left mask over a KV cache", top_left_cache},
    [FA_COMBINE_BIAS_VARLEN] = {"bias_varlen", "a bias of packed sequences", bias_varlen},
    [FA_COMBINE_BLOCKS_VARLEN] = {"blocks_varlen", "block lists of packed sequences", blocks_varlen},
    [FA_COMBINE_DROPOUT_FLEX] = {"dropout_flex", "dropout in family flex", dropout_flex},
    [FA_COMBINE_MODS_ANYWHERE] = {"mods_anywhere", "expressions or block lists outside family flex",
                                  mods_anywhere},
    [FA_COMBINE_BIAS_FLASH] = {"bias_flash", "a bias in family flash", bias_flash},
    [FA_COMBINE_HEAD_DIM_V_FLASH] = {"head_dim_v_flash", "a head_dim_v other than head_dim in family flash",
                                     head_dim_v_flash},
    [FA_COMBINE_TOP_LEFT_FLASH] = {"top_left_flash", "a top-left mask in family flash", top_left_flash},
};

const fa_combination_info *fa_combination_describe(fa_combination k) {
  FA_ASSERT((unsigned)k < FA_N_COMBINATIONS);
  return &table[k];
}

unsigned fa_combinations_in(const fa_problem *p) {
  unsigned all = 0;
  for (int k = 0; k < FA_N_COMBINATIONS; ++k)
    if (table[k].is_in(p)) all |= 1u << k;
  return all;
}

fa_combination fa_combination_beyond(const fa_problem *p, unsigned allowed) {
  const unsigned beyond = fa_combinations_in(p) & ~allowed;
  return beyond ? (fa_combination)__builtin_ctz(beyond) : FA_N_COMBINATIONS;
}
