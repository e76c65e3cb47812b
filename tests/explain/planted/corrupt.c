#include "tests/explain/planted/corrupt.h"

#include "tests/explain/planted/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An output as a matrix: rows of its last axis. */
typedef struct spoil {
  const fa_plugin_tensor *t;
  int64_t rows, columns;
  double size; /* root mean square */
  uint64_t state;
} spoil;

/* splitmix64 */
static uint64_t next(spoil *s) {
  uint64_t x = s->state += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}
static int64_t below(spoil *s, int64_t n) {
  return (int64_t)(next(s) % (uint64_t)n);
}
static double uniform(spoil *s) {
  return (double)(next(s) >> 11) * 0x1p-53 * 2.0 - 1.0;
}
/* Twelve uniform numbers are as good as Gaussian here. */
static double gauss(spoil *s) {
  double sum = 0.0;
  for (int i = 0; i < 12; ++i) sum += uniform(s);
  return sum / 2.0;
}

static int64_t place(const spoil *s, int64_t row, int64_t column) {
  const int last = s->t->rank - 1;
  int64_t at = column * s->t->stride[last];
  for (int i = last - 1; i >= 0; --i) {
    at += row % s->t->shape[i] * s->t->stride[i];
    row /= s->t->shape[i];
  }
  return at;
}
static double get(const spoil *s, int64_t row, int64_t column) {
  return pl_load(s->t, place(s, row, column));
}
static void set(const spoil *s, int64_t row, int64_t column, double x) {
  pl_store(s->t, place(s, row, column), x, false);
}

/* One of the four highest bits below the sign and the exponent's first, whose flip is a number all the same. */
static void flip(spoil *s) {
  const int64_t at = place(s, below(s, s->rows), below(s, s->columns));
  if (s->t->dtype == FA_PLUGIN_F32)
    ((uint32_t *)s->t->data)[at] ^= UINT32_C(1) << (18 + below(s, 9));
  else
    ((uint16_t *)s->t->data)[at] ^=
        (uint16_t)(1u << (s->t->dtype == FA_PLUGIN_F16 ? 7 + below(s, 6) : 4 + below(s, 6)));
}
static void one_bit(spoil *s) {
  flip(s);
}
static void bits(spoil *s) {
  for (int64_t n = 2 + below(s, 30); n > 0; --n) flip(s);
}
static void noise_few(spoil *s) {
  for (int64_t n = 1 + below(s, 20); n > 0; --n) {
    const int64_t row = below(s, s->rows), column = below(s, s->columns);
    set(s, row, column, get(s, row, column) + s->size * gauss(s));
  }
}

/* Noise on every element, of a size that is that of the output divided by a power of 4, 256 at most. */
static void noise(spoil *s, double (*draw)(spoil *), bool relative) {
  const double size = ldexp(1.0, -2 * (int)below(s, 5));
  for (int64_t r = 0; r < s->rows; ++r)
    for (int64_t c = 0; c < s->columns; ++c) {
      const double x = get(s, r, c);
      if (isfinite(x)) set(s, r, c, x + size * (relative ? x : s->size) * draw(s));
    }
}
static void noise_uniform(spoil *s) {
  noise(s, uniform, false);
}
static void noise_gauss(spoil *s) {
  noise(s, gauss, false);
}
static void noise_relative(spoil *s) {
  noise(s, gauss, true);
}

/* A stretch of memory's order that begins and ends anywhere. */
static void zeroed(spoil *s) {
  int64_t at = below(s, s->rows * s->columns);
  for (int64_t n = 5 + below(s, 60); n > 0 && at < s->rows * s->columns; --n, ++at)
    set(s, at / s->columns, at % s->columns, 0.0);
}
static void exchange(spoil *s, int64_t r, int64_t c, int64_t r2, int64_t c2) {
  const double x = get(s, r, c), y = get(s, r2, c2);
  set(s, r, c, y);
  set(s, r2, c2, x);
}
static void swapped(spoil *s) {
  for (int64_t n = 1 + below(s, 60); n > 0; --n)
    exchange(s, below(s, s->rows), below(s, s->columns), below(s, s->rows), below(s, s->columns));
}
/* The elements of a few rows in another order. */
static void scrambled(spoil *s) {
  for (int64_t n = 1 + below(s, 8); n > 0; --n) {
    const int64_t row = below(s, s->rows);
    for (int64_t c = s->columns - 1; c > 0; --c) exchange(s, row, c, row, below(s, c + 1));
  }
}
static void garbage(spoil *s) {
  const int64_t row = below(s, s->rows), column = below(s, s->columns);
  for (int64_t r = row; r < row + 16 && r < s->rows; ++r)
    for (int64_t c = column; c < column + 16 && c < s->columns; ++c) set(s, r, c, s->size * gauss(s));
}
static void columns(spoil *s) {
  const double factor = 1.0 + uniform(s);
  for (int64_t n = 1 + below(s, 3), c = below(s, s->columns); n > 0; --n, c = (c + 7) % s->columns)
    for (int64_t r = 0; r < s->rows; ++r) set(s, r, c, get(s, r, c) * factor + s->size * uniform(s));
}

static const struct kind {
  const char *name;
  void (*spoil)(spoil *);
} kinds[] = {{"one_bit", one_bit},         {"bits", bits},
             {"noise_few", noise_few},     {"noise_uniform", noise_uniform},
             {"noise_gauss", noise_gauss}, {"noise_relative", noise_relative},
             {"zeroed", zeroed},           {"swapped", swapped},
             {"scrambled", scrambled},     {"garbage", garbage},
             {"columns", columns}};

bool pl_corruption_read(const char *text, pl_corruption *out, char *message, size_t size) {
  *out = (pl_corruption){.kind = -1, .seed = 0};
  if (!text || strncmp(text, "corrupt:", 8) != 0) return true;
  const char *seed = strchr(text + 8, ':');
  for (size_t i = 0; seed && i < sizeof kinds / sizeof *kinds; ++i)
    if (strlen(kinds[i].name) == (size_t)(seed - text - 8) &&
        strncmp(kinds[i].name, text + 8, strlen(kinds[i].name)) == 0)
      *out = (pl_corruption){.kind = (int)i, .seed = strtoull(seed + 1, NULL, 10)};
  if (out->kind < 0) snprintf(message, size, "FA_PLANTED: what is \"%s\"?", text);
  return out->kind >= 0;
}

static double size_of(const spoil *s) {
  double sum = 0.0;
  int64_t n = 0;
  for (int64_t r = 0; r < s->rows; ++r)
    for (int64_t c = 0; c < s->columns; ++c) {
      const double x = get(s, r, c);
      if (isfinite(x)) sum += x * x, ++n;
    }
  return n ? sqrt(sum / (double)n) : 0.0;
}

void pl_corrupt(const pl_corruption *c, const fa_plugin_problem *p, const fa_plugin_tensors *t,
                bool backward) {
  const fa_plugin_tensor *outputs[] = {&t->o, &t->lse, &t->dq, &t->dk, &t->dv};
  if (c->kind < 0) return;
  spoil s = {.state = c->seed * 1000003 +
                      (uint64_t)(p->seqlen_q * 1009 + p->seqlen_k * 31 + p->head_dim + p->dtype)};
  next(&s);
  const int64_t which = below(&s, backward ? 7 : 3); /* O most often */
  s.t = outputs[which > 4 || (!backward && which > 1) ? 0 : which];
  s.rows = 1;
  for (int i = 0; i < s.t->rank - 1; ++i) s.rows *= s.t->shape[i];
  s.columns = s.t->shape[s.t->rank - 1];
  s.size = size_of(&s);
  if (s.rows > 0 && s.columns > 0) kinds[c->kind].spoil(&s);
}
