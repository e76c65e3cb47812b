#include "cases/base/sha256.h"

#include <stdio.h>
#include <string.h>

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) {
  return x >> n | x << (32 - n);
}

static void compress(fa_sha256 *s, const unsigned char *block) {
  uint32_t w[64], v[8];
  for (int t = 0; t < 16; ++t)
    w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 | (uint32_t)block[4 * t + 2] << 8 |
           block[4 * t + 3];
  for (int t = 16; t < 64; ++t) {
    uint32_t a = w[t - 15], b = w[t - 2];
    w[t] = w[t - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[t - 7] +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
  memcpy(v, s->h, sizeof v);
  for (int t = 0; t < 64; ++t) {
    uint32_t e = v[4], a = v[0];
    uint32_t t1 =
        v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + k[t] + w[t];
    uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; ++i) s->h[i] += v[i];
}

void fa_sha256_init(fa_sha256 *s) {
  static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memset(s, 0, sizeof *s);
  memcpy(s->h, start, sizeof start);
}

void fa_sha256_add(fa_sha256 *s, const void *bytes, size_t n) {
  const unsigned char *from = bytes;
  while (n > 0) {
    size_t used = s->n_bytes % 64, take = 64 - used < n ? 64 - used : n;
    memcpy(s->block + used, from, take);
    s->n_bytes += take;
    from += take;
    n -= take;
    if (s->n_bytes % 64 == 0) compress(s, s->block);
  }
}

void fa_sha256_hex(fa_sha256 *s, char hex[65]) {
  unsigned char end[72] = {0x80};
  uint64_t bits = s->n_bytes * 8;
  size_t used = s->n_bytes % 64, padding = used < 56 ? 56 - used : 120 - used;
  for (int i = 0; i < 8; ++i) end[padding + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
  fa_sha256_add(s, end, padding + 8);
  for (int i = 0; i < 8; ++i) snprintf(hex + 8 * i, 9, "%08x", s->h[i]);
}
