/* A short true sentence about where the bad elements are.
 *
 * Along each axis the bad elements occupy a set of coordinates. Candidate predicates (one value, a range, a
 * range of residues modulo a power of two, the last position or last partial tile of each sequence) are made
 * as tight as possible around that set, so each is true of every bad element by construction. The most
 * informative one admits the fewest positions, provided that this can hardly be chance. */
#include "cases/base/figures.h"
#include "ref/compare/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TILES = 4 };
static const int64_t tiles[N_TILES] = {16, 32, 64, 128};

struct fa_where {
  fa_axes axes;
  int rank;
  int64_t shape[FA_MAX_RANK];
  int64_t n_all, n_bad;
  int64_t width, last_row, n_rows; /* elements in a row of the tensor; rows with a bad element */
  int64_t first[FA_MAX_RANK];      /* coordinates of the first bad element */
  int64_t *hits[FA_MAX_RANK];      /* bad elements per coordinate of each axis */
  bool all_last, all_tail[N_TILES];
};

static void unravel(const fa_where *w, int64_t position, int64_t *coordinate) {
  int64_t index[FA_MAX_RANK];
  for (int a = w->rank - 1; a >= 0; --a) {
    index[a] = position % w->shape[a];
    position /= w->shape[a];
  }
  fa_axes_coordinates(&w->axes, index, coordinate);
}

fa_where *fa_where_new(fa_tensor_id id, const fa_problem *p, const fa_want *want) {
  fa_where *w = calloc(1, sizeof *w);
  if (w == NULL) return NULL;
  w->axes = fa_axes_of(id, p, want);
  w->rank = want->rank;
  memcpy(w->shape, want->shape, sizeof w->shape);
  w->n_all = want->n;
  w->width = want->shape[want->rank - 1];
  w->last_row = -1;
  w->all_last = w->axes.seq >= 0;
  for (int t = 0; t < N_TILES; ++t) w->all_tail[t] = w->axes.seq >= 0;
  for (int a = 0; a < w->axes.n; ++a) {
    w->hits[a] = calloc((size_t)w->axes.extent[a] + 1, sizeof *w->hits[a]);
    if (w->hits[a] == NULL) {
      fa_where_free(w);
      return NULL;
    }
  }
  return w;
}

void fa_where_free(fa_where *w) {
  if (w == NULL) return;
  for (int a = 0; a < w->axes.n; ++a) free(w->hits[a]);
  free(w);
}

/* True past the last multiple of the tile size: the rows of a partial tile. */
static bool in_tail(int64_t position, int64_t length, int64_t tile) {
  return position >= length / tile * tile;
}

void fa_where_add(fa_where *w, int64_t position) {
  int64_t at[FA_MAX_RANK];
  unravel(w, position, at);
  if (w->n_bad++ == 0) memcpy(w->first, at, sizeof at);
  if (position / w->width != w->last_row) {
    w->last_row = position / w->width;
    ++w->n_rows;
  }
  for (int a = 0; a < w->axes.n; ++a) ++w->hits[a][at[a]];
  if (w->axes.seq < 0) return;
  const int64_t length = fa_axes_length(&w->axes, at[0]), x = at[w->axes.seq];
  w->all_last = w->all_last && x == length - 1;
  for (int t = 0; t < N_TILES; ++t) w->all_tail[t] = w->all_tail[t] && in_tail(x, length, tiles[t]);
}

/* ---- predicates on one axis ---- */

typedef enum kind { ANY, RANGE, RESIDUES, LAST, TAIL } kind;

typedef struct predicate {
  kind kind;
  int64_t low, high, modulus; /* RANGE, RESIDUES: low..high both included; TAIL: the tile in modulus */
  int64_t admitted;           /* number of positions that satisfy it */
  int complexity;             /* prefers the simpler of two equivalent ones */
} predicate;

static bool holds(const predicate *p, int64_t x, int64_t length) {
  switch (p->kind) {
  case RANGE:
    return x >= p->low && x <= p->high;
  case RESIDUES:
    return x % p->modulus >= p->low && x % p->modulus <= p->high;
  case LAST:
    return x == length - 1;
  case TAIL:
    return in_tail(x, length, p->modulus);
  default:
    return true;
  }
}

/* One axis as its predicates see it. On the sequence axis, every sequence with a bad element counts with its
 * own length; other axes have one "sequence". */
typedef struct axis_view {
  const fa_where *w;
  int axis;
  int64_t extent, positions; /* positions: over the sequences that count */
  int64_t distinct;          /* coordinates with a bad element */
} axis_view;

static bool sequence_counts(const axis_view *v, int64_t b) {
  return v->axis != v->w->axes.seq || v->w->axes.cu == NULL ? b == 0 : v->w->hits[0][b] > 0;
}
static int64_t sequence_length(const axis_view *v, int64_t b) {
  return v->axis != v->w->axes.seq ? v->extent : fa_axes_length(&v->w->axes, b);
}
static int64_t n_entries(const axis_view *v) {
  return v->axis != v->w->axes.seq || v->w->axes.cu == NULL ? 1 : v->w->axes.n_entries;
}

static int64_t count_admitted(const axis_view *v, const predicate *p) {
  int64_t n = 0;
  for (int64_t b = 0; b < n_entries(v); ++b) {
    if (!sequence_counts(v, b)) continue;
    const int64_t length = sequence_length(v, b);
    for (int64_t x = 0; x < length; ++x) n += holds(p, x, length);
  }
  return n;
}

static axis_view view_of(const fa_where *w, int axis) {
  axis_view v = {.w = w, .axis = axis, .extent = w->axes.extent[axis]};
  for (int64_t x = 0; x < v.extent; ++x) v.distinct += w->hits[axis][x] > 0;
  const predicate any = {.kind = ANY};
  v.positions = count_admitted(&v, &any);
  return v;
}

/* True if the pattern is unlikely to be chance: either many distinct coordinates all fall inside, or many
 * positions outside are clean although the inside is densely bad. */
static bool is_telling(const axis_view *v, const predicate *p) {
  if (p->admitted >= v->positions) return false;
  if (p->kind == RANGE && p->low == p->high) return true;
  const double share = (double)p->admitted / (double)v->positions;
  const double surprise = (double)v->distinct * -log2(share);
  if (surprise >= 10) return true;
  const double per_position = (double)v->w->n_all / (double)v->positions;
  const double unit = v->w->n_bad == v->w->n_rows * v->w->width && v->axis != v->w->axes.n - 1
                          ? (double)v->w->width
                          : 1; /* rows that are bad as a whole are one event each */
  const double inside = (double)p->admitted * per_position / unit;
  const double outside = (double)(v->positions - p->admitted) * per_position / unit;
  double density = (double)v->w->n_bad / unit / inside;
  if (density > 0.999) density = 0.999;
  return outside * -log2(1 - density) >= 20;
}

static void consider(const axis_view *v, predicate candidate, predicate *best) {
  candidate.admitted = count_admitted(v, &candidate);
  if (!is_telling(v, &candidate)) return;
  if (best->kind == ANY || candidate.admitted < best->admitted ||
      (candidate.admitted == best->admitted && candidate.complexity < best->complexity))
    *best = candidate;
}

static predicate tightest_range(const axis_view *v) {
  const int64_t *hits = v->w->hits[v->axis];
  predicate p = {.kind = RANGE, .low = 0, .high = v->extent - 1};
  while (hits[p.low] == 0) ++p.low;
  while (hits[p.high] == 0) --p.high;
  p.complexity = p.low == p.high ? 0 : p.low == 0 || p.high == v->extent - 1 ? 1 : 4;
  return p;
}

static predicate tightest_residues(const axis_view *v, int64_t modulus) {
  predicate p = {.kind = RESIDUES, .low = modulus, .high = -1, .modulus = modulus};
  for (int64_t x = 0; x < v->extent; ++x) {
    if (v->w->hits[v->axis][x] == 0) continue;
    if (x % modulus < p.low) p.low = x % modulus;
    if (x % modulus > p.high) p.high = x % modulus;
  }
  p.complexity = p.low == p.high ? 2 : p.low == 0 || p.high == modulus - 1 ? 5 : 6;
  return p;
}

static predicate best_predicate(const axis_view *v) {
  predicate best = {.kind = ANY, .admitted = v->positions};
  consider(v, tightest_range(v), &best);
  for (int64_t m = 2; m <= 128 && m < v->extent; m *= 2) consider(v, tightest_residues(v, m), &best);
  if (v->axis == v->w->axes.seq) {
    if (v->w->all_last) consider(v, (predicate){.kind = LAST, .complexity = 3}, &best);
    for (int t = 0; t < N_TILES; ++t)
      if (v->w->all_tail[t])
        consider(v, (predicate){.kind = TAIL, .modulus = tiles[t], .complexity = 3}, &best);
  }
  return best;
}

/* ---- text ---- */

static void put_interval(fa_text *t, const char *what, int64_t low, int64_t high, int64_t first,
                         int64_t last) {
  if (low == high)
    fa_text_put(t, "%s == %lld", what, (long long)low);
  else if (low == first)
    fa_text_put(t, "%s < %lld", what, (long long)high + 1);
  else if (high == last)
    fa_text_put(t, "%s >= %lld", what, (long long)low);
  else
    fa_text_put(t, "%s in %lld..%lld", what, (long long)low, (long long)high);
}

static void put_predicate(fa_text *t, const fa_axes *axes, int axis, const predicate *p) {
  char what[64];
  switch (p->kind) {
  case RANGE:
    put_interval(t, axes->name[axis], p->low, p->high, 0, axes->extent[axis] - 1);
    break;
  case RESIDUES:
    snprintf(what, sizeof what, "%s %% %lld", axes->name[axis], (long long)p->modulus);
    put_interval(t, what, p->low, p->high, 0, p->modulus - 1);
    break;
  case LAST:
    fa_text_put(t, "%s the last of its sequence", axes->name[axis]);
    break;
  case TAIL:
    fa_text_put(t, "%s in the last, partial tile of %lld", axes->name[axis], (long long)p->modulus);
    break;
  default:
    break;
  }
}

static bool is_place(const fa_axes *axes, int axis, const predicate *p) {
  const char *n = axes->name[axis];
  return p->kind == RANGE && p->low == p->high && (strcmp(n, "b") == 0 || strcmp(n, "h") == 0);
}

/* Number of elements that satisfy all predicates at once. */
static int64_t count_in_box(const fa_where *w, const predicate *p) {
  const fa_axes *a = &w->axes;
  int64_t product = 1, tokens = 0;
  for (int axis = 0; axis < a->n; ++axis) {
    if (a->cu != NULL && (axis == 0 || axis == a->seq)) continue;
    int64_t n = 0;
    for (int64_t x = 0; x < a->extent[axis]; ++x) n += holds(&p[axis], x, a->extent[axis]);
    product *= n;
  }
  if (a->cu == NULL) return product;
  for (int64_t b = 0; b < a->n_entries; ++b) {
    const int64_t length = fa_axes_length(a, b);
    for (int64_t x = 0; holds(&p[0], b, a->n_entries) && x < length; ++x)
      tokens += holds(&p[a->seq], x, length);
  }
  return product * tokens;
}

/* Drops predicates that the others imply: they only distract, because only some sequences have partial
 * tiles. */
static void drop_implied(const fa_where *w, predicate *p) {
  for (int axis = 0; axis < w->axes.n; ++axis) {
    const predicate kept = p[axis];
    const int64_t before = count_in_box(w, p);
    p[axis] = (predicate){.kind = ANY};
    if (count_in_box(w, p) != before) p[axis] = kept;
  }
}

static void put_one(const fa_where *w, fa_text *t) {
  fa_text_put(t, "1 element:");
  for (int a = 0; a < w->axes.n; ++a)
    fa_text_put(t, "%s %s %lld", a ? "," : "", w->axes.name[a], (long long)w->first[a]);
}

static void put_sentence(const fa_where *w, const predicate *p, fa_text *t) {
  const fa_axes *a = &w->axes;
  /* An LSE element stands for a whole row. */
  const bool by_row = a->seq == a->n - 1 || (w->width > 1 && w->n_bad == w->n_rows * w->width);
  int n_places = 0, n_others = 0;
  for (int axis = 0; axis < a->n; ++axis) {
    n_places += is_place(a, axis, &p[axis]);
    n_others += p[axis].kind != ANY && !is_place(a, axis, &p[axis]);
  }
  if (n_places + n_others == 0) {
    fa_text_put(t, "%lld of %lld elements, %s", (long long)w->n_bad, (long long)w->n_all,
                w->n_bad > w->n_all / 2 ? "all over" : "nothing in common");
    return;
  }
  fa_text_put(t, "every bad %s %s", by_row ? a->row_noun : "element", n_others ? "has " : "is");
  for (int axis = 0, k = 0; axis < a->n; ++axis) {
    if (p[axis].kind == ANY || is_place(a, axis, &p[axis])) continue;
    fa_text_put(t, "%s", k++ ? ", " : "");
    put_predicate(t, a, axis, &p[axis]);
  }
  for (int axis = 0, k = 0; axis < a->n; ++axis)
    if (is_place(a, axis, &p[axis]))
      fa_text_put(t, "%s%s %lld", k++ ? ", " : " in ", a->name[axis][0] == 'b' ? "batch" : "head",
                  (long long)p[axis].low);
  const int64_t there = count_in_box(w, p);
  if (there == w->n_bad)
    fa_text_put(t, ": all %lld elements there", (long long)there);
  else
    fa_text_put(t, ": %lld of %lld elements there", (long long)w->n_bad, (long long)there);
}

void fa_where_describe(const fa_where *w, fa_verdict *v) {
  const fa_axes *a = &w->axes;
  predicate p[FA_MAX_RANK];
  fa_text t = {v->where, sizeof v->where};
  for (int axis = 0; axis < a->n; ++axis) {
    const axis_view view = view_of(w, axis);
    p[axis] = best_predicate(&view);
    snprintf(v->by_axis[axis].axis, sizeof v->by_axis[axis].axis, "%s", a->name[axis]);
    fa_text note = {v->by_axis[axis].text, sizeof v->by_axis[axis].text};
    put_predicate(&note, a, axis, &p[axis]);
  }
  drop_implied(w, p);
  if (w->n_bad == 1)
    put_one(w, &t);
  else if (w->n_bad == w->n_all)
    fa_text_put(&t, "all %lld elements", (long long)w->n_all);
  else
    put_sentence(w, p, &t);
}
