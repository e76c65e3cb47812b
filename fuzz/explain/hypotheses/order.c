/* Right values in wrong places, and none at all. */
#include "cases/tensors/table.h"
#include "fuzz/explain/hypothesis.h"

#include <string.h>

/* number: bits of the row's index that are turned over */
static bool row_turned(const fa_mistake *m, const fa_failure *x, const fa_failed *t, fa_place *at) {
  (void)x, (void)t;
  at->i ^= m->number[0];
  return true;
}

static bool rows_swapped(const fa_failure *x, int v, fa_mistake *m) {
  (void)x;
  m->moved = row_turned;
  m->number[0] = 1 << v;
  if (v == 0)
    fa_mistake_say(m, "every two rows exchanged");
  else
    fa_mistake_say(m, "every two blocks of %d rows exchanged", 1 << v);
  return true;
}

static bool column_turned(const fa_mistake *m, const fa_failure *x, const fa_failed *t, fa_place *at) {
  (void)x;
  at->d ^= m->number[0];
  return t->width > 1;
}

static bool columns_swapped(const fa_failure *x, int v, fa_mistake *m) {
  m->moved = column_turned;
  m->number[0] = 1 << v;
  if (v == 0)
    fa_mistake_say(m, "every two columns exchanged");
  else
    fa_mistake_say(m, "every two blocks of %d columns exchanged", 1 << v);
  return 2 << v < x->p->head_dim;
}

static bool other_half(const fa_mistake *m, const fa_failure *x, const fa_failed *t, fa_place *at) {
  (void)m, (void)x;
  at->d = (at->d + t->width / 2) % t->width;
  return t->width > 1 && t->width % 2 == 0;
}

static bool halves_swapped(const fa_failure *x, int v, fa_mistake *m) {
  (void)x, (void)v;
  m->moved = other_half;
  fa_mistake_say(m, "halves of the head dim exchanged");
  return true;
}

/* number: rows and columns of a fragment */
static bool transposed(const fa_mistake *m, const fa_failure *x, const fa_failed *t, fa_place *at) {
  const int64_t n = m->number[0], i = at->i, d = at->d;
  (void)x;
  at->i = i / n * n + d % n;
  at->d = d / n * n + i % n;
  return t->width > 1;
}

static bool fragments_transposed(const fa_failure *x, int v, fa_mistake *m) {
  static const int sides[] = {8, 16, 4, 2, 32, 64};
  (void)x;
  m->moved = transposed;
  m->number[0] = sides[v];
  fa_mistake_say(m, "fragments of %d x %d transposed", sides[v], sides[v]);
  return true;
}

/* number: rows, heads, sequences further on */
static bool further(const fa_mistake *m, const fa_failure *x, const fa_failed *t, fa_place *at) {
  const int64_t heads = fa_places_heads(x, t);
  if (m->number[1] && fa_tensor_is_of_keys(t->id)) return false; /* dk_of_other_head */
  at->i += m->number[0];
  at->h = (at->h + m->number[1] + heads) % heads;
  at->b = (at->b + m->number[2] + x->p->batch) % x->p->batch;
  return true;
}

static const struct {
  int64_t i, h, b;
  const char *text;
} places[] = {{1, 0, 0, "of the row after"},         {-1, 0, 0, "of the row before"},
              {0, 1, 0, "of the head after"},        {0, -1, 0, "of the head before"},
              {0, 0, 1, "of the sequence after"},    {0, 0, -1, "of the sequence before"},
              {16, 0, 0, "of 16 rows further on"},   {-16, 0, 0, "of 16 rows before"},
              {32, 0, 0, "of 32 rows further on"},   {-32, 0, 0, "of 32 rows before"},
              {64, 0, 0, "of 64 rows further on"},   {-64, 0, 0, "of 64 rows before"},
              {128, 0, 0, "of 128 rows further on"}, {-128, 0, 0, "of 128 rows before"}};
enum { N_PLACES = sizeof places / sizeof *places };

/* Rows of every `block` are computed with the queries of its first `from` rows again. */
static const struct {
  int block, from;
} queries[] = {{128, 64}, {192, 64}, {256, 64}, {64, 32}, {64, 16}, {128, 32}, {128, 16}, {32, 16}};
enum { N_QUERIES = sizeof queries / sizeof *queries };

static bool queries_of_other_rows(const fa_failure *x, int v, fa_mistake *m) {
  const fa_ref_call *c = &x->place;
  const int64_t block = queries[v].block, from = queries[v].from,
                size = (int64_t)fa_dtype_size(fa_tensor_dtype(x->p, FA_T_Q));
  fa_mistake_say(m, "rows of every %d computed with the queries of the first %d", queries[v].block,
                 queries[v].from);
  if (c->max_sq <= from || !fa_mistake_copy_input(m, FA_T_Q)) return false;
  char *q = m->in.t[FA_T_Q].data;
  for (int64_t b = 0; b < x->p->batch; ++b)
    for (int64_t i = c->entry[b].sq - 1; i >= 0; --i)
      for (int64_t h = 0; h < c->heads_q; ++h) {
        const int64_t own = fa_ref_q_index(c, &c->entry[b], h, i, c->d),
                      other = fa_ref_q_index(c, &c->entry[b], h, i / block * block + i % block % from, c->d);
        memmove(q + own * size, q + other * size, (size_t)(c->d * size));
      }
  return true;
}

static bool output_of_other_rows(const fa_failure *x, int v, fa_mistake *m) {
  if (v >= N_PLACES) return queries_of_other_rows(x, v - N_PLACES, m);
  m->moved = further;
  m->number[0] = places[v].i;
  m->number[1] = places[v].h;
  m->number[2] = places[v].b;
  fa_mistake_say(m, "output %s", places[v].text);
  if (places[v].b) return x->p->batch > (places[v].b < 0 ? 2 : 1);
  if (places[v].h) return x->p->heads_q > (places[v].h < 0 ? 2 : 1);
  return true;
}

static bool output_zero(const fa_failure *x, int v, fa_mistake *m) {
  (void)x, (void)v;
  m->zero = true;
  fa_mistake_say(m, "output is zero");
  return true;
}

#define PLACED (FA_BIT(FA_T_O) | FA_BIT(FA_T_LSE) | FA_BIT(FA_T_DQ) | FA_BIT(FA_T_DK) | FA_BIT(FA_T_DV))
#define WIDE (PLACED & ~FA_BIT(FA_T_LSE))
const fa_hypothesis fa_hypotheses_of_order[] = {
    {"output_zero", "the output is zero", FA_OF_ALL, 1, output_zero},
    {"rows_swapped", "rows of a tile are exchanged", PLACED, 8, rows_swapped},
    {"halves_swapped", "the halves of the head dim are exchanged", WIDE, 1, halves_swapped},
    {"columns_swapped", "columns are exchanged", WIDE, 7, columns_swapped},
    {"fragments_transposed", "fragments of a tile are transposed", WIDE, 6, fragments_transposed},
    {"output_of_other_rows", "the output is that of other rows, or of their queries", PLACED,
     N_PLACES + N_QUERIES, output_of_other_rows},
    {.name = NULL}};
