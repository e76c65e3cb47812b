/* A plugin of version 1, made with the header of then (tests/exec/plugin_v1.h): libraries like it still load.
 * Attention forward as the textbook has it, one row at a time, for float32. The present one is
 * tests/exec/example_plugin.c. */
#include "tests/exec/plugin_v1.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Changed by test_plugin.sh: number of keys that a causal row wrongly sees, and the version. */
#ifndef EXAMPLE_FAULT
#define EXAMPLE_FAULT 0
#endif
#ifndef EXAMPLE_VERSION
#define EXAMPLE_VERSION FA_PLUGIN_VERSION
#endif

static unsigned supports(void *self, const fa_plugin_problem *p, char *why_not, size_t size) {
  (void)self;
  const char *why = NULL;
  if (p->dtype != FA_PLUGIN_F32) why = "it takes f32 only";
  if (p->variable_length || p->softcap > 0 || p->dropout_p > 0 || p->family[0] != 'f' || p->family[2] != 'a')
    why = "it is an example and does little";
  if (why) snprintf(why_not, size, "%s", why);
  return why ? 0 : FA_PLUGIN_FORWARD; /* no backward: cases are judged without it */
}

static void arithmetic(void *self, const fa_plugin_problem *p, fa_plugin_arithmetic *out) {
  (void)self, (void)p;
  out->name = "simt-f32";
}

/* Element [b, s, h, 0] of q, k, v or o. */
static float *row_of(const fa_plugin_tensor *t, int64_t b, int64_t s, int64_t h) {
  return (float *)t->data + b * t->stride[0] + s * t->stride[1] + h * t->stride[2];
}

static void attend(const fa_plugin_problem *p, const fa_plugin_tensors *t, int64_t b, int64_t h, int64_t i,
                   float *weight) {
  const int64_t hk = h / (p->heads_q / p->heads_kv),
                at = i + (p->align_top_left ? 0 : p->seqlen_k - p->seqlen_q);
  const int64_t lo = p->window_left < 0 || at < p->window_left ? 0 : at - p->window_left;
  int64_t hi = p->window_right < 0 ? p->seqlen_k : at + p->window_right + 1 + EXAMPLE_FAULT;
  if (hi > p->seqlen_k) hi = p->seqlen_k;
  float max = -INFINITY, sum = 0, *o = row_of(&t->o, b, i, h);
  for (int64_t j = lo; j < hi; ++j) {
    weight[j] = 0;
    for (int64_t c = 0; c < p->head_dim; ++c)
      weight[j] += row_of(&t->q, b, i, h)[c] * row_of(&t->k, b, j, hk)[c];
    weight[j] *= (float)p->scale;
    max = fmaxf(max, weight[j]);
  }
  for (int64_t j = lo; j < hi; ++j) sum += weight[j] = expf(weight[j] - max);
  for (int64_t c = 0; c < p->head_dim_v; ++c) {
    o[c] = 0;
    for (int64_t j = lo; j < hi; ++j) o[c] += weight[j] / sum * row_of(&t->v, b, j, hk)[c];
  }
  const fa_plugin_tensor *lse = &t->lse;
  float *to = (float *)lse->data + b * lse->stride[0] + h * lse->stride[1] + i * lse->stride[2];
  *to = lo < hi ? max + logf(sum) : p->empty_lse;
}

static int run(void *self, const fa_plugin_problem *p, const fa_plugin_tensors *t, unsigned passes,
               char *message, size_t size) {
  (void)self, (void)passes, (void)message, (void)size;
  float *weight = malloc((size_t)(p->seqlen_k + 1) * sizeof *weight);
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->heads_q; ++h)
      for (int64_t i = 0; i < p->seqlen_q; ++i) attend(p, t, b, h, i, weight);
  free(weight);
  return 0;
}

const fa_plugin fa_plugin_table = {.version = EXAMPLE_VERSION,
                                   .size = sizeof(fa_plugin),
                                   .name = "example: attention row by row",
                                   .supports = supports,
                                   .arithmetic = arithmetic,
                                   .run = run};
