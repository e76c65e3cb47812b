/* Laws of partial states: in which order, with what that is empty, and in how many steps they are merged. */
#include "fuzz/laws/parts.h"

#include <math.h>
#include <string.h>

static void copy_value(const fa_tensor *from, const int64_t *at, const fa_tensor *to, const int64_t *index) {
  fa_tensor_set(to, index, fa_tensor_get(from, at));
}

/* Part `first` + k of `to` is part `at` + k of `from`, n of them. A tensor without the axis of parts is one part. */
static void copy_parts(const fa_tensor *from, int64_t at, const fa_tensor *to, int64_t first, int64_t n) {
  const int64_t each = fa_tensor_count(to) / to->shape[0];
  const bool whole = from->rank < to->rank;
  int64_t index[FA_MAX_RANK], source[FA_MAX_RANK];
  for (int64_t e = 0; e < n * each; ++e) {
    fa_tensor_unravel(to, first * each + e, index);
    memcpy(source, index, sizeof source);
    if (whole)
      memmove(source, index + 1, (size_t)from->rank * sizeof *source);
    else
      source[0] += at - first;
    copy_value(from, source, to, index);
  }
}

static void copy_states(const fa_tensors *from, int64_t at, const fa_tensors *to, int64_t first, int64_t n) {
  copy_parts(&from->t[FA_T_O_PARTS], at, &to->t[FA_T_O_PARTS], first, n);
  copy_parts(&from->t[FA_T_LSE_PARTS], at, &to->t[FA_T_LSE_PARTS], first, n);
}

static bool shares_memory(const fa_case *c, fa_tensor_id id) {
  const bool *expand = c->strides[id].expand;
  return expand[0] || expand[1] || expand[2];
}

/* ---- order ---- */

static bool map_turned(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                       fa_law_link *link) {
  (void)ctx;
  if (fa_tensor_has_parts(id)) link->at[0] = w->base.p.merge.parts - 1 - index[0];
  return true;
}

fa_status fa_law_part_permutation(fa_law_work *w, fa_error *err) {
  const int64_t n = w->c->problem.merge.parts;
  FA_SKIP_IF(n < 2, "there is one part");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  for (int64_t k = 0; k < n; ++k) copy_states(&w->base.in, n - 1 - k, &w->other.in, k, 1);
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  return fa_law_compare_all(w, &w->other, fa_law_modes_all(FA_LAW_BOUND), map_turned, NULL, err);
}

/* ---- one more that is empty ---- */

/* Its O is NaN in every other row, its LSE has either sign. */
static void make_empty(const fa_tensors *in, int64_t part) {
  const fa_tensor *o = &in->t[FA_T_O_PARTS], *lse = &in->t[FA_T_LSE_PARTS];
  int64_t each = fa_tensor_count(o) / o->shape[0], index[FA_MAX_RANK];
  for (int64_t e = part * each; e < (part + 1) * each; ++e) {
    fa_tensor_unravel(o, e, index);
    fa_tensor_set(o, index, index[o->rank - 3] % 2 ? NAN : 1);
  }
  each = fa_tensor_count(lse) / lse->shape[0];
  for (int64_t e = part * each; e < (part + 1) * each; ++e) {
    fa_tensor_unravel(lse, e, index);
    fa_tensor_set(lse, index, e % 3 ? -INFINITY : INFINITY);
  }
}

static bool map_first_parts(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                            fa_law_link *link) {
  (void)ctx, (void)link;
  return !fa_tensor_has_parts(id) || index[0] < w->base.p.merge.parts;
}

/* A merge of other parts, whose dO and dLSE are the case's. */
static fa_status make_merge(fa_law_work *w, fa_law_side *to, fa_parts merge, fa_dtype dtype, bool backward,
                            fa_error *err) {
  fa_problem p;
  if (fa_problem_copy(&p, &w->base.p) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  p.merge = merge;
  p.dtype = dtype;
  p.backward = backward;
  p.grad_lse = p.grad_lse && backward;
  const fa_status status = fa_law_make_for(w, to, &p, err);
  fa_problem_free(&p);
  return status;
}

fa_status fa_law_part_empty(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  fa_parts more = p->merge;
  FA_SKIP_IF(++more.parts > FA_MAX_PARTS, "there are as many parts as there may be");
  FA_SKIP_IF(shares_memory(w->c, FA_T_DO), "rows of dO share memory");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(make_merge(w, &w->other, more, p->dtype, p->backward, err));
  copy_states(&w->base.in, 0, &w->other.in, 0, p->merge.parts);
  make_empty(&w->other.in, p->merge.parts);
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  return fa_law_compare_all(w, &w->other, fa_law_modes_all(FA_LAW_BOUND), map_first_parts, NULL, err);
}

/* ---- in two steps ---- */

/* The first parts in float32, so that nothing is rounded to 16 bits in between. */
static fa_status merge_first(fa_law_work *w, int64_t n, fa_law_side *first, fa_error *err) {
  fa_parts some = w->base.p.merge;
  some.parts = n;
  fa_status status = make_merge(w, first, some, FA_F32, false, err);
  if (status != FA_OK) return status;
  copy_states(&w->base.in, 0, &first->in, 0, n);
  return fa_law_run(w, first, err);
}

static fa_status merge_rest(fa_law_work *w, int64_t n, const fa_law_side *first, fa_error *err) {
  fa_parts rest = w->base.p.merge;
  const int64_t left = rest.parts - n;
  rest.parts = 1 + left;
  rest.parts_dtype = FA_F32;
  fa_status status = make_merge(w, &w->other, rest, w->base.p.dtype, false, err);
  if (status != FA_OK) return status;
  copy_parts(&first->out.t[FA_T_O], 0, &w->other.in.t[FA_T_O_PARTS], 0, 1);
  copy_parts(&first->out.t[FA_T_LSE], 0, &w->other.in.t[FA_T_LSE_PARTS], 0, 1);
  copy_states(&w->base.in, n, &w->other.in, 1, left);
  return fa_law_run(w, &w->other, err);
}

/* The bounds of a merge of three parts and more allow for merging two after the other, and so for this. */
fa_status fa_law_part_nested(fa_law_work *w, fa_error *err) {
  const fa_tensor_bits needed = FA_TENSOR_BIT(FA_T_O) | FA_TENSOR_BIT(FA_T_LSE);
  const fa_law_modes forward = {.of = {[FA_T_O] = FA_LAW_BOUND, [FA_T_LSE] = FA_LAW_BOUND}};
  const int64_t n = w->c->problem.merge.parts;
  fa_law_side first = {0};
  FA_SKIP_IF(n < 3, "there are fewer than three parts");
  FA_LAW_TRY(fa_law_make_base(w, err));
  w->base.p.backward = w->base.p.grad_lse = false;
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  fa_status status = merge_first(w, n / 2 + 1, &first, err);
  if (status == FA_OK && !w->over && (w->r->not_delivered & needed))
    status = fa_law_skip(w, "it merges again what was merged, and o or lse is not delivered");
  if (status == FA_OK && !w->over) status = merge_rest(w, n / 2 + 1, &first, err);
  if (status == FA_OK && !w->over) status = fa_law_compare_all(w, &w->other, forward, NULL, NULL, err);
  fa_law_side_free(&first);
  return status;
}
