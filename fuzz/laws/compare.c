/* Outputs of two runs, element by element. */
#include "fuzz/judging/judge.h"
#include "fuzz/judging/run_checks.h"
#include "fuzz/laws/parts.h"
#include "report/text/line.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fa_law_break(fa_law_work *w, fa_tensor_id id, bool nan, const char *format, ...) {
  char text[sizeof w->r->reason];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  w->r->law_broken |= FA_TENSOR_BIT(id);
  if (nan) w->r->law_nan |= FA_TENSOR_BIT(id);
  fa_result_raise(w->r, FA_FAIL, "%s: %s: %s", fa_law_describe(w->c->law)->name, fa_tensor_id_name(id), text);
}

void fa_law_mismatch(fa_law_work *w, fa_tensor_id id, int64_t n_bad, int64_t n, const fa_tensor *t,
                     const int64_t *index, double got, double want, double bound) {
  char at[128], allowed[64] = "the same bits";
  fa_index_text(index, t->rank, at, sizeof at);
  if (bound >= 0) snprintf(allowed, sizeof allowed, "within %.3g", bound);
  fa_law_break(w, id, isnan(got),
               "%lld of %lld elements break it, the first %s: got %.9g, by the law %.9g, %s",
               (long long)n_bad, (long long)n, at, got, want, allowed);
}

typedef struct pair {
  double got, want, bound; /* bound < 0: compare bits */
  bool good, compared;
} pair;

/* Below f16's normal range doubling costs a rounding. */
static double underflow_slack(fa_dtype t, double smaller, double factor) {
  return t == FA_F16 && smaller < 0x1p-13 ? 2 * fa_dtype_min_subnormal(t) * fmax(1, factor) : 0;
}

/* Products of such small numbers underflow in f32 on the way, and so does dS in bf16: none of their digits is
 * certain. */
static bool too_small(fa_dtype t, double smaller) {
  return t != FA_F16 && smaller < 0x1p-80;
}

static pair compare_bits(const fa_tensor *a, const fa_tensor *b, const int64_t *index,
                         const fa_law_link *link) {
  pair p = {
      .got = fa_tensor_get(b, index), .want = fa_tensor_get(a, link->at), .bound = -1, .compared = true};
  if (link->factor == 1 && link->shift == 0) {
    p.good = memcmp(a->data + fa_tensor_offset(a, link->at), b->data + fa_tensor_offset(b, index),
                    fa_dtype_size(a->dtype)) == 0;
    p.good |= link->powers &&
              p.got == p.want; /* a zero has the sign of what it was rounded from, if that was a number */
    if (!p.good && link->powers && too_small(a->dtype, fabs(p.want)) && fabs(p.got) < 0x1p-70)
      p.compared = isnan(p.got);
    return p;
  }
  const double smaller = fabs(p.want) * fmin(1, link->factor);
  const double slack = underflow_slack(a->dtype, smaller, link->factor);
  p.want = p.want * link->factor + link->shift;
  const bool overflows = fabs(p.want) > fa_dtype_max(a->dtype); /* rightly */
  if (overflows || (too_small(a->dtype, smaller) && fabs(p.got) < 0x1p-70)) p.compared = isnan(p.got);
  p.good = p.got == p.want || fabs(p.got - p.want) <= slack;
  return p;
}

static pair compare_bound(const fa_law_work *w, const fa_law_side *other, fa_tensor_id id,
                          const int64_t *index, int64_t position, const fa_law_link *link) {
  const fa_tensor *a = &w->base.out.t[id], *b = &other->out.t[id];
  bool has_a, has_b;
  int64_t at = 0;
  for (int k = 0; k < a->rank; ++k) at = at * a->shape[k] + link->at[k];
  const double bound_a = fa_law_bound_at(&w->base, id, link->at, at, &has_a);
  const double bound_b = fa_law_bound_at(other, id, index, position, &has_b);
  pair p = {.got = fa_tensor_get(b, index), .want = fa_tensor_get(a, link->at)};
  p.want = p.want * link->factor + link->shift;
  /* A NaN that is still here is one that fa_law_check_nan allows: nothing is known about that element. */
  p.compared = isfinite(bound_a) && isfinite(bound_b) && !isnan(p.got) && !isnan(p.want);
  p.bound = bound_a * link->factor + bound_b + fa_half_ulp(a->dtype, p.want) * 0x1p-6;
  if (link->shift != 0) p.bound += 2 * fa_half_ulp(a->dtype, fabs(p.want) + fabs(link->shift));
  /* An infinite value may have been barely above the largest number. */
  const double most = fa_dtype_max(a->dtype), got = fmax(-most, fmin(most, p.got)),
               want = fmax(-most, fmin(most, p.want));
  p.good = p.got == p.want || fabs(got - want) <= p.bound;
  return p;
}

/* Long gradients have no bounds of their own: compares the norm of their errors with their norm
 * (docs/reference/laws.md). */
static void compare_norms(fa_law_work *w, const fa_law_side *other, fa_tensor_id id, fa_law_map *map,
                          const void *ctx) {
  const fa_tensor *a = &w->base.out.t[id], *b = &other->out.t[id];
  const fa_profile *f = &other->profile;
  const double u = fmax(fmax(f->u_p, f->u_ds), fmax(fa_dtype_unit_roundoff(a->dtype), 0x1p-16));
  double errors = 0, size = 0, worst = 0, largest = 0, at_worst[2] = {0, 0};
  int64_t n = fa_tensor_count(b), index[FA_MAX_RANK], worst_index[FA_MAX_RANK] = {0}, compared = 0;
  if (!w->generic) return;
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(b, e, index);
    fa_law_link link = {.factor = 1};
    memcpy(link.at, index, sizeof index);
    if (map && !map(w, ctx, id, index, &link)) continue;
    const double got = fa_tensor_get(b, index), want = fa_tensor_get(a, link.at) * link.factor + link.shift;
    const double error = fabs(got - want);
    ++compared;
    errors += error * error;
    size += want * want;
    largest = fmax(largest, fabs(want));
    if (!(error <= worst) && !isnan(worst)) { /* nothing is worse than NaN */
      worst = error;
      memcpy(worst_index, index, sizeof index);
      at_worst[0] = got, at_worst[1] = want;
    }
  }
  w->n_compared += compared;
  const double limit = 32 * u;
  if (errors <= limit * limit * size && worst <= limit * largest) return;
  fa_law_mismatch(w, id, compared, compared, b, worst_index, at_worst[0], at_worst[1], limit * largest);
}

/* A library's products take other ways for other sizes, places, leading dimensions and numbers of threads: the same
 * operands in other calls need not give the same bits. Powers of two change none of it. */
static bool other_products(const fa_law_work *w) {
  const fa_law law = w->c->law;
  const bool same_calls = law == FA_LAW_REPEAT || law == FA_LAW_SCALE_POWER || law == FA_LAW_VALUE_POWER ||
                          law == FA_LAW_GRAD_POWER;
  return w->base.profile.library_products && !same_calls;
}

/* Whether 16 bytes at once can be moved of every row. Rows that do not lie so may be for another kernel, with other tiles, while what a
 * law makes for its second call is mostly plain. */
static bool has_aligned_rows(const fa_law_side *s) {
  const fa_tensor *const rows[] = {&s->in.t[FA_T_Q], &s->in.t[FA_T_K], &s->in.t[FA_T_V], &s->out.t[FA_T_O]};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    const int64_t size = (int64_t)fa_dtype_size(rows[i]->dtype);
    if ((uintptr_t)rows[i]->data % 16 != 0) return false;
    for (int a = 0; a < rows[i]->rank - 1; ++a)
      if (rows[i]->shape[a] > 1 && rows[i]->stride[a] * size % 16 != 0) return false;
  }
  return true;
}

fa_status fa_law_compare(fa_law_work *w, fa_law_side *other, fa_tensor_id id, fa_law_mode mode,
                         fa_law_map *map, const void *ctx, fa_error *err) {
  const fa_tensor *a = &w->base.out.t[id], *b = &other->out.t[id];
  if (mode == FA_LAW_NOT || !a->data || !b->data) return FA_OK;
  const bool any_order = fa_any_order(&other->p, &other->profile, id);
  const bool other_tiles = w->base.profile.block_n != other->profile.block_n ||       /* another kernel: */
                           w->base.profile.dkv_atomic != other->profile.dkv_atomic || /* another order */
                           has_aligned_rows(&w->base) != has_aligned_rows(other) || other_products(w);
  if ((any_order || other_tiles) && fa_tensor_id_is_output(id)) mode = FA_LAW_BOUND; /* caches hold no sums */
  if (mode == FA_LAW_BOUND) {
    bool has;
    fa_status status = fa_law_bounds(w, &w->base, err);
    if (status == FA_OK) status = fa_law_bounds(w, other, err);
    if (status != FA_OK) return status;
    fa_law_bound_at(other, id, NULL, -1, &has);
    if (!has) {
      compare_norms(w, other, id, map, ctx);
      return FA_OK;
    }
  }
  int64_t n = fa_tensor_count(b), bad = 0, compared = 0, index[FA_MAX_RANK], first[FA_MAX_RANK] = {0};
  pair shown = {0};
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(b, e, index);
    fa_law_link link = {.factor = 1};
    memcpy(link.at, index, sizeof index);
    if (map && !map(w, ctx, id, index, &link)) continue;
    const pair p =
        mode == FA_LAW_BITS ? compare_bits(a, b, index, &link) : compare_bound(w, other, id, index, e, &link);
    const bool unwritten = fa_tensor_id_is_output(id) && fa_tensor_is_poison(b, index, FA_POISON_A);
    if (!p.compared && !unwritten) continue;
    ++compared;
    if (p.good && !unwritten) continue;
    if (bad++ == 0) {
      shown = p;
      memcpy(first, index, sizeof first);
    }
  }
  w->n_compared += compared;
  if (bad) fa_law_mismatch(w, id, bad, compared, b, first, shown.got, shown.want, shown.bound);
  return FA_OK;
}

fa_law_modes fa_law_modes_all(fa_law_mode mode) {
  fa_law_modes modes = {{0}};
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_tensor_id_is_output((fa_tensor_id)id) && fa_case_has_strides((fa_tensor_id)id))
      modes.of[id] = mode;
  return modes;
}

void fa_law_modes_dbias(fa_law_modes *modes, fa_law_mode mode) {
  modes->of[fa_tensor_gradient_of(FA_T_BIAS)] = mode;
}

fa_status fa_law_compare_all(fa_law_work *w, fa_law_side *other, fa_law_modes modes, fa_law_map *map,
                             const void *ctx, fa_error *err) {
  const fa_tensor_bits written = fa_tensors_written_by(FA_PASS_FORWARD | w->passes);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!(written >> id & 1)) continue;
    fa_status status = fa_law_compare(w, other, (fa_tensor_id)id, modes.of[id], map, ctx, err);
    if (status != FA_OK) return status;
  }
  return FA_OK;
}
