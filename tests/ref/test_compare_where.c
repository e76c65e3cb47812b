/* Planted patterns of bad elements, and the expected sentence for each. */
#include "tests/support/compare_fixture.h"

/* Coordinates as in the sentence; for variable length b and q come from the token. */
typedef struct place {
  int64_t b, x, h, d; /* x: the position (q or k) */
  int64_t length;     /* of the sequence */
} place;
typedef bool (*pattern)(const place *at);

typedef struct planted {
  const char *text;
  fa_tensor_id id;
  pattern bad;
  bool varlen;
  int64_t batch, seqlen, heads, dim;
} planted;

static int32_t cu[] = {0, 37, 37, 101, 229, 300}; /* lengths 37, 0, 64, 128, 71 */

static bool residue(const place *p) {
  return p->x % 64 == 63 && p->h == 1;
}
static bool two_of_four(const place *p) {
  return p->x == 1 || p->x == 4 || p->x == 9 || p->x == 12;
}
static bool half_tile(const place *p) {
  return p->x % 128 >= 64 && p->h == 3;
}
static bool late_rows(const place *p) {
  return p->x >= 128 && p->b == 2 && p->h == 3;
}
static bool one(const place *p) {
  return p->b == 1 && p->x == 17 && p->h == 2 && p->d == 5;
}
static bool everything(const place *p) {
  return p->b >= 0;
}
static bool one_head(const place *p) {
  return p->h == 2;
}
static bool odd_heads(const place *p) {
  return p->h % 2 == 1;
}
static bool right_columns(const place *p) {
  return p->d >= 8;
}
static bool fragment(const place *p) {
  return p->d % 8 < 2 && p->x == 3;
}
static bool first_row(const place *p) {
  return p->x == 0;
}
static bool not_first_row(const place *p) {
  return p->x > 0;
}
static bool last_row(const place *p) {
  return p->x == p->length - 1;
}
static bool last_tile(const place *p) {
  return p->x >= p->length / 64 * 64;
}
static bool last_batch(const place *p) {
  return p->b == 4;
}
static bool warp_slice(const place *p) {
  return p->x % 64 >= 16 && p->x % 64 < 32;
}
static bool scattered(const place *p) {
  return fa_rng_u64(5, (uint64_t)(p->b * 1000 + p->x), (uint64_t)(p->h * 100 + p->d)) % 16 == 0;
}
static bool every_256th(const place *p) {
  return p->x % 256 == 255;
}
static bool most(const place *p) {
  return !scattered(p);
}
static bool scattered_in_rows(const place *p) {
  return p->x % 64 == 63 && p->h == 1 && scattered(p);
}
static bool local_residue(const place *p) {
  return p->x % 16 == 15;
}
static bool dropped_keys(const place *p) {
  return p->x >= 96;
}
static bool two_pages(const place *p) {
  return p->x == 5;
}

static const planted cases[] = {
    {"every bad row has q % 64 == 63 in head 1: all 64 elements there", FA_T_O, residue, 0, 1, 256, 4, 16},
    {"every bad row has q % 128 >= 64 in head 3: all 4096 elements there", FA_T_DQ, half_tile, 0, 2, 256, 4,
     16},
    {"every bad row has q >= 128 in batch 2, head 3: all 512 elements there", FA_T_O, late_rows, 0, 3, 160, 4,
     16},
    {"1 element: b 1, q 17, h 2, d 5", FA_T_O, one, 0, 2, 33, 3, 8},
    {"all 2048 elements", FA_T_DV, everything, 0, 2, 32, 2, 16},
    {"every bad row is in head 2: all 1024 elements there", FA_T_O, one_head, 0, 2, 32, 4, 16},
    {"every bad key has h % 2 == 1: all 2048 elements there", FA_T_DK, odd_heads, 0, 2, 32, 4, 16},
    {"every bad element has d >= 8: all 2048 elements there", FA_T_O, right_columns, 0, 2, 32, 4, 16},
    {"every bad element has q == 3, d % 8 < 2: all 32 elements there", FA_T_O, fragment, 0, 2, 32, 4, 16},
    {"every bad row has q == 0: all 128 elements there", FA_T_O, first_row, 0, 2, 32, 4, 16},
    {"every bad row has q >= 1: all 3968 elements there", FA_T_O, not_first_row, 0, 2, 32, 4, 16},
    {"every bad row has q % 64 in 16..31: all 4096 elements there", FA_T_O, warp_slice, 0, 2, 256, 4, 8},
    /* of 4, and of 8 in 1..4, which admits as many positions and takes more words */
    {"every bad row has q % 4 < 2: 1024 of 2048 elements there", FA_T_O, two_of_four, 0, 1, 16, 4, 64},
    {"539 of 8192 elements, nothing in common", FA_T_O, scattered, 0, 2, 128, 4, 8},
    {"every bad row has q % 128 == 127: 16 of 32 elements there", FA_T_O, every_256th, 0, 1, 1024, 1, 4},
    {"7653 of 8192 elements, all over", FA_T_O, most, 0, 2, 128, 4, 8},
    {"every bad element has q % 64 == 63 in head 1: all 8 elements there", FA_T_O, residue, 0, 2, 256, 4, 1},
    {"every bad element has q % 64 == 63 in head 1: 11 of 128 elements there", FA_T_O, scattered_in_rows, 0,
     2, 256, 4, 16},
    {"every bad key has k >= 96: all 2048 elements there", FA_T_DK, dropped_keys, 0, 2, 128, 4, 8},
    {"every bad row has q % 64 == 63 in head 1: all 8 elements there", FA_T_LSE, residue, 0, 2, 256, 4, 1},
    {"1 element: b 1, h 2, q 17", FA_T_LSE, one, 0, 2, 33, 3, 1},
    {"every bad slot has slot == 5: all 48 elements there", FA_T_K, two_pages, 0, 3, 8, 2, 8},
    /* variable length: positions are the sequence's own */
    {"every bad row has q == 0: all 64 elements there", FA_T_O, first_row, 1, 0, 0, 2, 8},
    {"every bad row has q the last of its sequence: all 64 elements there", FA_T_DQ, last_row, 1, 0, 0, 2, 8},
    {"every bad key has k in the last, partial tile of 64: all 704 elements there", FA_T_DV, last_tile, 1, 0,
     0, 2, 8},
    {"every bad row is in batch 4: all 1136 elements there", FA_T_O, last_batch, 1, 0, 0, 2, 8},
    {"every bad row has q % 16 == 15: all 288 elements there", FA_T_O, local_residue, 1, 0, 0, 2, 8},
    {"every bad row is in batch 4: all 142 elements there", FA_T_LSE, last_batch, 1, 0, 0, 2, 1},
    {"every bad row has q the last of its sequence: all 8 elements there", FA_T_LSE, last_row, 1, 0, 0, 2, 1},
};

static place place_of(const planted *c, const int64_t *index) {
  if (!c->varlen && c->id == FA_T_LSE) return (place){index[0], index[2], index[1], 5, c->seqlen};
  if (!c->varlen) return (place){index[0], index[1], index[2], index[3], c->seqlen};
  const int64_t token = c->id == FA_T_LSE ? index[1] : index[0];
  place p = {.h = c->id == FA_T_LSE ? index[0] : index[1], .d = c->id == FA_T_LSE ? 5 : index[2]};
  while (token >= cu[p.b + 1]) ++p.b;
  p.x = token - cu[p.b];
  p.length = cu[p.b + 1] - cu[p.b];
  return p;
}

static fixture make(const planted *c) {
  fixture f = {0};
  fa_problem_init(&f.p);
  const int64_t total = cu[5];
  const int64_t dense[] = {c->batch, c->seqlen, c->heads, c->dim},
                dense_lse[] = {c->batch, c->heads, c->seqlen}, packed[] = {total, c->heads, c->dim},
                packed_lse[] = {c->heads, total};
  if (c->varlen) {
    fa_int32_array *both[] = {&f.p.cu_seqlens_q, &f.p.cu_seqlens_k};
    for (int k = 0; k < 2; ++k) {
      *both[k] = (fa_int32_array){.n = 6, .v = malloc(sizeof cu)};
      memcpy(both[k]->v, cu, sizeof cu);
    }
  }
  const bool lse = c->id == FA_T_LSE;
  fixture_make(&f, c->id, FA_F32, c->varlen ? (lse ? 2 : 3) : (lse ? 3 : 4),
               c->varlen ? (lse ? packed_lse : packed) : (lse ? dense_lse : dense));
  free(f.w.scale); /* no vacuity check, because there are no inputs */
  f.w.scale = NULL;
  return f;
}

static void test(const planted *c) {
  fixture f = make(c);
  int64_t n = 0;
  for (int64_t e = 0; e < f.w.n; ++e) {
    int64_t index[FA_MAX_RANK] = {0};
    fa_tensor_unravel(&f.set.t[c->id], e, index);
    const place at = place_of(c, index);
    if (!c->bad(&at)) continue;
    ++n;
    fa_tensor_set(&f.set.t[c->id], index, e % 2 ? NAN : 100);
  }
  const fa_verdict *v = fixture_compare(&f);
  CHECK_MSG(v->bad == n && n > 0, "%lld of %lld", (long long)v->bad, (long long)n);
  CHECK_MSG(strcmp(v->where, c->text) == 0, "\n  got:  %s\n  want: %s", v->where, c->text);
  fixture_free(&f);
}

/* The notes per axis, for the report. */
static void test_notes(void) {
  const planted *c = &cases[2];
  fixture f = make(c);
  for (int64_t q = 128; q < 160; ++q) fa_tensor_set(&f.set.t[c->id], (int64_t[]){2, q, 3, 0, 0}, 77);
  const fa_verdict *v = fixture_compare(&f);
  const char *want[][2] = {{"b", "b == 2"}, {"q", "q >= 128"}, {"h", "h == 3"}, {"d", "d == 0"}};
  for (int a = 0; a < 4; ++a) {
    CHECK(strcmp(v->by_axis[a].axis, want[a][0]) == 0);
    CHECK_MSG(strcmp(v->by_axis[a].text, want[a][1]) == 0, "%s", v->by_axis[a].text);
  }
  fixture_free(&f);
}

int main(void) {
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) test(&cases[k]);
  test_notes();
  return check_done();
}
