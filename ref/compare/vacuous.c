/* Could the check have failed at all? Trivially wrong answers are compared against the same bounds. If one of
 * them passes everywhere and is not in fact right, the case tests nothing. */
#include "cases/tensors/descale.h"
#include "cases/tensors/nibbles.h"
#include "ref/compare/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct trial {
  const fa_problem *p;
  const fa_tensors *in;
  const fa_want *want;
  const fa_profile *profile;
  fa_tensor_id id;
  double accept, relative; /* relative: what the formats cannot resolve, times the row's scale */
  double logits, floor;    /* additional tolerance: from the logits, from underflow; < 0 = not computed yet */
  bool differs;            /* the candidate is not the right answer */
  bool no_memory;          /* for something of it: nothing that was found counts */
} trial;

/* ---- what counts as a different answer ---- */

/* Maximum and root mean square of an input's elements; poison in elements that are never read is skipped. */
typedef struct sizes {
  double max, rms;
} sizes;

/* A row of numbers of 4 bits; index: its first byte. */
static void load_four_bits(const trial *of, fa_tensor_id id, const int64_t *index, int64_t n, double *x) {
  const fa_tensor *t = &of->in->t[id], *scales = &of->in->t[fa_tensor_scales_of(id)];
  fa_nibbles_load(t->data + fa_tensor_offset(t, index), scales->data + fa_tensor_offset(scales, index), n, x);
}

static sizes sizes_of(trial *of, fa_tensor_id id) {
  const fa_tensor *t = &of->in->t[id];
  const bool four = fa_tensor_is_nibbles(of->p, id);
  const int64_t n = fa_tensor_count(t), stored = n > 0 ? t->shape[t->rank - 1] : 1,
                width = four ? 2 * stored : stored;
  uint64_t *bits = malloc((size_t)width * sizeof *bits);
  double *x = malloc((size_t)width * sizeof *x), sum = 0, used = 0;
  sizes s = {0, 0};
  of->no_memory |= !bits || !x;
  for (int64_t e = 0; bits != NULL && x != NULL && e < n; e += stored) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(t, e, index);
    if (four)
      load_four_bits(of, id, index, width, x);
    else
      fa_compare_load_row(FA_T_Q, t, t->data + fa_tensor_offset(t, index), width, bits, x);
    for (int64_t c = 0; c < width; ++c) {
      if (!(fabs(x[c]) <= 0x1p127)) continue;
      s.max = fmax(s.max, fabs(x[c]));
      sum += x[c] * x[c];
      ++used;
    }
  }
  if (used > 0) s.rms = sqrt(sum / used);
  const double descale = fa_descale_largest(of->p, of->in, id);
  s.rms *= descale, s.max *= descale;
  free(bits);
  free(x);
  return s;
}

/* The largest factor of P (dP - delta) on its way to this output. */
static double steepest(const trial *t) {
  return t->id == FA_T_DQ || t->id == FA_T_DK ? t->want->steepest : 1;
}

/* What f32 leaves of dP - delta where the two cancel (with one visible key, exactly): sums of Dv products
 * each. */
static double cancelled(trial *t) {
  const double dv = (double)t->p->head_dim_v, rounds = fmin(dv, 4 * sqrt(dv));
  return 0x1p-24 * steepest(t) *
         (rounds * dv * sizes_of(t, FA_T_DO).rms * sizes_of(t, FA_T_V).rms + 4 * sizes_of(t, FA_T_DLSE).rms);
}

/* Rough magnitude of the logits: f32 rounds them to 2^-24 of it, which is a relative error of every P. */
static double logit_size(trial *t) {
  const sizes q = sizes_of(t, FA_T_Q), k = sizes_of(t, FA_T_K);
  const double size = fabs(t->p->scale) * (q.max * k.max + 4 * sqrt((double)t->p->head_dim) * q.rms * k.rms);
  return t->p->softcap > 0 ? fmin(size, t->p->softcap) : size;
}

/* In some kernels the operands of GEMMs also have an absolute error; dP passes it on, times P, to dS. */
static double operand_floor(trial *t, double keys, double rows) {
  const fa_problem *p = t->p;
  const double each = t->profile != NULL ? t->profile->floor_operand / (1 - p->dropout.p) : 0;
  if (t->id == FA_T_O) return each;
  if (t->id == FA_T_DV) return rows * each;
  if (each == 0 || !fa_tensor_describe(t->id)->gradient) return 0;
  const double d_o = sizes_of(t, FA_T_DO).max, v = sizes_of(t, FA_T_V).max;
  const double dv = (double)p->head_dim_v, by = steepest(t);
  const double lost = by * each * dv * (d_o + v), ds = by * 3 * each * dv * d_o * v;
  if (t->id == FA_T_DQ) return fabs(p->scale) * (lost * sizes_of(t, FA_T_K).max + keys * ds);
  if (t->id == FA_T_DK) return fabs(p->scale) * rows * (lost * sizes_of(t, FA_T_Q).max + ds);
  return lost * rows * (double)p->batch;
}

/* P and dS below the normal range of their type each have an absolute error, and so has the result in its
 * type. */
static double underflow_floor(trial *t) {
  const fa_problem *p = t->p;
  const double keys = (double)p->seqlen_k, rows = (double)(p->seqlen_q * (p->heads_q / p->heads_kv));
  const double each = t->profile != NULL         ? t->profile->floor_p
                      : t->want->dtype == FA_F16 ? 0x1p-25
                                                 : 0x1p-125;
  double sum = each;
  if (t->id == FA_T_O) sum = keys * each * sizes_of(t, FA_T_V).max / (1 - p->dropout.p);
  if (t->id == FA_T_DV) sum = rows * each * sizes_of(t, FA_T_DO).max / (1 - p->dropout.p);
  /* P sums to 1 over keys, and to about rows / keys over rows. */
  if (t->id == FA_T_DQ) {
    sum = (keys * each + cancelled(t)) * sizes_of(t, FA_T_K).max * fabs(p->scale);
    if (t->profile != NULL)
      sum += (keys / t->profile->block_n + 2) * fabs(p->scale) * t->profile->floor_dq; /* added in memory */
  }
  if (t->id == FA_T_DK)
    sum = (rows * each + (1 + rows / keys) * cancelled(t)) * sizes_of(t, FA_T_Q).max * fabs(p->scale);
  if (t->profile != NULL && t->profile->dkv_atomic && (t->id == FA_T_DK || t->id == FA_T_DV))
    sum += (double)(p->heads_q / p->heads_kv) * (rows / t->profile->block_m + 3) * t->profile->floor_dkv *
           (t->id == FA_T_DK ? fabs(p->scale) : 1 / (1 - p->dropout.p));
  sum += operand_floor(t, keys, rows);
  if (fa_tensor_describe(t->id)->axes == FA_AXES_BIAS) {
    const double elements = (double)(t->want->shape[0] * t->want->shape[1] * t->want->shape[2]);
    sum = (double)(p->batch * p->heads_q * p->seqlen_q) / elements * (each + cancelled(t));
  }
  if (t->id == FA_T_O) sum *= fa_o_scale(p, t->in);
  return 4 * (sum + fa_dtype_min_subnormal(t->want->dtype));
}

static double relative_resolution(const fa_want *want, const fa_profile *profile) {
  double u = fmax(fa_dtype_unit_roundoff(want->dtype), 0x1p-12);
  if (profile != NULL) u = fmax(u, fmax(profile->u_operand, fmax(profile->u_p, profile->u_ds)));
  return 4 * u;
}

static void find_tolerance(trial *t) {
  t->floor = underflow_floor(t);
  t->logits = 0x1p-22 * logit_size(t);
}

bool fa_vacuous_tolerance_of(const fa_problem *p, const fa_tensors *in, fa_tensor_id id, const fa_want *want,
                             const fa_profile *profile, bool whole, fa_vacuous_tolerance *out) {
  trial t = {.p = p, .in = in, .want = want, .profile = profile, .id = id};
  if (whole) find_tolerance(&t);
  *out = (fa_vacuous_tolerance){relative_resolution(want, profile) + t.logits, t.floor};
  return !t.no_memory;
}

/* Tests one row of a candidate. False: the check would have caught it. */
static bool row_passes(trial *t, int64_t row, const double *candidate) {
  const int64_t width = t->want->shape[t->want->rank - 1];
  for (int64_t c = 0; c < width; ++c) {
    const int64_t e = row * width + c;
    const double want = t->want->value[e];
    const fa_class want_class = fa_class_of_f64(want), class = fa_class_of_f64(candidate[c]);
    if (want_class == FA_CLASS_NAN) continue;
    if (want_class != class) return false;
    if (class != FA_CLASS_FINITE) continue;
    const double err = fabs(candidate[c] - want);
    const bool inside = err <= fa_want_bound(t->want, e) * t->accept;
    if (!inside) return false;
    if (t->differs || err <= t->relative * t->want->scale[row]) continue;
    if (t->floor < 0) find_tolerance(t);
    t->differs = err > (t->relative + t->logits) * t->want->scale[row] + t->floor;
  }
  return true;
}

/* ---- all zeros; the rows of a neighbour on some axis ---- */

static bool zeros_pass(trial *t) {
  const int64_t width = t->want->shape[t->want->rank - 1], rows = fa_want_spans(t->want);
  double *zeros = calloc((size_t)width, sizeof *zeros);
  t->differs = false;
  bool passes = zeros != NULL;
  t->no_memory |= !zeros;
  for (int64_t n = 0; passes && n < rows; ++n)
    passes = row_passes(t, fa_want_span_at(t->want, n).first / width, zeros);
  free(zeros);
  return passes && t->differs;
}

static bool neighbour_passes(trial *t, int axis) {
  const fa_want *w = t->want;
  const int64_t width = w->shape[w->rank - 1], n = w->shape[axis];
  int64_t stride = 1; /* in rows */
  for (int a = w->rank - 2; a > axis; --a) stride *= w->shape[a];
  bool passes = n > 1;
  t->differs = false;
  for (int64_t row = 0; passes && row < w->n / width; ++row) {
    const bool is_last = row / stride % n == n - 1;
    passes = row_passes(t, row, w->value + (is_last ? row - (n - 1) * stride : row + stride) * width);
  }
  return passes && t->differs;
}

static int head_axis(fa_tensor_id id, const fa_want *w) {
  return fa_tensor_describe(id)->axes == FA_AXES_BIAS ? 1 : w->rank - 2;
}

static bool has_batch_axis(fa_tensor_id id, const fa_want *w) {
  if (fa_tensor_has_parts(id)) return false; /* the first axis is the part */
  return w->rank == (fa_tensor_describe(id)->axes == FA_AXES_ROWS ? 3 : 4);
}

/* ---- mean of the visible V (dropout and block lists ignored) ---- */

typedef struct keys {
  int64_t first, n; /* slot or token of the sequence's key 0; number of keys */
  int64_t n_cached; /* slots from this one on come from v_new */
} keys;

static keys keys_of(const fa_problem *p, int64_t b) {
  keys k = {.first = p->leftpad_k.n ? p->leftpad_k.v[b] : 0, .n_cached = INT64_MAX};
  int64_t length = p->cu_seqlens_k.n ? p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b] : p->seqlen_k;
  if (p->seqused_k.n && p->seqused_k.v[b] < length) length = p->seqused_k.v[b];
  if (p->family == FA_KVCACHE) {
    k.n_cached = p->kvcache.len.n ? p->kvcache.len.v[b] : p->seqlen_k - p->kvcache.n_new;
    length = k.n_cached + p->kvcache.n_new;
  }
  k.n = length > k.first ? length - k.first : 0;
  return k;
}

/* Of value j of a sequence as the call's tensors have it: which tensor, and the row in it. */
static fa_tensor_id place_of(const trial *t, const keys *k, int64_t b, int64_t h, int64_t j, int64_t *index) {
  const fa_problem *p = t->p;
  const int64_t s = k->first + j, page = p->kvcache.page_size;
  const bool packed = p->cu_seqlens_k.n > 0, fresh = p->family == FA_KVCACHE && s >= k->n_cached;
  index[0] = b, index[1] = fresh ? s - k->n_cached : s, index[2] = h;
  if (packed) index[0] = p->cu_seqlens_k.v[b] + s, index[1] = h;
  if (fresh) return FA_T_V_NEW;
  if (page > 0) {
    index[0] = (int64_t)fa_tensor_get(&t->in->t[FA_T_BLOCK_TABLE], (int64_t[FA_MAX_RANK]){b, s / page});
    index[1] = s % page;
  } else if (p->kvcache.batch_idx.n) {
    index[0] = p->kvcache.batch_idx.v[b];
  }
  return FA_T_V;
}

static void value_at(const trial *t, const keys *k, int64_t b, int64_t h, int64_t j, double *value) {
  int64_t index[FA_MAX_RANK] = {0};
  const fa_tensor_id id = place_of(t, k, b, h, j, index);
  const fa_tensor *v = &t->in->t[id];
  const double descale = fa_descale_of_row(t->p, t->in, id, b, h, index);
  const bool four = fa_tensor_is_nibbles(t->p, id);
  if (four) load_four_bits(t, id, index, t->p->head_dim_v, value);
  for (int64_t c = 0; c < t->p->head_dim_v; ++c) {
    index[v->rank - 1] = four ? 0 : c;
    value[c] = (four ? value[c] : fa_tensor_get(v, index)) * descale;
  }
}

/* [n + 1][Dv]: sums over the keys before each. NULL: out of memory. */
static double *prefix_sums(const trial *t, const keys *k, int64_t b, int64_t h) {
  const int64_t dv = t->p->head_dim_v;
  double *sum = calloc((size_t)((k->n + 1) * dv), sizeof *sum);
  for (int64_t j = 0; sum != NULL && j < k->n; ++j) {
    double *row = sum + (j + 1) * dv;
    value_at(t, k, b, h, j, row);
    for (int64_t c = 0; c < dv; ++c) row[c] += row[c - dv];
  }
  return sum;
}

static void visible_range(const fa_problem *p, int64_t i, int64_t sq, int64_t sk, int64_t *low,
                          int64_t *high) {
  const int64_t at = i + (p->mask.align == FA_ALIGN_TOP_LEFT ? 0 : sk - sq);
  const fa_window window = fa_mask_window(&p->mask);
  *low = 0;
  *high = sk;
  if (window.left >= 0 && at - window.left > *low) *low = at - window.left;
  const int64_t chunk = fa_mask_chunk(&p->mask), begin = chunk > 0 ? fa_mask_chunk_begin(chunk, at) : 0;
  if (begin > *low) *low = begin;
  if (window.right >= 0 && at + window.right + 1 < *high) *high = at + window.right + 1;
}

/* A row that must be exactly 0 says nothing about means. */
static bool is_exact_zero(const fa_want *w, int64_t row) {
  const int64_t width = w->shape[w->rank - 1];
  for (int64_t e = row * width; e < (row + 1) * width; ++e)
    if (w->value[e] != 0 || fa_want_bound(w, e) != 0) return false;
  return true;
}

/* What O of this value would be. */
static double stored(const trial *t, double o) {
  const double most = t->want->saturates ? fa_dtype_max(t->want->dtype) : INFINITY;
  return fmin(fmax(o * fa_o_scale(t->p, t->in), -most), most);
}

static bool mean_passes_head(trial *t, int64_t b, int64_t h, const keys *k, const double *sum) {
  const fa_problem *p = t->p;
  const bool packed = p->cu_seqlens_q.n > 0;
  const int64_t first = packed ? p->cu_seqlens_q.v[b] : b * p->seqlen_q, dv = p->head_dim_v;
  const int64_t sq = packed ? p->cu_seqlens_q.v[b + 1] - first : p->seqlen_q;
  double *mean = malloc((size_t)dv * sizeof *mean);
  bool passes = mean != NULL;
  t->no_memory |= !mean;
  for (int64_t i = 0; passes && i < sq; ++i) {
    const int64_t row = (first + i) * p->heads_q + h;
    int64_t low, high;
    if (is_exact_zero(t->want, row)) continue;
    visible_range(p, i, sq, k->n, &low, &high);
    for (int64_t c = 0; c < dv; ++c)
      mean[c] = stored(t, high > low ? (sum[high * dv + c] - sum[low * dv + c]) / (double)(high - low) : 0);
    passes = row_passes(t, row, mean);
  }
  free(mean);
  return passes;
}

static bool mean_passes(trial *t) {
  const fa_problem *p = t->p;
  const int64_t group = p->heads_q / p->heads_kv;
  bool passes = true;
  t->differs = false;
  for (int64_t b = 0; passes && b < p->batch; ++b) {
    const keys k = keys_of(p, b);
    for (int64_t hk = 0; passes && hk < p->heads_kv; ++hk) {
      double *sum = prefix_sums(t, &k, b, hk);
      passes = sum != NULL;
      t->no_memory |= !sum;
      for (int64_t h = hk * group; passes && h < (hk + 1) * group; ++h)
        passes = mean_passes_head(t, b, h, &k, sum);
      free(sum);
    }
  }
  return passes && t->differs;
}

/* ---- the verdict ---- */

bool fa_vacuous_judge(const fa_problem *p, const fa_tensors *in, const fa_want *want,
                      const fa_compare_options *opt, fa_verdict *v) {
  if (fa_tensor_describe(v->id)->direction == FA_TENSOR_UPDATED)
    return true; /* copies of the input: their bound is half an ulp */
  trial t = {.p = p,
             .in = in,
             .want = want,
             .profile = opt->profile,
             .id = v->id,
             .accept = 1 + (opt->slack > 0 ? opt->slack : FA_DEFAULT_SLACK),
             .relative = relative_resolution(want, opt->profile),
             .floor = -1};
  const char *name = "";
  const fa_tensor_axes axes = fa_tensor_describe(v->id)->axes;
  if (axes != FA_AXES_ROWS && axes != FA_AXES_PART_ROWS && zeros_pass(&t))
    name = "all zeros";
  else if (want->span) /* the rows beside those of a sample are not known */
    name = "";
  else if (v->id == FA_T_O && p->family != FA_MERGE && mean_passes(&t))
    name = "the mean of the visible V";
  else if (axes == FA_AXES_OWN || /* its axes mean whatever the expression makes of them */
           axes == FA_AXES_HEADS || axes == FA_AXES_ONE) /* a single row */
    name = "";
  else if (neighbour_passes(&t, head_axis(v->id, want)))
    name = "another head's rows";
  else if (has_batch_axis(v->id, want) && neighbour_passes(&t, 0))
    name = "another batch entry's rows";
  if (!t.no_memory) snprintf(v->vacuous, sizeof v->vacuous, "%s", name);
  return !t.no_memory;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double fa_median(double *x, int64_t n) {
  if (n == 0) return 0;
  qsort(x, (size_t)n, sizeof *x, ascending);
  return x[n / 2];
}

double fa_tightness(const fa_want *w) {
  enum { SAMPLE = 1024 }; /* rows; enough for a median */
  double ratio[SAMPLE];
  const int64_t width = w->shape[w->rank - 1], rows = fa_want_spans(w), n = rows < SAMPLE ? rows : SAMPLE;
  int64_t used = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t row = fa_want_span_at(w, k * rows / n).first / width;
    fa_row_check r;
    if (!(w->scale[row] > 0) || !fa_compare_row(w, row * width, &r)) continue;
    ratio[used++] = fa_rows_best()->widest_bound(&r, width) / w->scale[row];
  }
  return fa_median(ratio, used);
}
