/* Which pairs dropout keeps, bit for bit as in the original kernels (docs/reference/semantics.md, "Dropout"). */
#include "gpu/ref_f32/parts.h"

typedef struct words {
  uint32_t w[4];
} words;

static words philox(uint64_t seed, words c, int n_rounds) {
  uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < n_rounds; ++round) {
    uint64_t a = (uint64_t)0xD2511F53u * c.w[0], b = (uint64_t)0xCD9E8D57u * c.w[2];
    c = (words){
        {(uint32_t)(b >> 32) ^ c.w[1] ^ key0, (uint32_t)b, (uint32_t)(a >> 32) ^ c.w[3] ^ key1, (uint32_t)a}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

/* A block of 16 x 32 pairs shares, lane by lane, one call's 16 bytes: four bits of the row and column select
 * the byte, the others the lane. One call per pair is wasteful, but cannot get the sharing wrong. */
static uint8_t keep_flash(const fa_f32_score *c, uint32_t threshold, int64_t i, int64_t j) {
  const fa_problem *p = c->p;
  uint32_t r = (uint32_t)(i % 16), k = (uint32_t)(j % 32);
  uint32_t lane = (r % 8) * 4 + (k % 8) / 2, byte = (k / 8) * 4 + (r / 8) * 2 + (k & 1);
  uint64_t x = p->dropout.offset + (uint64_t)(c->e->b * p->heads_q + c->h) * 32 + lane;
  words out = philox(p->dropout.seed,
                     (words){{(uint32_t)x, (uint32_t)(x >> 32), (uint32_t)(i / 16), (uint32_t)(j / 32)}}, 7);
  return ((out.w[byte / 4] >> (8 * (byte % 4))) & 0xff) <= threshold;
}

/* The head's base counts the launch's maximum lengths, the row's base this sequence's own keys. */
static uint8_t keep_memeff(const fa_f32_score *c, float drop, int64_t i, int64_t j) {
  const fa_problem *p = c->p;
  uint64_t head = (uint64_t)(c->e->b * p->heads_q + c->h);
  uint64_t n = p->dropout.offset + head * (uint64_t)p->seqlen_q * (uint64_t)p->seqlen_k +
               (uint64_t)i * (uint64_t)c->e->n_k + (uint64_t)j;
  uint64_t block = n / 4;
  words out = philox(p->dropout.seed, (words){{(uint32_t)block, (uint32_t)(block >> 32), 0, 0}}, 10);
  float u = (float)out.w[n % 4] * 0x1p-32f + 0x1p-33f;
  return u > drop;
}

void fa_f32_keep_tile(const fa_f32_score *c, int64_t i0, int64_t n_i, int64_t j0, int64_t n_j, uint8_t *keep,
                      int64_t ld) {
  float drop = (float)c->p->dropout.p;
  uint32_t threshold = (uint32_t)(uint8_t)((double)(1.0f - drop) * 255.0);
  bool memeff = c->p->family == FA_MEMEFF;
  for (int64_t r = 0; r < n_i; ++r)
    for (int64_t l = 0; l < n_j; ++l)
      keep[r * ld + l] =
          memeff ? keep_memeff(c, drop, i0 + r, j0 + l) : keep_flash(c, threshold, i0 + r, j0 + l);
}
