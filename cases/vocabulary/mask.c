#include "cases/vocabulary/mask.h"

#include "cases/base/status.h"

static const fa_mask_info table[FA_N_MASKS] = {
    [FA_MASK_NONE] = {.name = "none", .window = {-1, -1}},
    [FA_MASK_CAUSAL] = {.name = "causal", .window = {-1, 0}},
    [FA_MASK_WINDOW] = {.name = "window", .own_edges = true, .own_left = true},
    [FA_MASK_CHUNK] = {.name = "chunk", .own_left = true, .window = {-1, 0}},
};

const fa_mask_info *fa_mask_describe(fa_mask_type type) {
  FA_ASSERT((unsigned)type < FA_N_MASKS);
  return &table[type];
}

fa_window fa_mask_window(const fa_mask *m) {
  const fa_mask_info *info = fa_mask_describe(m->type);
  return (fa_window){.left = info->own_left ? m->left : info->window.left,
                     .right = info->own_edges ? m->right : info->window.right};
}

void fa_mask_set_window(fa_mask *m, int64_t left, int64_t right) {
  m->type = FA_MASK_WINDOW;
  m->left = left;
  m->right = right;
  m->size = 0;
}

bool fa_mask_has_edges(const fa_mask *m) {
  return fa_mask_describe(m->type)->own_edges;
}

bool fa_mask_has_left(const fa_mask *m) {
  return fa_mask_describe(m->type)->own_left;
}

int64_t fa_mask_chunk(const fa_mask *m) {
  return m->type == FA_MASK_CHUNK ? m->size : 0;
}

int64_t fa_mask_chunk_begin(int64_t chunk, int64_t p) {
  const int64_t beyond = p % chunk; /* C rounds the quotient toward 0 */
  return p - beyond - (beyond < 0 ? chunk : 0);
}
