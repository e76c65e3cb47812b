#include "tests/kernels/flex_forward_problem.h"

#include <math.h>
#include <stdlib.h>

struct flex_memory memory = {.slopes = {0.01f, 0.2f, 0.05f, 0.4f}};
const int32_t used[BATCH] = {130, 77}, pads[BATCH] = {3, 70};
const call *now;
atomic_int full_asked;

int flex_block_kind(int b, int h, int i, int j) {
  if (!now->q_block) return FA_FLEX_PARTIAL;
  const int n_q = n_blocks(now->rows, now->q_block), n_kv = n_blocks(now->keys, now->kv_block);
  if (i >= n_q * now->q_block || j >= n_kv * now->kv_block) return FA_FLEX_FULLY_MASKED;
  const int list = now->shared_lists ? 0 : b * now->heads + h;
  return memory.map[(list * n_q + i / now->q_block) * n_kv + j / now->kv_block];
}

/* ---- the expressions ---- */

static bool mask_holds(const fa_flex_pair *at) {
  return !(now->mode & M_NOBODY) && (at->i + 2 * at->j + at->h + at->b) % 3 != 0;
}

static bool in_window(const fa_flex_pair *at) {
  const int diagonal = at->i + (now->top_left ? 0 : at->len_k - at->len_q);
  return (now->window_left < 0 || at->j >= diagonal - now->window_left) &&
         (now->window_right < 0 || at->j <= diagonal + now->window_right);
}

static bool pair_is_visible(const fa_flex_pair *at) {
  if (at->i >= at->len_q || at->j >= at->len_k || !in_window(at)) return false;
  const int kind = flex_block_kind(at->b, at->h, at->i, at->j);
  if (kind == FA_FLEX_FULLY_MASKED) return false;
  return kind == FA_FLEX_FULL || !(now->mode & (M_MASK | M_NOBODY)) || mask_holds(at);
}

float flex_score_mod(void *self, float score, const fa_flex_pair *at) {
  (void)self;
  static const float garbage[] = {NAN, INFINITY, 3.4e38f, -NAN};
  if (now->mode & M_GARBAGE && !pair_is_visible(at)) return garbage[(at->i + at->j) % 4];
  if (now->mode & M_MINUS_INF && (at->j < at->i / 2 || at->i == 5)) return -INFINITY;
  if (!(now->mode & M_SCORE)) return score;
  return 1.5f * score + 0.1f * (float)(at->h + 1) - 0.01f * (float)(at->i - at->j);
}

int flex_mask_mod(void *self, const fa_flex_pair *at) {
  (void)self;
  if (flex_block_kind(at->b, at->h, at->i, at->j) == FA_FLEX_FULL) atomic_store(&full_asked, 1);
  return mask_holds(at);
}

/* ---- expected values ---- */

static int64_t element(int b, int row, int head, int rows, int heads, int d) {
  return (((int64_t)b * rows + row) * heads + head) * d;
}

static double logit_of(const call *c, const fa_flex_pair *at, int pad) {
  const float *qi = memory.q + element(at->b, at->i, at->h, c->rows, c->heads, c->d);
  const float *kj =
      memory.k + element(at->b, at->j + pad, at->h * c->heads_kv / c->heads, c->keys, c->heads_kv, c->d);
  double t = 0;
  for (int e = 0; e < c->d; ++e) t += (double)qi[e] * kj[e];
  t /= sqrt(c->d);
  if (c->softcap > 0) t = c->softcap * tanh(t / c->softcap);
  t = flex_score_mod(NULL, (float)t, at);
  if (c->alibi) t -= (double)memory.slopes[at->h] * abs(at->i + at->len_k - at->len_q - at->j);
  if (c->bias) t += memory.bias[(((int64_t)at->b * c->heads + at->h) * c->rows + at->i) * c->keys + at->j];
  return t;
}

/* One row: O to out[dv]; returns LSE. */
static double want_row(const call *c, int b, int h, int i, double *out) {
  static double logit[MAX_ROWS];
  const int pad = c->lengths ? pads[b] : 0;
  const fa_flex_pair first = {b, h, i, 0, c->rows, (c->lengths ? used[b] : c->keys) - pad};
  double max = -INFINITY, sum = 0;
  for (int j = 0; j < first.len_k; ++j) {
    fa_flex_pair at = first;
    at.j = j;
    logit[j] = pair_is_visible(&at) ? logit_of(c, &at, pad) : -INFINITY;
    max = fmax(max, logit[j]);
  }
  for (int e = 0; e < c->dv; ++e) out[e] = 0;
  if (max == -INFINITY) return -INFINITY;
  for (int j = 0; j < first.len_k; ++j) {
    const double p = exp(logit[j] - max);
    const float *vj = memory.v + element(b, j + pad, h * c->heads_kv / c->heads, c->keys, c->heads_kv, c->dv);
    sum += p;
    for (int e = 0; e < c->dv; ++e) out[e] += p * vj[e];
  }
  for (int e = 0; e < c->dv; ++e) out[e] /= sum;
  return max + log(sum);
}

static double got_o(const call *c, int64_t at) {
  return c->dtype == FA_F32   ? memory.o[at]
         : c->dtype == FA_F16 ? fa_f16_to_f32(memory.o16[at])
                              : fa_bf16_to_f32(memory.o16[at]);
}

int flex_wrong_elements(const call *c, int *empty) {
  const double loose = c->dtype == FA_F32 ? 2e-6 : c->dtype == FA_F16 ? 1e-3 : 8e-3;
  double want[MAX_D];
  int wrong = 0;
  *empty = 0;
  for (int b = 0; b < BATCH; ++b)
    for (int h = 0; h < c->heads; ++h)
      for (int i = 0; i < c->rows; ++i) {
        const double want_lse = want_row(c, b, h, i, want);
        const double got_lse = memory.lse[(b * c->heads + h) * c->rows + i];
        const bool nothing = want_lse == -INFINITY;
        *empty += nothing;
        wrong += nothing ? !(got_lse == want_lse) : !(fabs(got_lse - want_lse) <= 4e-6);
        for (int e = 0; e < c->dv; ++e) {
          const double got = got_o(c, element(b, i, h, c->rows, c->heads, c->dv) + e);
          wrong += nothing ? !(got == 0) : !(fabs(got - want[e]) <= loose);
        }
      }
  return wrong;
}
