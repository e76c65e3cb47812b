/* A whole plugin (gpu/plugin.h): attention forward as the textbook has it, one row at a time, for float32.
 *
 *   cc -shared -fPIC -O2 -I. -o example.so tests/exec/example_plugin.c -lm
 * and beside an installed program, in the folder that `pkg-config --variable=examples fa-verify` names:
 *   cc -shared -fPIC -O2 $(pkg-config --cflags fa-verify) -o example.so example_plugin.c -lm
 *
 *   fa-verify run --backend plugin:./example.so --case '{"family":"flash","dtype":"f32","seqlen_q":65}' */
#include "gpu/plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Changed by test_plugin.sh: number of keys that a causal row wrongly sees, what it says about itself, what its
 * LSE is multiplied by, the table's version and size. */
#ifndef EXAMPLE_FAULT
#define EXAMPLE_FAULT 0
#endif
#ifndef EXAMPLE_MORE
#define EXAMPLE_MORE "\"outputs\": [\"o\", \"lse\"]"
#endif
#ifndef EXAMPLE_LSE_FACTOR
#define EXAMPLE_LSE_FACTOR 1
#endif
#ifndef EXAMPLE_VERSION
#define EXAMPLE_VERSION FA_PLUGIN_VERSION
#endif
#ifndef EXAMPLE_SIZE
#define EXAMPLE_SIZE sizeof(fa_plugin)
#endif

/* "source" is where reports and annotations say that the kernel is written. */
#define TEXT_OF(x) #x
#define PLACE(line) __FILE__ ":" TEXT_OF(line)

/* What a case asks for and the lists do not have is skipped, so that run need not check it. */
static const char *hello(void *self) {
  (void)self;
  return "{\"families\": [\"flash\"], \"dtypes\": [\"f32\"], \"passes\": [\"forward\"],"
         " \"features\": [\"causal\", \"window\", \"top_left\", \"bottom_right\", \"gqa\", \"head_dim_v\"],"
         " \"source\": \"" PLACE(__LINE__) "\", \"arithmetic\": {\"name\": \"simt-f32\"}, " EXAMPLE_MORE "}";
}

/* Only what the lists cannot say. */
static unsigned supports(void *self, const fa_plugin_problem *p, char *why_not, size_t size) {
  (void)self;
  if (p->seqlen_k <= 100000) return FA_PLUGIN_FORWARD;
  snprintf(why_not, size, "its weights are for 100000 keys");
  return 0;
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
  if (!lse->data) return; /* not promised */
  float *to = (float *)lse->data + b * lse->stride[0] + h * lse->stride[1] + i * lse->stride[2];
  *to = lo < hi ? (max + logf(sum)) * (float)(EXAMPLE_LSE_FACTOR) : p->empty_lse;
}

static int run(void *self, const fa_plugin_problem *p, const fa_plugin_tensors *t, fa_plugin_run *run) {
  (void)self;
  float *weight = malloc((size_t)(p->seqlen_k + 1) * sizeof *weight);
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->heads_q; ++h)
      for (int64_t i = 0; i < p->seqlen_q; ++i) attend(p, t, b, h, i, weight);
  free(weight);
  snprintf(run->kernel, sizeof run->kernel, "example_rows<%d>", (int)p->head_dim);
  return 0;
}

const fa_plugin fa_plugin_table = {.version = EXAMPLE_VERSION,
                                   .size = EXAMPLE_SIZE,
                                   .name = "example: attention row by row",
                                   .hello = hello,
                                   .supports = supports,
                                   .run = run};
