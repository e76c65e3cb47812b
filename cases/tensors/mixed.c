#include "cases/tensors/mixed.h"

#include "cases/tensors/descale.h"

#include <string.h>

bool fa_tensor_is_mixed(const fa_problem *p, fa_tensor_id id) {
  return p->quantized.present && p->quantized.per == FA_PER_TILE && (id == FA_T_K || id == FA_T_V);
}

static int64_t descales_at(const fa_problem *p) {
  return p->head_dim_v;
}

static int64_t others_at(const fa_problem *p) {
  return descales_at(p) + p->head_dim_v / FA_MIXED_TILE * 4;
}

int64_t fa_mixed_bytes(const fa_problem *p) {
  return others_at(p) + (p->head_dim - p->head_dim_v) * 2;
}

float fa_mixed_descale(const fa_problem *p, const char *row, int64_t tile) {
  float descale = 1;
  if (tile < p->head_dim_v / FA_MIXED_TILE) memcpy(&descale, row + descales_at(p) + tile * 4, sizeof descale);
  return descale;
}

void fa_mixed_load(const fa_problem *p, const char *row, int64_t n, double *value) {
  const int64_t eight = n < p->head_dim_v ? n : p->head_dim_v;
  fa_load_row(FA_E4M3, row, 1, eight, value);
  for (int64_t d = 0; d < eight; ++d) value[d] *= fa_mixed_descale(p, row, d / FA_MIXED_TILE);
  if (n > eight) fa_load_row(p->dtype, row + others_at(p), 1, n - eight, value + eight);
}

void fa_mixed_store(const fa_problem *p, const float *descale, const double *value, char *row) {
  for (int64_t d = 0; d < p->head_dim_v; ++d)
    fa_store(FA_E4M3, row + d, fa_quantised(FA_E4M3, value[d] / descale[d / FA_MIXED_TILE]));
  memcpy(row + descales_at(p), descale, (size_t)(p->head_dim_v / FA_MIXED_TILE) * 4);
  fa_store_row(p->dtype, row + others_at(p), 1, p->head_dim - p->head_dim_v, value + p->head_dim_v);
}
