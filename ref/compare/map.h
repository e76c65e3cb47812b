/* Where an output is wrong, as a picture: the largest err / bound of each small block of rows and columns. */
#ifndef FA_REF_COMPARE_MAP_H
#define FA_REF_COMPARE_MAP_H

#include "cases/vocabulary/problem.h"
#include "ref/engine/want.h"

/* A panel has a row axis and a column axis: for O and its like one sequence and head, rows by columns; for the LSE one
 * sequence, rows by heads. Its cells are blocks of row_step x column_step elements; both steps are powers of two, so
 * that the borders of a kernel's tiles fall between cells. A strip is the largest value of each row of cells. */
#define FA_MAP_ROWS 64
#define FA_MAP_COLUMNS 32
#define FA_MAP_PANELS 8         /* the worst ones, worst first */
#define FA_MAP_STRIPS 256       /* as many as fit, the worst ones in order of their place */
#define FA_MAP_STRIP_CELLS 8192 /* of all strips together */
#define FA_MAP_PANEL_AXES 3
#define FA_MAP_AXIS_NAME 8

/* A cell: 0 nothing in it was compared; 1 .. 249 the ratio 2^((cell - 1) / 8 - 8), the first also for less, and all above
 * FA_MAP_ONE are out of bounds; else one of these, which outrank every ratio. */
enum {
  FA_MAP_NOTHING = 0,
  FA_MAP_ONE = 65,
  FA_MAP_BEYOND = 250,   /* more than 2^23, or wrong where nothing may be */
  FA_MAP_CLASS = 253,    /* NaN or infinity where it must not be, or none where it must */
  FA_MAP_UNWRITTEN = 254 /* still the poison from before the call */
};

typedef struct fa_map {
  int n_panel_axes;
  char panel_axis[FA_MAP_PANEL_AXES][FA_MAP_AXIS_NAME], row_axis[FA_MAP_AXIS_NAME],
      column_axis[FA_MAP_AXIS_NAME];
  int64_t panel_extent[FA_MAP_PANEL_AXES]; /* their product: how many panels the tensor has */
  int64_t rows, columns, row_step, column_step;
  int32_t row_cells, column_cells;                            /* of a panel */
  int32_t n_panels, n_strips;                                 /* kept */
  int64_t panel[FA_MAP_PANELS], strip[FA_MAP_STRIPS];         /* their numbers: row-major over panel_extent */
  uint8_t cell[FA_MAP_PANELS * FA_MAP_ROWS * FA_MAP_COLUMNS]; /* panel after panel */
  uint8_t strip_cell[FA_MAP_STRIP_CELLS];                     /* strip after strip, row_cells each */
} fa_map;

/* Makes the map of a tensor that fa_compare_tensor has judged, from the same arguments (slack: the default). *out is
 * malloc'd; NULL after FA_OK: the tensor has more panels than can be looked at. It reads every element once. */
fa_status fa_map_make(fa_tensor_id id, const fa_problem *p, const fa_want *want, const fa_tensor *got,
                      fa_poison poison, fa_map **out, fa_error *err);
/* False: no map that fa_map_make could have made; reading it would go out of its arrays. */
bool fa_map_is_sound(const fa_map *m);
/* The coordinates of a panel on the panel axes. */
void fa_map_panel_at(const fa_map *m, int64_t panel, int64_t at[FA_MAP_PANEL_AXES]);
/* The cell's value as a ratio; infinity for what is no ratio, 0 for FA_MAP_NOTHING. */
double fa_map_ratio(uint8_t cell);

#endif
