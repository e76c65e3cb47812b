/* The largest err / bound of each block of an output: one pass over its elements into the cells of all panels, of which
 * the worst are kept. */
#include "ref/compare/map.h"
#include "ref/compare/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CELLS ((int64_t)1 << 26) /* of all panels, while the map is made */

typedef struct maker {
  fa_tensor_id id;
  const fa_want *want;
  const fa_tensor *got;
  fa_poison poison;
  double overflow;
  fa_axes axes;
  int row, column, panel[FA_MAP_PANEL_AXES]; /* logical axes; column -1: there is none */
  int64_t n_panels, row_cells, column_cells;
  uint8_t *cell; /* of all panels */
  fa_map *m;
} maker;

/* ---- axes ---- */

static void choose_axes(maker *x) {
  const fa_axes *a = &x->axes;
  const fa_tensor_axes axes = fa_tensor_describe(x->id)->axes;
  const bool by_token = axes == FA_AXES_TOKENS || axes == FA_AXES_PARTS, lse = !by_token && a->seq >= 0;
  x->row = by_token ? (a->seq >= 0 ? a->seq : 1) : lse ? a->seq : a->n > 1 ? a->n - 2 : 0;
  x->column = lse ? a->seq - 1 : a->n > 1 ? a->n - 1 : -1;
  for (int k = 0; k < a->n; ++k)
    if (k != x->row && k != x->column) x->panel[x->m->n_panel_axes++] = k;
}

static void set_name(char *name, const char *axis) {
  snprintf(name, FA_MAP_AXIS_NAME, "%s", axis);
}

/* The smallest power of two of which `most` cells reach over the extent. */
static int64_t step_of(int64_t extent, int64_t most) {
  int64_t step = 1;
  while (step * most < extent) step *= 2;
  return step;
}

static void measure(maker *x) {
  fa_map *m = x->m;
  const fa_axes *a = &x->axes;
  x->n_panels = 1;
  for (int k = 0; k < m->n_panel_axes; ++k) {
    set_name(m->panel_axis[k], a->name[x->panel[k]]);
    x->n_panels *= m->panel_extent[k] = a->extent[x->panel[k]];
  }
  set_name(m->row_axis, a->name[x->row]);
  set_name(m->column_axis, x->column < 0 ? "" : a->name[x->column]);
  m->rows = a->extent[x->row];
  m->columns = x->column < 0 ? 1 : a->extent[x->column];
  m->row_step = step_of(m->rows, FA_MAP_ROWS);
  m->column_step = step_of(m->columns, FA_MAP_COLUMNS);
  m->row_cells = (int32_t)((m->rows + m->row_step - 1) / m->row_step);
  m->column_cells = (int32_t)((m->columns + m->column_step - 1) / m->column_step);
}

/* ---- elements ---- */

static uint8_t cell_of_ratio(double ratio, bool ok) {
  double step = ratio > 0 ? 1 + round(8 * (log2(ratio) + 8)) : 1;
  if (!(step < FA_MAP_BEYOND)) step = FA_MAP_BEYOND; /* infinity too */
  if (step < 1) step = 1;
  if (!ok && step <= FA_MAP_ONE) step = FA_MAP_ONE + 1;
  return (uint8_t)step;
}

static uint8_t cell_of(const maker *x, int64_t e, const int64_t *index, uint64_t bits, double value) {
  double bound = 0;
  const fa_fit fit =
      fa_compare_fit(x->want, e, x->got->dtype, bits, 1 + FA_DEFAULT_SLACK, x->overflow, &bound);
  if (fit == FA_FIT_UNCOMPARED) return FA_MAP_NOTHING;
  if (fit == FA_FIT_SAME) return 1;
  if (fit == FA_FIT_CLASS)
    return fa_tensor_is_poison(x->got, index, x->poison) ? FA_MAP_UNWRITTEN : FA_MAP_CLASS;
  const double err = fabs(value - x->want->value[e]);
  const bool ok = err <= bound * (1 + FA_DEFAULT_SLACK);
  return cell_of_ratio(err == 0 ? 0 : bound > 0 ? err / bound : INFINITY, ok);
}

static void add_element(maker *x, const int64_t *index, uint8_t value) {
  int64_t at[FA_MAX_RANK + 1], panel = 0;
  fa_axes_coordinates(&x->axes, index, at);
  for (int k = 0; k < x->m->n_panel_axes; ++k) panel = panel * x->m->panel_extent[k] + at[x->panel[k]];
  const int64_t row = at[x->row] / x->m->row_step,
                column = x->column < 0 ? 0 : at[x->column] / x->m->column_step;
  uint8_t *cell = &x->cell[(panel * x->m->row_cells + row) * x->m->column_cells + column];
  if (value > *cell) *cell = value;
}

/* False: out of memory. */
static bool add_elements(maker *x) {
  const fa_want *w = x->want;
  const int64_t width = w->shape[w->rank - 1];
  uint64_t *bits = malloc((size_t)width * sizeof *bits);
  double *value = malloc((size_t)width * sizeof *value);
  const bool ok = bits && value;
  for (int64_t e = 0; ok && e < w->n; e += width) {
    int64_t index[FA_MAX_RANK] = {0};
    fa_tensor_unravel(x->got, e, index);
    fa_compare_load_row(x->id, x->got, x->got->data + fa_tensor_offset(x->got, index), width, bits, value);
    for (int64_t c = 0; c < width; ++c) {
      index[w->rank - 1] = c;
      add_element(x, index, cell_of(x, e + c, index, bits[c], value[c]));
    }
  }
  free(bits);
  free(value);
  return ok;
}

/* ---- which panels are kept ---- */

typedef struct badness {
  int64_t panel, bad; /* cells out of bounds */
  uint8_t peak;
} badness;

static int worse_first(const void *a, const void *b) {
  const badness *x = a, *y = b;
  if (x->peak != y->peak) return x->peak > y->peak ? -1 : 1;
  if (x->bad != y->bad) return x->bad > y->bad ? -1 : 1;
  return x->panel < y->panel ? -1 : 1;
}

static int by_place(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void rank_panels(const maker *x, badness *order) {
  const int64_t n = (int64_t)x->m->row_cells * x->m->column_cells;
  for (int64_t p = 0; p < x->n_panels; ++p) {
    order[p] = (badness){p, 0, 0};
    for (int64_t c = 0; c < n; ++c) {
      const uint8_t cell = x->cell[p * n + c];
      order[p].bad += cell > FA_MAP_ONE;
      if (cell > order[p].peak) order[p].peak = cell;
    }
  }
  qsort(order, (size_t)x->n_panels, sizeof *order, worse_first);
}

static void keep_strip(const maker *x, int64_t panel, uint8_t *strip) {
  const fa_map *m = x->m;
  const uint8_t *cell = &x->cell[panel * m->row_cells * m->column_cells];
  for (int r = 0; r < m->row_cells; ++r, cell += m->column_cells)
    for (int c = 0; c < m->column_cells; ++c)
      if (cell[c] > strip[r]) strip[r] = cell[c];
}

static void keep_worst(maker *x, const badness *order) {
  fa_map *m = x->m;
  const int64_t n = (int64_t)m->row_cells * m->column_cells;
  int64_t strips = FA_MAP_STRIP_CELLS / m->row_cells;
  if (strips > FA_MAP_STRIPS) strips = FA_MAP_STRIPS;
  m->n_panels = (int32_t)(x->n_panels < FA_MAP_PANELS ? x->n_panels : FA_MAP_PANELS);
  m->n_strips = (int32_t)(x->n_panels < strips ? x->n_panels : strips);
  for (int p = 0; p < m->n_panels; ++p) {
    m->panel[p] = order[p].panel;
    memcpy(&m->cell[p * n], &x->cell[order[p].panel * n], (size_t)n);
  }
  for (int s = 0; s < m->n_strips; ++s) m->strip[s] = order[s].panel;
  qsort(m->strip, (size_t)m->n_strips, sizeof m->strip[0], by_place);
  for (int s = 0; s < m->n_strips; ++s) keep_strip(x, m->strip[s], &m->strip_cell[s * m->row_cells]);
}

/* Fills x->m. False: out of memory. */
static bool fill(maker *x) {
  const int64_t n = x->n_panels * x->m->row_cells * x->m->column_cells;
  badness *order = malloc((size_t)x->n_panels * sizeof *order);
  x->cell = calloc((size_t)n, 1);
  const bool ok = order && x->cell && add_elements(x);
  if (ok) {
    rank_panels(x, order);
    keep_worst(x, order);
  }
  free(order);
  free(x->cell);
  return ok;
}

fa_status fa_map_make(fa_tensor_id id, const fa_problem *p, const fa_want *want, const fa_tensor *got,
                      fa_poison poison, fa_map **out, fa_error *err) {
  *out = NULL;
  if (want->n == 0) return FA_OK;
  maker x = {.id = id,
             .want = want,
             .got = got,
             .poison = poison,
             .overflow = fa_overflow_threshold(want, got->dtype),
             .axes = fa_axes_of(id, p, want),
             .m = calloc(1, sizeof *x.m)};
  if (!x.m) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory for its map", fa_tensor_id_name(id));
  choose_axes(&x);
  measure(&x);
  const bool few = x.n_panels <= MOST_CELLS / (x.m->row_cells * x.m->column_cells);
  if (few && fill(&x)) {
    *out = x.m;
    return FA_OK;
  }
  free(x.m);
  return few ? fa_fail(err, FA_ERR_MEMORY, "%s: out of memory for its map", fa_tensor_id_name(id)) : FA_OK;
}

/* ---- reading ---- */

static bool is_text(const char *name) {
  return memchr(name, 0, FA_MAP_AXIS_NAME) != NULL;
}

bool fa_map_is_sound(const fa_map *m) {
  if (m->n_panel_axes < 0 || m->n_panel_axes > FA_MAP_PANEL_AXES || !is_text(m->row_axis) ||
      !is_text(m->column_axis) || m->rows < 1 || m->columns < 1 || m->row_step < 1 || m->column_step < 1 ||
      m->row_cells < 1 || m->row_cells > FA_MAP_ROWS || m->column_cells < 1 ||
      m->column_cells > FA_MAP_COLUMNS || m->n_panels < 0 || m->n_panels > FA_MAP_PANELS || m->n_strips < 0 ||
      m->n_strips > FA_MAP_STRIPS || m->n_strips * m->row_cells > FA_MAP_STRIP_CELLS)
    return false;
  for (int k = 0; k < m->n_panel_axes; ++k)
    if (!is_text(m->panel_axis[k]) || m->panel_extent[k] < 1) return false;
  return true;
}

void fa_map_panel_at(const fa_map *m, int64_t panel, int64_t at[FA_MAP_PANEL_AXES]) {
  for (int k = m->n_panel_axes - 1; k >= 0; --k) {
    at[k] = panel % m->panel_extent[k];
    panel /= m->panel_extent[k];
  }
}

double fa_map_ratio(uint8_t cell) {
  if (cell == FA_MAP_NOTHING) return 0;
  return cell < FA_MAP_BEYOND ? exp2((cell - 1) / 8.0 - 8) : INFINITY;
}
