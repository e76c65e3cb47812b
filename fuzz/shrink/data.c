/* Finds the rows of the inputs that a failure needs, and zeroes all others, by bisection (Zeller &
 * Hildebrandt 2002, with chunks that are removed and never put back). */
#include "fuzz/shrink/reduce.h"

#include <stdlib.h>

bool fa_shrink_chunk(int64_t n, int64_t i, int64_t *from, int64_t *length) {
  for (int64_t size = n; size > 0; size /= 2) {
    const int64_t count = (n + size - 1) / size;
    if (i < count) {
      *from = i * size;
      *length = n - *from < size ? n - *from : size;
      return true;
    }
    i -= count;
  }
  return false;
}

static const fa_tensor_id row_tensors[] = {FA_T_DO, FA_T_V, FA_T_K, FA_T_Q};
enum { N_ROW_TENSORS = 4 };

/* Rows beyond this are not tried one by one. */
#define MAX_CHUNKS 256

static int64_t count_rows(const fa_case *c) {
  (void)c;
  return (int64_t)N_ROW_TENSORS * 2 * MAX_CHUNKS;
}

/* Also zeroes [from, to). Ranges must stay ascending for fa_shrink_mend to join them. False: it is zero
 * already. */
static bool add_range(fa_int32_array *a, int64_t from, int64_t to) {
  int64_t at = 0, covered = 0;
  for (int64_t i = 0; i + 1 < a->n; i += 2) {
    const int64_t lo = a->v[i] > from ? a->v[i] : from, hi = a->v[i + 1] < to ? a->v[i + 1] : to;
    if (hi > lo) covered += hi - lo;
    if (a->v[i] <= from) at = i + 2;
  }
  if (covered == to - from) return false;
  int32_t *v = malloc((size_t)(a->n + 2) * sizeof *v);
  if (!v) return false;
  for (int64_t i = 0; i < a->n; ++i) v[i < at ? i : i + 2] = a->v[i];
  v[at] = (int32_t)from;
  v[at + 1] = (int32_t)to;
  free(a->v);
  *a = (fa_int32_array){a->n + 2, v};
  return true;
}

/* All rows of a tensor, halves, quarters ... */
static bool edit_rows(fa_case *c, int64_t i, const fa_shrink_goal *goal) {
  (void)goal;
  const fa_tensor_id id = row_tensors[i / (2 * MAX_CHUNKS)];
  int64_t from, n;
  i %= 2 * MAX_CHUNKS;
  if (!fa_case_uses(c, id)) return false;
  const fa_fill_info *fill = fa_fill_describe(c->fill[id]);
  if (fill->zero || (id == FA_T_Q && fill->zero_q)) return false; /* already 0 */
  const int64_t rows = fa_case_zero_rows(c, id);
  if (!fa_shrink_chunk(rows, i, &from, &n)) return false;
  if (n == rows) return false; /* that is what the fill "zero" does */
  return add_range(&c->zero[id], from, from + n);
}

const fa_shrink_pass fa_shrink_data[] = {{"rows", count_rows, edit_rows, NULL}, {0}};
