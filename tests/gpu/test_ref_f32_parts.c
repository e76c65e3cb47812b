/* The sanity subject's parts alone: the GEMM against its definition bit for bit, dropout bits against the
 * slow attention's, rounding, and that the backend rejects what it cannot do. */
#include "cases/base/rng.h"
#include "gpu/backend.h"
#include "gpu/ref_f32/parts.h"
#include "tests/support/check.h"
#include "tests/support/slow_attention.h"

#include <math.h>
#include <string.h>

static void fill(float *x, int64_t n, uint64_t stream) {
  for (int64_t i = 0; i < n; ++i) x[i] = (float)fa_rng_normal(3, stream, (uint64_t)i);
}

/* Number of elements that differ from the chain of fmaf in ascending k; wrong_order: the chain backwards. */
static int64_t gemm_mismatches(int64_t m, int64_t n, int64_t k, bool transposed, bool wrong_order) {
  enum { MAX = 80 };
  static float a[MAX * MAX], b[MAX * MAX], c[MAX * MAX], start[MAX * MAX];
  const int64_t ld = fa_f32_padded(n), a_row = transposed ? 1 : k, a_col = transposed ? m : 1;
  fill(a, m * k, 1);
  fill(b, k * ld, 2);
  fill(start, m * ld, 3);
  memcpy(c, start, sizeof c);
  fa_f32_gemm(m, n, k, a, a_row, a_col, b, ld, c, ld);
  int64_t n_bad = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float want = start[i * ld + j];
      for (int64_t l = 0; l < k; ++l) {
        int64_t at = wrong_order ? k - 1 - l : l;
        want = fmaf(a[i * a_row + at * a_col], b[at * ld + j], want);
      }
      n_bad += memcmp(&want, &c[i * ld + j], sizeof want) != 0;
    }
  return n_bad;
}

static void check_gemm(void) {
  static const int64_t sizes[][3] = {{1, 1, 1},    {4, 16, 64}, {5, 17, 3},
                                     {64, 64, 72}, {7, 33, 65}, {3, 16, 0}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s)
    for (int transposed = 0; transposed < 2; ++transposed)
      CHECK_MSG(gemm_mismatches(sizes[s][0], sizes[s][1], sizes[s][2], transposed, false) == 0,
                "%lld x %lld x %lld", (long long)sizes[s][0], (long long)sizes[s][1], (long long)sizes[s][2]);
  CHECK_MSG(gemm_mismatches(64, 64, 72, false, true) > 0, "another order would not be noticed");
}

/* Elements of one head in which the two implementations of the dropout rule differ. */
static int64_t keep_mismatches(const fa_problem *p, int64_t b, int64_t h, int64_t n_q, int64_t n_k,
                               const fa_problem *other) {
  static uint8_t keep[FA_F32_TILE_M * FA_F32_TILE_N];
  fa_f32_sequence e = {.b = b, .n_q = n_q, .n_k = n_k, .k_extent = n_k};
  fa_f32_score c = {.p = p, .e = &e, .h = h};
  int64_t n_bad = 0;
  for (int64_t i0 = 0; i0 < n_q; i0 += FA_F32_TILE_M)
    for (int64_t j0 = 0; j0 < n_k; j0 += FA_F32_TILE_N) {
      int64_t n_i = n_q - i0 < FA_F32_TILE_M ? n_q - i0 : FA_F32_TILE_M;
      int64_t n_j = n_k - j0 < FA_F32_TILE_N ? n_k - j0 : FA_F32_TILE_N;
      fa_f32_keep_tile(&c, i0, n_i, j0, n_j, keep, FA_F32_TILE_N);
      for (int64_t r = 0; r < n_i; ++r)
        for (int64_t l = 0; l < n_j; ++l)
          n_bad += keep[r * FA_F32_TILE_N + l] != slow_keep(other, b, h, i0 + r, j0 + l, n_k);
    }
  return n_bad;
}

static void check_dropout(void) {
  static const double chances[] = {0.1, 0.17, 0.5, 0.9, 1e-5, 0.99};
  static const uint64_t words[] = {0, 1234, 0xdeadbeefcafef00du, 0xfffffff0u, 0x100000001u};
  for (int family = 0; family < 2; ++family)
    for (size_t k = 0; k < 6; ++k)
      for (size_t s = 0; s < 5; ++s) {
        fa_problem p, other;
        fa_problem_init(&p);
        fa_problem_set_family(&p, family ? FA_MEMEFF : FA_FLASH);
        p.batch = 3, p.heads_q = p.heads_kv = 5, p.seqlen_q = 70, p.seqlen_k = 150;
        p.dropout = (fa_dropout){.p = chances[k], .seed = words[s], .offset = words[4 - s]};
        CHECK(keep_mismatches(&p, 2, 3, 70, 150, &p) == 0);
        CHECK_MSG(keep_mismatches(&p, 1, 4, 33, 97, &p) == 0, "a shorter entry");
        other = p;
        ++other.dropout.seed;
        if (chances[k] == 0.5) CHECK_MSG(keep_mismatches(&p, 2, 3, 70, 150, &other) > 0, "another seed");
      }
}

static void check_rounding(void) {
  float x[4] = {1.0f, 1.0009765625f + 0x1p-12f, -0x1p-30f, 70000.0f}, f[4], b[4];
  memcpy(f, x, sizeof f);
  memcpy(b, x, sizeof b);
  fa_f32_round(FA_F16, 4, f);
  fa_f32_round(FA_BF16, 4, b);
  CHECK(f[0] == 1.0f && f[1] == 1.0009765625f && f[2] == 0 && isinf(f[3]));
  CHECK(b[0] == 1.0f && b[1] == 1.0f && b[2] == -0x1p-30f && b[3] == 70144.0f);
  fa_f32_round(FA_F32, 4, x);
  CHECK(x[1] == 1.0009765625f + 0x1p-12f);
}

static void check_interface(void) {
  const fa_backend *b = &fa_backend_ref_f32;
  void *self;
  fa_error err = {""};
  char why[256] = "";
  fa_backend_info info;
  fa_problem p;
  fa_profile profile;
  CHECK(b->open(NULL, &self, &err) == FA_OK);
  CHECK_MSG(b->open("x", &self, &err) == FA_ERR_INPUT, "%s", err.text);
  b->describe(self, &info);
  CHECK(info.usable && strcmp(info.name, "ref-f32") == 0);
  fa_problem_init(&p);
  CHECK(b->supports(self, &p, why, sizeof why) == (FA_PASS_FORWARD | FA_PASS_BACKWARD));
  b->profile(self, &p, &profile);
  CHECK(profile.mma_block == 0 && profile.block_n == FA_F32_TILE_N && profile.max_splits == 1);
  p.splits = 5;
  b->profile(self, &p, &profile);
  CHECK(profile.max_splits == 5);
  p.family = FA_KVCACHE;
  p.kvcache.present = true;
  CHECK(b->supports(self, &p, why, sizeof why) == FA_PASS_FORWARD && strstr(why, "backward"));
  fa_run_options opt = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 1};
  fa_outcome outcome;
  fa_tensors none = {0};
  CHECK(b->run(self, &p, &none, &opt, &outcome, &err) == FA_OK && outcome.state == FA_SUBJECT_REJECTED &&
        outcome.text[0]);
  b->close(self);
}

int main(void) {
  check_gemm();
  check_dropout();
  check_rounding();
  check_interface();
  return check_done();
}
