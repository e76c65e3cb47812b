/* Part of rows_body.h: flash's dropout for a row; dropout.c has it for one element. */

enum { DRAWN = 32, BLOCKS = DRAWN / 4 }; /* generator calls at once: 4 lanes of blocks of 32 keys */

/* pair[32 b / 2 + c / 2]: the bytes of columns c and c + 1 of block b, for the rows in this half of 16. */
static void flash_pairs(const fa_row_dropout *r, uint32_t first_block, uint16_t *pair) {
  uint32_t x[DRAWN], y[DRAWN], z[DRAWN], w[DRAWN], k0 = (uint32_t)r->seed, k1 = (uint32_t)(r->seed >> 32);
  for (int t = 0; t < DRAWN; ++t) {
    const uint64_t xy = r->lane + (uint64_t)(t & 3);
    x[t] = (uint32_t)xy;
    y[t] = (uint32_t)(xy >> 32);
    z[t] = r->row_block;
    w[t] = first_block + (uint32_t)t / 4;
  }
  for (int round = 0; round < 7; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    for (int t = 0; t < DRAWN; ++t) {
      const uint64_t bz = (uint64_t)0xCD9E8D57u * z[t], ax = (uint64_t)0xD2511F53u * x[t];
      x[t] = (uint32_t)(bz >> 32) ^ y[t] ^ k0;
      z[t] = (uint32_t)(ax >> 32) ^ w[t] ^ k1;
      y[t] = (uint32_t)bz;
      w[t] = (uint32_t)ax;
    }
  const uint32_t *const word[4] = {x, y, z, w};
  for (int q = 0; q < 4; ++q)
    for (int t = 0; t < DRAWN; ++t) pair[t / 4 * 16 + 4 * q + t % 4] = (uint16_t)(word[q][t] >> r->shift);
}

static void rows_flash_dropout(const fa_row_dropout *r, int64_t j0, int64_t n, double *out) {
  uint16_t pair[16 * BLOCKS];
  double factor[32 * BLOCKS];
  const int threshold = r->threshold;
  const double scale = r->scale;
  for (int64_t j = j0 / 32 * 32; j < j0 + n; j += 32 * BLOCKS) {
    flash_pairs(r, (uint32_t)(j / 32), pair);
    for (int c = 0; c < 16 * BLOCKS; ++c) {
      factor[2 * c] = (pair[c] & 255) <= threshold ? scale : 0;
      factor[2 * c + 1] = pair[c] >> 8 <= threshold ? scale : 0;
    }
    const int64_t from = j < j0 ? j0 : j, end = j0 + n < j + 32 * BLOCKS ? j0 + n : j + 32 * BLOCKS;
    memcpy(out + (from - j0), factor + (from - j), (size_t)(end - from) * sizeof *out);
  }
}
