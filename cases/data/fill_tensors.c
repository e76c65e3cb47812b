/* Walks the input tensors of a case and fills their rows. Rows that by contract nobody reads keep the NaN
 * pattern that inputs start with. */
#include "cases/base/rng.h"
#include "cases/data/build.h"
#include "cases/tensors/mixed.h"
#include "cases/tensors/nibbles.h"
#include "cases/threads/parallel.h"

#include <math.h>
#include <stdlib.h>

/* Rounds the row into t's elements index[0..rank-2], 0..n-1. */
static void store_row(const fa_tensor *t, const int64_t *index, const double *value) {
  int64_t first[FA_MAX_RANK] = {0};
  for (int a = 0; a < t->rank - 1; ++a) first[a] = index[a];
  fa_store_row(t->dtype, t->data + fa_tensor_offset(t, first), t->stride[t->rank - 1], t->shape[t->rank - 1],
               value);
}

/* Stores row [b, s, h] of a tensor that has no batch axis if variable-length. */
static void store_token(const fa_fill_row *row, const fa_tensor *t, int64_t b, int64_t s, int64_t h,
                        double *value) {
  const int64_t full[3] = {b, s, h}, *index = t->rank == 4 ? full : full + 1;
  if (fa_tensor_is_mixed(&row->c->problem, row->id)) {
    fa_store_mixed_row(row, t, index, value);
    return;
  }
  if (fa_tensor_is_nibbles(&row->c->problem, row->id)) {
    fa_store_nibbles_row(row, t, index, value);
    return;
  }
  fa_quantize_row(row, t, index, value);
  store_row(t, index, value);
}

/* Length of an axis in memory: 1 if it is expanded; the value is then that of index 0. */
static int64_t distinct(const fa_tensor *t, int axis) {
  const int64_t n = t->shape[axis];
  return t->stride[axis] == 0 && n > 1 ? 1 : n;
}

static bool slot_visible(const fa_sequence *e, int64_t s) {
  return s >= e->leftpad && s < e->leftpad + e->sk;
}

/* Whether any sequence that shares this memory sees slot s: sequence b alone; every sequence if the batch
 * axis is expanded; any slot if the row axis is expanded. */
static bool slot_read(const fa_problem *p, const fa_tensor *t, int64_t b, int64_t s) {
  const bool all_sequences = t->rank == 4 && distinct(t, 0) < t->shape[0];
  const bool all_slots = distinct(t, t->rank - 3) < t->shape[t->rank - 3];
  const bool others = all_sequences || (all_slots && t->rank == 3);
  for (int64_t e = others ? 0 : b; e < (others ? p->batch : b + 1); ++e) {
    const fa_sequence entry = fa_case_sequence(p, e);
    if (all_slots ? entry.sk > 0 : slot_visible(&entry, s)) return true;
  }
  return false;
}

/* The values of a row: filled, or 0 if the case zeroes it. */
static void row_values(const fa_fill_row *row, double *value, int64_t n) {
  if (!fa_case_row_is_zero(row->c, row->id, row->s))
    fa_fill_row_values(row, value, n);
  else
    for (int64_t d = 0; d < n; ++d) value[d] = 0;
}

/* Values of a row as the functions below ask for them. */
static int64_t row_width(const fa_problem *p, const fa_tensor *t, fa_tensor_id id) {
  const fa_tensor_axes axes = fa_tensor_describe(id)->axes;
  const bool single = axes == FA_AXES_ROWS || axes == FA_AXES_PART_ROWS || axes == FA_AXES_HEADS;
  if (fa_tensor_is_mixed(p, id)) return p->head_dim;
  if (fa_tensor_is_nibbles(p, id)) return 2 * t->shape[t->rank - 1];
  return single ? 1 : t->shape[t->rank - 1];
}

/* The tokens of one sequence; threads take ROWS_AT_ONCE of them at a time. */
typedef struct token_rows {
  fa_fill_row row;
  const fa_tensor *t;
  double *value; /* [thread][D] */
  int64_t start, n;
  bool keys;
} token_rows;

enum { ROWS_AT_ONCE = 64 };

static void fill_some_rows(void *context, int thread, int64_t item) {
  const token_rows *x = context;
  const int64_t n = x->t->shape[x->t->rank - 1], end = (item + 1) * ROWS_AT_ONCE;
  double *value = x->value + thread * n;
  fa_fill_row row = x->row;
  for (row.s = item * ROWS_AT_ONCE; row.s < end && row.s < x->n; ++row.s) {
    if (x->keys && !slot_read(&row.c->problem, x->t, row.b, row.s)) continue;
    for (row.h = 0; row.h < distinct(x->t, x->t->rank - 2); ++row.h) {
      row_values(&row, value, n);
      store_token(&row, x->t, row.b, x->start + row.s, row.h, value);
    }
  }
}

/* q, k, v, do: [B, S, H, D] or [total, H, D]. */
static void fill_tokens(fa_fill_row row, const fa_tensor *t, int n_threads, double *value) {
  const fa_problem *p = &row.c->problem;
  const bool keys = fa_tensor_describe(row.id)->on_keys, varlen = t->rank == 3;
  const int64_t n_entries = varlen ? p->batch : distinct(t, 0);
  const bool one_row = distinct(t, t->rank - 3) < t->shape[t->rank - 3];
  for (row.b = 0; row.b < n_entries; ++row.b) {
    const fa_sequence e = fa_case_sequence(p, row.b);
    const int64_t length = !varlen ? t->shape[1] : keys ? p->cu_seqlens_k.v[row.b + 1] - e.k_start : e.sq;
    token_rows x = {.row = row,
                    .t = t,
                    .value = value,
                    .start = !varlen ? 0
                             : keys  ? e.k_start
                                     : e.q_start,
                    .n = one_row && length > 1 ? 1 : length,
                    .keys = keys};
    fa_parallel(n_threads, (x.n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE, fill_some_rows, &x);
    if (varlen && one_row && length > 0) break; /* every token of every sequence is this one */
  }
}

/* 1 for each key of sequence b that some row sees by its list; NULL: no lists. To be freed. */
static uint8_t *listed_keys(const fa_fill_row *row, int64_t b) {
  const fa_problem *p = &row->c->problem;
  if (!p->topk.present) return NULL;
  uint8_t *listed = malloc((size_t)p->seqlen_k + 1);
  FA_ASSERT(listed != NULL);
  fa_topk_mark(row->c, row->set, b, listed);
  return listed;
}

/* The caches: slots that are in use before the call and not hidden by leftpad. Values depend on (sequence,
 * slot), wherever the sequence's row or pages are. Sequences that share a row or a page hold the first one's
 * values, in every slot that any of them sees. */
static void fill_cache(fa_fill_row row, const fa_tensor *t, double *value) {
  const fa_problem *p = &row.c->problem;
  const int64_t width = row_width(p, t, row.id);
  const fa_kvcache *k = &p->kvcache;
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t first = b;
    for (int64_t other = b - 1; other >= 0 && k->batch_idx.n > 0; --other)
      if (k->batch_idx.v[other] == k->batch_idx.v[b]) first = other;
    uint8_t *listed = listed_keys(&row, b);
    for (row.s = fa_case_sequence(p, b).leftpad; row.s < k->len.v[b]; ++row.s) {
      if (listed && !listed[row.s]) continue;
      int64_t at = k->batch_idx.n > 0 ? k->batch_idx.v[b] : b, slot = row.s;
      row.b = first;
      if (k->page_size > 0) {
        const int64_t entry[2] = {b, slot / k->page_size};
        at = (int64_t)fa_tensor_get(&row.set->t[FA_T_BLOCK_TABLE], entry);
        row.b = fa_problem_page_owner(p, b, entry[1]);
        slot %= k->page_size;
      }
      for (row.h = 0; row.h < distinct(t, 2); ++row.h) {
        row_values(&row, value, width);
        store_token(&row, t, at, slot, row.h, value);
      }
    }
    free(listed);
  }
}

static void fill_new(fa_fill_row row, const fa_tensor *t, double *value) {
  for (row.b = 0; row.b < distinct(t, 0); ++row.b)
    for (int64_t i = 0; i < distinct(t, 1); ++i)
      for (row.h = 0; row.h < distinct(t, 2); ++row.h) {
        row.s = row.c->problem.kvcache.len.v[row.b] + i;
        fa_fill_row_values(&row, value, t->shape[3]);
        store_token(&row, t, row.b, i, row.h, value);
      }
}

/* [b, h, q, k] */
static void fill_bias(fa_fill_row row, const fa_tensor *t, double *value) {
  for (row.b = 0; row.b < distinct(t, 0); ++row.b)
    for (row.h = 0; row.h < distinct(t, 1); ++row.h)
      for (row.s = 0; row.s < distinct(t, 2); ++row.s) {
        const int64_t index[3] = {row.b, row.h, row.s};
        fa_fill_row_values(&row, value, t->shape[3]);
        store_row(t, index, value);
      }
}

/* [B, H, S] or [H, total]: one value per query row. Padding stays NaN. */
static void fill_rows(fa_fill_row row, const fa_tensor *t, double *value) {
  const fa_problem *p = &row.c->problem;
  for (row.b = 0; row.b < p->batch; ++row.b) {
    const fa_sequence e = fa_case_sequence(p, row.b);
    for (row.h = 0; row.h < p->heads_q; ++row.h)
      for (row.s = 0; row.s < e.sq; ++row.s) {
        const int64_t index[3] = {row.b, row.h, row.s}, token[2] = {row.h, e.q_start + row.s};
        fa_fill_row_values(&row, value, 1);
        fa_tensor_set(t, t->rank == 3 ? index : token, value[0]);
      }
  }
}

/* One part as a tensor of its own. */
static fa_tensor part_of(const fa_tensor *t, int64_t part) {
  const int64_t index[FA_MAX_RANK] = {part};
  fa_tensor one = {.dtype = t->dtype, .rank = t->rank - 1, .data = t->data + fa_tensor_offset(t, index)};
  for (int a = 0; a < one.rank; ++a) one.shape[a] = t->shape[a + 1], one.stride[a] = t->stride[a + 1];
  return one;
}

/* Each part by itself, with random numbers of its own. */
static void fill_parts(fa_fill_row row, const fa_tensor *t, int n_threads, double *value) {
  const uint64_t seed = row.seed;
  const bool rows = fa_tensor_describe(row.id)->axes == FA_AXES_PART_ROWS;
  for (row.part = 0; row.part < t->shape[0]; ++row.part) {
    const fa_tensor one = part_of(t, row.part);
    row.seed = row.part ? fa_rng_u64(seed, 1, (uint64_t)row.part) : seed;
    if (rows)
      fill_rows(row, &one, value);
    else
      fill_tokens(row, &one, n_threads, value);
  }
}

/* [H]: one value per query head. */
static void fill_heads(fa_fill_row row, const fa_tensor *t, double *value) {
  for (row.h = 0; row.h < t->shape[0]; ++row.h) {
    fa_fill_row_values(&row, value, 1);
    fa_tensor_set(t, &row.h, value[0]);
  }
}

/* The direction of v's mean over the keys of a sequence, per (b, kv head): root mean square 1, or 0 without
 * keys. *out is malloc'd [B, Hk, Dv]. */
static fa_status mean_values(const fa_case *c, const fa_tensor *v, double **out, fa_error *err) {
  const fa_problem *p = &c->problem;
  const int64_t n = p->head_dim_v, heads = p->heads_kv;
  double *mean = calloc((size_t)(p->batch * heads * n) + 1, sizeof *mean);
  double *row = malloc((size_t)n * sizeof *row);
  *out = mean;
  if (!mean || !row) {
    free(row);
    return fa_fail(err, FA_ERR_MEMORY, "do: out of memory");
  }
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const fa_sequence e = fa_case_sequence(p, b);
      double *m = mean + (b * heads + h) * n, sum = 0;
      for (int64_t s = e.leftpad; s < e.leftpad + e.sk; ++s) {
        const int64_t index[4] = {b, e.k_start + s, h, 0}, *at = index + (v->rank == 4 ? 0 : 1);
        fa_load_row(v->dtype, v->data + fa_tensor_offset(v, at), v->stride[v->rank - 1], n, row);
        for (int64_t d = 0; d < n; ++d) m[d] += row[d];
      }
      for (int64_t d = 0; d < n; ++d) sum += m[d] * m[d];
      for (int64_t d = 0; d < n && sum > 0; ++d) m[d] /= sqrt(sum / (double)n);
    }
  free(row);
  return FA_OK;
}

/* value: room for a row of each thread. */
static void fill_tensor(fa_fill_row row, const fa_tensor *t, int n_threads, double *value) {
  const fa_tensor_info *info = fa_tensor_describe(row.id);
  switch (info->axes) {
  case FA_AXES_NEW:
    fill_new(row, t, value);
    break;
  case FA_AXES_BIAS:
    fill_bias(row, t, value);
    break;
  case FA_AXES_ROWS:
    fill_rows(row, t, value);
    break;
  case FA_AXES_PARTS:
  case FA_AXES_PART_ROWS:
    fill_parts(row, t, n_threads, value);
    break;
  case FA_AXES_HEADS:
    fill_heads(row, t, value);
    break;
  default:
    if (row.c->problem.family == FA_KVCACHE && info->direction == FA_TENSOR_UPDATED)
      fill_cache(row, t, value);
    else
      fill_tokens(row, t, n_threads, value);
  }
}

static fa_status fill(const fa_case *c, const fa_tensors *set, fa_tensor_id id, int n_threads, double *value,
                      fa_error *err) {
  const fa_tensor *t = &set->t[id];
  double *v_mean = NULL;
  fa_status status = FA_OK;
  fa_fill_numbers numbers = fa_fill_numbers_of(c, id, c->fill[id], row_width(&c->problem, t, id));
  if (numbers.data == FA_DATA_GRADIENT && fa_fill_describe(c->fill[id])->reads_v)
    status = mean_values(c, &set->t[FA_T_V], &v_mean, err);
  numbers.v_mean = v_mean;
  const fa_fill_row row = {.c = c,
                           .set = set,
                           .id = id,
                           .fill = c->fill[id],
                           .numbers = &numbers,
                           .seed = fa_fill_seed(c->data_seed, id)};
  if (status == FA_OK) fill_tensor(row, t, n_threads, value);
  free(v_mean);
  return status;
}

fa_status fa_build_fills(const fa_case *c, int n_threads, fa_tensor_bits made, fa_tensors *set,
                         fa_error *err) {
  fa_status status = FA_OK;
  int64_t longest = 1;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_tensor *t = &set->t[id];
    if (!fa_tensor_is_filled((fa_tensor_id)id)) continue;
    const int64_t width = t->data ? row_width(&c->problem, t, (fa_tensor_id)id) : 0;
    if (width > longest) longest = width;
  }
  double *value = malloc((size_t)longest * (size_t)(n_threads > 1 ? n_threads : 1) * sizeof *value);
  if (!value) status = fa_fail(err, FA_ERR_MEMORY, "fill: out of memory");
  for (int i = 0; i < FA_T_COUNT && status == FA_OK; ++i) {
    const fa_tensor_id id = (fa_tensor_id)i;
    if (!fa_tensor_is_filled(id) || fa_tensor_count(&set->t[id]) == 0) continue;
    if (fa_tensor_is_in_k(&c->problem, id)) continue; /* filled as columns of K */
    if (!(made >> id & 1)) status = fill(c, set, id, n_threads, value, err);
  }
  free(value);
  return status;
}
