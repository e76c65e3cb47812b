/* Random cases as fuzz inputs: any bytes are a valid case, everything that the generator can say is among them, and single
 * draws can be changed. */
#include "fuzz/generate/parts.h"
#include "fuzz/inputs/draws.h"
#include "tests/support/check.h"

#include <string.h>

static size_t raw_mutate(uint8_t *data, size_t size, size_t max_size) {
  if (size < max_size) data[size++] = 0x5a;
  return size;
}

/* ---- what an input can say ---- */

enum {
  MEMEFF_DBIAS,
  MEMEFF_DROPOUT,
  MEMEFF_F32,
  TOP_LEFT,
  TWO_DIMS,
  ODD_DIM,
  SCORE_MOD,
  MASK_MOD,
  BLOCKS,
  PAGES,
  PACKED_OVER_CACHE,
  PARTS,
  CHUNKS,
  MASK_BITS,
  SINKS,
  SPLITS,
  LEFT_PADDING,
  HUGE,
  N_FEATURES
};

static void count(const fa_case *c, int seen[N_FEATURES]) {
  const fa_problem *p = &c->problem;
  const bool memeff = p->family == FA_MEMEFF;
  const bool has[N_FEATURES] = {[MEMEFF_DBIAS] = memeff && p->bias.present && p->bias.grad && p->backward,
                                [MEMEFF_DROPOUT] = memeff && p->dropout.p > 0,
                                [MEMEFF_F32] = memeff && p->dtype == FA_F32,
                                [TOP_LEFT] = memeff && p->mask.align == FA_ALIGN_TOP_LEFT,
                                [TWO_DIMS] = p->head_dim != p->head_dim_v,
                                [ODD_DIM] = p->head_dim % 2 == 1,
                                [SCORE_MOD] = p->score_mod != NULL,
                                [MASK_MOD] = p->mask_mod != NULL,
                                [BLOCKS] = p->block_sparse.present,
                                [PAGES] = p->kvcache.page_size > 0,
                                [PACKED_OVER_CACHE] = p->kvcache.present && p->cu_seqlens_q.n > 0,
                                [PARTS] = p->family == FA_MERGE,
                                [CHUNKS] = p->mask.type == FA_MASK_CHUNK,
                                [MASK_BITS] = p->mask_bits.present,
                                [SINKS] = p->sinks.present,
                                [SPLITS] = p->splits > 1,
                                [LEFT_PADDING] = p->leftpad_k.n > 0,
                                [HUGE] = false};
  for (int i = 0; i < N_FEATURES; ++i) seen[i] += has[i];
  for (int id = 0; id < FA_T_COUNT; ++id)
    for (int axis = 0; axis < 3; ++axis) seen[HUGE] += c->strides[id].gap[axis] > 1 << 20;
}

/* fa_generate_given_case asserts that a case is valid. */
static void test_any_bytes(void) {
  int seen[N_FEATURES] = {0};
  fa_rng r = fa_rng_make(11, 1);
  for (int i = 0; i < 6000; ++i) {
    uint8_t bytes[FA_DRAWS_BYTES + 20];
    const size_t n = (size_t)fa_rng_below(&r, sizeof bytes);
    fa_draws x;
    fa_case c, d;
    for (size_t k = 0; k < n; ++k) bytes[k] = (uint8_t)(fa_rng_chance(&r, 0.3) ? 0 : fa_rng_next(&r));
    /* mostly of streams that there are */
    for (size_t k = FA_DRAWS_HEAD; k + 2 < n; k += FA_DRAW_BYTES)
      bytes[k] = (uint8_t)(bytes[k] % FA_GEN_N_STREAMS), bytes[k + 1] %= 32, bytes[k + 2] = 0;
    fa_draws_read(bytes, n, &x);
    REQUIRE(fa_draws_to_case(&x, &c, NULL) == FA_OK);
    REQUIRE(fa_draws_to_case(&x, &d, NULL) == FA_OK);
    CHECK(fa_case_equal(&c, &d));
    count(&c, seen);
    fa_case_free(&c);
    fa_case_free(&d);
  }
  for (int i = 0; i < N_FEATURES; ++i) CHECK_MSG(seen[i] >= 20, "feature %d: in %d of 6000", i, seen[i]);
}

/* ---- one draw ---- */

/* All results of a range are among the values, up to what its contract says; the ends of the values say yes and no. */
static void test_values(void) {
  for (int64_t n = 1; n <= 640; ++n) {
    bool seen[640] = {false};
    for (unsigned v = 0; v < 3000; ++v) {
      const fa_rng_edit e = {.stream = 4, .index = 1, .value = (uint16_t)v};
      const fa_rng_edits edits = {&e, 1, NULL};
      fa_rng r = fa_rng_make(77, 4);
      r.edits = &edits;
      fa_rng_next(&r);
      seen[fa_rng_below(&r, n)] = true;
    }
    for (int64_t k = 0; k < n; ++k)
      CHECK_MSG(seen[k], "%lld of %lld is out of reach", (long long)k, (long long)n);
  }
  for (unsigned v = 0; v < 65536; v += 13) {
    const fa_rng_edit e = {.value = (uint16_t)v};
    const fa_rng_edits edits = {&e, 1, NULL};
    fa_rng r = fa_rng_make(77, 0), other = fa_rng_make(77, 1);
    r.edits = other.edits = &edits;
    CHECK(fa_rng_chance(&r, 0.25) == (v < 16384));
    const uint64_t drawn = fa_rng_next(&other);
    CHECK(drawn == fa_rng_u64(77, 1, 0)); /* of another stream */
  }
}

/* A given draw changes what it decides, and nothing that other parts draw. */
static void test_one_draw(void) {
  fa_draws x = {.key = 12345};
  fa_case plain, changed;
  REQUIRE(fa_draws_to_case(&x, &plain, NULL) == FA_OK);
  x.n = 1;
  x.draw[0] = (fa_rng_edit){.stream = FA_GEN_MEMORY, .index = 0, .value = 0};
  REQUIRE(fa_draws_to_case(&x, &changed, NULL) == FA_OK);
  CHECK(plain.poison == FA_POISON_B || changed.poison != FA_POISON_B);
  CHECK(changed.poison != FA_POISON_B);
  changed.poison = plain.poison;
  changed.repeat = plain.repeat;
  changed.schedule_seed = plain.schedule_seed;
  CHECK(fa_case_equal(&plain, &changed));
  fa_case_free(&changed);
  x.n = 0, x.data = 9;
  REQUIRE(fa_draws_to_case(&x, &changed, NULL) == FA_OK);
  CHECK(changed.data_seed != plain.data_seed);
  fa_case_free(&plain);
  fa_case_free(&changed);
}

/* ---- bytes ---- */

static void test_round_trip(void) {
  fa_rng r = fa_rng_make(12, 1);
  for (int i = 0; i < 200; ++i) {
    uint8_t bytes[FA_DRAWS_BYTES];
    fa_draws x, y;
    memset(&x, 0, sizeof x);
    x.head = (uint8_t)fa_rng_next(&r), x.key = fa_rng_next(&r), x.data = (uint16_t)fa_rng_next(&r);
    x.n = (int)fa_rng_range(&r, 0, FA_DRAWS);
    for (int k = 0; k < x.n; ++k)
      x.draw[k] = (fa_rng_edit){.stream = k % 9 ? (uint16_t)fa_rng_below(&r, 255) : FA_GEN_SINK_FILLS,
                                .index = (uint16_t)fa_rng_next(&r),
                                .value = (uint16_t)fa_rng_next(&r)};
    const size_t n = fa_draws_write(&x, bytes);
    CHECK(n == (size_t)(FA_DRAWS_HEAD + x.n * FA_DRAW_BYTES));
    fa_draws_read(bytes, n, &y);
    CHECK(x.head == y.head && x.key == y.key && x.data == y.data && x.n == y.n);
    CHECK(memcmp(x.draw, y.draw, (size_t)x.n * sizeof *x.draw) == 0);
  }
}

/* Every stream that cases draw from comes, in inputs that stay within their size. */
static void test_mutations(void) {
  uint8_t a[FA_DRAWS_BYTES] = {0}, b[FA_DRAWS_BYTES], out[FA_DRAWS_BYTES];
  int streams[FA_GEN_N_STREAMS] = {0}, sinks = 0, hopper = 0, raw = 0;
  size_t size = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    fa_draws x;
    if (seed % 20 == 0)
      size = fa_draws_write(&(fa_draws){.head = (uint8_t)(seed / 20 % 21 | 32), .key = seed}, a);
    const size_t before = size;
    size = fa_draws_mutate(a, size, sizeof a, seed, raw_mutate);
    REQUIRE(size <= sizeof a);
    raw += size == before + 1;
    fa_draws_read(a, size, &x);
    hopper += fa_draws_are_for_hopper(&x);
    for (int i = 0; i < x.n; ++i)
      if (x.draw[i].stream < FA_GEN_N_STREAMS)
        ++streams[x.draw[i].stream];
      else
        ++sinks;
  }
  for (int s = FA_GEN_FAMILY; s < FA_GEN_N_STREAMS; ++s)
    CHECK_MSG(streams[s] > 0 || s == FA_GEN_TAME, "stream %d never comes", s);
  CHECK(sinks > 0 && hopper > 0 && raw > 0);
  memcpy(b, a, sizeof b);
  CHECK(fa_draws_mutate(b, 20, FA_DRAWS_BYTES - 1, 1, raw_mutate) == 21);
  CHECK(fa_draws_cross(a, size, b, size, out, sizeof out, 3) >= FA_DRAWS_HEAD);
  CHECK(fa_draws_cross(a, size, b, size, out, FA_DRAWS_BYTES - 1, 3) == 0);
}

/* Nearly every mutation is another case: draws that no case makes are not given. */
static void test_mutations_count(void) {
  int n_changed = 0, n = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    uint8_t bytes[FA_DRAWS_BYTES];
    fa_draws x = {.head = (uint8_t)(seed % 21 | seed % 2 << 5), .key = seed * 7919u}, y;
    fa_case c, d;
    const size_t size = fa_draws_mutate(bytes, fa_draws_write(&x, bytes), sizeof bytes, seed, raw_mutate);
    fa_draws_read(bytes, size, &y);
    if (y.n == 0) continue; /* another head, key or data */
    REQUIRE(fa_draws_to_case(&x, &c, NULL) == FA_OK);
    REQUIRE(fa_draws_to_case(&y, &d, NULL) == FA_OK);
    ++n;
    n_changed += !fa_case_equal(&c, &d);
    fa_case_free(&c);
    fa_case_free(&d);
  }
  CHECK_MSG(n > 500 && n_changed > n * 0.9, "%d of %d", n_changed, n);
}

int main(void) {
  test_mutations_count();
  test_any_bytes();
  test_values();
  test_one_draw();
  test_round_trip();
  test_mutations();
  return check_done();
}
