/* Converts records to cases and back. */
#include "cases/tensors/table.h"
#include "fuzz/generate/draw.h"
#include "fuzz/inputs/mutate.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* Append new rows, up to the counts in mutate_record.c: the corpus refers to rows by number. */
static const double dropouts[] = {0,   0.1, 0.17, 0.2,   0.25,  0.3,   0.35, 0.4,
                                  0.5, 0.9, 0.99, 0.996, 0.003, 0.001, 1e-5, 1e-6};
static const double softcaps[] = {0, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 1000, 0.0625};
/* Scales: multiples of the default, then absolute ones. */
static const double factors[] = {1, -1, 0, 0.25, 0.7, 1.7, 2, 4};
static const double scales[] = {0.125, -0.1, -0.125, -0.25, 0.3};
static const float slopes[] = {0.5f, 0.25f, 0.125f, 0.0625f, 0.01171875f, 0.00390625f, 0.0f, -0.125f, 1.0f};

enum { NO_ALIBI, ALIBI_STANDARD, ALIBI_HEADS, ALIBI_BATCH_HEADS };

static const fa_tensor_id strided[FA_RECORD_TENSORS] = {FA_T_Q,  FA_T_K,  FA_T_V,  FA_T_O,
                                                        FA_T_DO, FA_T_DQ, FA_T_DK, FA_T_DV};

static int64_t up_to_64(uint64_t n) {
  return (int64_t)(n + 63) / 64 * 64;
}

/* ---- work ---- */

static int64_t work_of(const fa_record *r) {
  const int64_t per_pair =
      (int64_t)((r->v[FA_F_HEADS_KV] + 1) * (r->v[FA_F_GROUP] + 1) * 8 * (r->v[FA_F_HEAD_DIM] + 1));
  const int n = (int)r->v[FA_F_BATCH] + 1;
  int64_t pairs = 0;
  for (int b = 0; b < n; ++b) {
    const int e = r->v[FA_F_VARLEN] ? b : 0;
    /* a grid has a row of blocks for the longest sequence, and every block sets up its tiles */
    pairs += (up_to_64(r->v[FA_F_LENGTH_Q + e]) + 32) * (up_to_64(r->v[FA_F_LENGTH_K + e]) + 32);
  }
  return pairs * per_pair;
}

static void reduce(fa_record *r, int64_t work) {
  while (work_of(r) > work) {
    if (r->v[FA_F_GROUP])
      --r->v[FA_F_GROUP];
    else if (r->v[FA_F_HEADS_KV])
      --r->v[FA_F_HEADS_KV];
    else if (r->v[FA_F_BATCH])
      --r->v[FA_F_BATCH];
    else if (r->v[FA_F_LENGTH_Q] + r->v[FA_F_LENGTH_K] > 64)
      r->v[FA_F_LENGTH_Q] /= 2, r->v[FA_F_LENGTH_K] /= 2;
    else if (r->v[FA_F_HEAD_DIM])
      r->v[FA_F_HEAD_DIM] /= 2;
    else
      return;
  }
}

/* ---- record to case ---- */

static fa_status set_prefix_sums(fa_int32_array *a, const uint64_t *length, int64_t n) {
  fa_status status = fa_int32_array_set(a, NULL, n + 1);
  for (int64_t i = 0; status == FA_OK && i < n; ++i) a->v[i + 1] = a->v[i] + (int32_t)length[i];
  return status;
}

static int64_t keys_of(const fa_problem *p, int64_t b) {
  return p->cu_seqlens_k.n ? p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b] : p->seqlen_k;
}

static fa_status set_lengths(const fa_record *r, fa_problem *p) {
  fa_status status = FA_OK;
  p->batch = (int64_t)r->v[FA_F_BATCH] + 1;
  p->seqlen_q = (int64_t)r->v[FA_F_LENGTH_Q];
  p->seqlen_k = (int64_t)r->v[FA_F_LENGTH_K];
  if (r->v[FA_F_VARLEN]) {
    status = set_prefix_sums(&p->cu_seqlens_q, &r->v[FA_F_LENGTH_Q], p->batch);
    if (status == FA_OK) status = set_prefix_sums(&p->cu_seqlens_k, &r->v[FA_F_LENGTH_K], p->batch);
    if (status == FA_OK) status = fa_problem_complete(p);
  }
  if (status == FA_OK && r->v[FA_F_HAS_USED]) status = fa_int32_array_set(&p->seqused_k, NULL, p->batch);
  if (status == FA_OK && r->v[FA_F_HAS_LEFTPAD]) status = fa_int32_array_set(&p->leftpad_k, NULL, p->batch);
  for (int64_t b = 0; status == FA_OK && b < p->batch; ++b) {
    int64_t n = keys_of(p, b);
    if (p->seqused_k.n) n = p->seqused_k.v[b] = (int32_t)((int64_t)r->v[FA_F_USED + b] % (n + 1));
    if (p->leftpad_k.n) p->leftpad_k.v[b] = (int32_t)((int64_t)r->v[FA_F_LEFTPAD + b] % (n + 1));
  }
  return status;
}

static fa_status set_alibi(const fa_record *r, fa_problem *p) {
  fa_alibi *a = &p->alibi;
  const uint64_t kind = r->v[FA_F_ALIBI];
  a->present = kind != NO_ALIBI;
  a->standard = kind == ALIBI_STANDARD;
  if (kind < ALIBI_HEADS) return fa_problem_complete(p);
  a->n = p->heads_q * (kind == ALIBI_BATCH_HEADS ? p->batch : 1);
  a->slopes = malloc((size_t)a->n * sizeof *a->slopes);
  if (!a->slopes) return FA_ERR_MEMORY;
  for (int64_t i = 0; i < a->n; ++i)
    a->slopes[i] = slopes[((uint64_t)i + r->v[FA_F_SLOPE]) % (uint64_t)COUNT(slopes)];
  return FA_OK;
}

static void set_numbers(const fa_record *r, fa_problem *p) {
  const int scale = (int)(r->v[FA_F_SCALE] % (uint64_t)(COUNT(factors) + COUNT(scales)));
  p->scale = scale < COUNT(factors) ? factors[scale] * fa_default_scale(p->head_dim)
                                    : scales[scale - COUNT(factors)];
  p->softcap = softcaps[r->v[FA_F_SOFTCAP] % (uint64_t)COUNT(softcaps)];
  p->mask.type = (fa_mask_type)r->v[FA_F_MASK];
  if (fa_mask_has_edges(&p->mask)) {
    p->mask.left = (int64_t)r->v[FA_F_LEFT] - 1;
    p->mask.right = (int64_t)r->v[FA_F_RIGHT] - 1;
  }
  p->dropout.p = dropouts[r->v[FA_F_DROPOUT] % (uint64_t)COUNT(dropouts)];
  if (p->dropout.p > 0) {
    p->dropout.seed = r->v[FA_F_DROPOUT_SEED];
    p->dropout.offset = r->v[FA_F_DROPOUT_OFFSET];
    p->return_softmax = r->v[FA_F_RETURN_SOFTMAX];
  }
  p->deterministic = r->v[FA_F_DETERMINISTIC];
  p->backward = r->v[FA_F_BACKWARD];
  p->grad_lse = p->backward && r->v[FA_F_GRAD_LSE];
  p->empty_lse = (fa_empty_lse)r->v[FA_F_EMPTY_LSE];
}

static fa_fill fill_for(uint64_t number, fa_tensor_id id) {
  const fa_fill_info *f = fa_fill_describe((fa_fill)number);
  const bool gradient = fa_tensor_describe(id)->data == FA_DATA_GRADIENT;
  return fa_fill_is_general((fa_fill)number) || (f->do_only && gradient) ? (fa_fill)number : FA_FILL_NORMAL;
}

static void set_fills(const fa_record *r, fa_case *c) {
  const uint64_t v = r->v[FA_F_FILL_V], grad = r->v[FA_F_FILL_DO];
  fa_case_set_fill(c, fill_for(r->v[FA_F_FILL], FA_T_Q));
  if (v) c->fill[FA_T_V] = fill_for(v - 1, FA_T_V);
  if (grad) c->fill[FA_T_DO] = fill_for(grad - 1, FA_T_DO);
  c->fill[FA_T_BIAS] = c->fill[FA_T_DLSE] = FA_FILL_NORMAL;
  fa_generate_settle_fills(c);
}

static bool is_packed(const fa_case *c, fa_tensor_id id) {
  return (c->packing != FA_PACK_NONE && (id == FA_T_K || id == FA_T_V)) ||
         (c->packing == FA_PACK_QKV && id == FA_T_Q);
}

static void set_strides(const fa_record *r, fa_case *c) {
  bool expanded = false; /* two tensors expanded along one axis hide each other's mistakes */
  c->layout = (fa_layout)r->v[FA_F_LAYOUT];
  c->packing = (fa_packing)r->v[FA_F_PACKING];
  if (c->packing == FA_PACK_QKV && !fa_can_pack_qkv(&c->problem)) c->packing = FA_PACK_KV;
  for (int i = 0; i < FA_RECORD_TENSORS; ++i) {
    const fa_tensor_id id = strided[i];
    const bool packed = is_packed(c, id), owner = id == (c->packing == FA_PACK_QKV ? FA_T_Q : FA_T_K);
    fa_stride_recipe *s = &c->strides[id];
    if (!fa_case_uses(c, id) || (packed && !owner)) continue;
    for (int axis = 0; axis < 3; ++axis) s->gap[axis] = (int64_t)r->v[FA_F_GAP + 3 * i + axis];
    s->offset = (int64_t)r->v[FA_F_OFFSET + i];
    const unsigned axes = (unsigned)r->v[FA_F_EXPAND + i];
    if (!axes || expanded || packed || fa_tensor_id_is_output(id)) continue;
    s->expand[__builtin_ctz(axes)] = expanded = true;
  }
}

fa_status fa_record_to_case(const fa_record *record, int64_t work, fa_case *out, fa_error *err) {
  fa_record r = *record;
  reduce(&r, work);
  fa_status status = fa_case_init(out);
  if (status != FA_OK) return fa_fail(err, status, "out of memory");
  fa_problem *p = &out->problem;
  p->dtype = r.v[FA_F_DTYPE] ? FA_BF16 : FA_F16;
  p->heads_kv = (int64_t)r.v[FA_F_HEADS_KV] + 1;
  p->heads_q = p->heads_kv * ((int64_t)r.v[FA_F_GROUP] + 1);
  p->head_dim = p->head_dim_v = 8 * ((int64_t)r.v[FA_F_HEAD_DIM] + 1);
  status = set_lengths(&r, p);
  if (status == FA_OK) status = set_alibi(&r, p);
  if (status == FA_OK) status = fa_case_set_name(out, "fuzz");
  if (status != FA_OK) {
    fa_case_free(out);
    return fa_fail(err, status, "out of memory");
  }
  set_numbers(&r, p);
  out->data_seed = r.v[FA_F_DATA_SEED];
  out->schedule_seed = r.v[FA_F_SCHEDULE_SEED];
  out->repeat = 1 + (int64_t)r.v[FA_F_REPEAT];
  out->poison = (fa_poison)(FA_POISON_B + r.v[FA_F_POISON]);
  set_fills(&r, out);
  set_strides(&r, out);
  fa_error why = {""};
  if (fa_case_validate(out, &why) == FA_OK) return FA_OK;
  fa_assert_failed(why.text, __FILE__, __LINE__);
}

/* ---- case to record ---- */

static void find_lengths(const fa_problem *p, fa_record *r) {
  const bool varlen = p->cu_seqlens_q.n > 0;
  r->v[FA_F_VARLEN] = varlen;
  r->v[FA_F_LENGTH_Q] = (uint64_t)p->seqlen_q;
  r->v[FA_F_LENGTH_K] = (uint64_t)p->seqlen_k;
  r->v[FA_F_HAS_USED] = p->seqused_k.n > 0;
  r->v[FA_F_HAS_LEFTPAD] = p->leftpad_k.n > 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    if (varlen) r->v[FA_F_LENGTH_Q + b] = (uint64_t)(p->cu_seqlens_q.v[b + 1] - p->cu_seqlens_q.v[b]);
    if (varlen) r->v[FA_F_LENGTH_K + b] = (uint64_t)keys_of(p, b);
    if (p->seqused_k.n) r->v[FA_F_USED + b] = (uint64_t)p->seqused_k.v[b];
    if (p->leftpad_k.n) r->v[FA_F_LEFTPAD + b] = (uint64_t)p->leftpad_k.v[b];
  }
}

static uint64_t find_number(const double *v, int n, double x) {
  for (int i = 0; i < n; ++i)
    if (v[i] == x) return (uint64_t)i;
  return 0;
}

static void find_scale_and_alibi(const fa_problem *p, fa_record *r) {
  for (int i = COUNT(scales) - 1; i >= 0; --i)
    if (scales[i] == p->scale) r->v[FA_F_SCALE] = (uint64_t)(COUNT(factors) + i);
  for (int i = COUNT(factors) - 1; i >= 0; --i)
    if (factors[i] * fa_default_scale(p->head_dim) == p->scale) r->v[FA_F_SCALE] = (uint64_t)i;
  if (!p->alibi.present) return;
  r->v[FA_F_ALIBI] = p->alibi.standard          ? ALIBI_STANDARD
                     : p->alibi.n == p->heads_q ? ALIBI_HEADS
                                                : ALIBI_BATCH_HEADS;
  for (int i = 0; i < COUNT(slopes); ++i)
    if (slopes[i] == p->alibi.slopes[0]) r->v[FA_F_SLOPE] = (uint64_t)i;
}

static void find_data(const fa_case *c, fa_record *r) {
  r->v[FA_F_FILL] = c->fill[FA_T_Q];
  if (c->fill[FA_T_V] != c->fill[FA_T_Q]) r->v[FA_F_FILL_V] = (uint64_t)c->fill[FA_T_V] + 1;
  if (c->fill[FA_T_DO] != c->fill[FA_T_Q]) r->v[FA_F_FILL_DO] = (uint64_t)c->fill[FA_T_DO] + 1;
  r->v[FA_F_DATA_SEED] = c->data_seed;
  r->v[FA_F_SCHEDULE_SEED] = c->schedule_seed;
  r->v[FA_F_REPEAT] = (uint64_t)c->repeat - 1;
  r->v[FA_F_POISON] = (uint64_t)(c->poison - FA_POISON_B);
  r->v[FA_F_LAYOUT] = c->layout;
  r->v[FA_F_PACKING] = c->packing;
  for (int i = 0; i < FA_RECORD_TENSORS; ++i) {
    const fa_stride_recipe *s = &c->strides[strided[i]];
    for (int axis = 0; axis < 3; ++axis) {
      r->v[FA_F_GAP + 3 * i + axis] = (uint64_t)s->gap[axis];
      r->v[FA_F_EXPAND + i] |= (uint64_t)s->expand[axis] << axis;
    }
    r->v[FA_F_OFFSET + i] = (uint64_t)s->offset;
  }
}

bool fa_record_same_case(const fa_case *want, fa_case *got) {
  fa_status status = fa_case_set_name(got, want->name);
  free(got->note);
  got->note = strdup(want->note);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (!fa_case_uses(want, (fa_tensor_id)id)) got->fill[id] = want->fill[id];
  return status == FA_OK && got->note && fa_case_equal(want, got);
}

bool fa_record_find(const fa_case *c, fa_record *out) {
  const fa_problem *p = &c->problem;
  if (p->batch > FA_RECORD_ENTRIES || p->head_dim % 8 || p->heads_kv < 1) return false;
  memset(out, 0, sizeof *out);
  out->v[FA_F_DTYPE] = p->dtype == FA_BF16;
  out->v[FA_F_BACKWARD] = p->backward;
  out->v[FA_F_BATCH] = (uint64_t)p->batch - 1;
  out->v[FA_F_HEADS_KV] = (uint64_t)p->heads_kv - 1;
  out->v[FA_F_GROUP] = (uint64_t)(p->heads_q / p->heads_kv) - 1;
  out->v[FA_F_HEAD_DIM] = (uint64_t)p->head_dim / 8 - 1;
  find_lengths(p, out);
  out->v[FA_F_MASK] = p->mask.type;
  if (fa_mask_has_edges(&p->mask)) {
    out->v[FA_F_LEFT] = (uint64_t)(p->mask.left + 1);
    out->v[FA_F_RIGHT] = (uint64_t)(p->mask.right + 1);
  }
  find_scale_and_alibi(p, out);
  out->v[FA_F_SOFTCAP] = find_number(softcaps, COUNT(softcaps), p->softcap);
  out->v[FA_F_DROPOUT] = find_number(dropouts, COUNT(dropouts), p->dropout.p);
  out->v[FA_F_DROPOUT_SEED] = p->dropout.seed;
  out->v[FA_F_DROPOUT_OFFSET] = p->dropout.offset;
  out->v[FA_F_DETERMINISTIC] = p->deterministic;
  out->v[FA_F_RETURN_SOFTMAX] = p->return_softmax;
  out->v[FA_F_GRAD_LSE] = p->grad_lse;
  out->v[FA_F_EMPTY_LSE] = p->empty_lse;
  find_data(c, out);
  return true;
}

bool fa_record_is_in_range(const fa_record *r) {
  for (int f = 0; f < FA_N_FIELDS; ++f)
    if (fa_record_field_count((fa_field)f) && r->v[f] >= fa_record_field_count((fa_field)f)) return false;
  return true;
}

bool fa_record_from_case(const fa_case *c, fa_record *out) {
  fa_case again;
  if (!fa_record_find(c, out) || !fa_record_is_in_range(out)) return false;
  if (fa_record_to_case(out, FA_RECORD_WORK, &again, NULL) != FA_OK) return false;
  const bool same = fa_record_same_case(c, &again);
  fa_case_free(&again);
  return same;
}
