/* The values of one row of a filled tensor. */
#include "cases/base/rng.h"
#include "cases/data/build.h"
#include "cases/tensors/mixed.h"
#include "cases/tensors/nibbles.h"

#include <math.h>

/* Keyed by name (FNV-1a), not by number: adding a tensor must not change the data of the others. New keys get
 * the values that the cache would have in the slots they will occupy, so that appending them equals finding
 * them there. */
uint64_t fa_fill_seed(uint64_t data_seed, fa_tensor_id id) {
  uint64_t h = 0xcbf29ce484222325u;
  if (fa_tensor_describe(id)->axes == FA_AXES_NEW) id = fa_tensor_describe(id)->of;
  for (const char *s = fa_tensor_id_name(id); *s; ++s) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
  return fa_rng_u64(data_seed, h, 0);
}

uint64_t fa_fill_u64(const fa_fill_row *r, int64_t d, int lane) {
  return fa_rng_key_u64(r->key, fa_fill_index(r->s, d, lane));
}

double fa_fill_normal(const fa_fill_row *r, int64_t d, int lane) {
  if (lane == 0 && r->drawn) return r->drawn[d];
  return fa_rng_key_normal(r->key, fa_fill_index(r->s, d, lane));
}

/* One channel for all heads and rows, the same for q and k; it stays the same if D shrinks to 8. */
static int64_t outlier_of(const fa_case *c, int64_t width) {
  const int64_t channel = (int64_t)(fa_rng_u64(c->data_seed, 0x0471e6, 0) % 8);
  return channel < width ? channel : 0;
}

fa_fill_numbers fa_fill_numbers_of(const fa_case *c, fa_tensor_id id, fa_fill fill, int64_t width) {
  const fa_problem *p = &c->problem;
  const bool mixed = fa_tensor_is_mixed(p, id);
  const bool small = mixed || fa_tensor_is_nibbles(p, id); /* numbers in bytes */
  const fa_dtype stored = small ? p->quantized.dtype : fa_tensor_dtype(p, id);
  const double roundoff = fa_dtype_unit_roundoff(stored);
  fa_fill_numbers x = {.fill = fill,
                       .data = fa_tensor_describe(id)->data,
                       .width = width,
                       .eight_bits = mixed || fa_tensor_descale_of(p, id) != FA_T_COUNT,
                       .i8 = stored == FA_I8,
                       .clip = fa_dtype_max(p->dtype),
                       .max = fa_dtype_max(stored),
                       .least = fa_dtype_min_subnormal(stored),
                       .subnormals = roundoff > 0 ? (int64_t)(0.5 / roundoff) : 0,
                       .outlier = outlier_of(c, width),
                       .group = p->heads_kv > 0 ? p->heads_q / p->heads_kv : 1,
                       .heads_kv = p->heads_kv};
  fa_fill_constant_logits(c, &x);
  return x;
}

/* A prefix length that crosses a tile boundary if there are enough keys: a first tile of 64 or 128 keys fully
 * masked, and some more. */
static int64_t neg_inf_prefix(int64_t n_keys) {
  return n_keys > 130 ? 130 : n_keys > 66 ? 66 : n_keys / 2;
}

static bool finfo_min_masks(const fa_fill_row *r, int64_t j, int64_t n_keys) {
  const fa_problem *p = &r->c->problem;
  if (!p->bias.per_query) return 4 * j >= 3 * n_keys; /* key padding at the end */
  if (j > r->s + n_keys - p->seqlen_q) return true;   /* causal */
  return r->h % 2 == 1 && j < neg_inf_prefix(n_keys); /* odd heads: a masked prefix too */
}

static double bias_value(const fa_fill_row *r, const fa_fill_place *at, int64_t j, int64_t n_keys) {
  switch (r->fill) {
  case FA_FILL_NEG_INF_PREFIX:
    if (j < neg_inf_prefix(n_keys)) return -INFINITY;
    break;
  case FA_FILL_NEG_INF_ROWS:
    if ((r->b + r->h + r->s) % 4 == 1) return -INFINITY;
    break;
  case FA_FILL_FINFO_MIN:
    if (finfo_min_masks(r, j, n_keys)) return -fa_dtype_max(r->c->problem.dtype);
    break;
  default:
    return fa_fill_plain(r->numbers, at, j);
  }
  return fa_fill_normal(r, j, 0);
}

/* About the largest of n_keys logits N(0,1). */
static double usual_maximum(int64_t n_keys) {
  return n_keys > 1 ? sqrt(2 * log((double)n_keys)) : 0;
}

/* The sizes at which kernels have gone wrong, from head to head in turn; the seed says which is first. Every second
 * round of heads has numbers that bf16 cannot hold. */
static double sink_size(const fa_fill_row *r) {
  const double m = floor(2 * usual_maximum(r->c->problem.seqlen_k)) / 2;
  const double sizes[] = {m, -INFINITY, 20, -20, m + 1, -100, 100, m - 1};
  const uint64_t at = (r->seed >> 8) + (uint64_t)r->h;
  const double shift = at / 8 % 2 ? 0.017 + 0.01 * (double)(r->h % 7) : 0;
  return sizes[at % 8] + shift;
}

static double sink_value(const fa_fill_row *r, const fa_fill_place *at) {
  if (r->fill == FA_FILL_SINK_NONE) return -INFINITY;
  return r->fill == FA_FILL_SINK_SIZES ? sink_size(r) : fa_fill_plain(r->numbers, at, 0);
}

/* By the tensor's role in the computation. */
static double value_of(const fa_fill_row *r, const fa_fill_place *at, int64_t d, int64_t n) {
  switch (r->numbers->data) {
  case FA_DATA_BIAS:
    return bias_value(r, at, d, n);
  case FA_DATA_LSE:
    return fa_fill_part_lse(r);
  case FA_DATA_SINKS:
    return sink_value(r, at);
  default:
    return fa_fill_element(r->numbers, at, d);
  }
}

void fa_fill_row_values(const fa_fill_row *row, double *value, int64_t n) {
  fa_fill_row keyed = *row;
  const fa_fill_row *r = &keyed;
  keyed.key = fa_rng_key(row->seed, (uint64_t)row->b << 32 | (uint64_t)row->h);
  if (fa_fill_part_is_nan(r)) {
    for (int64_t d = 0; d < n; ++d) value[d] = NAN;
    return;
  }
  if (fa_fill_logits_row(r, value, n)) return;
  fa_rng_key_normals(r->key, fa_fill_index(r->s, 0, 0), fa_fill_index(0, 1, 0), n, value);
  if (r->fill == FA_FILL_NORMAL) return;
  keyed.drawn = value; /* each draw is read before its value replaces it */
  const int64_t sq = r->fill == FA_FILL_DO_ONE_HOT ? fa_case_sequence(&r->c->problem, r->b).sq : 0;
  const fa_fill_place at = {.key = r->key, .drawn = value, .b = r->b, .h = r->h, .s = r->s, .sq = sq};
  for (int64_t d = 0; d < n; ++d) value[d] = value_of(r, &at, d, n);
}
