/* Block-sparse lists: the tiles that they name, given or made from mask_mod. */
#include "ref/mods/tile.h"

/* The lists usually are tensors (built or recorded); lists in the problem itself are read directly. */
static int64_t list_at(const fa_ref_call *c, fa_tensor_id id, const fa_int32_array *own, int64_t b, int64_t h,
                       int64_t qb, int64_t k, int64_t n_qb, int64_t width) {
  const fa_block_sparse *s = &c->p->block_sparse;
  const fa_tensor *t = &c->in->t[id];
  if (t->data) {
    int64_t index[FA_MAX_RANK] = {b % t->shape[0], h % t->shape[1], qb, k};
    return (int64_t)fa_tensor_get(t, index);
  }
  if (own->n == 0) return 0;
  return own->v[((b % s->list_batch * s->list_heads + h % s->list_heads) * n_qb + qb) * width + k];
}

static bool in_list(const fa_ref_call *c, fa_tensor_id counts, fa_tensor_id indices,
                    const fa_int32_array *own_n, const fa_int32_array *own_v, int64_t b, int64_t h,
                    int64_t qb, int64_t kb) {
  const fa_problem *p = c->p;
  int64_t n_qb = (p->seqlen_q + p->block_sparse.q_block - 1) / p->block_sparse.q_block;
  int64_t n_kb = (p->seqlen_k + p->block_sparse.kv_block - 1) / p->block_sparse.kv_block;
  if (!c->in->t[counts].data && own_n->n == 0) return false;
  int64_t n = list_at(c, counts, own_n, b, h, qb, 0, n_qb, 1);
  for (int64_t k = 0; k < n; ++k)
    if (list_at(c, indices, own_v, b, h, qb, k, n_qb, n_kb) == kb) return true;
  return false;
}

/* Kind of a tile in the map made from mask_mod. */
static int mapped_kind(const fa_ref_mods *m, int64_t b, int64_t h, int64_t qb, int64_t kb) {
  const int64_t head = (m->map_batch > 1 ? b : 0) * m->map_heads + (m->map_heads > 1 ? h : 0);
  return m->map[(head * m->n_q + qb) * m->n_kv + kb];
}

int fa_ref_block_kind(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j) {
  const fa_block_sparse *s = &c->p->block_sparse;
  int64_t qb = i / s->q_block, kb = j / s->kv_block;
  if (s->source == FA_BLOCKS_MASK_MOD) return mapped_kind(c->mods, e->b, h, qb, kb);
  if (in_list(c, FA_T_KV_NUM_BLOCKS, FA_T_KV_INDICES, &s->kv_num_blocks, &s->kv_indices, e->b, h, qb, kb))
    return FA_TILE_PARTIAL;
  bool full = in_list(c, FA_T_FULL_KV_NUM_BLOCKS, FA_T_FULL_KV_INDICES, &s->full_kv_num_blocks,
                      &s->full_kv_indices, e->b, h, qb, kb);
  return full ? FA_TILE_FULL : FA_TILE_UNLISTED;
}

bool fa_ref_block_listed(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j) {
  return !c->p->block_sparse.present || fa_ref_block_kind(c, e, h, i, j) != FA_TILE_UNLISTED;
}
