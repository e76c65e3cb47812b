/* The score chain and the masks on one tile. */
#include "gpu/ref_f32/parts.h"

#include <math.h>
#include <string.h>

static int32_t int_at(const fa_tensor *t, const int64_t *index) {
  int64_t at = 0;
  for (int a = 0; a < t->rank; ++a) at += index[a] * t->stride[a];
  int32_t x;
  memcpy(&x, t->data + at * 4, 4);
  return x;
}

size_t fa_f32_tiles_size(const fa_problem *p, const fa_tensors *t) {
  if (!p->block_sparse.present || !t->t[FA_T_KV_INDICES].data) return 0;
  const fa_tensor *x = &t->t[FA_T_KV_INDICES];
  return (size_t)(x->shape[2] * x->shape[3]) + 1;
}

/* Marks the tiles in one pair of lists for head h of sequence b. */
static void mark_tiles(const fa_tensor *count, const fa_tensor *indices, int64_t b, int64_t h, uint8_t kind,
                       uint8_t *tiles) {
  if (!count->data || !indices->data) return;
  const int64_t lb = b % count->shape[0], lh = h % count->shape[1];
  int64_t n_kv = indices->shape[3];
  for (int64_t qb = 0; qb < count->shape[2]; ++qb) {
    int32_t n = int_at(count, (int64_t[]){lb, lh, qb});
    for (int32_t l = 0; l < n && l < n_kv; ++l) {
      int32_t kb = int_at(indices, (int64_t[]){lb, lh, qb, l});
      if (kb >= 0 && kb < n_kv) tiles[qb * n_kv + kb] = kind;
    }
  }
}

static float slope_of(const fa_tensors *t, int64_t b, int64_t h) {
  const fa_tensor *s = &t->t[FA_T_ALIBI_SLOPES];
  if (!s->data) return 0.0f;
  int64_t at = s->rank == 1 ? h * s->stride[0] : b * s->stride[0] + h * s->stride[1];
  float x;
  memcpy(&x, s->data + at * 4, 4);
  return x;
}

fa_f32_score fa_f32_score_make(const fa_problem *p, const fa_tensors *t, const fa_f32_sequence *e, int64_t h,
                               uint8_t *tiles) {
  const fa_mask *m = &p->mask;
  fa_f32_score c = {.p = p, .t = t, .e = e, .h = h, .tiles = tiles};
  c.scale = (float)p->scale;
  c.softcap = (float)p->softcap;
  c.slope = slope_of(t, e->b, h);
  c.shift = m->align == FA_ALIGN_TOP_LEFT ? 0 : e->n_k - e->n_q;
  c.window = fa_mask_window(m);
  c.chunk = fa_mask_chunk(m);
  if (tiles) {
    const fa_tensor *x = &t->t[FA_T_KV_INDICES];
    c.n_kv_blocks = x->shape[3];
    memset(tiles, 0, (size_t)(x->shape[2] * x->shape[3]));
    mark_tiles(&t->t[FA_T_KV_NUM_BLOCKS], x, e->b, h, 1, tiles);
    mark_tiles(&t->t[FA_T_FULL_KV_NUM_BLOCKS], &t->t[FA_T_FULL_KV_INDICES], e->b, h, 2, tiles);
  }
  return c;
}

/* First key and one past the last key visible to row i under the window. */
static void band(const fa_f32_score *c, int64_t i, int64_t *first, int64_t *end) {
  *first = 0;
  *end = c->e->n_k;
  int64_t center = i + c->shift;
  if (c->window.left >= 0 && center - c->window.left > *first) *first = center - c->window.left;
  if (c->chunk > 0 && center >= c->chunk && center - center % c->chunk > *first)
    *first = center - center % c->chunk;
  if (c->window.right >= 0 && center + c->window.right + 1 < *end) *end = center + c->window.right + 1;
}

bool fa_f32_tile_visible(const fa_f32_score *c, int64_t i0, int64_t n_i, int64_t j0, int64_t n_j) {
  int64_t first, end, first_of_last, end_of_last;
  band(c, i0, &first, &end);
  band(c, i0 + n_i - 1, &first_of_last, &end_of_last);
  /* Both edges move right with i: the union of the rows' bands is [first of the first row, end of the last).
   */
  return n_i > 0 && n_j > 0 && j0 < end_of_last && j0 + n_j > first;
}

/* One row of logits; t[l] holds the dot product with key j0 + l. */
static void score_row(const fa_f32_score *c, int64_t r, int64_t i, int64_t j0, int64_t n_j, float *t,
                      float *chain) {
  const fa_tensor *bias = &c->t->t[FA_T_BIAS];
  for (int64_t l = 0; l < n_j; ++l) t[l] *= c->scale;
  if (chain)
    for (int64_t l = 0; l < n_j; ++l) chain[l] = 1.0f;
  if (c->softcap > 0.0f)
    for (int64_t l = 0; l < n_j; ++l) {
      float th = tanhf(t[l] / c->softcap);
      t[l] = c->softcap * th;
      if (chain) chain[l] = fmaf(-th, th, 1.0f);
    }
  if (c->mods) fa_f32_mods_score(c, r, i, j0, n_j, t, chain);
  if (c->slope != 0.0f)
    for (int64_t l = 0; l < n_j; ++l) {
      int64_t distance = i + c->e->n_k - c->e->n_q - (j0 + l);
      t[l] = fmaf(-c->slope, (float)(distance < 0 ? -distance : distance), t[l]);
    }
  if (bias->data) {
    int64_t b = bias->shape[0] > 1 ? c->e->b : 0, h = bias->shape[1] > 1 ? c->h : 0,
            q = bias->shape[2] > 1 ? i : 0;
    int64_t at = b * bias->stride[0] + h * bias->stride[1] + q * bias->stride[2] + j0 * bias->stride[3];
    float row[FA_F32_TILE_N];
    fa_f32_load(bias->dtype, bias->data + at * (int64_t)fa_dtype_size(bias->dtype), bias->stride[3], n_j,
                row);
    for (int64_t l = 0; l < n_j; ++l) t[l] += row[l];
  }
}

/* Applies block lists, and mask_mod in tiles that are not full. */
static void hide_listed(const fa_f32_score *c, int64_t i, int64_t j0, int64_t n_j, float *t) {
  const fa_block_sparse *sparse = &c->p->block_sparse;
  const uint8_t *row = c->tiles ? c->tiles + i / sparse->q_block * c->n_kv_blocks : NULL;
  bool visible[FA_F32_TILE_N];
  for (int64_t l = 0; l < n_j; ++l) visible[l] = true;
  if (c->mods) fa_f32_mods_mask(c, i, j0, n_j, visible);
  for (int64_t l = 0; l < n_j; ++l) {
    const uint8_t tile = row ? row[(j0 + l) / sparse->kv_block] : 1;
    if (tile == 0 || (tile == 1 && !visible[l])) t[l] = -INFINITY;
  }
}

/* A custom mask: bit i * n_k + j of the sequence, in bytes from the least significant bit. */
static void hide_by_bits(const fa_f32_score *c, int64_t i, int64_t j0, int64_t n_j, float *t) {
  const fa_tensor *bits = &c->t->t[FA_T_MASK_BITS];
  const uint8_t *first = (const uint8_t *)bits->data + int_at(&c->t->t[FA_T_MASK_INDPTR], &c->e->b);
  for (int64_t l = 0; l < n_j; ++l) {
    const int64_t bit = i * c->e->n_k + j0 + l;
    if (!(first[bit / 8] & 1u << bit % 8)) t[l] = -INFINITY;
  }
}

/* Row i's list. An entry is a slot of a page, or a key's number; how often each key of the tile is named is added to its
 * score as a logarithm. */
static void keep_listed(const fa_f32_score *c, int64_t i, int64_t j0, int64_t n_j, float *t) {
  const fa_tensor *x = &c->t->t[FA_T_TOPK_INDICES], *length = &c->t->t[FA_T_TOPK_LENGTH];
  const fa_tensor *table = &c->t->t[FA_T_BLOCK_TABLE];
  const bool packed = x->rank == 2;
  const int64_t k = x->shape[x->rank - 1], page = c->p->kvcache.page_size;
  const int64_t len = length->data ? int_at(length, &c->e->b) : k;
  for (int64_t l = 0; l < n_j; ++l) {
    const int64_t j = j0 + l;
    int64_t slot = j, times = 0;
    if (page > 0) slot = (int64_t)int_at(table, (int64_t[]){c->e->b, j / page}) * page + j % page;
    for (int64_t n = 0; n < len; ++n)
      times += int_at(x, packed ? (int64_t[]){c->e->q_first + i, n} : (int64_t[]){c->e->b, i, n}) == slot;
    t[l] = times == 0 ? -INFINITY : times == 1 ? t[l] : t[l] + logf((float)times);
  }
}

void fa_f32_score_tile(const fa_f32_score *c, int64_t i0, int64_t n_i, int64_t j0, int64_t n_j,
                       int64_t n_padded, float *s, float *slope_of_chain, int64_t ld) {
  for (int64_t r = 0; r < n_i; ++r) {
    int64_t i = i0 + r, first, end;
    float *t = s + r * ld, *chain = slope_of_chain ? slope_of_chain + r * ld : NULL;
    score_row(c, r, i, j0, n_j, t, chain);
    band(c, i, &first, &end);
    for (int64_t l = 0; l < n_j; ++l)
      if (j0 + l < first || j0 + l >= end) t[l] = -INFINITY;
    if (c->tiles || c->mods) hide_listed(c, i, j0, n_j, t);
    if (c->t->t[FA_T_MASK_BITS].data) hide_by_bits(c, i, j0, n_j, t);
    if (c->t->t[FA_T_TOPK_INDICES].data) keep_listed(c, i, j0, n_j, t);
    for (int64_t l = n_j; l < n_padded; ++l) t[l] = -INFINITY;
    for (int64_t l = 0; chain && l < n_padded; ++l)
      if (t[l] == -INFINITY) chain[l] = 0.0f; /* whatever score_mod made of it */
  }
}
