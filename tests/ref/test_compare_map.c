/* Maps of planted errors, against an oracle that goes over the elements and knows no bins but division. */
#include "cases/tensors/guard.h"
#include "ref/compare/map.h"
#include "tests/support/compare_fixture.h"

typedef struct planted {
  const char *what;
  fa_tensor_id id;
  bool varlen;
  int64_t batch, seqlen, heads, dim;
  int64_t rows, columns, row_step, column_step, panels, strips; /* of the map, and how many it keeps */
} planted;

static int32_t cu[] = {0, 37, 37, 101, 229, 300}; /* lengths 37, 0, 64, 128, 71 */

static const planted cases[] = {
    {"small and exact", FA_T_O, false, 2, 33, 2, 16, 33, 16, 1, 1, 4, 4},
    {"rows and columns in bins", FA_T_DQ, false, 1, 1000, 3, 96, 1000, 96, 16, 4, 3, 3},
    {"more heads than pictures", FA_T_DK, false, 2, 64, 9, 8, 64, 8, 1, 1, 8, 18},
    {"more heads than strips", FA_T_O, false, 3, 65, 100, 4, 65, 4, 2, 1, 8, 248},
    {"the LSE by heads", FA_T_LSE, false, 3, 70, 40, 1, 70, 40, 2, 2, 3, 3},
    {"a cache", FA_T_K, false, 3, 48, 2, 8, 48, 8, 1, 1, 6, 6},
    {"variable length", FA_T_O, true, 5, 0, 2, 8, 128, 8, 2, 1, 8, 10},
    {"variable length, LSE", FA_T_LSE, true, 5, 0, 3, 1, 128, 3, 2, 1, 5, 5},
    {"one row", FA_T_O, false, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
};

typedef struct place {
  int64_t b, x, h, d;
} place;

static place place_of(const planted *c, const int64_t *index) {
  if (!c->varlen && c->id == FA_T_LSE) return (place){index[0], index[2], index[1], 0};
  if (!c->varlen) return (place){index[0], index[1], index[2], index[3]};
  const int64_t token = c->id == FA_T_LSE ? index[1] : index[0];
  place p = {.h = c->id == FA_T_LSE ? index[0] : index[1], .d = c->id == FA_T_LSE ? 0 : index[2]};
  while (token >= cu[p.b + 1]) ++p.b;
  p.x = token - cu[p.b];
  return p;
}

static fixture make(const planted *c) {
  fixture f = {0};
  fa_problem_init(&f.p);
  const bool lse = c->id == FA_T_LSE;
  const int64_t total = cu[5];
  const int64_t dense[] = {c->batch, c->seqlen, c->heads, c->dim},
                dense_lse[] = {c->batch, c->heads, c->seqlen}, packed[] = {total, c->heads, c->dim},
                packed_lse[] = {c->heads, total};
  for (int k = 0; k < 2 && c->varlen; ++k) {
    fa_int32_array *lengths = k ? &f.p.cu_seqlens_k : &f.p.cu_seqlens_q;
    *lengths = (fa_int32_array){.n = 6, .v = malloc(sizeof cu)};
    memcpy(lengths->v, cu, sizeof cu);
  }
  fixture_make(&f, c->id, FA_F32, c->varlen ? (lse ? 2 : 3) : (lse ? 3 : 4),
               c->varlen ? (lse ? packed_lse : packed) : (lse ? dense_lse : dense));
  return f;
}

/* Plants an error in one element of some, and returns what a cell of it alone is. */
static uint8_t plant(fixture *f, int64_t e, const int64_t *index) {
  static const uint16_t poison[2] = {FA_PATTERN_POISON_A, FA_PATTERN_POISON_A};
  const fa_tensor *got = &f->set.t[f->id];
  const double bound = fa_want_bound(&f->w, e), times[] = {0.5, 1.01, 1.1, 40, 1e5, 1e9};
  const uint64_t dice = fa_rng_u64(3, f->id, (uint64_t)e) % 60;
  if (dice == 58) {
    fa_tensor_set(got, index, NAN);
    return FA_MAP_CLASS;
  }
  if (dice == 59) {
    memcpy(got->data + fa_tensor_offset(got, index), poison, sizeof poison);
    return FA_MAP_UNWRITTEN;
  }
  if (dice == 57) {
    f->w.value[e] = NAN;
    return FA_MAP_NOTHING;
  }
  if (dice < 6) fa_tensor_set(got, index, f->w.value[e] + times[dice] * bound);
  const double ratio = fabs(fa_tensor_get(got, index) - f->w.value[e]) / bound;
  const double code = ratio > 0 ? 1 + round(8 * (log2(ratio) + 8)) : 1;
  if (ratio > 1 + 0x1p-6) return code < 66 ? 66 : code > 250 ? 250 : (uint8_t)code;
  return code < 1 ? 1 : code > 65 ? 65 : (uint8_t)code;
}

/* The largest value of every element's in panel (b, h) and the cell. */
static uint8_t expected(const planted *c, const fixture *f, const uint8_t *value, const fa_map *m,
                        const int64_t *at, int row, int column) {
  uint8_t most = 0;
  for (int64_t e = 0; e < f->w.n; ++e) {
    int64_t index[FA_MAX_RANK] = {0};
    fa_tensor_unravel(&f->set.t[c->id], e, index);
    const place p = place_of(c, index);
    const int64_t over = c->id == FA_T_LSE ? p.h : p.d;
    if (p.b != at[0] || (c->id != FA_T_LSE && p.h != at[1]) || p.x / m->row_step != row) continue;
    if (column >= 0 && over / m->column_step != column) continue;
    if (value[e] > most) most = value[e];
  }
  return most;
}

static void check_panels(const planted *c, const fixture *f, const uint8_t *value, const fa_map *m) {
  int last = 255;
  for (int k = 0; k < m->n_panels; k += 3) {
    int64_t at[FA_MAP_PANEL_AXES] = {0};
    int peak = 0;
    fa_map_panel_at(m, m->panel[k], at);
    for (int cell = 0; cell < m->row_cells * m->column_cells; ++cell) {
      const uint8_t got = m->cell[k * m->row_cells * m->column_cells + cell];
      if (got > peak) peak = got;
      if (cell % 7) continue;
      CHECK(got == expected(c, f, value, m, at, cell / m->column_cells, cell % m->column_cells));
    }
    CHECK_MSG(peak <= last, "%s: panel %d is worse than one before it", c->what, k);
    last = peak;
  }
}

static void check_strips(const planted *c, const fixture *f, const uint8_t *value, const fa_map *m) {
  for (int k = 0; k < m->n_strips; k += 5) {
    int64_t at[FA_MAP_PANEL_AXES] = {0};
    fa_map_panel_at(m, m->strip[k], at);
    CHECK(k == 0 || m->strip[k] > m->strip[k - 1]);
    for (int row = 0; row < m->row_cells; row += 9)
      CHECK(m->strip_cell[k * m->row_cells + row] == expected(c, f, value, m, at, row, -1));
  }
}

static void test(const planted *c) {
  fixture f = make(c);
  uint8_t *value = malloc((size_t)f.w.n);
  fa_error err = {""};
  fa_map *m = NULL;
  for (int64_t e = 0; e < f.w.n; ++e) {
    int64_t index[FA_MAX_RANK] = {0};
    fa_tensor_unravel(&f.set.t[c->id], e, index);
    value[e] = plant(&f, e, index);
  }
  REQUIRE(fa_map_make(c->id, &f.p, &f.w, &f.set.t[c->id], FA_POISON_A, &m, &err) == FA_OK && m);
  CHECK(fa_map_is_sound(m));
  CHECK_MSG(m->rows == c->rows && m->columns == c->columns && m->row_step == c->row_step &&
                m->column_step == c->column_step && m->n_panels == c->panels && m->n_strips == c->strips,
            "%s: %lld x %lld by %lld x %lld, %d panels, %d strips", c->what, (long long)m->rows,
            (long long)m->columns, (long long)m->row_step, (long long)m->column_step, m->n_panels,
            m->n_strips);
  check_panels(c, &f, value, m);
  check_strips(c, &f, value, m);
  free(m);
  free(value);
  fixture_free(&f);
}

/* Of heads with the same worst cell those with more bad cells come first, and of as many the first ones. */
static void test_order(void) {
  static const planted c = {"in order", FA_T_O, false, 1, 16, 12, 4, 16, 4, 1, 1, 8, 12};
  static const int bad[] = {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}, order[] = {2, 5, 8, 11, 1, 4, 7, 10};
  fixture f = make(&c);
  fa_map *m = NULL;
  for (int64_t h = 0; h < 12; ++h)
    for (int64_t i = 0; i < bad[h]; ++i)
      fa_tensor_set(&f.set.t[FA_T_O], (const int64_t[FA_MAX_RANK]){0, 3 * i, h, i}, NAN);
  REQUIRE(fa_map_make(c.id, &f.p, &f.w, &f.set.t[c.id], FA_POISON_A, &m, NULL) == FA_OK && m);
  CHECK(m->n_panels == 8);
  for (int k = 0; k < m->n_panels; ++k)
    CHECK_MSG(m->panel[k] == order[k], "place %d: head %lld", k, (long long)m->panel[k]);
  free(m);
  fixture_free(&f);
}

/* What a worker that was overwritten may send. */
static void test_unsound(void) {
  const planted *c = &cases[0];
  fixture f = make(c);
  fa_map *m = NULL;
  REQUIRE(fa_map_make(c->id, &f.p, &f.w, &f.set.t[c->id], FA_POISON_A, &m, NULL) == FA_OK && m);
  const fa_map good = *m;
  m->row_cells = FA_MAP_ROWS + 1;
  CHECK(!fa_map_is_sound(m));
  *m = good;
  m->n_strips = FA_MAP_STRIPS;
  m->row_cells = FA_MAP_ROWS;
  CHECK(!fa_map_is_sound(m));
  *m = good;
  m->panel_extent[0] = 0;
  CHECK(!fa_map_is_sound(m));
  *m = good;
  memset(m->row_axis, 'x', sizeof m->row_axis);
  CHECK(!fa_map_is_sound(m));
  free(m);
  fixture_free(&f);
}

int main(void) {
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) test(&cases[k]);
  test_order();
  test_unsound();
  return check_done();
}
