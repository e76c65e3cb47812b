/* Second tier: errors within every element's bound that together are too large, too small or too one-sided
 * for the arithmetic that the kernel claims to use (a truncated instead of a rounded P, say). */
#include "ref/compare/internal.h"

#include <stdio.h>
#include <string.h>

#define MIN_ELEMENTS 4096
#define MIN_ROWS 8
#define MIN_ALIKE 4 /* elements of a row; fewer are those of another row by chance */
#define SURE 4      /* standard errors of a mean */

/* Range of rms and |bias| of err / sigma for correct kernels. Below the lower edge a kernel is more accurate
 * than its profile: the profile or the kernel is not what it claims. Zero: no lower edge. */
typedef struct band {
  double rms_low, rms_high, bias;
} band;

typedef enum output { O, LSE, DQ, DK, DV, DBIAS, N_OUTPUTS } output;

/* scalar: measured on ref-f32 over 8,200 random cases of all generator profiles; extremes over tensors of at
 * least 4096 elements (rms down to: at least 4096 that count for the lower edge):
 *
 *                           O     LSE   DQ    DK    DV    DBIAS
 *   16 bit  rms up to       0.99  0.10  1.08  1.15  1.28  1.01
 *           rms down to     0.71  -     0.89  0.87  0.90  -
 *           |bias| up to    0.17
 *   f32     rms up to       0.07  0.10  0.20  0.11  0.23  0.19
 *
 * f32 has no lower edge, because sigma contains worst-case f32 sums. If logits are small, all P share one
 * mantissa, but sigma takes the mean over mantissas: from sqrt(1/12 / 0.18) = 0.68 to sqrt(1/3 / 0.18) = 1.36
 * is right for dV and for the part of O that comes from P.
 *
 * matrix: not measured on hardware yet. A simulated tensor-core kernel had medians of 0.9 to 1.0, and 1.28 to
 * 1.43 with P truncated or dP rounded. */
static const band scalar_narrow[N_OUTPUTS] = {
    [O] = {0.6, 1.1, 0.35},   [LSE] = {0, 0.5, 0.35},   [DQ] = {0.7, 1.25, 0.35},
    [DK] = {0.7, 1.25, 0.35}, [DV] = {0.6, 1.38, 0.35}, [DBIAS] = {0, 1.1, 0.35}};
static const band scalar_f32[N_OUTPUTS] = {
    [O] = {0, 0.5, 0.35},  [LSE] = {0, 0.5, 0.35}, [DQ] = {0, 0.5, 0.35},
    [DK] = {0, 0.5, 0.35}, [DV] = {0, 0.6, 0.35},  [DBIAS] = {0, 0.5, 0.35}};
static const band matrix[N_OUTPUTS] = {
    [O] = {0.5, 1.25, 0.35},  [LSE] = {0, 1, 0.5},      [DQ] = {0.5, 1.25, 0.35},
    [DK] = {0.5, 1.25, 0.35}, [DV] = {0.5, 1.38, 0.35}, [DBIAS] = {0, 1.2, 0.35}};
static const band unknown = {0, 1.5, 0.5};

static output output_of(fa_tensor_id id) {
  return id == FA_T_O     ? O
         : id == FA_T_LSE ? LSE
         : id == FA_T_DQ  ? DQ
         : id == FA_T_DK  ? DK
         : id == FA_T_DV  ? DV
                          : DBIAS;
}

/* Nothing in it but what the bands were measured with: sums in f32, and P and dS rounded to nearest. */
static bool is_plain(const fa_profile *p) {
  bool plain = p->u_scores == 0 && p->u_dp == 0 && p->truncated_p == 0 && p->truncated_ds == 0 &&
               p->u_operand < 0x1p-20 && p->eps_exp < 0x1p-20 && p->u_partials == 0 && p->u_p <= 0x1p-8;
  for (int i = 0; i < FA_N_PRODUCTS; ++i)
    plain &= p->operand_step[i] == 0 &&
             (p->accumulator[i] == FA_ACCUMULATOR_F32 || p->accumulator[i] == FA_ACCUMULATOR_MMA);
  return plain;
}

/* Foreign: the edges of tensor-core kernels where P is rounded like theirs. One-sided roundings have no bias to
 * speak of, and may be twice as large. */
static band foreign_band(const fa_profile *p, output at) {
  const bool narrow = at == DQ || at == DK ? p->u_ds > 0 : p->u_p > 0;
  band b = is_plain(p) && narrow ? matrix[at] : unknown;
  if (narrow) b.rms_low = matrix[at].rms_low;
  if (p->u_scores > 0 || p->u_dp > 0) b.rms_low = 0;                  /* they are most of the noise */
  if (p->descales && p->operand[FA_PRODUCT_PV] > 0x1p-20) b.bias = 3; /* all rows share the roundings of V */
  if (p->truncated_p > 0 || p->truncated_ds > 0 || p->operands_cut) b = (band){0, 3, 3};
  return b;
}

static band own_band(const fa_profile *profile, output at) {
  band b = unknown;
  if (profile == NULL || profile->name == NULL) return b;
  const bool is_matrix = strncmp(profile->name, "mma-", 4) == 0,
             is_scalar = strncmp(profile->name, "simt-", 5) == 0;
  if (is_matrix && profile->u_p > 0) b = matrix[at];
  if (is_scalar) b = profile->u_p > 0 ? scalar_narrow[at] : scalar_f32[at];
  return b;
}

/* Narrow sums are always cut toward 0. What those of scores lose is known but for a part: no error of an LSE is unlikely within its
 * bound. Those of P V have one sign where V has, and are most of O's error unless P has 8 bits. */
static band band_of_cut_sums(const fa_profile *p, fa_tensor_id id, band b) {
  if (p == NULL) return b;
  if (id == FA_T_LSE && p->accumulator[FA_PRODUCT_QK] == FA_ACCUMULATOR_NARROW) return (band){0, 4, 4};
  if (id == FA_T_O && p->accumulator[FA_PRODUCT_PV] == FA_ACCUMULATOR_NARROW && p->u_p < 0x1p-6) b.bias = 3;
  return b;
}

static void mean_add(fa_stats_mean *m, int64_t n, double sum) {
  if (n == 0) return;
  const double count = (double)n;
  ++m->n_rows;
  m->n += n;
  m->sum += sum;
  m->sum_2 += sum * sum;
  m->sum_n += sum * count;
  m->n_2 += count * count;
}

/* True: the same numbers were there before, and as many of them counted: so it does not matter in which order rows come.
 * (Another row may have taken the place since; then they count twice.) */
static bool is_again(fa_stats *s, const fa_stats_row *row) {
  if (row->print == 0 || row->n < MIN_ALIKE) return false;
  const uint64_t print = row->print ^ (uint64_t)row->n * 0x9e3779b97f4a7c15u;
  uint64_t *seen = &s->seen[print >> 32 & (FA_STATS_SEEN - 1)];
  const bool again = *seen == print;
  *seen = print;
  return again;
}

void fa_stats_add_row(fa_stats *s, const fa_stats_row *row) {
  if (row->n == 0 || is_again(s, row)) return;
  mean_add(&s->error, row->n, row->sum);
  mean_add(&s->square, row->n, row->sum_squares);
  mean_add(&s->diffuse, row->n_diffuse, row->diffuse_squares);
}

/* How far the mean may be from the mean over ever more rows, estimated from the differences between rows,
 * because the elements of a row are dependent. */
static double mean_uncertainty(const fa_stats_mean *m) {
  const double rows = (double)m->n_rows, mean = m->sum / (double)m->n;
  const double squares = m->sum_2 - 2 * mean * m->sum_n + mean * mean * m->n_2;
  return SURE * sqrt(fmax(squares, 0) * rows / (rows - 1)) / (double)m->n;
}

static bool enough(const fa_stats_mean *m) {
  return m->n >= MIN_ELEMENTS && m->n_rows >= MIN_ROWS;
}

static double mean_of(const fa_stats_mean *m) {
  return m->n > 0 ? m->sum / (double)m->n : 0;
}

/* What a foreign subject does better than it says. */
static void describe_finer(const fa_stats *s, const band *b, fa_verdict *v) {
  const bool ds = v->id == FA_T_DQ || v->id == FA_T_DK;
  v->finer = true;
  snprintf(v->finer_why, sizeof v->finer_why,
           "rms %.3g of sigma is below %g: %s is rounded less than its arithmetic says; \"%s\": \"f32\" may "
           "fit, as in "
           "torch-math",
           sqrt(mean_of(&s->diffuse)), b->rms_low, ds ? "dS" : "P", ds ? "ds" : "p");
}

/* The band that is said is the one that was judged by: with what chance may add. */
static void describe_bad(const fa_stats *s, const band *b, fa_statistic which, fa_verdict *v) {
  const fa_stats_mean *m = which == FA_STATISTIC_BIAS      ? &s->error
                           : which == FA_STATISTIC_RMS_LOW ? &s->diffuse
                                                           : &s->square;
  const double chance = mean_uncertainty(m);
  v->stat_which = which;
  v->stat_count = m->n;
  v->stat_value = which == FA_STATISTIC_BIAS ? mean_of(m) : sqrt(mean_of(m));
  v->stat_high = which == FA_STATISTIC_BIAS ? b->bias + chance : sqrt(b->rms_high * b->rms_high + chance);
  v->stat_low = which == FA_STATISTIC_BIAS ? -v->stat_high : b->rms_low;
  if (which == FA_STATISTIC_RMS_LOW) v->stat_low = sqrt(fmax(b->rms_low * b->rms_low - chance, 0));
}

void fa_stats_judge(const fa_stats *s, const fa_problem *p, const fa_compare_options *opt, fa_verdict *v) {
  v->n_stat = s->error.n;
  v->rms = sqrt(mean_of(&s->square));
  v->bias = mean_of(&s->error);
  if (!opt->generic || !enough(&s->error)) return;
  const bool foreign = opt->foreign && opt->profile;
  band b = foreign ? foreign_band(opt->profile, output_of(v->id)) : own_band(opt->profile, output_of(v->id));
  if (opt->doubt > 0) b = (band){b.rms_low * 1.01, b.rms_high * 0.99, b.bias * 0.99};
  /* No profile says whether a kernel rounds P / (1 - p), or P, which is exact in a row with one key. */
  if (v->id == FA_T_DV && p->dropout.p > 0) b.rms_low = 0;
  /* A key alone in its split has P = 1, which is exact, and the reference does not know where splits
   * begin. */
  if (v->id == FA_T_O && opt->profile && opt->profile->max_splits > 1) b.rms_low = 0;
  /* V's roundings are in sigma, and are nothing where a descale is a power of two. */
  if (v->id == FA_T_O && opt->profile && opt->profile->descales &&
      opt->profile->operand[FA_PRODUCT_PV] > 0x1p-20)
    b.rms_low = 0;
  /* In 8 bits the rounding of O is most of sigma, and rows whose values are alike round alike. */
  if (v->id == FA_T_O && fa_dtype_is_float8(v->dtype)) b = (band){0, fmax(b.rms_high, 2), 3};
  b = band_of_cut_sums(opt->profile, v->id, b);
  const double diffuse =
      enough(&s->diffuse) ? mean_of(&s->diffuse) + mean_uncertainty(&s->diffuse) : INFINITY;
  const bool not_high = mean_of(&s->square) - mean_uncertainty(&s->square) <= b.rms_high * b.rms_high,
             not_low = diffuse >= b.rms_low * b.rms_low,
             centred = fabs(v->bias) - mean_uncertainty(&s->error) <= b.bias;
  v->stat_bad = !(not_high && (not_low || foreign) && centred);
  if (!not_low && foreign) describe_finer(s, &b, v);
  if (foreign) b.rms_low = 0; /* to be finer is no fault */
  if (v->stat_bad && !not_high) describe_bad(s, &b, FA_STATISTIC_RMS_HIGH, v);
  if (v->stat_bad && not_high) describe_bad(s, &b, centred ? FA_STATISTIC_RMS_LOW : FA_STATISTIC_BIAS, v);
}
