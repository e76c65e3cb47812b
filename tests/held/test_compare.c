/* The comparison where it is seldom: which panels of a map are kept, trivial answers of one row or one entry, values without bounds;
 * and where the bad elements of drawn patterns are said to be, which tests/held/recorded/where.txt holds.
 *
 * usage: test_compare_edges [--write]    (from the top of the source tree) */
#include "ref/compare/map.h"
#include "tests/held/drawn.h"
#include "tests/support/compare_fixture.h"

#include <string.h>

/* Every value is 1 and may be 1/4 off; the subject's are right. */
static void make(fixture *f, fa_tensor_id id, int rank, const int64_t *shape) {
  fixture_make(f, id, FA_F32, rank, shape);
  for (int64_t e = 0; e < f->w.n; ++e) {
    f->w.value[e] = 1, f->w.quant[e] = 0.25f, f->w.accum[e] = 0;
    fixture_set(f, e, 1);
  }
}

/* ---- maps ---- */

enum { HEADS = 4, ROWS = 4, COLUMNS = 8 };

/* Element x of row i, in panel batch * HEADS + head, is so many bounds off. */
static void put(fixture *f, int panel, int i, int x, double ratio) {
  const int64_t e = (((int64_t)panel / HEADS * ROWS + i) * HEADS + panel % HEADS) * COLUMNS + x;
  fixture_set(f, e, 1 + 0.25 * ratio);
}

/* The worst of twelve panels: by the worst cell, then by how many are bad, then by place. */
static void test_panels(void) {
  static const int64_t shape[] = {3, ROWS, HEADS, COLUMNS}, order[FA_MAP_PANELS] = {5, 7, 2, 9, 0, 11, 3, 4};
  fixture f = {.p = {.batch = 3, .heads_q = HEADS, .heads_kv = HEADS, .seqlen_q = ROWS, .seqlen_k = 9}};
  fa_map *m = NULL;
  make(&f, FA_T_DQ, 4, shape);
  put(&f, 5, 1, 1, NAN);
  put(&f, 2, 0, 3, 4);
  for (int x = 2; x < 5; ++x) put(&f, 7, 3, x, 4);
  put(&f, 9, 2, 7, 4);
  put(&f, 0, 1, 0, 2);
  put(&f, 11, 2, 2, 1.02);
  put(&f, 3, 0, 0, 0.9), put(&f, 4, 0, 0, 0.9), put(&f, 4, 0, 1, 0.9);
  f.w.value[0] = INFINITY; /* of panel 0, whose subject is right */
  fixture_set(&f, 0, INFINITY);
  REQUIRE(fa_map_make(f.id, &f.p, &f.w, &f.set.t[f.id], FA_POISON_A, &m, NULL) == FA_OK && m);
  CHECK(m->n_panels == FA_MAP_PANELS && m->row_cells == ROWS && m->column_cells == COLUMNS);
  for (int k = 0; k < FA_MAP_PANELS; ++k)
    CHECK_MSG(m->panel[k] == order[k], "panel %d: %lld", k, (long long)m->panel[k]);
  const uint8_t *cell = m->cell;
  CHECK(cell[1 * COLUMNS + 1] == FA_MAP_CLASS && cell[0] == 1);
  CHECK(cell[(1 * ROWS + 3) * COLUMNS + 2] == FA_MAP_ONE + 16); /* four bounds, in eighths of an octave */
  CHECK(cell[4 * ROWS * COLUMNS] == 1);                         /* the right infinity */
  CHECK(cell[(5 * ROWS + 2) * COLUMNS + 2] == FA_MAP_ONE + 1);  /* out of bounds, if not by a cell */
  CHECK(cell[6 * ROWS * COLUMNS] == FA_MAP_ONE - 1);
  free(m);
  fixture_free(&f);
}

/* ---- trivial answers ---- */

/* Rows near each other and far from 0, with bounds that let one pass for another. */
static const char *vacuous(int rank, const int64_t *shape, int64_t batch, int32_t *cu, float bound) {
  static fixture f;
  static const int64_t inputs[] = {1, 1, 1, 4};
  f = (fixture){.p = {.batch = batch, .heads_q = 1, .heads_kv = 1, .seqlen_q = 3, .seqlen_k = 3}};
  if (cu) f.p.cu_seqlens_q = f.p.cu_seqlens_k = (fa_int32_array){batch + 1, cu};
  make(&f, FA_T_DK, rank, shape);
  const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_DO};
  for (int k = 0; k < 4; ++k)
    REQUIRE(fa_tensors_add(&f.set, ids[k], FA_F32, 4, inputs, NULL, 0, NULL) == FA_OK);
  for (int64_t e = 0; e < f.w.n; ++e)
    f.w.value[e] = 10 + 0.01 * (double)e, f.w.quant[e] = bound, fixture_set(&f, e, f.w.value[e]);
  fixture_compare(&f);
  f.p.cu_seqlens_q = f.p.cu_seqlens_k = (fa_int32_array){0};
  fixture_free(&f);
  return f.v.vacuous;
}

static void test_neighbours(void) {
  static int32_t cu[] = {0, 3, 6};
  const char *text = vacuous(4, (const int64_t[]){2, 3, 1, 4}, 2, NULL, 3);
  CHECK_MSG(strcmp(text, "another batch entry's rows") == 0, "%s", text);
  text = vacuous(3, (const int64_t[]){6, 1, 4}, 2, cu, 3); /* of packed calls the first axis is the token */
  CHECK_MSG(strcmp(text, "") == 0, "%s", text);
  text =
      vacuous(4, (const int64_t[]){2, 3, 1, 4}, 2, NULL, 0.1f); /* an entry's rows are 0.12 off the other's */
  CHECK_MSG(strcmp(text, "") == 0, "%s", text);
  text = vacuous(4, (const int64_t[]){2, 3, 1, 4}, 2, NULL, 0.13f);
  CHECK_MSG(strcmp(text, "another batch entry's rows") == 0, "%s", text);
}

/* ---- values without bounds ---- */

static void test_exact(void) {
  static const int64_t shape[] = {1, 3, 1, 4};
  fixture f = {.p = {.batch = 1, .heads_q = 1, .heads_kv = 1, .seqlen_q = 3, .seqlen_k = 3}};
  make(&f, FA_T_DROPOUT_KEEP, 4, shape);
  free(f.w.quant);
  free(f.w.accum);
  f.w.quant = f.w.accum = NULL;
  fixture_set(&f, 5, 1 + 0x1p-20);
  const fa_verdict *v = fixture_compare(&f);
  CHECK(v->fail && v->bad == 1 && v->n_worst == 1);
  CHECK(v->worst[0].bound == 0 && v->worst[0].ratio == INFINITY && v->worst_ratio == INFINITY);
  fixture_free(&f);
}

/* ---- where ---- */

/* Every element that is so in two ways at most is bad: of a head, an entry, a range of rows, every n-th one, a tail. */
static bool is_bad(const drawn *d, const int64_t *at, const int64_t *shape) {
  bool bad = true;
  for (int way = 0; way < 2; ++way) {
    const int axis = drawn_below(d, 10 + way, 4);
    const int64_t n = shape[axis], x = at[axis], from = drawn_below(d, 20 + way, (int)n),
                  modulus = 2 + drawn_below(d, 30 + way, 6);
    switch (drawn_below(d, 40 + way, 5)) {
    case 0:
      bad &= x == from;
      break;
    case 1:
      bad &= x >= from;
      break;
    case 2:
      bad &= x % modulus == from % modulus;
      break;
    case 3:
      bad &= x % modulus <= from % modulus;
      break;
    default:
      bad &= x >= from && x < from + modulus;
    }
  }
  return bad;
}

static void hold_where(FILE *file, bool writes, const drawn *d, int n) {
  const int64_t shape[] = {1 + drawn_below(d, 0, 3), 1 + drawn_below(d, 1, 140), 1 + drawn_below(d, 2, 4),
                           1 + drawn_below(d, 3, 9)};
  fixture f = {.p = {.batch = shape[0],
                     .heads_q = shape[2],
                     .heads_kv = shape[2],
                     .seqlen_q = shape[1],
                     .seqlen_k = shape[1]}};
  char line[1200], recorded[1200];
  make(&f, FA_T_DQ, 4, shape);
  for (int64_t e = 0; e < f.w.n; ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(&f.set.t[f.id], e, at);
    if (is_bad(d, at, shape) && !drawn_yes(d, 1000 + (int)e, drawn_yes(d, 4, 0.5) ? 0.4 : 0))
      fixture_set(&f, e, 9);
  }
  snprintf(line, sizeof line, "%d %lldx%lldx%lldx%lld %s\n", n, (long long)shape[0], (long long)shape[1],
           (long long)shape[2], (long long)shape[3], fixture_compare(&f)->where);
  if (writes)
    fputs(line, file);
  else
    CHECK_MSG(fgets(recorded, sizeof recorded, file) && strcmp(line, recorded) == 0,
              "\n  now      %s  recorded %s", line, recorded);
  fixture_free(&f);
}

static void test_where(bool writes) {
  enum { DRAWS = 400 };
  FILE *file = fopen("tests/held/recorded/where.txt", writes ? "w" : "r");
  REQUIRE(file);
  for (int n = 0; n < DRAWS; ++n) {
    const drawn d = {.number = (uint64_t)n + 77000};
    hold_where(file, writes, &d, n);
  }
  CHECK(fclose(file) == 0);
}

int main(int argc, char **argv) {
  test_panels();
  test_neighbours();
  test_exact();
  test_where(argc > 1 && strcmp(argv[1], "--write") == 0);
  return check_done();
}
