/* Dropout masks bit by bit, from the description in docs/reference/semantics.md. */
#include "tests/support/slow_attention.h"

#include <math.h>

void slow_philox(int rounds, uint64_t seed, uint32_t c[4]) {
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int r = 0; r < rounds; ++r) {
    uint64_t ax = (uint64_t)0xD2511F53u * c[0];
    uint64_t bz = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t x = (uint32_t)(bz >> 32) ^ c[1] ^ k0;
    uint32_t z = (uint32_t)(ax >> 32) ^ c[3] ^ k1;
    c[0] = x;
    c[1] = (uint32_t)bz;
    c[2] = z;
    c[3] = (uint32_t)ax;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

static bool keep_flash(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j) {
  int r = (int)(i % 16), c = (int)(j % 32);
  int lane = (r % 8) * 4 + (c % 8) / 2;
  uint64_t at = p->dropout.offset + (uint64_t)(b * p->heads_q + h) * 32 + (uint64_t)lane;
  uint32_t x[4] = {(uint32_t)at, (uint32_t)(at >> 32), (uint32_t)(i / 16), (uint32_t)(j / 32)};
  slow_philox(7, p->dropout.seed, x);
  int byte = (c / 8) * 4 + (r / 8) * 2 + (c & 1);
  uint32_t drawn = (x[byte / 4] >> (8 * (byte % 4))) & 255u;
  uint32_t limit = (uint32_t)floor((double)(1.0f - (float)p->dropout.p) * 255.0);
  return drawn <= limit;
}

static bool keep_memeff(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j, int64_t sk) {
  uint64_t head = (uint64_t)(b * p->heads_q + h) * (uint64_t)p->seqlen_q * (uint64_t)p->seqlen_k;
  uint64_t n = p->dropout.offset + head + (uint64_t)i * (uint64_t)sk + (uint64_t)j;
  uint32_t x[4] = {(uint32_t)(n / 4), (uint32_t)((n / 4) >> 32), 0, 0};
  slow_philox(10, p->dropout.seed, x);
  float u = (float)x[n % 4] * 0x1p-32f + 0x1p-33f;
  return u > (float)p->dropout.p;
}

bool slow_keep(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j, int64_t sk) {
  if (p->dropout.p == 0) return true;
  return p->family == FA_MEMEFF ? keep_memeff(p, b, h, i, j, sk) : keep_flash(p, b, h, i, j);
}
