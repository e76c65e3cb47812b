/* Which pairs dropout keeps: docs/reference/semantics.md, "Dropout". */
#include "tests/explain/planted/head.h"

#include <math.h>

typedef struct counter {
  uint32_t x, y, z, w;
} counter;

static counter philox(counter c, uint64_t seed, int rounds) {
  uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
  for (; rounds > 0; --rounds) {
    const uint64_t first = UINT64_C(0xD2511F53) * c.x, third = UINT64_C(0xCD9E8D57) * c.z;
    c = (counter){(uint32_t)(third >> 32) ^ c.y ^ low, (uint32_t)third, (uint32_t)(first >> 32) ^ c.w ^ high,
                  (uint32_t)first};
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  return c;
}

static uint32_t word(const counter *c, int64_t n) {
  return n == 0 ? c->x : n == 1 ? c->y : n == 2 ? c->z : c->w;
}

static bool flash_keeps(const pl_call *call, const pl_head *e, int64_t i, int64_t j) {
  const fa_plugin_problem *p = call->p;
  const int64_t r = i % 16, c = j % 32, byte = c / 8 * 4 + r / 8 * 2 + c % 2;
  const uint64_t lane = (uint64_t)(r % 8 * 4 + c % 8 / 2);
  const uint64_t n = p->dropout_offset + (uint64_t)call->planted[PL_dropout_other_offset] +
                     (uint64_t)(e->b * p->heads_q + e->h) * 32 + lane;
  const counter start = {(uint32_t)n, (uint32_t)(n >> 32), (uint32_t)(i / 16), (uint32_t)(j / 32)};
  const counter end = philox(start, p->dropout_seed, call->planted[PL_dropout_other_rounds] ? 10 : 7);
  const uint32_t limit = (uint32_t)floor((double)(1.0f - (float)p->dropout_p) * 255.0);
  return (word(&end, byte / 4) >> (byte % 4 * 8) & 255) <= limit;
}

static bool memeff_keeps(const pl_call *call, const pl_head *e, int64_t i, int64_t j) {
  const fa_plugin_problem *p = call->p;
  const uint64_t n = p->dropout_offset + (uint64_t)call->planted[PL_dropout_other_offset] +
                     (uint64_t)((e->b * p->heads_q + e->h) * p->seqlen_q * p->seqlen_k + i * e->n_k + j);
  const counter start = {(uint32_t)(n / 4), (uint32_t)(n / 4 >> 32), 0, 0};
  const counter end = philox(start, p->dropout_seed, call->planted[PL_dropout_other_rounds] ? 7 : 10);
  return (float)word(&end, (int64_t)(n % 4)) * 0x1p-32f + 0x1p-33f > (float)p->dropout_p;
}

void pl_dropout(const pl_call *call, pl_head *e, int64_t i, bool backward) {
  const int64_t *m = call->planted;
  const double p = call->p->dropout_p, kept = 1.0 / (1.0 - p);
  const bool none = p == 0.0 || m[PL_dropout_missing] || (backward && m[PL_dropout_missing_in_backward]);
  const double factor = m[PL_dropout_not_scaled] ? 1.0 : m[PL_dropout_scaled_twice] ? kept * kept : kept;
  for (int64_t j = 0; j < e->n_k; ++j) {
    e->keep[j] = 1.0;
    if (none) continue;
    const bool keep = call->p->family[0] == 'm' ? memeff_keeps(call, e, i, j) : flash_keeps(call, e, i, j);
    e->keep[j] = keep != (m[PL_dropout_inverted] != 0) ? factor : 0.0;
  }
}
