/* Which keys a row sees by their positions, and which pairs flash's dropout keeps: shared with the judge on a device. */
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

#endif
