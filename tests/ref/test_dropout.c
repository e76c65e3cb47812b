/* The keep masks against published generator words (docs/reference/semantics.md, "Dropout"), and their rules. */
#include "cases/vocabulary/problem.h"
#include "ref/engine/call.h"
#include "ref/engine/dropout.h"
#include "tests/support/check.h"

typedef struct words {
  uint64_t seed;
  int rounds;
  uint32_t counter[4], want[4];
} words;

static void generator_words(void) {
  static const words table[] = {
      {1234, 7, {0, 0, 0, 0}, {0x1c565f2e, 0xd968083a, 0x4a736ff5, 0x4e9b254c}},
      {1234, 7, {70, 0, 3, 2}, {0x9996dda1, 0x261e2aeb, 0xd232d20a, 0x802d4ff5}},
      {0xdeadbeefcafef00d, 7, {1, 1, 0, 0}, {0xf661e5e4, 0x3d5856e4, 0x00db2275, 0xd8589078}},
      {4321, 10, {0, 0, 0, 0}, {0xa6231f96, 0x47a2ac7e, 0xf8b7d181, 0xf9cf4113}},
      {4321, 10, {5, 0, 0, 0}, {0x543fd474, 0x66cb8195, 0xfaef32aa, 0xa4c2fa6a}},
      {0xdeadbeefcafef00d, 10, {1, 1, 0, 0}, {0xa4f6f083, 0x00f70270, 0x685e01b1, 0x83cc9e52}}};
  for (size_t n = 0; n < sizeof table / sizeof *table; ++n) {
    uint32_t got[4], other[4];
    fa_ref_philox(table[n].seed, table[n].rounds, table[n].counter, got);
    fa_ref_philox(table[n].seed, table[n].rounds + 1, table[n].counter, other);
    for (int k = 0; k < 4; ++k) {
      CHECK_MSG(got[k] == table[n].want[k], "row %zu word %d: %08x", n, k, got[k]);
      CHECK(other[k] != table[n].want[k]); /* an extra round is noticed */
    }
  }
}

/* Element (0, 0) of flash takes byte 0 of the first words; memeff's element n takes word n % 4. */
static void first_elements(void) {
  fa_problem p;
  fa_problem_init(&p);
  p.seqlen_q = p.seqlen_k = 8;
  p.dropout.seed = 1234; /* byte 0 is 0x2e = 46: kept iff T >= 46 */
  p.dropout.p = 1 - 46.5 / 255;
  CHECK(fa_ref_dropout_keep(&p, 0, 0, 0, 0));
  p.dropout.p = 1 - 45.5 / 255;
  CHECK(!fa_ref_dropout_keep(&p, 0, 0, 0, 0));
  p.family = FA_MEMEFF;
  p.dropout.seed = 4321; /* words 0xa6.., 0x47..: uniforms 0.649, 0.280 */
  p.dropout.p = 0.5;
  CHECK(fa_ref_dropout_keep(&p, 0, 0, 0, 0));
  CHECK(!fa_ref_dropout_keep(&p, 0, 0, 0, 1));
  p.dropout.offset = 1; /* shifts the linear index */
  CHECK(!fa_ref_dropout_keep(&p, 0, 0, 0, 0));
  p.dropout.p = 0;
  CHECK(fa_ref_dropout_keep(&p, 0, 0, 0, 1));
  fa_problem_free(&p);
}

/* A uniform lies in the middle of what its word stands for: above a probability that is the word's own. */
static void middle_of_a_word(void) {
  fa_dropout d = {.seed = 11};
  uint32_t word[4] = {UINT32_MAX};
  uint64_t n = 0;
  for (; word[0] >> 22 != 0; n += 4) { /* so small that a float holds twice the word and one */
    const uint32_t counter[4] = {(uint32_t)(n / 4)};
    fa_ref_philox(d.seed, 10, counter, word);
  }
  d.p = word[0] * 0x1p-32;
  CHECK(fa_ref_memeff_keep(&d, 10, n - 4));
  d.p = (2.0 * word[0] + 1) * 0x1p-33;
  CHECK(!fa_ref_memeff_keep(&d, 10, n - 4));
}

static double kept_fraction(fa_family family, double drop) {
  fa_problem p;
  fa_problem_init(&p);
  p.family = family;
  p.heads_q = p.heads_kv = 2;
  p.seqlen_q = p.seqlen_k = 128;
  p.dropout = (fa_dropout){drop, 77, UINT64_MAX - 100}; /* the counter wraps */
  int64_t kept = 0;
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < 128; ++i)
      for (int64_t j = 0; j < 128; ++j) kept += fa_ref_dropout_keep(&p, 0, h, i, j);
  fa_problem_free(&p);
  return (double)kept / (2 * 128 * 128);
}

/* Elements of a row that differ from those computed one by one, di rows further down. */
static int row_differs(fa_family family, int64_t i, int64_t j0, int64_t n, int64_t di) {
  fa_problem p;
  double z[300];
  int differing = 0;
  fa_problem_init(&p);
  p.family = family;
  p.batch = p.heads_q = 2;
  p.seqlen_q = p.seqlen_k = 400;
  p.dropout = (fa_dropout){0.3, 5, 9};
  const fa_ref_call c = {.p = &p};
  const fa_ref_sequence e = {.b = 1};
  fa_ref_dropout_row(&c, &e, 1, i, j0, n, z);
  for (int64_t j = 0; j < n; ++j)
    differing += z[j] != (fa_ref_dropout_keep(&p, 1, 1, i + di, j0 + j) ? 1 / (1 - p.dropout.p) : 0);
  fa_problem_free(&p);
  return differing;
}

static void rows(void) {
  for (int64_t i = 0; i < 40; ++i) {
    CHECK(row_differs(FA_FLASH, i, 7 * i, 1 + 5 * i, 0) == 0);
    CHECK(row_differs(FA_MEMEFF, i, 7 * i, 1 + 5 * i, 0) == 0);
  }
  CHECK(row_differs(FA_FLASH, 8, 3, 300, 8) > 50);
}

int main(void) {
  generator_words();
  first_elements();
  middle_of_a_word();
  rows();
  /* flash keeps (T + 1) / 256, T = floor(0.75 * 255) = 191; five standard deviations of 32768 draws */
  double flash = kept_fraction(FA_FLASH, 0.25), memeff = kept_fraction(FA_MEMEFF, 0.25);
  CHECK_MSG(flash > 0.75 - 0.012 && flash < 0.75 + 0.012, "%g", flash);
  CHECK_MSG(memeff > 0.75 - 0.012 && memeff < 0.75 + 0.012, "%g", memeff);
  return check_done();
}
