/* The two dropout generators, bit for bit (docs/reference/semantics.md, "Dropout"). */
#include "ref/engine/dropout.h"
#include "ref/math/rows.h"

#include <math.h>

void fa_ref_philox(uint64_t seed, int n_rounds, const uint32_t counter[4], uint32_t out[4]) {
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

/* A byte keeps its element if it is at most this. */
static uint8_t threshold_flash(const fa_problem *p) {
  return (uint8_t)floor((double)(1.0f - (float)p->dropout.p) * 255.0);
}

/* Sixteen elements share a generator call: rows r, r+8 of a 16-row block, columns of one lane. */
static void draw_flash(const fa_problem *p, int rounds, int64_t b, int64_t h, int64_t i, int64_t j,
                       uint32_t word[4]) {
  int64_t lane = (i % 8) * 4 + (j % 8) / 2;
  uint64_t xy = p->dropout.offset + (uint64_t)((b * p->heads_q + h) * 32 + lane);
  uint32_t counter[4] = {(uint32_t)xy, (uint32_t)(xy >> 32), (uint32_t)(i / 16), (uint32_t)(j / 32)};
  fa_ref_philox(p->dropout.seed, rounds, counter, word);
}

static uint8_t byte_flash(const uint32_t word[4], int64_t i, int64_t j) {
  int64_t r = i % 16, col = j % 32, n = (col / 8) * 4 + (r / 8) * 2 + (col & 1);
  return (uint8_t)(word[n / 4] >> (8 * (n % 4)));
}

static bool keep_flash(const fa_problem *p, int rounds, int64_t b, int64_t h, int64_t i, int64_t j) {
  uint32_t word[4];
  draw_flash(p, rounds, b, h, i, j, word);
  return byte_flash(word, i, j) <= threshold_flash(p);
}

static void row_flash(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j0, int64_t n,
                      double scale, double *z) {
  const fa_row_dropout r = {.seed = p->dropout.seed,
                            .lane = p->dropout.offset + (uint64_t)((b * p->heads_q + h) * 32 + i % 8 * 4),
                            .row_block = (uint32_t)(i / 16),
                            .shift = i % 16 < 8 ? 0 : 16,
                            .threshold = threshold_flash(p),
                            .scale = scale};
  fa_rows_best()->flash_dropout(&r, j0, n, z);
}

static bool keep_memeff(const fa_problem *p, int rounds, uint64_t n) {
  uint64_t block = n / 4;
  uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0}, word[4];
  fa_ref_philox(p->dropout.seed, rounds, counter, word);
  float u = (float)word[n % 4] * 0x1p-32f + 0x1p-33f;
  return u > (float)p->dropout.p;
}

/* Number of keys in the scheme's row term. */
static int64_t sequence_keys(const fa_problem *p, int64_t b) {
  int64_t n = p->seqlen_k;
  if (p->cu_seqlens_k.n > 0) n = (int64_t)p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b];
  if (p->seqused_k.n > 0) n = p->seqused_k.v[b];
  if (p->leftpad_k.n > 0) n -= p->leftpad_k.v[b];
  return n;
}

/* rounds: of the generator; 0: as many as the family's has. */
static bool keep_by(const fa_problem *p, int rounds, int64_t b, int64_t h, int64_t i, int64_t j) {
  if (p->dropout.p == 0) return true;
  if (p->family != FA_MEMEFF) return keep_flash(p, rounds > 0 ? rounds : 7, b, h, i, j);
  uint64_t head = (uint64_t)(b * p->heads_q + h) * (uint64_t)p->seqlen_q * (uint64_t)p->seqlen_k;
  return keep_memeff(p, rounds > 0 ? rounds : 10,
                     p->dropout.offset + head + (uint64_t)i * (uint64_t)sequence_keys(p, b) + (uint64_t)j);
}

bool fa_ref_dropout_keep(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j) {
  return keep_by(p, 0, b, h, i, j);
}

/* A row by a generator with other rounds, the mask inverted, or another factor of what is kept. */
static void row_astray(const fa_ref_call *c, int64_t b, int64_t h, int64_t i, int64_t j0, int64_t n,
                       double *z) {
  const fa_ref_twist *t = c->twist;
  const double scale = t->drop_factor > 0 ? t->drop_factor : 1 / (1 - c->p->dropout.p);
  for (int64_t j = 0; j < n; ++j) {
    const bool keep = keep_by(c->p, t->drop_rounds, b, h, i, j0 + j);
    z[j] = keep != t->drop_inverted ? scale : 0;
  }
}

void fa_ref_dropout_row(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j0,
                        int64_t n, double *z) {
  double scale = 1 / (1 - c->p->dropout.p);
  const fa_ref_twist *t = c->twist;
  if (t && (t->drop_factor > 0 || t->drop_inverted || t->drop_rounds > 0)) {
    row_astray(c, e->b, h, i, j0, n, z);
    return;
  }
  if (c->p->family != FA_MEMEFF) {
    row_flash(c->p, e->b, h, i, j0, n, scale, z);
    return;
  }
  for (int64_t j = 0; j < n; ++j) z[j] = fa_ref_dropout_keep(c->p, e->b, h, i, j0 + j) ? scale : 0;
}
