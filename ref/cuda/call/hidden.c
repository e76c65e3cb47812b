/* Pairs that block lists or a mask_mod hide, as bits, and the tiles that are visited: the reference's own evaluation, so that
 * expressions have one meaning. */
#include "ref/cuda/run.h"
#include "ref/mods/tile.h"
#include "ref/tiles/mask.h"

#include <stdlib.h>

/* More than this is not worth the host's time. */
#define MOST_BYTES ((int64_t)64 << 20)

bool fa_judge_hides(const fa_ref_call *c) {
  return c->p->block_sparse.present || (c->mods && c->mods->mask.n > 0);
}

static int64_t hidden_bytes(const fa_ref_call *c) {
  return c->p->batch * c->heads_q * c->p->seqlen_q * ((c->max_sk + 7) / 8);
}

/* hidden[j]: of n pairs of a row. */
static void hide(const fa_ref_mod_row *r, uint8_t *hidden) {
  if (r->c->mods) {
    fa_ref_mods_hide(r, hidden);
    return;
  }
  for (int64_t j = 0; j < r->n; ++j) hidden[j] = !fa_ref_block_listed(r->c, r->e, r->h, r->i, r->j0 + j);
}

static void hide_tile(const fa_ref_call *c, const fa_ref_rows *rows, int64_t j0, int64_t n,
                      fa_ref_mod_scratch *m, unsigned char *bits) {
  const int64_t width = (c->max_sk + 7) / 8;
  uint8_t hidden[FA_BLOCK_N];
  for (int64_t k = 0; k < rows->n; ++k) {
    int64_t begin, end;
    fa_ref_row_span(rows, k, j0, n, &begin, &end);
    if (begin == end) continue;
    const fa_ref_mod_row r = {c, m, rows->e, rows->h, rows->row[k], j0 + begin, end - begin};
    unsigned char *row = bits + ((rows->e->b * c->heads_q + rows->h) * c->p->seqlen_q + r.i) * width;
    hide(&r, hidden);
    for (int64_t j = 0; j < r.n; ++j) row[(r.j0 + j) / 8] |= (unsigned char)(hidden[j] << ((r.j0 + j) & 7));
  }
}

/* An unvisited tile is hidden as a whole, and no expression is evaluated there. */
static void hide_unvisited(const fa_ref_call *c, const fa_ref_rows *rows, int64_t j0, int64_t n,
                           unsigned char *bits) {
  const int64_t width = (c->max_sk + 7) / 8;
  for (int64_t k = 0; k < rows->n; ++k) {
    unsigned char *row = bits + ((rows->e->b * c->heads_q + rows->h) * c->p->seqlen_q + rows->row[k]) * width;
    for (int64_t j = j0; j < j0 + n; ++j) row[j / 8] |= (unsigned char)(1 << (j & 7));
  }
}

/* Returns the number of the block's tiles. */
static int64_t hide_block(const fa_ref_call *c, const fa_ref_rows *rows, fa_ref_mod_scratch *m,
                          unsigned char *bits, unsigned char *visits) {
  int64_t tiles = 0;
  for (int64_t j0 = rows->j_begin; j0 < rows->j_end; j0 += FA_BLOCK_N, ++tiles) {
    const int64_t n = rows->j_end - j0 < FA_BLOCK_N ? rows->j_end - j0 : FA_BLOCK_N;
    visits[tiles] = fa_ref_tile_visited(c, rows, j0, n);
    if (visits[tiles])
      hide_tile(c, rows, j0, n, m, bits);
    else
      hide_unvisited(c, rows, j0, n, bits);
  }
  return tiles;
}

static fa_tensor bytes(unsigned char *data, int64_t n) {
  return (fa_tensor){.data = (char *)data, .dtype = FA_U8, .rank = 1, .shape = {n}, .stride = {1}};
}

/* Blocks are numbered as lists.c has them. */
static void hide_all(fa_judge_run *run, fa_ref_mod_scratch *m) {
  const fa_ref_call *c = run->c;
  int64_t used = 0;
  for (int64_t n = 0; n < run->lists.n_blocks; ++n) {
    fa_judge_block *b = &run->lists.block[n];
    fa_ref_rows rows;
    fa_ref_rows_init(c, &c->entry[b->b], b->h, b->i0, &rows);
    b->first_visit = used;
    used += hide_block(c, &rows, m, run->hidden, run->visits + used);
  }
  run->input[FA_JUDGE_IN_VISITS] = bytes(run->visits, used);
}

fa_status fa_judge_run_hide(fa_judge_run *run, fa_error *err) {
  const fa_ref_call *c = run->c;
  const int64_t n = hidden_bytes(c);
  fa_ref_mod_scratch *m = NULL;
  if (!fa_judge_hides(c)) return FA_OK;
  if (n > MOST_BYTES) return fa_fail(err, FA_ERR_UNSUPPORTED, "expressions or block lists of a large call");
  fa_status status = fa_ref_mod_scratch_init(&m, c, false, err);
  run->hidden = calloc((size_t)n + 1, 1);
  run->visits = calloc((size_t)(run->lists.n_blocks * (c->max_sk / FA_BLOCK_N + 2)) + 1, 1);
  if (status == FA_OK && (!run->hidden || !run->visits))
    status = fa_fail(err, FA_ERR_MEMORY, "judge: out of memory for hidden pairs");
  if (status == FA_OK) hide_all(run, m);
  run->input[FA_JUDGE_IN_HIDDEN] = bytes(run->hidden, n);
  run->x.hidden_width = (c->max_sk + 7) / 8 * 8;
  fa_ref_mod_scratch_free(m);
  if (status == FA_OK && fa_ref_mods_status(c, NULL) != FA_OK)
    status = fa_fail(err, FA_ERR_UNSUPPORTED, "an expression without a value");
  return status;
}

void fa_judge_run_free_hidden(fa_judge_run *run) {
  free(run->hidden);
  free(run->visits);
}
