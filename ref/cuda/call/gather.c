/* What a call reads of a KV cache, and through lists of keys, as plain rows: the reference's own loading, so that pages, cache
 * rows, appended keys and rotary embedding have one description. */
#include "ref/cuda/run.h"
#include "ref/engine/topk.h"
#include "ref/tiles/scratch.h"

#include <stdlib.h>
#include <string.h>

bool fa_judge_gathers(const fa_ref_call *c) {
  return c->p->kvcache.present || c->p->topk.present;
}

int64_t fa_judge_gathered_first(const fa_ref_call *c, int64_t b) {
  int64_t first = 0;
  for (int64_t i = 0; i < b; ++i) first += c->entry[i].sk;
  return first;
}

/* Rows are contiguous. */
static fa_tensor dense(float *data, int64_t rows, int64_t width) {
  return (fa_tensor){
      .data = (char *)data, .dtype = FA_F32, .rank = 2, .shape = {rows, width}, .stride = {width, 1}};
}

/* A key's row as it is stored: the quotient is exact, as the product was. */
static float *put_stored(const double *row, int64_t width, const float *descale, int64_t tile, float *to) {
  for (int64_t x = 0; x < width; ++x) {
    const double by = descale[x / tile];
    *to++ = (float)(by == 1 || row[x] == 0 ? row[x] : row[x] / by); /* of 8 or 16 bits or f32: exact */
  }
  return to;
}

static void gather_keys(const fa_ref_call *c, fa_tensor_id id, int64_t width, double *row, float *to) {
  const int64_t tiles = fa_judge_tiles(c, width), tile = tiles > 1 ? FA_MIXED_TILE : width;
  float descale[FA_MAX_HEAD_DIM / FA_MIXED_TILE + 1];
  for (int64_t b = 0; b < c->p->batch; ++b)
    for (int64_t j = 0; j < c->entry[b].sk; ++j)
      for (int64_t hk = 0; hk < c->heads_kv; ++hk) {
        fa_ref_load_k(c, id, &c->entry[b], hk, j, 1, row);
        fa_judge_descales_of_key(c, id, &c->entry[b], hk, j, tiles, descale);
        to = put_stored(row, width, descale, tile, to);
      }
}

/* Of keys that were there before nothing is known but what they are. */
static void gather_flips(const fa_ref_call *c, float *to) {
  const fa_kvcache *kv = &c->p->kvcache;
  for (int64_t b = 0; b < c->p->batch; ++b)
    for (int64_t j = 0; j < c->entry[b].sk; ++j) {
      const int64_t fresh = c->entry[b].k_first + j - kv->len.v[b], n = c->heads_kv * c->d;
      if (fresh < 0)
        memset(to, 0, (size_t)n * sizeof *to);
      else
        memcpy(to, c->rotated.dk + (b * kv->n_new + fresh) * n, (size_t)n * sizeof *to);
      to += n;
    }
}

static fa_status gather(fa_judge_run *run, fa_error *err) {
  const fa_ref_call *c = run->c;
  const int64_t rows = fa_judge_gathered_first(c, c->p->batch) * c->heads_kv;
  const int64_t width[3] = {c->d, c->dv, c->d};
  static const int to[3] = {FA_JUDGE_IN_K, FA_JUDGE_IN_V, FA_JUDGE_IN_FLIP_K};
  double *row = malloc((size_t)(c->d + c->dv) * sizeof *row);
  bool room = row != NULL;
  for (int i = 0; room && i < (c->rotated.q ? 3 : 2); ++i) {
    float *all = run->gathered[i] = malloc((size_t)(rows * width[i] + 1) * sizeof *all);
    room = all != NULL;
    if (room && i == 2) gather_flips(c, all);
    if (room && i < 2) gather_keys(c, i ? FA_T_V : FA_T_K, width[i], row, all);
    run->input[to[i]] = dense(all, rows, width[i]);
  }
  free(row);
  return room ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "judge: out of memory for gathered keys");
}

/* As queries lie: doubles, of which f32 holds all that they are rounded to. */
static fa_status take_rotated(fa_judge_run *run, fa_error *err) {
  const fa_ref_call *c = run->c;
  const int64_t rows = fa_problem_total_q(c->p) * c->heads_q, n = rows * c->d;
  run->rotated = malloc((size_t)(n + 1) * sizeof *run->rotated);
  if (!run->rotated) return fa_fail(err, FA_ERR_MEMORY, "judge: out of memory for rotated queries");
  for (int64_t x = 0; x < n; ++x) run->rotated[x] = (float)c->rotated.q[x];
  run->input[FA_JUDGE_IN_ROTATED] = dense(run->rotated, rows, c->d);
  run->input[FA_JUDGE_IN_FLIP_Q] = dense(c->rotated.dq, rows, c->d);
  return FA_OK;
}

static fa_status count_lists(fa_judge_run *run, fa_error *err) {
  const fa_ref_call *c = run->c;
  const int64_t rows = fa_problem_total_q(c->p), width = c->max_sk, k = c->p->topk.k;
  run->times = calloc((size_t)(rows * width + 1), sizeof *run->times);
  if (!run->times) return fa_fail(err, FA_ERR_MEMORY, "judge: out of memory for lists of keys");
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t n = 0; n < k; ++n)
      if (c->topk->key[row * k + n] >= 0) ++run->times[row * width + c->topk->key[row * k + n]];
  run->input[FA_JUDGE_IN_TIMES] = dense(run->times, rows, width);
  run->x.times_width = width;
  run->x.kept_scores = !run->backward && fa_ref_keeps_scores(c);
  return FA_OK;
}

fa_status fa_judge_run_gather(fa_judge_run *run, fa_error *err) {
  const fa_ref_call *c = run->c;
  fa_status status = fa_judge_gathers(c) ? gather(run, err) : FA_OK;
  if (status == FA_OK && c->rotated.q) status = take_rotated(run, err);
  return status == FA_OK && c->topk ? count_lists(run, err) : status;
}

void fa_judge_run_free_gathered(fa_judge_run *run) {
  for (int i = 0; i < 3; ++i) free(run->gathered[i]);
  free(run->rotated);
  free(run->times);
}
