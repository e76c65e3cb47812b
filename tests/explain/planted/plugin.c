/* A plugin (gpu/plugin.h) that computes attention naively, in float64, and makes the mistakes that FA_PLANTED names
 * (mistakes.h): the subject on which explanations are tried.
 *
 *   FA_PLANTED=window_right_one_fewer fa-verify run --backend plugin:./planted.so --cases cases/window.json */
#include "tests/explain/planted/corrupt.h"
#include "tests/explain/planted/head.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct planted {
  pl_plan plan;
  pl_corruption corruption;
  char hello[2048];
} planted;

static int open_(void **self, char *message, size_t size) {
  const char *text = getenv("FA_PLANTED");
  planted *x = calloc(1, sizeof *x);
  bool good = x && pl_corruption_read(text, &x->corruption, message, size);
  good = good && (x->corruption.kind >= 0 || pl_plan_read(text, &x->plan, message, size));
  *self = x;
  if (!good) free(x);
  return good ? 0 : 1;
}

static void close_(void *self) {
  free(self);
}

static bool makes(const planted *x, pl_mistake what) {
  for (int i = 0; i < x->plan.n; ++i)
    if (x->plan.planted[i].what == what) return true;
  return false;
}

/* Expressions and block lists are taken by one who ignores them, and by nobody else. The gradients come from the stored
 * O and LSE; everything between is exact. */
static const char *hello(void *self) {
  planted *x = self;
  snprintf(
      x->hello, sizeof x->hello,
      "{\"families\": [\"flash\", \"memeff\", \"flex\", \"kvcache\"], \"dtypes\": [\"f32\", \"f16\", "
      "\"bf16\"], "
      "\"features\": [\"causal\", \"window\", \"top_left\", \"bottom_right\", \"varlen\", \"seqused_k\", "
      "\"leftpad_k\", \"gqa\", \"head_dim_v\", \"softcap\", \"alibi\", \"bias\", \"bias_grad\", "
      "\"bias_varlen\", "
      "\"flash_more\", \"dropout\", \"dlse\", \"append\", \"paged\", \"batch_idx\", \"rotary\", \"splits\", "
      "\"deterministic\", \"empty_lse\"%s%s%s], "
      "\"outputs\": [\"o\", \"lse\", \"dq\", \"dk\", \"dv\", \"dbias\"], "
      "\"lse\": {\"base\": \"e\", \"scaled\": true, \"empty\": \"as_case\", \"alibi\": \"distance\"}, "
      "\"empty_o\": \"0\", \"limits\": {\"head_dim\": {\"max\": 512}, \"head_dim_v\": {\"max\": 512}}, "
      "\"arithmetic\": {\"name\": \"numpy-f32\", \"delta\": \"stored_o\", \"p_kept\": false}}",
      makes(x, PL_score_mod_ignored) ? ", \"score_mod\"" : "",
      makes(x, PL_mask_mod_ignored) || makes(x, PL_mask_mod_ignored__first_pair) ? ", \"mask_mod\"" : "",
      makes(x, PL_block_list_ignored) || makes(x, PL_mask_mod_ignored__first_pair) ? ", \"block_sparse\""
                                                                                   : "");
  return x->hello;
}

static double scale_of(const pl_call *call) {
  const int64_t *m = call->planted, d = call->p->head_dim;
  const double scale = call->p->scale;
  int64_t padded = 1;
  while (padded < d) padded *= 2;
  if (m[PL_scale_missing]) return 1.0;
  if (m[PL_scale_twice]) return scale * scale;
  if (m[PL_scale_of_padded_head_dim]) return scale * sqrt((double)d / (double)padded);
  if (m[PL_scale_log2e]) return scale * 1.44269504088896340736;
  return m[PL_scale_times] ? scale * (double)m[PL_scale_times] / 100.0 : scale;
}

static void write_dbias(const fa_plugin_tensor *t, const double *sum) {
  const int64_t *n = t->shape, *s = t->stride;
  for (int64_t at = 0; at < n[0] * n[1] * n[2] * n[3]; ++at) {
    const int64_t j = at % n[3], i = at / n[3] % n[2], h = at / n[3] / n[2] % n[1],
                  b = at / n[3] / n[2] / n[1];
    pl_store(t, b * s[0] + h * s[1] + i * s[2] + j * s[3], sum[at], false);
  }
}

/* dK or dV of one sequence: every key in memory, hidden ones too. */
static void write_keys(const pl_call *call, const pl_head *e, const fa_plugin_tensor *t, int64_t width,
                       const double *sum) {
  const bool cut = call->planted[PL_truncated_instead_of_rounded] != 0;
  for (int64_t hk = 0; hk < call->p->heads_kv; ++hk)
    for (int64_t j = 0; j < e->longest; ++j)
      for (int64_t d = 0; d < width; ++d)
        pl_store(t, pl_row_k(call, e, t, hk, j) + d * t->stride[t->rank - 1],
                 sum[(hk * e->longest + j) * width + d], cut);
}

static bool run_sequence(const pl_call *call, int64_t b) {
  pl_head e = {.b = b};
  pl_lengths(call, &e);
  const size_t keys = (size_t)(call->p->heads_kv * e.longest);
  if (call->backward) memset(call->dk, 0, keys * (size_t)call->p->head_dim * sizeof *call->dk);
  if (call->backward) memset(call->dv, 0, keys * (size_t)call->p->head_dim_v * sizeof *call->dv);
  for (int64_t h = 0; h < call->p->heads_q; ++h) {
    pl_head one;
    if (!pl_head_make(call, b, h, &one)) return false;
    pl_forward(call, &one);
    if (call->backward) pl_backward(call, &one);
    pl_head_free(&one);
  }
  if (call->backward) write_keys(call, &e, &call->t->dk, call->p->head_dim, call->dk);
  if (call->backward) write_keys(call, &e, &call->t->dv, call->p->head_dim_v, call->dv);
  return true;
}

static bool run_call(pl_call *call) {
  const fa_plugin_problem *p = call->p;
  const int64_t keys = p->heads_kv * p->seqlen_k + 1, *n = call->t->dbias.shape;
  const bool bias = call->backward && call->t->dbias.data;
  call->dk = calloc((size_t)(keys * p->head_dim), sizeof *call->dk);
  call->dv = calloc((size_t)(keys * p->head_dim_v), sizeof *call->dv);
  call->dbias = bias ? calloc((size_t)(n[0] * n[1] * n[2] * n[3] + 1), sizeof *call->dbias) : NULL;
  bool good = call->dk && call->dv && (call->dbias || !bias);
  if (good && p->cache && p->n_new > 0) pl_append(call);
  for (int64_t b = 0; good && b < p->batch; ++b) good = run_sequence(call, b);
  if (good && bias) write_dbias(&call->t->dbias, call->dbias);
  free(call->dk);
  free(call->dv);
  free(call->dbias);
  return good;
}

static int run(void *self, const fa_plugin_problem *p, const fa_plugin_tensors *t, fa_plugin_run *r) {
  const planted *x = self;
  pl_call call = {.p = p, .t = t, .backward = (r->passes & FA_PLUGIN_BACKWARD) != 0};
  pl_plan_for(&x->plan, p, call.planted);
  call.scale = scale_of(&call);
  if (!run_call(&call)) {
    snprintf(r->message, sizeof r->message, "out of memory");
    return 2;
  }
  pl_corrupt(&x->corruption, p, t, call.backward);
  return 0;
}

const fa_plugin fa_plugin_table = {.version = FA_PLUGIN_VERSION,
                                   .size = sizeof(fa_plugin),
                                   .name = "planted: plain loops, and mistakes on demand",
                                   .open = open_,
                                   .close = close_,
                                   .hello = hello,
                                   .run = run};
