#include "cases/vocabulary/mask.h"

#include "cases/base/status.h"

static const fa_mask_info table[FA_N_MASKS] = {
    [FA_MASK_NONE] = {.name = "none", .window = {-1, -1}},
    [FA_MASK_CAUSAL] = {.name = "causal", .window = {-1, 0}},
    [FA_MASK_WINDOW] = {.name = "window", .own_edges = true},
};

const fa_mask_info *fa_mask_describe(fa_mask_type type) {
  FA_ASSERT((unsigned)type < FA_N_MASKS);
  return &table[type];
}

fa_window fa_mask_window(const fa_mask *m) {
  const fa_mask_info *info = fa_mask_describe(m->type);
  return info->own_edges ? (fa_window){m->left, m->right} : info->window;
}

void fa_mask_set_window(fa_mask *m, int64_t left, int64_t right) {
  m->type = FA_MASK_WINDOW;
  m->left = left;
  m->right = right;
}

bool fa_mask_has_edges(const fa_mask *m) {
  return fa_mask_describe(m->type)->own_edges;
}
