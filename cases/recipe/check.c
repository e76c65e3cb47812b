/* Rules between fields of a case that are not the problem's: strides, packing, fills, names. */
#include "cases/base/utf8.h"
#include "cases/recipe/case.h"
#include "cases/tensors/table.h"

#include <string.h>

#define BAD(...) return fa_fail(err, FA_ERR_INPUT, __VA_ARGS__)
#define TRY(e)                                                                                               \
  do {                                                                                                       \
    fa_status try_status = (e);                                                                              \
    if (try_status != FA_OK) return try_status;                                                              \
  } while (0)

static fa_status check_text(const char *field, const char *text, int64_t max, fa_error *err) {
  if (!text) BAD("$.%s: missing", field);
  int64_t at = 0, n = fa_utf8_count(text, &at);
  if (n < 0) BAD("$.%s: byte %lld is a control character or not UTF-8", field, (long long)at);
  if (n > max) BAD("$.%s: %lld characters, at most %lld", field, (long long)n, (long long)max);
  return FA_OK;
}

static fa_status check_fills(const fa_case *c, fa_error *err) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!fa_case_has_fill(id)) continue;
    const char *tensor = fa_tensor_id_name(id);
    if ((unsigned)c->fill[id] >= FA_N_FILLS) BAD("$.fill.%s: unknown fill number %d", tensor, c->fill[id]);
    const fa_fill_info *f = fa_fill_describe(c->fill[id]);
    const fa_tensor_data data = fa_tensor_describe(id)->data;
    if (f->bias_only && data != FA_DATA_BIAS) BAD("$.fill.%s: \"%s\" is for bias only", tensor, f->name);
    if (f->sinks_only && data != FA_DATA_SINKS) BAD("$.fill.%s: \"%s\" is for sinks only", tensor, f->name);
    if (f->do_only && data != FA_DATA_GRADIENT) BAD("$.fill.%s: \"%s\" is for do only", tensor, f->name);
    if (f->lse_only && data != FA_DATA_LSE) BAD("$.fill.%s: \"%s\" is for lse_parts only", tensor, f->name);
    if (f->reads_v && c->problem.family == FA_MERGE)
      BAD("$.fill.%s: \"%s\" follows v, which family \"merge\" does not have", tensor, f->name);
  }
  return FA_OK;
}

/* Elements from the buffer's aligned start to the end of the last gap. The three outer axes nest in the
 * layout's order, each with its own gap. */
static bool span_fits(const fa_case *c, fa_tensor_id id, int64_t *span) {
  static const int order[3][3] = {{2, 1, 0}, {1, 2, 0}, {2, 0, 1}}; /* innermost first: bshd, bhsd, sbhd */
  const fa_stride_recipe *r = &c->strides[id];
  const fa_tensor_info *info = fa_tensor_describe(id);
  const bool fixed = info->axes == FA_AXES_BIAS || info->axes == FA_AXES_ROWS ||
                     info->axes == FA_AXES_PART_ROWS; /* [b, h, q, ...] */
  int64_t shape[4];
  fa_case_tensor_shape(c, id, shape);
  if (c->problem.family == FA_KVCACHE && info->direction == FA_TENSOR_UPDATED)
    fa_case_cache_shape(&c->problem, shape[3], shape);
  *span = shape[3];
  for (int i = 0; i < 3; ++i) {
    int axis = order[fixed ? FA_LAYOUT_BHSD : c->layout][i];
    int64_t n =
        r->expand[axis] || shape[axis] == 0 ? 1 : shape[axis]; /* an empty axis makes no other's shorter */
    if (__builtin_add_overflow(*span, r->gap[axis], span) || __builtin_mul_overflow(*span, n, span))
      return false;
  }
  if (fa_tensor_has_parts(id) && __builtin_mul_overflow(*span, c->problem.merge.parts, span)) return false;
  if (id == FA_T_Q && c->packing == FA_PACK_QKV && __builtin_mul_overflow(*span, 3, span)) return false;
  if (id == FA_T_K && c->packing == FA_PACK_KV && __builtin_mul_overflow(*span, 2, span)) return false;
  return !__builtin_add_overflow(*span, r->offset + r->tail, span) && *span <= FA_MAX_SPAN;
}

static fa_status check_recipe(const fa_case *c, fa_tensor_id id, fa_error *err) {
  static const char *const axis[] = {"b", "s", "h"};
  const fa_stride_recipe *r = &c->strides[id];
  const char *tensor = fa_tensor_id_name(id);
  if (fa_stride_recipe_is_plain(r)) return FA_OK;
  if (!fa_case_has_strides(id)) BAD("$.strides.%s: the strides of this tensor are fixed", tensor);
  if (!fa_case_uses(c, id)) BAD("$.strides.%s: the case has no tensor %s", tensor, tensor);
  for (int i = 0; i < 3; ++i) {
    if (r->gap[i] < 0 || r->gap[i] > FA_MAX_ELEMENTS)
      BAD("$.strides.%s.gap[%d]: %lld is not in 0 .. %lld", tensor, i, (long long)r->gap[i],
          (long long)FA_MAX_ELEMENTS);
    if (!r->expand[i]) continue;
    if (fa_tensor_id_is_output(id))
      BAD("$.strides.%s.expand: \"%s\": an output cannot share memory between its elements", tensor, axis[i]);
    if (fa_tensor_is_updated(&c->problem, id))
      BAD("$.strides.%s.expand: \"%s\": the cache is written to (kvcache.new)", tensor, axis[i]);
  }
  if (r->offset < 0 || r->offset > FA_MAX_LENGTH)
    BAD("$.strides.%s.offset: %lld is not in 0 .. %lld", tensor, (long long)r->offset,
        (long long)FA_MAX_LENGTH);
  if (r->tail < 0 || r->tail > FA_MAX_LENGTH)
    BAD("$.strides.%s.tail: %lld is not in 0 .. %lld", tensor, (long long)r->tail, (long long)FA_MAX_LENGTH);
  int64_t span;
  if (!span_fits(c, id, &span))
    BAD("$.strides.%s: tensor %s would span more than %lld elements", tensor, tensor, (long long)FA_MAX_SPAN);
  return FA_OK;
}

static bool same_array(const fa_int32_array *a, const fa_int32_array *b) {
  return a->n == b->n && (a->n == 0 || memcmp(a->v, b->v, (size_t)a->n * sizeof *a->v) == 0);
}

bool fa_can_pack_qkv(const fa_problem *p) {
  return p->seqlen_q == p->seqlen_k && same_array(&p->cu_seqlens_q, &p->cu_seqlens_k) &&
         fa_tensor_dtype(p, FA_T_Q) == fa_tensor_dtype(p, FA_T_K);
}

static fa_status check_packing(const fa_case *c, fa_error *err) {
  const fa_problem *p = &c->problem;
  if (c->packing == FA_PACK_NONE) return FA_OK;
  bool qkv = c->packing == FA_PACK_QKV;
  const char *name = qkv ? "qkv" : "kv";
  if (p->family == FA_KVCACHE) BAD("$.packed: \"%s\", but the caches are tensors of their own", name);
  if (p->family == FA_MERGE) BAD("$.packed: \"%s\", but family \"merge\" has no q, k, v", name);
  if (p->head_dim != p->head_dim_v)
    BAD("$.packed: \"%s\" needs head_dim_v %lld to be head_dim %lld", name, (long long)p->head_dim_v,
        (long long)p->head_dim);
  if (qkv && p->seqlen_q != p->seqlen_k)
    BAD("$.packed: \"qkv\" needs seqlen_k %lld to be seqlen_q %lld", (long long)p->seqlen_k,
        (long long)p->seqlen_q);
  if (qkv && !same_array(&p->cu_seqlens_q, &p->cu_seqlens_k))
    BAD("$.packed: \"qkv\" needs cu_seqlens_k to be cu_seqlens_q");
  if (qkv && fa_tensor_dtype(p, FA_T_Q) != fa_tensor_dtype(p, FA_T_K))
    BAD("$.packed: \"qkv\" needs one type, and q has %s, k %s", fa_dtype_name(fa_tensor_dtype(p, FA_T_Q)),
        fa_dtype_name(fa_tensor_dtype(p, FA_T_K)));
  for (int id = FA_T_Q; id <= FA_T_V; ++id) {
    if (id == FA_T_Q && !qkv) continue;
    const fa_stride_recipe *r = &c->strides[id];
    if (r->expand[0] || r->expand[1] || r->expand[2])
      BAD("$.strides.%s.expand: not together with packed \"%s\"", fa_tensor_id_name(id), name);
    if (id != (qkv ? FA_T_Q : FA_T_K) && !fa_stride_recipe_is_plain(r))
      BAD("$.strides.%s: packed \"%s\" takes the strides of tensor %s", fa_tensor_id_name(id), name,
          qkv ? "q" : "k");
  }
  return FA_OK;
}

fa_status fa_case_validate(const fa_case *c, fa_error *err) {
  TRY(check_text("name", c->name, FA_MAX_NAME_CHARACTERS, err));
  TRY(check_text("note", c->note, FA_MAX_NOTE_CHARACTERS, err));
  TRY(fa_problem_validate(&c->problem, err));
  if (c->problem.score_mod) TRY(check_text("score_mod", c->problem.score_mod, FA_MAX_NOTE_CHARACTERS, err));
  if (c->problem.mask_mod) TRY(check_text("mask_mod", c->problem.mask_mod, FA_MAX_NOTE_CHARACTERS, err));
  if ((unsigned)c->layout > FA_LAYOUT_SBHD) BAD("$.layout: unknown layout number %d", (int)c->layout);
  if ((unsigned)c->packing > FA_PACK_QKV) BAD("$.packed: unknown packing number %d", (int)c->packing);
  if ((unsigned)c->expect > FA_EXPECT_REJECT) BAD("$.expect: unknown number %d", (int)c->expect);
  if (c->poison < FA_POISON_B || c->poison > FA_POISON_FINITE)
    BAD("$.memory.poison: unknown poison number %d", (int)c->poison);
  if (c->repeat < 1 || c->repeat > FA_MAX_REPEAT)
    BAD("$.repeat: %lld is not in 1 .. %d", (long long)c->repeat, FA_MAX_REPEAT);
  if ((unsigned)c->law >= FA_N_LAWS) BAD("$.law: unknown law number %d", (int)c->law);
  TRY(check_fills(c, err));
  TRY(fa_case_check_zero(c, err));
  for (int id = 0; id < FA_T_COUNT; ++id) TRY(check_recipe(c, id, err));
  return check_packing(c, err);
}
