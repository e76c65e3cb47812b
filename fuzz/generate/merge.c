/* Random merges of partial states. */
#include "fuzz/generate/parts.h"

#include <stdlib.h>

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))
#define PICK(r, a) ((a)[fa_rng_below(r, COUNT(a))])

/* Parts of a row in all, times its width: a few of the many cost as much as many of the few. */
static int64_t room_for_rows(const fa_gen *g) {
  const fa_problem *p = &g->c->problem;
  const int64_t cost = p->merge.parts * p->batch * p->heads_q * p->head_dim;
  const int64_t rows = g->rules->pairs_dim / 8 / cost;
  return rows < 1 ? 1 : rows < g->rules->longest ? rows : g->rules->longest;
}

static fa_status draw_packed(fa_gen *g, fa_rng *r, int64_t longest) {
  static const int64_t batches[] = {1, 2, 3, 5, 9};
  fa_problem *p = &g->c->problem;
  const int64_t n = PICK(r, batches);
  int32_t cu[10] = {0};
  for (int64_t b = 0; b < n; ++b)
    cu[b + 1] = cu[b] + (int32_t)(fa_rng_chance(r, 0.25) ? 0 : fa_gen_length(g, r, longest / 2 + 1));
  return fa_int32_array_set(&p->cu_seqlens_q, cu, n + 1);
}

static void draw_sizes(fa_gen *g, fa_rng *r) {
  static const int64_t parts[] = {1, 2, 2, 2, 2, 2, 3, 3, 4, 5, 7, 8, 16, 33}, batches[] = {1, 1, 2, 3};
  static const int64_t heads[] = {1, 1, 2, 3, 4, 6}, usual[] = {64, 64, 128, 128, 256};
  static const int64_t odd[] = {1, 2, 3, 5, 7, 8, 16, 33, 40, 72, 80, 96, 192, 320, 512};
  static const fa_dtype types[] = {FA_F16, FA_BF16, FA_F16, FA_BF16, FA_F32};
  fa_problem *p = &g->c->problem;
  p->dtype = PICK(r, types);
  fa_problem_set_family(p, FA_MERGE);
  p->merge.parts = PICK(r, parts);
  p->merge.base_2 = fa_rng_chance(r, 0.45);
  if (fa_rng_chance(r, 0.5)) p->merge.parts_dtype = PICK(r, types);
  p->batch = PICK(r, batches);
  p->heads_q = PICK(r, heads);
  p->head_dim = fa_rng_chance(r, g->rules->odd_dim) ? PICK(r, odd) : PICK(r, usual);
}

fa_status fa_gen_merge(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_MERGE);
  fa_problem *p = &g->c->problem;
  draw_sizes(g, &r);
  const int64_t longest = room_for_rows(g);
  fa_status status = FA_OK;
  if (fa_rng_chance(&r, g->rules->varlen))
    status = draw_packed(g, &r, longest);
  else
    p->seqlen_q = fa_gen_length(g, &r, longest);
  p->backward = !fa_rng_chance(&r, 0.15);
  p->grad_lse = p->backward && fa_rng_chance(&r, 0.5);
  p->deterministic = fa_rng_chance(&r, 0.2);
  return status == FA_OK ? fa_problem_complete(p) : status;
}

void fa_gen_merge_fills(fa_gen *g) {
  static const fa_fill lse[] = {FA_FILL_NORMAL,    FA_FILL_LSE_EQUAL, FA_FILL_LSE_NEAR,  FA_FILL_LSE_20,
                                FA_FILL_LSE_90,    FA_FILL_LSE_200,   FA_FILL_LSE_KEYS,  FA_FILL_LSE_EMPTY,
                                FA_FILL_LSE_EMPTY, FA_FILL_SMALL,     FA_FILL_LSE_EMPTY, FA_FILL_INTEGER};
  static const fa_fill o[] = {FA_FILL_V_OFFSET, FA_FILL_POSITIONAL_V, FA_FILL_UNIFORM,  FA_FILL_INTEGER,
                              FA_FILL_SMALL,    FA_FILL_NEAR_MAX,     FA_FILL_DENORMAL, FA_FILL_HEAVY_TAIL};
  static const fa_fill d_o[] = {FA_FILL_DO_ONE_HOT, FA_FILL_SMALL, FA_FILL_INTEGER, FA_FILL_UNIFORM,
                                FA_FILL_ZERO};
  fa_rng r = fa_gen_rng(g, FA_GEN_FILLS);
  fa_case *c = g->c;
  c->fill[FA_T_LSE_PARTS] = PICK(&r, lse);
  if (fa_rng_chance(&r, g->rules->fills)) c->fill[FA_T_O_PARTS] = PICK(&r, o);
  /* Subnormals of the wide types are what hardware may flush to zero: nothing is to be seen of them. */
  if (c->fill[FA_T_O_PARTS] == FA_FILL_DENORMAL && c->problem.dtype != FA_F16)
    c->fill[FA_T_O_PARTS] = FA_FILL_NORMAL;
  if (fa_rng_chance(&r, g->rules->fills)) c->fill[FA_T_DO] = PICK(&r, d_o);
}

fa_tensor_id fa_gen_merge_huge(fa_rng *r) {
  static const fa_tensor_id ids[] = {FA_T_O_PARTS,  FA_T_LSE_PARTS,  FA_T_O,  FA_T_LSE,
                                     FA_T_DO_PARTS, FA_T_DLSE_PARTS, FA_T_DO, FA_T_DLSE};
  return PICK(r, ids);
}
