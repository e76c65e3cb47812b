/* Which pairs dropout keeps: docs/reference/semantics.md, "Dropout". */
#include "tests/exec/simulated/head.h"

#include <math.h>
#include <string.h>

static void philox(uint64_t seed, int rounds, uint32_t x[4]) {
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int r = 0; r < rounds; ++r) {
    const uint64_t a = (uint64_t)0xD2511F53u * x[0], b = (uint64_t)0xCD9E8D57u * x[2];
    const uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ k1,
                              (uint32_t)a};
    memcpy(x, next, sizeof next);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

static bool keeps_flash(const sim_call *call, const sim_head *e, int rounds, int64_t i, int64_t j) {
  const fa_plugin_problem *p = call->p;
  const int64_t r = i % 16, c = j % 32, lane = (r % 8) * 4 + (c % 8) / 2;
  const int64_t byte = (c / 8) * 4 + (r / 8) * 2 + (c & 1);
  const uint64_t n = p->dropout_offset + (uint64_t)((e->b * p->heads_q + e->h) * 32 + lane);
  uint32_t x[4] = {(uint32_t)n, (uint32_t)(n >> 32), (uint32_t)(i / 16), (uint32_t)(j / 32)};
  philox(p->dropout_seed, rounds, x);
  return (x[byte / 4] >> (8 * (byte % 4)) & 255) <=
         (uint32_t)floor((double)(1.0f - (float)p->dropout_p) * 255.0);
}

static bool keeps_memeff(const sim_call *call, const sim_head *e, int rounds, int64_t i, int64_t j) {
  const fa_plugin_problem *p = call->p;
  const uint64_t n =
      p->dropout_offset + (uint64_t)((e->b * p->heads_q + e->h) * p->seqlen_q * p->seqlen_k + i * e->n_k + j);
  uint32_t x[4] = {(uint32_t)(n / 4), (uint32_t)(n / 4 >> 32), 0, 0};
  philox(p->dropout_seed, rounds, x);
  return (float)x[n % 4] * 0x1p-32f + 0x1p-33f > (float)p->dropout_p;
}

void sim_dropout(const sim_call *call, const sim_head *e, float *factor) {
  const bool memeff = call->c->dropout_layout ? call->c->dropout_layout == 2 : call->p->family[0] == 'm';
  const int rounds = call->c->dropout_rounds ? call->c->dropout_rounds : memeff ? 10 : 7;
  const sim_format f = call->c->p == SIM_IO ? call->io : (sim_format)call->c->p;
  const float exact = (float)(1.0 / (1.0 - call->p->dropout_p));
  const float kept = call->c->dropout_rounded ? sim_round(exact, f, false) : exact;
  for (int64_t i = 0; i < e->n_q; ++i)
    for (int64_t j = 0; j < e->n_k; ++j) {
      const bool keep = call->p->dropout_p == 0.0 ||
                        (memeff ? keeps_memeff(call, e, rounds, i, j) : keeps_flash(call, e, rounds, i, j));
      factor[i * e->n_k + j] = keep ? kept : 0.0f;
    }
}
