/* Part of rows_body.h: compares outputs with their wants. */

enum { CHECKED = 64 }; /* elements at a time */
typedef struct fa_checked {
  double ratio[CHECKED], odd[CHECKED], part[CHECKED], square[CHECKED], used[CHECKED], diffuse[CHECKED];
} fa_checked;

/* Computes ratios, and whether each element is odd (1 or 0). */
static void check_bounds(const fa_row_check *r, int64_t at, int64_t n, fa_checked *c) {
  const double *restrict got = r->got + at, *restrict want = r->want + at;
  const float *restrict quant = r->quant + at, *restrict accum = r->accum + at;
  const double infinite = INFINITY, accept = r->accept;
  for (int64_t j = 0; j < n; ++j) {
    const double size = fabs(want[j]), err = fabs(got[j] - want[j]), before = (double)quant[j] + accum[j];
    const double reach = size + quant[j] + accum[j], half = fa_element_half_ulp(reach, &r->ulp);
    const double any = reach > 0 ? 1 : 0, bound = (before + half) * any;
    const double in_range = fabs(got[j]) < infinite ? 1 : 0, ranged = size < infinite ? in_range : 0;
    const double ok = err <= bound * accept ? ranged : 0;
    c->odd[j] = 1 - ok;
    c->ratio[j] = ok * err / (bound + (1 - any)); /* no bound: err is 0 where ok is 1 */
    c->used[j] = ok * any;
  }
}

/* As fa_stats_add, for the elements that count. */
static void check_statistics(const fa_row_check *r, int64_t at, int64_t n, fa_checked *c) {
  const double *restrict got = r->got + at, *restrict want = r->want + at;
  const float *restrict quant = r->quant + at, *restrict accum = r->accum + at,
                        *restrict noise = r->noise + at;
  for (int64_t j = 0; j < n; ++j) {
    const fa_statistic_part x =
        fa_element_statistic(c->used[j] > 0, got[j] - want[j], fa_element_half_ulp(want[j], &r->ulp),
                             quant[j], accum[j], noise[j]);
    c->used[j] = x.used ? 1 : 0;
    c->part[j] = x.part;
    c->square[j] = x.square;
    c->diffuse[j] = x.diffuse ? 1 : 0;
  }
}

static double lanes_sum(const double *x, int64_t n) {
  double sum[8] = {0};
  int64_t j = 0;
  for (; j + 8 <= n; j += 8)
    for (int t = 0; t < 8; ++t) sum[t] += x[j + t];
  for (int t = 0; j < n; ++j, ++t) sum[t] += x[j];
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

static void rows_check(fa_row_check *r, int64_t n) {
  fa_checked c;
  r->n_odd = 0;
  r->worst_ratio = 0;
  for (int64_t at = 0; at < n; at += CHECKED) {
    const int64_t m = n - at < CHECKED ? n - at : CHECKED;
    check_bounds(r, at, m, &c);
    r->n_odd += (int64_t)lanes_sum(c.odd, m);
    const double top = rows_max(c.ratio, m);
    r->worst_ratio = top > r->worst_ratio ? top : r->worst_ratio;
    if (!r->noise) continue;
    check_statistics(r, at, m, &c);
    r->n += (int64_t)lanes_sum(c.used, m);
    r->n_diffuse += (int64_t)lanes_sum(c.diffuse, m);
    r->sum += lanes_sum(c.part, m);
    r->sum_squares += lanes_sum(c.square, m);
    for (int64_t j = 0; j < m; ++j) c.square[j] *= c.diffuse[j];
    r->diffuse_squares += lanes_sum(c.square, m);
  }
}

static double rows_widest_bound(const fa_row_check *r, int64_t n) {
  const double *restrict want = r->want;
  const float *restrict quant = r->quant, *restrict accum = r->accum;
  double bound[CHECKED], widest = 0;
  for (int64_t at = 0; at < n; at += CHECKED) {
    const int64_t m = n - at < CHECKED ? n - at : CHECKED;
    for (int64_t j = 0; j < m; ++j) {
      const double size = fabs(want[at + j]), q = quant[at + j], a = accum[at + j], reach = size + q + a;
      const double whole = q + a + fa_element_half_ulp(reach, &r->ulp), some = reach > 0 ? whole : 0;
      bound[j] = size < INFINITY ? some : 0;
    }
    const double top = rows_max(bound, m);
    widest = top > widest ? top : widest;
  }
  return widest;
}
