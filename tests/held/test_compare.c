/* The comparison where it is seldom: which panels of a map are kept, trivial answers of one row or one entry, values without bounds;
 * and where the bad elements of drawn patterns are said to be, which tests/held/recorded/where.txt holds.
 *
 * usage: test_compare_edges [--write]    (from the top of the source tree) */
#include "ref/compare/internal.h"
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

/* ---- rows that are alike ---- */

/* Two rows are one sample where all of them that is compared is the same, whatever stands in the rest. */
static void test_alike(void) {
  static const int64_t shape[] = {1, 2, 1, 8};
  fixture f = {.p = {.batch = 1, .heads_q = 1, .heads_kv = 1, .seqlen_q = 2, .seqlen_k = 9}};
  make(&f, FA_T_O, 4, shape);
  for (int64_t e = 0; e < 16; ++e) fixture_set(&f, e, 1 + 0x1p-4 * (double)(e % 8));
  CHECK_MSG(fixture_compare(&f)->n_stat == 8, "%lld", (long long)f.v.n_stat);
  f.w.value[7] = f.w.value[15] = NAN;
  CHECK_MSG(fixture_compare(&f)->n_stat == 7, "%lld", (long long)f.v.n_stat);
  fixture_set(&f, 7, 5);
  CHECK_MSG(fixture_compare(&f)->n_stat == 7, "%lld", (long long)f.v.n_stat);
  fixture_set(&f, 6, 1.25);
  CHECK_MSG(fixture_compare(&f)->n_stat == 14, "%lld", (long long)f.v.n_stat);
  fixture_free(&f);
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

/* More cells than a map is made of: there is none, and nothing is read. */
static void test_too_many_cells(void) {
  const int64_t many = (int64_t)1 << 18;
  const fa_problem p = {.batch = many, .heads_q = many, .heads_kv = many};
  const fa_want want = {.dtype = FA_F32,
                        .rank = 4,
                        .shape = {many, FA_MAP_ROWS, many, FA_MAP_COLUMNS},
                        .n = many * FA_MAP_ROWS * many * FA_MAP_COLUMNS};
  const fa_tensor got = {.dtype = FA_F32};
  fa_map *m = NULL;
  CHECK(fa_map_make(FA_T_O, &p, &want, &got, FA_POISON_A, &m, NULL) == FA_OK && !m);
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

typedef struct mean_of {
  fa_dtype dtype;
  double v;        /* all values: the mean */
  double value[2]; /* of the elements of each row */
  float bound[2];
  bool saturates;
  const char *text;
} mean_of;

/* The mean of V passes for O where bounds are wide, if there is no row of which it is known that it is near 0. */
static void test_mean(const mean_of *x, int64_t odd) {
  static const int64_t shape[] = {1, 2, 1, 4}, values[] = {1, 3, 1, 4};
  static const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V};
  fixture f = {.id = FA_T_O};
  fa_problem_init(&f.p);
  f.p.seqlen_q = 2, f.p.seqlen_k = 3, f.p.head_dim = f.p.head_dim_v = 4;
  fixture_make(&f, FA_T_O, x->dtype, 4, shape);
  f.w.saturates = x->saturates;
  for (int k = 0; k < 3; ++k)
    REQUIRE(fa_tensors_add(&f.set, ids[k], FA_F32, 4, values, NULL, 0, NULL) == FA_OK);
  for (int64_t j = 0; j < 3; ++j)
    for (int64_t c = 0; c < 4; ++c) fa_tensor_set(&f.set.t[FA_T_V], (int64_t[FA_MAX_RANK]){0, j, 0, c}, x->v);
  for (int64_t e = 0; e < 8; ++e) {
    f.w.value[e] = x->value[e / 4], f.w.quant[e] = x->bound[e / 4], f.w.accum[e] = 0;
    fixture_set(&f, e, f.w.value[e]);
  }
  if (odd >= 0) f.w.value[odd] = 5, fixture_set(&f, odd, 5), f.w.quant[odd] = 4.5f; /* zeros do not pass */
  const char *passes = fixture_compare(&f)->vacuous;
  CHECK_MSG(strcmp(passes, x->text) == 0, "%s", passes);
  fixture_free(&f);
}

static void test_means(void) {
  static const char mean[] = "the mean of the visible V";
  test_mean(&(mean_of){FA_F32, 1, {0, 0.5}, {0x1p-10f, 0.75f}, false, ""}, 4);
  test_mean(&(mean_of){FA_F32, 1, {0, 0.5}, {2, 0.75f}, false, mean}, 4);
  /* a row that has to be 0 says nothing, behind another one too */
  test_mean(&(mean_of){FA_F32, 1, {0.5, 0}, {0.75f, 0}, false, mean}, 0);
  /* the right answer, although zeros, which do not pass, are another one in the first row */
  test_mean(&(mean_of){FA_F32, 1, {1, 1}, {2, 0.25f}, false, ""}, -1);
  /* as the type has it */
  test_mean(&(mean_of){FA_E4M3, 1000, {448, 400}, {1, 60}, true, mean}, -1);
}

/* An input of 2^127 counts, and what is beyond is poison. */
static void test_largest_input(void) {
  static const int64_t shape[] = {1, 3, 1, 4};
  static const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V};
  const fa_want want = {.dtype = FA_F32, .rank = 4, .shape = {1, 2, 1, 4}, .steepest = 1};
  fa_tensors in = {0};
  fa_problem p;
  fa_problem_init(&p);
  p.seqlen_q = 2, p.seqlen_k = 3, p.head_dim = p.head_dim_v = 4;
  for (int k = 0; k < 3; ++k) REQUIRE(fa_tensors_add(&in, ids[k], FA_F32, 4, shape, NULL, 0, NULL) == FA_OK);
  for (int beyond = 0; beyond < 2; ++beyond) {
    fa_vacuous_tolerance t;
    fa_tensor_set(&in.t[FA_T_V], (int64_t[FA_MAX_RANK]){0}, beyond ? 0x1.8p127 : 0x1p127);
    REQUIRE(fa_vacuous_tolerance_of(&p, &in, FA_T_O, &want, NULL, true, &t));
    CHECK_MSG((t.floor > 1) == !beyond, "%g", t.floor);
  }
  fa_tensors_free(&in);
  fa_problem_free(&p);
}

/* ---- statistics ---- */

/* Copies have none, and neither has what comes without its noise. */
static void test_no_statistics(void) {
  static const int64_t shape[] = {1, 3, 1, 8};
  for (int k = 0; k < 3; ++k) {
    fixture f = {.p = {.batch = 1, .heads_q = 1, .heads_kv = 1, .seqlen_q = 3, .seqlen_k = 3}};
    make(&f, k == 1 ? FA_T_K : FA_T_DQ, 4, shape);
    for (int64_t e = 0; e < f.w.n; ++e) f.w.value[e] += (double)e, fixture_set(&f, e, f.w.value[e]);
    if (k == 2) free(f.w.noise), f.w.noise = NULL;
    const fa_verdict *v = fixture_compare(&f);
    CHECK_MSG(v->count == 24 && v->n_stat == (k ? 0 : 24), "%d: %lld", k, (long long)v->n_stat);
    fixture_free(&f);
  }
}

/* Rows of the same numbers are one sample, whatever rows are beside them. */
static void test_same_rows(void) {
  static const int64_t shape[] = {1, 5, 1, 8};
  fixture f = {.p = {.batch = 1, .heads_q = 1, .heads_kv = 1, .seqlen_q = 5, .seqlen_k = 5}};
  make(&f, FA_T_DQ, 4, shape);
  for (int64_t e = 8; e < 16; ++e) f.w.value[e] = 3 + (double)e, fixture_set(&f, e, f.w.value[e]);
  const fa_verdict *v = fixture_compare(&f);
  CHECK_MSG(v->n_stat == 16, "%lld", (long long)v->n_stat);
  fixture_free(&f);
}

/* An element of the wrong class is worse than any number, even one whose error is no number of 64 bits. */
static void test_worst(void) {
  static const int64_t shape[] = {1, 1, 1, 4};
  fixture f = {.p = {.batch = 1, .heads_q = 1, .heads_kv = 1, .seqlen_q = 1, .seqlen_k = 3}};
  fixture_make(&f, FA_T_DQ, FA_F64, 4, shape);
  f.w.value[1] = 0x1.8p1023;
  fixture_set(&f, 1, -0x1.8p1023);
  fixture_set(&f, 2, NAN);
  const fa_verdict *v = fixture_compare(&f);
  CHECK(v->n_worst >= 2 && v->worst[0].class_bad && v->worst[0].index[3] == 2);
  CHECK(!v->worst[1].class_bad && v->worst[1].err == INFINITY && v->worst[1].index[3] == 1);
  fixture_free(&f);
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

/* ---- the worst ---- */

/* Of equal ratios the larger error is worse, and takes a place although all are taken. */
static void test_ties(void) {
  static const int64_t shape[] = {1, 12, 1, 1};
  fixture f = {.p = {.batch = 1, .heads_q = 1, .heads_kv = 1, .seqlen_q = 12, .seqlen_k = 12}};
  make(&f, FA_T_DQ, 4, shape);
  for (int e = 0; e < 12; ++e) fixture_set(&f, e, 1.125);
  f.w.value[11] = 2, f.w.quant[11] = 0.5f;
  fixture_set(&f, 11, 2.25);
  const fa_verdict *v = fixture_compare(&f);
  CHECK(v->n_worst == FA_WORST_POINTS && v->worst[0].ratio == v->worst[1].ratio);
  CHECK(v->worst[0].index[1] == 11 && v->worst[1].index[1] == 0);
  fixture_free(&f);
}

/* ---- where ---- */

static void test_rows_are(int64_t rows, int64_t from, int64_t end, const char *text) {
  const int64_t shape[] = {1, rows, 1, 1};
  fixture f = {.p = {.batch = 1, .heads_q = 1, .heads_kv = 1, .seqlen_q = rows, .seqlen_k = rows}};
  make(&f, FA_T_DQ, 4, shape);
  for (int64_t e = from; e < end; ++e) fixture_set(&f, e, 9);
  const char *where = fixture_compare(&f)->where;
  CHECK_MSG(strcmp(where, text) == 0, "%s", where);
  fixture_free(&f);
}

/* Rows that are marked with x are bad in all heads and columns. */
static void test_marked(const char *marks, int64_t heads, int64_t width, const char *text) {
  const int64_t rows = (int64_t)strlen(marks), shape[] = {1, rows, heads, width};
  fixture f = {.p = {.batch = 1, .heads_q = heads, .heads_kv = heads, .seqlen_q = rows, .seqlen_k = rows}};
  make(&f, FA_T_DQ, 4, shape);
  for (int64_t e = 0; e < f.w.n; ++e)
    if (marks[e / (heads * width)] == 'x') fixture_set(&f, e, 9);
  const char *where = fixture_compare(&f)->where;
  CHECK_MSG(strcmp(where, text) == 0, "%s", where);
  fixture_free(&f);
}

/* Of two that hold for as many rows the simpler one; and nine rows of a half may be so by chance. */
static void test_simplest(void) {
  test_marked(".x.x..", 8, 4, "every bad row has q % 2 == 1: 64 of 96 elements there");
  test_marked("x.x...", 8, 4, "every bad row has q < 3: 64 of 96 elements there");
  test_marked("..................xxxx.x..x...x..x.x", 1, 1, "9 of 36 elements, nothing in common");
}

/* ---- names ---- */

static void test_axis(fa_tensor_id id, int rank, int64_t page_size, const char *axis, const char *where) {
  static const int64_t shape[] = {1, 3, 1, 4};
  fixture f = {.p = {.batch = 1, .heads_q = 1, .heads_kv = 1, .seqlen_q = 3, .seqlen_k = 3}};
  f.p.kvcache.page_size = page_size;
  make(&f, id, rank, shape);
  fixture_set(&f, 0, 9);
  const fa_verdict *v = fixture_compare(&f);
  CHECK_MSG(strcmp(v->by_axis[0].axis, axis) == 0 && strcmp(v->where, where) == 0, "%s: %s",
            v->by_axis[0].axis, v->where);
  fixture_free(&f);
}

static void test_names(void) {
  test_axis(FA_T_K, 4, 0, "row", "1 element: row 0, slot 0, h 0, d 0");
  test_axis(FA_T_K, 4, 3, "page", "1 element: page 0, slot 0, h 0, d 0");
  test_axis(FA_T_AMAX_P, 1, 0, "call", "1 element: call 0");
  CHECK(fa_class_of_bits(FA_E4M3, 0x7f) == FA_CLASS_NAN && fa_class_of_bits(FA_E4M3, 0xff) == FA_CLASS_NAN);
  CHECK(fa_class_of_bits(FA_E4M3, 0x7e) == FA_CLASS_FINITE &&
        fa_class_of_bits(FA_E4M3, 0xfe) == FA_CLASS_FINITE);
}

/* That two rows are right may be chance, where all others are bad; of three it is not. */
static void test_chance(void) {
  test_rows_are(5, 0, 3, "3 of 5 elements, all over");
  test_rows_are(6, 0, 3, "every bad element has q < 3: all 3 elements there");
}

/* The last rows of the shorter of two sequences: only lengths of sequences with a bad row count. */
static void test_tail(void) {
  static const int64_t shape[] = {60, 1, 1};
  static int32_t cu[] = {0, 20, 60};
  fixture f = {.p = {.batch = 2,
                     .heads_q = 1,
                     .heads_kv = 1,
                     .cu_seqlens_q = {3, cu},
                     .cu_seqlens_k = {3, cu},
                     .seqlen_q = 40,
                     .seqlen_k = 40}};
  make(&f, FA_T_DQ, 3, shape);
  for (int64_t e = 16; e < 20; ++e) fixture_set(&f, e, 9);
  const fa_verdict *v = fixture_compare(&f);
  CHECK_MSG(strstr(v->by_axis[1].text, "the last, partial tile of 16"), "%s", v->by_axis[1].text);
  f.p.cu_seqlens_q = f.p.cu_seqlens_k = (fa_int32_array){0};
  fixture_free(&f);
}

/* A tensor of as many axes as there may be, whose last row is bad. */
static void test_five_axes(void) {
  static const int64_t shape[] = {2, 2, 40, 2, 4};
  fixture f = {
      .p = {.family = FA_MERGE, .batch = 2, .heads_q = 2, .heads_kv = 2, .seqlen_q = 40, .seqlen_k = 40}};
  make(&f, FA_T_DO_PARTS, 5, shape);
  for (int64_t e = f.w.n - 4; e < f.w.n; ++e) fixture_set(&f, e, 9);
  const fa_verdict *v = fixture_compare(&f);
  CHECK_MSG(v->bad == 4 && strstr(v->where, "q == 39"), "%s", v->where);
  fixture_free(&f);
}

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
  test_alike();
  test_panels();
  test_neighbours();
  test_too_many_cells();
  test_means();
  test_largest_input();
  test_no_statistics();
  test_same_rows();
  test_worst();
  test_simplest();
  test_names();
  test_exact();
  test_ties();
  test_chance();
  test_tail();
  test_five_axes();
  test_where(argc > 1 && strcmp(argv[1], "--write") == 0);
  return check_done();
}
