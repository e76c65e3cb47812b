#include "fuzz/probe/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* fraction: stored fraction bits; lowest: exponent of the smallest normal number. */
static const struct shape {
  const char *name;
  int fraction, lowest;
  double largest;
} shapes[FA_N_FORMATS] = {
    [FA_FORMAT_IO] = {"io", 0, 0, 0},
    [FA_FORMAT_F32] = {"f32", 23, -126, 0x1.fffffep127},
    [FA_FORMAT_3XTF32] = {"3xtf32", 21, -126, 0x1.fffffep127},
    [FA_FORMAT_TF32] = {"tf32", 10, -126, 0x1.ffcp127},
    [FA_FORMAT_F16] = {"f16", 10, -14, 65504},
    [FA_FORMAT_BF16] = {"bf16", 7, -126, 0x1.fep127},
    [FA_FORMAT_E4M3] = {"e4m3", 3, -6, 448},
    [FA_FORMAT_E5M2] = {"e5m2", 2, -14, 57344},
    [FA_FORMAT_INT8] = {"int8", 0, 0, 127},
};

static fa_format definite(fa_format f, fa_dtype io) {
  if (f != FA_FORMAT_IO) return f;
  return io == FA_F16 ? FA_FORMAT_F16 : io == FA_BF16 ? FA_FORMAT_BF16 : FA_FORMAT_F32;
}

int probe_fraction_bits(fa_format f, fa_dtype io) {
  return shapes[definite(f, io)].fraction;
}

fa_format probe_io_format(fa_format f, fa_dtype io) {
  return io != FA_F32 && f == definite(FA_FORMAT_IO, io) ? FA_FORMAT_IO : f;
}

const char *probe_format_name(fa_format f) {
  return shapes[f].name;
}

double probe_round(double x, fa_format f, fa_rounding how, fa_dtype io) {
  const struct shape *s = &shapes[definite(f, io)];
  int exponent = 0;
  if (x == 0 || !isfinite(x) || definite(f, io) == FA_FORMAT_3XTF32) return x;
  frexp(x, &exponent);
  if (--exponent < s->lowest) exponent = s->lowest;
  const double step = s->fraction || s->lowest ? ldexp(1.0, exponent - s->fraction) : 1.0;
  const double y = how == FA_ROUND_NEAREST ? rint(x / step) * step : trunc(x / step) * step;
  return fabs(y) <= s->largest ? y : copysign(s->largest, x);
}

static double rounded(double x, const probe_rounding *r, fa_dtype io) {
  return probe_round(x * r->scale, r->format, r->how, io) / r->scale;
}

static double predict(const probe_sample *s, const probe_rounding *r, fa_dtype io) {
  const double u = r->normalised ? s->normalised_u : s->u, w = r->normalised ? s->normalised_w : s->w;
  return (r->normalised ? s->normalised_factor : s->factor) *
         (s->v1 * rounded(u, r, io) + s->v0 * rounded(w, r, io));
}

static bool fits_as_is(const probe *x, const probe_sample *s, const probe_rounding *r) {
  probe_sample low = *s, high = *s;
  low.u *= 1 - 0x1p-20, low.normalised_u *= 1 - 0x1p-20;
  high.u *= 1 + 0x1p-20, high.normalised_u *= 1 + 0x1p-20;
  const double want = predict(s, r, x->dtype);
  const double sizes = fabs(s->factor) * (fabs(s->v1 * s->u) + fabs(s->v0 * s->w));
  const double loose = fabs(predict(&high, r, x->dtype) - predict(&low, r, x->dtype));
  const double slack =
      1.5 * fa_half_ulp(x->dtype, want) + x->noise * sizes + (loose > 0x1p-18 * sizes ? loose : 0);
  return fabs(s->got - want) <= slack;
}

/* The exponential's own error, f32 sums, and the output's rounding. Where such an error decides which way the operand
 * is rounded, the sample says nothing. A w that is a power of two may have become a little less. */
static bool fits(const probe *x, const probe_sample *s, const probe_rounding *r) {
  probe_sample less = *s;
  less.w *= 1 - 0x1p-20, less.normalised_w *= 1 - 0x1p-20;
  return fits_as_is(x, s, r) || (r->how == FA_ROUND_TRUNCATE && fits_as_is(x, &less, r));
}

static int rows_explained(const probe *x, const probe_sample *s, int n, int n_rows, const probe_rounding *r) {
  bool bad[256] = {false};
  int good = 0;
  for (int i = 0; i < n; ++i)
    if (!fits(x, &s[i], r)) bad[s[i].row] = true;
  for (int i = 0; i < n_rows; ++i) good += !bad[i];
  return good;
}

static const struct trial {
  fa_format format;
  double scale;
} trials[] = {{FA_FORMAT_F32, 1},      {FA_FORMAT_TF32, 1},   {FA_FORMAT_F16, 1},    {FA_FORMAT_BF16, 1},
              {FA_FORMAT_E4M3, 1},     {FA_FORMAT_E4M3, 256}, {FA_FORMAT_E4M3, 448}, {FA_FORMAT_E5M2, 1},
              {FA_FORMAT_E5M2, 57344}, {FA_FORMAT_INT8, 127}};
enum { N_TRIALS = sizeof trials / sizeof *trials };

static bool is_alike(const probe_rounding *a, const probe_rounding *b) {
  return a->format == b->format && (a->how == b->how || a->format == FA_FORMAT_F32);
}

static void consider(probe_match *m, const probe_rounding *r, int rows) {
  if (rows > m->best_rows) {
    if (!is_alike(r, &m->best)) m->other = m->best, m->other_rows = m->best_rows;
    m->best = *r, m->best_rows = rows;
  } else if (rows > m->other_rows && !is_alike(r, &m->best)) {
    m->other = *r, m->other_rows = rows;
  }
}

probe_match probe_explain(const probe *x, const probe_sample *sample, int n, int n_rows, bool normalised) {
  probe_match m = {.rows = n_rows, .best_rows = -1};
  for (int t = 0; t < N_TRIALS; ++t)
    for (int how = 0; how < FA_N_ROUNDINGS; ++how)
      for (int first = 0; first < (normalised ? 2 : 1); ++first) {
        const probe_rounding r = {trials[t].format, (fa_rounding)how, trials[t].scale, first};
        if (trials[t].format != FA_FORMAT_F32 || how == FA_ROUND_NEAREST)
          consider(&m, &r, rows_explained(x, sample, n, n_rows, &r));
      }
  return m;
}

void probe_rounding_text(const probe_rounding *r, fa_dtype io, char *text, size_t size) {
  (void)io;
  int n = snprintf(text, size, "%s", probe_format_name(r->format));
  if (r->scale != 1) n += snprintf(text + n, size - (size_t)n, " x %g", r->scale);
  if (r->how == FA_ROUND_TRUNCATE) snprintf(text + n, size - (size_t)n, ", truncated");
}
