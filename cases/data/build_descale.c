/* Descales of operands of 8 bits, and these from the values of their rows. */
#include "cases/base/rng.h"
#include "cases/data/build.h"
#include "cases/tensors/descale.h"
#include "cases/tensors/mixed.h"
#include "cases/tensors/nibbles.h"

#include <math.h>

#define TRY(e)                                                                                               \
  do {                                                                                                       \
    fa_status try_status = (e);                                                                              \
    if (try_status != FA_OK) return try_status;                                                              \
  } while (0)

/* A function of the case's seed and of whose descale it is; 2^-5 .. 2^-3 puts N(0,1) amid the numbers of 8 bits. */
static double draw(const fa_case *c, fa_tensor_id descale, uint64_t b, uint64_t s, uint64_t h) {
  const uint64_t seed = fa_fill_seed(c->data_seed, descale);
  const fa_descale_values values = c->problem.quantized.values;
  const double x = fa_rng_uniform(seed, b << 32 | h, s);
  if (values == FA_DESCALES_ONE) return 1;
  return values == FA_DESCALES_POWERS ? ldexp(1, -5 + (int)(x * 3)) : exp2(-5 + 2 * x);
}

static fa_status add(const fa_case *c, fa_tensors *set, fa_tensor_id id, fa_tensor_id of, fa_error *err) {
  const fa_problem *p = &c->problem;
  const fa_tensor *t = &set->t[of];
  const int64_t one = 1, heads[2] = {p->batch, p->heads_kv}, pages[2] = {t->shape[0], p->heads_kv};
  switch (fa_descale_per_of(p, id)) {
  case FA_PER_TENSOR:
    return fa_tensors_add(set, id, FA_F32, 1, &one, NULL, 0, err);
  case FA_PER_HEAD:
    return fa_tensors_add(set, id, FA_F32, 2, heads, NULL, 0, err);
  case FA_PER_PAGE:
    return fa_tensors_add(set, id, FA_F32, 2, pages, NULL, 0, err);
  default:
    return fa_tensors_add(set, id, FA_F32, t->rank - 1, t->shape, NULL, 0, err);
  }
}

static void fill_heads(const fa_case *c, fa_tensors *set, fa_tensor_id id) {
  const fa_tensor *t = &set->t[id];
  for (int64_t b = 0; b < t->shape[0]; ++b)
    for (int64_t h = 0; h < (t->rank > 1 ? t->shape[1] : 1); ++h) {
      const int64_t at[2] = {b, h};
      fa_tensor_set(t, at, draw(c, id, (uint64_t)b, 0, (uint64_t)h));
    }
}

/* Row and slot of key s of sequence b in memory, and of whom its numbers are. */
typedef struct place {
  int64_t row, slot, owner;
} place;

static place place_of(const fa_problem *p, const fa_tensors *set, bool keys, int64_t b, int64_t s) {
  const fa_kvcache *k = &p->kvcache;
  const fa_sequence e = fa_case_sequence(p, b);
  if (!keys || !k->present) {
    const bool packed = keys ? fa_problem_has_packed_keys(p) : fa_problem_is_varlen(p);
    return (place){b, packed ? (keys ? e.k_start : e.q_start) + s : s, b};
  }
  if (k->page_size == 0) {
    const int64_t row = k->batch_idx.n > 0 ? k->batch_idx.v[b] : b;
    return (place){row, s, row};
  }
  const int64_t entry[2] = {b, s / k->page_size};
  return (place){(int64_t)fa_tensor_get(&set->t[FA_T_BLOCK_TABLE], entry), s % k->page_size,
                 fa_problem_page_owner(p, b, entry[1])};
}

/* Every row of queries, and every key that exists: of a page once for all its keys. */
static void fill_rows(const fa_case *c, fa_tensors *set, fa_tensor_id id) {
  const fa_problem *p = &c->problem;
  const fa_tensor *t = &set->t[id];
  const bool keys = id != FA_T_Q_DESCALE, pages = fa_descale_per_of(p, id) == FA_PER_PAGE;
  const int64_t page = pages ? p->kvcache.page_size : 1;
  for (int64_t b = 0; b < p->batch; ++b) {
    const fa_sequence e = fa_case_sequence(p, b);
    const int64_t from = keys ? e.leftpad : 0, end = keys ? e.leftpad + e.sk : e.sq;
    for (int64_t s = from / page * page; s < end; s += page)
      for (int64_t h = 0; h < t->shape[t->rank - 1]; ++h) {
        const place x = place_of(p, set, keys, b, s);
        const int64_t at[3] = {x.row, pages ? h : x.slot, h}, *index = at + (t->rank == 2 && !pages ? 1 : 0);
        fa_tensor_set(t, index, draw(c, id, (uint64_t)x.owner, (uint64_t)s, (uint64_t)h));
      }
  }
}

/* Rows of K and V bring their numbers (fa_store_nibbles_row): where rows share memory, their scales do. */
static fa_status add_scales(fa_tensors *set, fa_tensor_id of, fa_error *err) {
  const fa_tensor *t = &set->t[of];
  const int64_t shape[4] = {t->shape[0], t->shape[1], t->shape[2], t->shape[3] * 2 / FA_SCALED_BLOCK};
  int64_t stride[4], apart = 1;
  for (int a = 3; a >= 0; --a) {
    const bool shared = a < 3 && t->stride[a] == 0 && shape[a] > 1;
    stride[a] = shared ? 0 : apart;
    if (!shared) apart *= shape[a];
  }
  return fa_tensors_add(set, fa_tensor_scales_of(of), FA_E4M3, 4, shape, stride, 0, err);
}

/* O of values of about 1 comes to lie amid the numbers of its type, and some of it beyond the largest. */
static double draw_o_scale(const fa_case *c) {
  const fa_quantized *q = &c->problem.quantized;
  const double x = fa_rng_uniform(fa_fill_seed(c->data_seed, FA_T_O_SCALE), 0, 0);
  if (q->o_scale != 0) return q->o_scale;
  if (q->values == FA_DESCALES_ONE) return 1;
  return q->values == FA_DESCALES_POWERS ? ldexp(1, 2 + (int)(x * 6)) : exp2(2 + 6 * x);
}

static fa_status add_o_scale(const fa_case *c, fa_tensors *set, fa_error *err) {
  const int64_t one = 1, first = 0;
  if (!fa_quantizes_o(&c->problem.quantized)) return FA_OK;
  TRY(fa_tensors_add(set, FA_T_O_SCALE, FA_F32, 1, &one, NULL, 0, err));
  fa_tensor_set(&set->t[FA_T_O_SCALE], &first, draw_o_scale(c));
  return FA_OK;
}

fa_status fa_build_descales(const fa_case *c, fa_tensors *set, fa_error *err) {
  static const fa_tensor_id of[] = {FA_T_Q, FA_T_K, FA_T_V};
  for (int i = 0; i < 3; ++i) {
    const fa_tensor_id id = fa_tensor_descale_of(&c->problem, of[i]);
    if (id == FA_T_COUNT) continue;
    if (fa_tensor_is_nibbles(&c->problem, of[i])) TRY(add_scales(set, of[i], err));
    TRY(add(c, set, id, of[i], err));
    if (fa_descale_per_of(&c->problem, id) <= FA_PER_HEAD)
      fill_heads(c, set, id);
    else
      fill_rows(c, set, id);
  }
  return add_o_scale(c, set, err);
}

/* Fills about a type's own numbers are of what is stored. */
static bool is_of_stored_numbers(fa_fill fill) {
  return fill == FA_FILL_DENORMAL || fill == FA_FILL_NEAR_MAX || fill == FA_FILL_EDGES;
}

/* Whether some row that the number stands in is stored otherwise by a call that divides otherwise: rows of several sequences or
 * heads, whose descales differ, may share memory. */
static bool is_in_doubt(const fa_fill_row *row, fa_tensor_id cache, const int64_t *index, double value) {
  const fa_problem *p = &row->c->problem;
  const bool *shared = row->c->strides[row->id].expand;
  const int64_t b0 = shared[0] ? 0 : row->b, b1 = shared[0] ? p->batch : row->b + 1;
  const int64_t h0 = shared[2] ? 0 : row->h, h1 = shared[2] ? p->heads_kv : row->h + 1;
  for (int64_t b = b0; b < b1; ++b)
    for (int64_t h = h0; h < h1; ++h)
      if (fa_quantised_doubt(p->quantized.dtype, value, fa_descale_of_row(p, row->set, cache, b, h, index)) >
          0)
        return true;
  return false;
}

/* Numbers that the call will quantise: so that what is stored of them does not depend on how it divides. */
static void avoid_doubt(const fa_fill_row *row, const fa_tensor *stored, const int64_t *index,
                        double *value) {
  const fa_tensor_id cache = row->id == FA_T_K_NEW ? FA_T_K : FA_T_V;
  for (int64_t d = 0; d < stored->shape[stored->rank - 1]; ++d) {
    char bits[8];
    fa_store(stored->dtype, bits, value[d]);
    value[d] = fa_load(stored->dtype, bits);
    while (is_in_doubt(row, cache, index, value[d]))
      value[d] += copysign(2 * fa_half_ulp(stored->dtype, value[d]), value[d]);
  }
}

void fa_quantize_row(const fa_fill_row *row, const fa_tensor *stored, const int64_t *index, double *value) {
  const int64_t n = stored->shape[stored->rank - 1];
  if (row->c->problem.quantized.quantizes_new && (row->id == FA_T_K_NEW || row->id == FA_T_V_NEW))
    avoid_doubt(row, stored, index, value);
  if (fa_tensor_descale_of(&row->c->problem, row->id) == FA_T_COUNT) return;
  if (!is_of_stored_numbers(row->fill)) {
    /* NaN: rows share memory, and this one is not read */
    const double descale = fa_descale_of_row(&row->c->problem, row->set, row->id, row->b, row->h, index);
    for (int64_t d = 0; d < n; ++d) value[d] /= descale > 0 ? descale : 0x1p-4;
  }
  for (int64_t d = 0; d < n && stored->dtype == FA_I8; ++d) value[d] = rint(value[d]);
}

void fa_store_mixed_row(const fa_fill_row *row, const fa_tensor *t, const int64_t *index, double *value) {
  const fa_problem *p = &row->c->problem;
  const int64_t first[FA_MAX_RANK] = {index[0], index[1], index[2]};
  float descale[FA_MAX_HEAD_DIM / FA_MIXED_TILE];
  for (int64_t tile = 0; tile < p->head_dim_v / FA_MIXED_TILE; ++tile)
    descale[tile] = (float)draw(row->c, FA_T_K_DESCALE, (uint64_t)row->b, (uint64_t)row->s,
                                (uint64_t)(row->h * (FA_MAX_HEAD_DIM / FA_MIXED_TILE) + tile));
  for (int64_t d = 0; d < p->head_dim && is_of_stored_numbers(row->fill); ++d)
    value[d] *= descale[d < p->head_dim_v ? d / FA_MIXED_TILE : 0];
  fa_mixed_store(p, descale, value, t->data + fa_tensor_offset(t, first));
}

/* ---- numbers of 4 bits ---- */

/* So that the block's largest number becomes 6; of fills about stored numbers the least, the largest and others in turn. */
static double scale_of_block(const fa_fill_row *row, const double *value, int64_t block) {
  static const double edges[] = {0x1p-9, 448, 1, 0x1p-6, 1.75, 26, 0x1.cp-7, 240};
  const fa_descale_values values = row->c->problem.quantized.values;
  double most = 0;
  for (int64_t d = 0; d < FA_SCALED_BLOCK; ++d) most = fmax(most, fabs(value[d]));
  if (values == FA_DESCALES_ONE) return 1;
  if (row->fill == FA_FILL_NEAR_MAX) return 448;
  if (row->fill == FA_FILL_DENORMAL) return 0x1p-9;
  if (row->fill == FA_FILL_EDGES)
    return edges[fa_rng_u64(row->seed, (uint64_t)(row->b << 32 | row->h), (uint64_t)(row->s << 16 | block)) %
                 8];
  const double exact = fmin(fmax(most / 6, 0x1p-9), 448);
  return values == FA_DESCALES_POWERS ? exp2(floor(log2(exact))) : fa_quantised(FA_E4M3, exact);
}

void fa_store_nibbles_row(const fa_fill_row *row, const fa_tensor *t, const int64_t *index, double *value) {
  const fa_problem *p = &row->c->problem;
  const fa_tensor *scales = &row->set->t[fa_tensor_scales_of(row->id)];
  const int64_t first[FA_MAX_RANK] = {index[0], index[1], index[2]}, n = 2 * t->shape[3];
  double scale[FA_MAX_HEAD_DIM / FA_SCALED_BLOCK];
  const double descale = fa_descale_of_row(p, row->set, row->id, row->b, row->h, index);
  for (int64_t d = 0; d < n && !is_of_stored_numbers(row->fill); ++d) value[d] /= descale;
  for (int64_t block = 0; block < n / FA_SCALED_BLOCK; ++block)
    scale[block] = scale_of_block(row, value + block * FA_SCALED_BLOCK, block);
  for (int64_t d = 0; d < n && is_of_stored_numbers(row->fill); ++d) value[d] *= scale[d / FA_SCALED_BLOCK];
  fa_nibbles_store(value, scale, n, t->data + fa_tensor_offset(t, first),
                   scales->data + fa_tensor_offset(scales, first));
}
