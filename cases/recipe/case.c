#include "cases/recipe/case.h"
#include "cases/expr/ast.h"
#include "cases/tensors/table.h"
#include "cases/vocabulary/problem_expr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_case_init(fa_case *c) {
  *c = (fa_case){.name = strdup(""), .note = strdup(""), .data_seed = 1, .poison = FA_POISON_B, .repeat = 2};
  fa_problem_init(&c->problem);
  if (c->name && c->note) return FA_OK;
  fa_case_free(c);
  return FA_ERR_MEMORY;
}

void fa_case_free(fa_case *c) {
  free(c->name);
  free(c->note);
  free(c->place);
  fa_problem_free(&c->problem);
  for (int id = 0; id < FA_T_COUNT; ++id) free(c->zero[id].v);
  *c = (fa_case){0};
}

fa_status fa_case_copy(fa_case *dst, const fa_case *src) {
  *dst = *src;
  dst->name = strdup(src->name ? src->name : "");
  dst->note = strdup(src->note ? src->note : "");
  dst->place = src->place ? strdup(src->place) : NULL;
  fa_status status = fa_problem_copy(&dst->problem, &src->problem);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    dst->zero[id] = (fa_int32_array){0};
    if (fa_int32_array_set(&dst->zero[id], src->zero[id].v, src->zero[id].n) != FA_OK) status = FA_ERR_MEMORY;
  }
  if (src->place && !dst->place) status = FA_ERR_MEMORY;
  if (dst->name && dst->note && status == FA_OK) return FA_OK;
  fa_case_free(dst);
  return FA_ERR_MEMORY;
}

fa_status fa_case_set_name(fa_case *c, const char *name) {
  char *copy = strdup(name);
  if (!copy) return FA_ERR_MEMORY;
  free(c->name);
  c->name = copy;
  return FA_OK;
}

bool fa_stride_recipe_is_plain(const fa_stride_recipe *r) {
  return !r->gap[0] && !r->gap[1] && !r->gap[2] && !r->expand[0] && !r->expand[1] && !r->expand[2] &&
         !r->offset && !r->tail;
}

static bool same_recipe(const fa_stride_recipe *a, const fa_stride_recipe *b) {
  for (int i = 0; i < 3; ++i)
    if (a->gap[i] != b->gap[i] || a->expand[i] != b->expand[i]) return false;
  return a->offset == b->offset && a->tail == b->tail;
}

bool fa_case_equal(const fa_case *a, const fa_case *b) {
  if (strcmp(a->name, b->name) != 0 || strcmp(a->note, b->note) != 0) return false;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (fa_case_has_strides(id) && !same_recipe(&a->strides[id], &b->strides[id])) return false;
    if (fa_case_has_fill(id) && a->fill[id] != b->fill[id]) return false;
    const fa_int32_array *x = &a->zero[id], *y = &b->zero[id];
    if (x->n != y->n || (x->n > 0 && memcmp(x->v, y->v, (size_t)x->n * sizeof *x->v) != 0)) return false;
  }
  return a->layout == b->layout && a->packing == b->packing && a->data_seed == b->data_seed &&
         a->poison == b->poison && a->repeat == b->repeat && a->schedule_seed == b->schedule_seed &&
         a->law == b->law && a->expect == b->expect && fa_problem_equal(&a->problem, &b->problem);
}

bool fa_case_has_fill(fa_tensor_id id) {
  return fa_tensor_is_filled(id);
}

bool fa_case_has_strides(fa_tensor_id id) {
  const fa_tensor_axes axes = fa_tensor_describe(id)->axes;
  return axes != FA_AXES_OWN && axes != FA_AXES_SCORES && axes != FA_AXES_HEADS && axes != FA_AXES_ONE;
}

bool fa_case_uses(const fa_case *c, fa_tensor_id id) {
  const bool named = fa_case_has_strides(id) || fa_case_has_fill(id);
  return named && fa_tensor_is_asked_for(&c->problem, id) && !fa_tensor_is_in_k(&c->problem, id);
}

void fa_case_set_fill(fa_case *c, fa_fill fill) {
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_case_has_fill(id)) c->fill[id] = fill;
}

/* Roughly the standard deviation of q or k under a fill. */
static double fill_size(fa_fill f) {
  const double size = fa_fill_describe(f)->size;
  return size > 0 ? size : 1;
}

/* *cap: the cap of a softcap in score_mod, 0 without one. */
static bool keeps_logits_apart(const fa_problem *p, double *cap) {
  fa_expr e;
  const bool apart = fa_expr_of(p, FA_EXPR_SCORE_MOD, &e, NULL) == FA_OK && fa_expr_like_score(&e, cap);
  fa_expr_free(&e);
  return apart;
}

/* Logits that are all equal, or saturated at the cap, give equal probabilities, whose roundings repeat.
 * Logits count as equal if they differ by less than a rounding: half a cell of the type, in which exp(x) has
 * a relative width of 2u. With few dimensions some rows always have a q so short that their logits are equal,
 * and in these rows the error of P or dS is a function of k, by which dQ multiplies it; hence the margin. */
static bool repeats_logits(const fa_case *c) {
  const fa_problem *p = &c->problem;
  const fa_fill q = c->fill[FA_T_Q];
  const double spread =
      fabs(p->scale) * sqrt((double)p->head_dim) * fill_size(q) * fill_size(c->fill[FA_T_K]);
  const bool large = fa_fill_describe(q)->large_logits;
  double cap = 0;
  /* A bias distinguishes keys, and rows if it has a row axis. */
  const bool told = p->bias.present && p->bias.per_query;
  const double least = (p->head_dim <= 4 ? 64 : 1) * fa_dtype_unit_roundoff(fa_problem_operand_dtype(p));
  if (p->scale == 0 || (spread < least && !told)) return true;
  if (p->score_mod && !keeps_logits_apart(p, &cap)) return true;
  return (p->softcap > 0 && (p->softcap < 4 || large)) || (cap > 0 && (cap < 4 || large));
}

/* If every row sees at most one key, P is 1 everywhere, and the rows that see the same key round alike. */
static bool sees_one_key(const fa_problem *p) {
  const fa_window window = fa_mask_window(&p->mask);
  return p->seqlen_k <= 1 || fa_mask_chunk(&p->mask) == 1 || (window.left == 0 && window.right == 0);
}

/* Rows of nearly uniform probabilities: a key dropped by dropout has dS = -P delta, nearly the same number
 * for hundreds of keys, and in f16 it is a subnormal, with few distinct values. */
static bool repeats_dropped(const fa_case *c) {
  const bool flat = fa_fill_describe(c->fill[FA_T_Q])->flat || fa_fill_describe(c->fill[FA_T_K])->flat;
  return c->problem.dropout.p > 0 && flat && c->problem.dtype == FA_F16;
}

/* Beside a large sink all P of a row, and its dS, are below f16's normal range: what rounding takes from them is what
 * they are, and follows the sum that they are for. */
static bool repeats_beside_sinks(const fa_case *c) {
  const fa_fill f = c->fill[FA_T_SINKS];
  if (!c->problem.sinks.present) return false;
  return f == FA_FILL_HEAVY_TAIL || (f == FA_FILL_SINK_SIZES && c->problem.dtype == FA_F16);
}

/* A few dimensions of 8 bits make few different logits. */
static bool repeats_eight_bits(const fa_case *c) {
  return c->problem.quantized.present && c->problem.head_dim < 8;
}

bool fa_case_is_generic(const fa_case *c) {
  if (c->problem.family == FA_MERGE) return false; /* a few roundings an element: no noise to speak of */
  if (repeats_eight_bits(c) || repeats_beside_sinks(c) || repeats_logits(c) || repeats_dropped(c) ||
      sees_one_key(&c->problem))
    return false;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!fa_case_has_fill(id) || !fa_case_uses(c, id)) continue;
    if (fa_tensor_describe(id)->data == FA_DATA_SINKS) continue; /* rounded nowhere */
    const bool *expand = c->strides[id].expand;
    if (expand[0] || expand[1] || expand[2] || !fa_fill_describe(c->fill[id])->generic) return false;
    if (c->zero[id].n > 0) return false; /* equal rows round alike */
  }
  return true;
}

/* ---- lists ---- */

void fa_case_list_free(fa_case_list *l) {
  for (int64_t i = 0; i < l->n; ++i) fa_case_free(&l->v[i]);
  free(l->v);
  *l = (fa_case_list){0};
}

fa_status fa_case_list_push(fa_case_list *l, fa_case *c) {
  if (l->n == l->capacity) {
    int64_t capacity = l->capacity ? 2 * l->capacity : 16;
    fa_case *v = realloc(l->v, (size_t)capacity * sizeof *v);
    if (!v) return FA_ERR_MEMORY;
    l->v = v;
    l->capacity = capacity;
  }
  l->v[l->n++] = *c;
  *c = (fa_case){0};
  return FA_OK;
}
