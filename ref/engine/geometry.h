/* Which keys a row sees by their positions, and which pairs dropout keeps: shared with the judge on a device. */
#ifndef FA_REF_ENGINE_GEOMETRY_H
#define FA_REF_ENGINE_GEOMETRY_H

#include "ref/engine/call.h"
#include "cases/base/both.h"

#include <math.h>

/* Keys [*lo, *hi) that row i of a sequence with n_keys keys sees. None: *lo >= *hi. */
FA_BOTH void fa_ref_mask_range(const fa_mask *m, int64_t n_keys, int64_t shift, int64_t i, int64_t *lo,
                               int64_t *hi) {
  int64_t first = 0, end = n_keys, diagonal = i + shift;
  if (m->type == FA_MASK_CAUSAL && end > diagonal + 1) end = diagonal + 1;
  if (m->type == FA_MASK_CHUNK) {
    /* The chunk of the diagonal, and no key beyond it. floor: what lies before key 0 is in chunks too. */
    const int64_t chunk = (int64_t)floor((double)diagonal / (double)m->size) * m->size;
    if (first < chunk) first = chunk;
    if (m->left >= 0 && first < diagonal - m->left) first = diagonal - m->left;
    if (end > diagonal + 1) end = diagonal + 1;
  }
  if (m->type == FA_MASK_WINDOW) {
    if (m->left >= 0 && first < diagonal - m->left) first = diagonal - m->left;
    if (m->right >= 0 && end > diagonal + m->right + 1) end = diagonal + m->right + 1;
  }
  *lo = first;
  *hi = end;
}

FA_BOTH void fa_ref_philox(uint64_t seed, int n_rounds, const uint32_t counter[4], uint32_t out[4]) {
  const uint64_t a = 0xD2511F53u, b = 0xCD9E8D57u;
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  uint32_t x = counter[0], y = counter[1], z = counter[2], w = counter[3];
  for (int round = 0; round < n_rounds; ++round) {
    uint64_t bz = b * z, ax = a * x;
    uint32_t nx = (uint32_t)(bz >> 32) ^ y ^ k0, nz = (uint32_t)(ax >> 32) ^ w ^ k1;
    x = nx;
    y = (uint32_t)bz;
    z = nz;
    w = (uint32_t)ax;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = x;
  out[1] = y;
  out[2] = z;
  out[3] = w;
}

/* A byte of flash's dropout keeps its element if it is at most this. */
FA_BOTH uint8_t fa_ref_flash_threshold(double p) {
  return (uint8_t)floor((double)(1.0f - (float)p) * 255.0);
}

/* Sixteen elements share a generator call: rows r, r+8 of a 16-row block, columns of one lane. */
FA_BOTH bool fa_ref_flash_keep(const fa_dropout *d, int64_t heads_q, int rounds, int64_t b, int64_t h,
                               int64_t i, int64_t j) {
  const int64_t lane = (i % 8) * 4 + (j % 8) / 2;
  const uint64_t xy = d->offset + (uint64_t)((b * heads_q + h) * 32 + lane);
  const uint32_t counter[4] = {(uint32_t)xy, (uint32_t)(xy >> 32), (uint32_t)(i / 16), (uint32_t)(j / 32)};
  uint32_t word[4];
  fa_ref_philox(d->seed, rounds, counter, word);
  const int64_t r = i % 16, col = j % 32, n = (col / 8) * 4 + (r / 8) * 2 + (col & 1);
  return (uint8_t)(word[n / 4] >> (8 * (n % 4))) <= fa_ref_flash_threshold(d->p);
}

/* n: the pair's number, offset included. */
FA_BOTH bool fa_ref_memeff_keep(const fa_dropout *d, int rounds, uint64_t n) {
  const uint64_t block = n / 4;
  const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
  uint32_t word[4];
  fa_ref_philox(d->seed, rounds, counter, word);
  const float u = (float)word[n % 4] * 0x1p-32f + 0x1p-33f;
  return u > (float)d->p;
}

/* By the family's generator. rounds: of the generator; 0: as many as the family's has. keys: of the sequence, in memeff's row
 * term (fa_ref_dropout_keys). */
FA_BOTH bool fa_ref_keep(const fa_problem *p, int rounds, int64_t keys, int64_t b, int64_t h, int64_t i,
                         int64_t j) {
  if (p->dropout.p == 0) return true;
  if (p->family != FA_MEMEFF)
    return fa_ref_flash_keep(&p->dropout, p->heads_q, rounds > 0 ? rounds : 7, b, h, i, j);
  const uint64_t head = (uint64_t)(b * p->heads_q + h) * (uint64_t)p->seqlen_q * (uint64_t)p->seqlen_k;
  return fa_ref_memeff_keep(&p->dropout, rounds > 0 ? rounds : 10,
                            p->dropout.offset + head + (uint64_t)i * (uint64_t)keys + (uint64_t)j);
}

/* Bit n of a mask: the byte's bits from the least significant. */
FA_BOTH bool fa_ref_mask_bit(const unsigned char *bytes, int64_t n) {
  return bytes[n >> 3] >> (n & 7) & 1;
}

/* The row of a bias (and its gradient), [b|1, h|1, q|1]. */
FA_BOTH int64_t fa_ref_bias_index(const fa_problem *p, int64_t b, int64_t h, int64_t i) {
  const int64_t of_batch = p->bias.per_batch ? b : 0, of_head = p->bias.per_head ? h : 0;
  const int64_t heads = p->bias.per_head ? p->heads_q : 1, rows = p->bias.per_query ? p->seqlen_q : 1;
  return (of_batch * heads + of_head) * rows + (p->bias.per_query ? i : 0);
}

#endif
