/* What the rows of operands of 8 bits are multiplied by: a number for each row as it is uploaded, or for each tile of it where a
 * cache's rows mix types. */
#include "cases/tensors/mixed.h"
#include "ref/cuda/run.h"
#include "ref/engine/descale.h"
#include "ref/engine/topk.h"

#include <stdlib.h>

int64_t fa_judge_tiles(const fa_ref_call *c, int64_t width) {
  return c->p->quantized.per == FA_PER_TILE ? (width + FA_MIXED_TILE - 1) / FA_MIXED_TILE : 1;
}

void fa_judge_descales_of_key(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk,
                              int64_t j, int64_t tiles, float *to) {
  const fa_tensor *t = &c->in->t[id];
  const bool listed = fa_ref_topk_is_listed(c, e, j); /* else it holds anything, and counts as zeros */
  for (int64_t tile = 0; tile < tiles; ++tile)
    if (!listed)
      to[tile] = 1;
    else if (fa_tensor_is_mixed(c->p, id))
      to[tile] = fa_mixed_descale(c->p, t->data + fa_ref_cache_offset(c, t, e, hk, e->k_first + j), tile);
    else
      to[tile] = (float)fa_ref_descale_of_key(c, id, e, hk, e->k_first + j);
}

/* Rows that no sequence has are not read. */
static void of_keys(const fa_ref_call *c, fa_tensor_id id, int64_t tiles, float *to) {
  for (int64_t b = 0; b < c->p->batch; ++b)
    for (int64_t j = 0; j < c->entry[b].sk; ++j)
      for (int64_t hk = 0; hk < c->heads_kv; ++hk) {
        const fa_ref_sequence *e = &c->entry[b];
        const int64_t row = fa_judge_gathers(c) ? (fa_judge_gathered_first(c, b) + j) * c->heads_kv + hk
                                                : fa_ref_k_index(c, e, hk, j, 1);
        fa_judge_descales_of_key(c, id, e, hk, j, tiles, to + row * tiles);
      }
}

static void of_queries(const fa_ref_call *c, float *to) {
  for (int64_t b = 0; b < c->p->batch; ++b)
    for (int64_t i = 0; i < c->entry[b].sq; ++i)
      for (int64_t h = 0; h < c->heads_q; ++h)
        to[fa_ref_q_index(c, &c->entry[b], h, i, 1)] = (float)fa_ref_descale_of_query(c, &c->entry[b], h, i);
}

/* Of the operand that is input `of`. */
static fa_status take(fa_judge_run *run, int of, int to, fa_tensor_id id, fa_error *err) {
  const fa_ref_call *c = run->c;
  const int64_t width = id == FA_T_V ? c->dv : c->d, tiles = id == FA_T_Q ? 1 : fa_judge_tiles(c, width);
  const int64_t rows = fa_tensor_count(&run->input[of]) / width;
  float *all = run->descales[to - FA_JUDGE_IN_Q_DESCALE] = calloc((size_t)(rows * tiles + 1), sizeof *all);
  if (!all) return fa_fail(err, FA_ERR_MEMORY, "judge: out of memory for descales");
  if (id == FA_T_Q)
    of_queries(c, all);
  else
    of_keys(c, id, tiles, all);
  run->input[to] = (fa_tensor){
      .data = (char *)all, .dtype = FA_F32, .rank = 2, .shape = {rows, tiles}, .stride = {tiles, 1}};
  return FA_OK;
}

fa_status fa_judge_run_descale(fa_judge_run *run, fa_error *err) {
  const fa_quantized *q = &run->c->p->quantized;
  fa_status status = FA_OK;
  if (q->queries) status = take(run, FA_JUDGE_IN_Q, FA_JUDGE_IN_Q_DESCALE, FA_T_Q, err);
  if (q->present && status == FA_OK) status = take(run, FA_JUDGE_IN_K, FA_JUDGE_IN_K_DESCALE, FA_T_K, err);
  if (q->present && status == FA_OK) status = take(run, FA_JUDGE_IN_V, FA_JUDGE_IN_V_DESCALE, FA_T_V, err);
  return status;
}

void fa_judge_run_free_descales(fa_judge_run *run) {
  for (int i = 0; i < 3; ++i) free(run->descales[i]);
}
