/* A kernel with plain parameters, for launch plans: attention of float32 row by row, a block for 64 rows of a head. */
#include "tests/fake_cuda/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every parameter in the order of tests/gpu/rows_plan.json. */
typedef struct rows {
  const float *q, *k, *v;
  float *o, *lse, *scores;
  int64_t q_stride[3], k_stride[3], v_stride[3], o_stride[3], lse_stride[2];
  int64_t seqlen_k;
  int32_t seqlen_q, group, head_dim, causal;
  float scale, empty_lse;
} rows;

static void take(void ***argument, void *to, size_t bytes, size_t n) {
  for (size_t i = 0; i < n; ++i) memcpy((char *)to + i * bytes, *(*argument)++, bytes);
}

static rows read_rows(void **argument) {
  rows x;
  take(&argument, &x.q, sizeof(void *), 1);
  take(&argument, &x.k, sizeof(void *), 1);
  take(&argument, &x.v, sizeof(void *), 1);
  take(&argument, &x.o, sizeof(void *), 1);
  take(&argument, &x.lse, sizeof(void *), 1);
  take(&argument, &x.scores, sizeof(void *), 1);
  take(&argument, x.q_stride, 8, 3);
  take(&argument, x.k_stride, 8, 3);
  take(&argument, x.v_stride, 8, 3);
  take(&argument, x.o_stride, 8, 3);
  take(&argument, x.lse_stride, 8, 2);
  take(&argument, &x.seqlen_k, 8, 1);
  take(&argument, &x.seqlen_q, 4, 1);
  take(&argument, &x.group, 4, 1);
  take(&argument, &x.head_dim, 4, 1);
  take(&argument, &x.causal, 4, 1);
  take(&argument, &x.scale, 4, 1);
  take(&argument, &x.empty_lse, 4, 1);
  return x;
}

/* s: room for the row's scores. */
static void attend(const rows *x, int64_t b, int64_t h, int64_t i, float *s) {
  const float *q = x->q + b * x->q_stride[0] + i * x->q_stride[1] + h * x->q_stride[2];
  const float *k = x->k + b * x->k_stride[0] + h / x->group * x->k_stride[2];
  const float *v = x->v + b * x->v_stride[0] + h / x->group * x->v_stride[2];
  float *o = x->o + b * x->o_stride[0] + i * x->o_stride[1] + h * x->o_stride[2], max = -INFINITY, sum = 0;
  int64_t n = x->causal ? i + x->seqlen_k - x->seqlen_q + 1 : x->seqlen_k;
  if (n > x->seqlen_k) n = x->seqlen_k;
  for (int64_t j = 0; j < n; ++j) {
    s[j] = 0;
    for (int c = 0; c < x->head_dim; ++c) s[j] += q[c] * k[j * x->k_stride[1] + c];
    s[j] *= x->scale;
    max = fmaxf(max, s[j]);
  }
  for (int64_t j = 0; j < n; ++j) sum += s[j] = expf(s[j] - max);
  for (int c = 0; c < x->head_dim; ++c) {
    o[c] = 0;
    for (int64_t j = 0; j < n; ++j) o[c] += s[j] / sum * v[j * x->v_stride[1] + c];
  }
  x->lse[b * x->lse_stride[0] + h * x->lse_stride[1] + i] = n > 0 ? max + logf(sum) : x->empty_lse;
}

void fake_rows(const unsigned grid[3], void **arguments) {
  const rows x = read_rows(arguments);
  for (unsigned b = 0; b < grid[2]; ++b)
    for (unsigned h = 0; h < grid[1]; ++h)
      for (int64_t i = 0; i < (int64_t)grid[0] * 64 && i < x.seqlen_q; ++i)
        attend(&x, b, h, i, x.scores + ((b * grid[1] + h) * x.seqlen_q + i) * x.seqlen_k);
}
