/* The canonical form of a case: keys in the order of the table in cases/codec/json.c; defaults and derived
 * values left out; every double with the fewest digits that read back to the same bits. */
#include "cases/base/json.h"
#include "cases/codec/json.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A JSON tree under construction. cJSON's functions return NULL when out of memory and accept NULL, so one
 * flag at the end is enough. */
typedef struct writer {
  cJSON *object; /* keys are added to this */
  bool failed;
} writer;

static void put(writer *w, const char *key, cJSON *value) {
  if (value && cJSON_AddItemToObject(w->object, key, value)) return;
  cJSON_Delete(value);
  w->failed = true;
}

static void put_element(writer *w, cJSON *array, cJSON *value) {
  if (value && cJSON_AddItemToArray(array, value)) return;
  cJSON_Delete(value);
  w->failed = true;
}

/* The fewest digits that read back as x, or with single as the f32 x. cJSON prints 15 digits when the result
 * is *nearly* the same, so numbers that need more go in as raw text. */
static cJSON *number(double x, bool single) {
  char text[40];
  if (!isfinite(x))
    return cJSON_CreateString(isnan(x) ? "nan" : x > 0 ? "inf" : "-inf"); /* no valid case has it */
  fa_json_number_text(text, sizeof text, x, single);
  return cJSON_CreateRaw(text);
}

/* Integers of a problem are below 2^53, so cJSON prints them exactly. */
static void put_int(writer *w, const char *key, int64_t value, int64_t standard) {
  if (value != standard) put(w, key, cJSON_CreateNumber((double)value));
}

static void put_number(writer *w, const char *key, double value, double standard) {
  if (memcmp(&value, &standard, sizeof value) != 0) put(w, key, number(value, false));
}

static void put_bool(writer *w, const char *key, bool value, bool standard) {
  if (value != standard) put(w, key, cJSON_CreateBool(value));
}

#define WORDS(...)                                                                                           \
  (const char *const[]) {                                                                                    \
    __VA_ARGS__, NULL                                                                                        \
  }
/* words ends with NULL; an out-of-range value is not a valid case and is written as "?". */
static void put_word(writer *w, const char *key, const char *const *words, int value, int standard) {
  int n = 0;
  while (words[n]) ++n;
  if (value != standard) put(w, key, cJSON_CreateString(value >= 0 && value < n ? words[value] : "?"));
}

static void put_u64(writer *w, const char *key, uint64_t value, uint64_t standard) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)value);
  if (value != standard) put(w, key, cJSON_CreateString(text));
}

static void put_text(writer *w, const char *key, const char *text) {
  if (text && *text) put(w, key, cJSON_CreateString(text));
}

static void put_ints(writer *w, const char *key, const fa_int32_array *a) {
  if (a->n > 0) put(w, key, cJSON_CreateIntArray(a->v, (int)a->n));
}

/* Opens a nested object, to which keys are added until end_object. */
static cJSON *begin_object(writer *w, const char *key) {
  cJSON *parent = w->object, *object = cJSON_CreateObject();
  put(w, key, object);
  if (w->failed) return parent; /* object is gone; add keys to the parent, which will be discarded */
  w->object = object;
  return parent;
}

static void end_object(writer *w, cJSON *parent) {
  w->object = parent;
}

/* ---- the parts ---- */

static void put_mask(writer *w, const fa_mask *m) {
  if (!m->type && !m->align && m->left == -1 && m->right == -1 && !m->size) return;
  cJSON *parent = begin_object(w, "mask");
  if (m->type) put_text(w, "type", (unsigned)m->type < FA_N_MASKS ? fa_mask_describe(m->type)->name : "?");
  put_word(w, "align", WORDS("bottom_right", "top_left"), m->align, FA_ALIGN_BOTTOM_RIGHT);
  put_int(w, "left", m->left, -1);
  put_int(w, "right", m->right, -1);
  put_int(w, "size", m->size, 0);
  end_object(w, parent);
}

static cJSON *slope_row(writer *w, const float *slopes, int64_t n) {
  cJSON *row = cJSON_CreateArray();
  for (int64_t i = 0; i < n && row; ++i) put_element(w, row, number(slopes[i], true));
  return row;
}

static void put_alibi(writer *w, const fa_problem *p) {
  if (!p->alibi.present) return;
  cJSON *parent = begin_object(w, "alibi");
  if (p->alibi.standard)
    put(w, "slopes", cJSON_CreateString("standard"));
  else if (p->alibi.n == p->heads_q)
    put(w, "slopes", slope_row(w, p->alibi.slopes, p->alibi.n));
  else {
    cJSON *rows = cJSON_CreateArray();
    for (int64_t b = 0; (b + 1) * p->heads_q <= p->alibi.n && rows; ++b)
      put_element(w, rows, slope_row(w, p->alibi.slopes + b * p->heads_q, p->heads_q));
    put(w, "slopes", rows);
  }
  end_object(w, parent);
}

static void put_bias(writer *w, const fa_bias *b) {
  if (!b->present) return;
  cJSON *parent = begin_object(w, "bias"), *shape = cJSON_CreateArray();
  put_element(w, shape, b->per_batch ? cJSON_CreateString("b") : cJSON_CreateNumber(1));
  put_element(w, shape, b->per_head ? cJSON_CreateString("h") : cJSON_CreateNumber(1));
  put_element(w, shape, b->per_query ? cJSON_CreateString("q") : cJSON_CreateNumber(1));
  put_element(w, shape, cJSON_CreateString("k"));
  put(w, "shape", shape);
  put_bool(w, "grad", b->grad, true);
  end_object(w, parent);
}

static void put_sinks(writer *w, const fa_sinks *s) {
  if (!s->present) return;
  if (s->grad && s->in_lse) {
    put_bool(w, "sinks", true, false);
    return;
  }
  cJSON *parent = begin_object(w, "sinks");
  put_bool(w, "grad", s->grad, true);
  put_bool(w, "in_lse", s->in_lse, true);
  end_object(w, parent);
}

static void put_dropout(writer *w, const fa_dropout *d) {
  if (d->p == 0 && !signbit(d->p) && !d->seed && !d->offset) return;
  cJSON *parent = begin_object(w, "dropout");
  put_number(w, "p", d->p, 0);
  put_u64(w, "seed", d->seed, 0);
  put_u64(w, "offset", d->offset, 0);
  end_object(w, parent);
}

static void put_capture_strides(writer *w, const fa_capture *c) {
  cJSON *strides = cJSON_CreateArray();
  for (int i = 0; i < c->n_strides; ++i) put_element(w, strides, cJSON_CreateNumber((double)c->stride[i]));
  put(w, "strides", strides);
}

static void put_captures(writer *w, const fa_problem *p) {
  if (p->n_captures <= 0) return;
  cJSON *parent = begin_object(w, "buffers");
  for (int k = 0; k < p->n_captures; ++k) {
    const fa_capture *c = &p->captures[k];
    cJSON *outer = begin_object(w, c->name), *shape = cJSON_CreateArray();
    for (int i = 0; i < c->rank; ++i) put_element(w, shape, cJSON_CreateNumber((double)c->shape[i]));
    put(w, "shape", shape);
    if (c->n_strides) put_capture_strides(w, c);
    if (c->dtype != FA_F32) put_text(w, "dtype", fa_dtype_name(c->dtype));
    if (strcmp(c->fill, "normal") != 0) put_text(w, "fill", c->fill);
    put_int(w, "below", c->below, 0);
    put_bool(w, "sorted", c->sorted, false);
    if (c->dtype == FA_BOOL) put_number(w, "share", c->share, 0.5);
    put_bool(w, "grad", c->grad, fa_capture_is_float(c));
    end_object(w, outer);
  }
  end_object(w, parent);
}

/* Nested arrays of the given shape from consecutive values. */
static cJSON *nested(writer *w, int rank, const int64_t *shape, const int32_t **v) {
  cJSON *array = cJSON_CreateArray();
  for (int64_t i = 0; i < shape[0] && array; ++i)
    put_element(w, array, rank > 1 ? nested(w, rank - 1, shape + 1, v) : cJSON_CreateNumber(*(*v)++));
  return array;
}

static void put_list(writer *w, const char *key, const fa_problem *p, int rank, const fa_int32_array *a) {
  const fa_block_sparse *s = &p->block_sparse;
  const int64_t shape[4] = {s->list_batch, s->list_heads, (p->seqlen_q + s->q_block - 1) / s->q_block,
                            (p->seqlen_k + s->kv_block - 1) / s->kv_block};
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= shape[i];
  const int32_t *v = a->v;
  if (a->n == n) put(w, key, nested(w, rank, shape, &v));
}

static void put_block_sparse(writer *w, const fa_problem *p) {
  const fa_block_sparse *s = &p->block_sparse;
  if (!s->present) return;
  cJSON *parent = begin_object(w, "block_sparse");
  put_int(w, "q_block", s->q_block, 128);
  put_int(w, "kv_block", s->kv_block, 128);
  if (s->source == FA_BLOCKS_LISTS && s->q_block > 0 && s->kv_block > 0) {
    put_list(w, "kv_num_blocks", p, 3, &s->kv_num_blocks);
    put_list(w, "kv_indices", p, 4, &s->kv_indices);
    if (s->full_kv_num_blocks.n) put_list(w, "full_kv_num_blocks", p, 3, &s->full_kv_num_blocks);
    if (s->full_kv_indices.n) put_list(w, "full_kv_indices", p, 4, &s->full_kv_indices);
  }
  if (s->source == FA_BLOCKS_MASK_MOD) put(w, "from", cJSON_CreateString("mask_mod"));
  if (s->source == FA_BLOCKS_DENSITY) {
    put(w, "density", number(s->density, false));
    put_u64(w, "seed", s->seed, 0);
  }
  end_object(w, parent);
}

static void put_mask_bits(writer *w, const fa_mask_bits *m) {
  if (!m->present) return;
  cJSON *parent = begin_object(w, "mask_bits");
  if (m->source == FA_BITS_DENSITY)
    put(w, "density", number(m->density, false));
  else
    put_text(w, "tree", fa_bits_source_name(m->source));
  put_number(w, "empty_rows", m->empty_rows, 0);
  put_bool(w, "hide_diagonal", m->hide_diagonal, false);
  put_u64(w, "seed", m->seed, 0);
  end_object(w, parent);
}

static void put_topk(writer *w, const fa_topk *t) {
  if (!t->present) return;
  cJSON *parent = begin_object(w, "topk");
  put_int(w, "k", t->k, 64);
  put_number(w, "none", t->none, 0);
  if (t->none_at != FA_TOPK_END) put_text(w, "none_at", fa_topk_place_name(t->none_at));
  put_number(w, "repeated", t->repeated, 0);
  put_number(w, "empty_rows", t->empty_rows, 0);
  put_bool(w, "beyond", t->beyond, false);
  put_ints(w, "len", &t->len);
  put_u64(w, "seed", t->seed, 0);
  end_object(w, parent);
}

static void put_kvcache(writer *w, const fa_problem *p) {
  const fa_kvcache *c = &p->kvcache;
  if (!c->present) return;
  cJSON *parent = begin_object(w, "kvcache");
  put_ints(w, "len", &c->len);
  put_int(w, "new", c->n_new, 0);
  put_int(w, "page_size", c->page_size, 0);
  put_int(w, "shared_pages", c->shared_pages, 0);
  put_ints(w, "batch_idx", &c->batch_idx);
  put_ints(w, "leftpad", &p->leftpad_k);
  if (c->rotary_dim || c->rotary_interleaved) {
    cJSON *outer = begin_object(w, "rotary");
    put_int(w, "dim", c->rotary_dim, 0);
    put_bool(w, "interleaved", c->rotary_interleaved, false);
    end_object(w, outer);
  }
  end_object(w, parent);
}

/* head_dim and head_dim_v are written too, for readers who know nothing of latent caches. */
static void put_mla(writer *w, const fa_problem *p) {
  if (!p->kvcache.v_in_k) return;
  cJSON *parent = begin_object(w, "mla");
  put_int(w, "kv_lora_rank", p->head_dim_v, 512);
  put_int(w, "qk_rope_head_dim", p->head_dim - p->head_dim_v, 64);
  end_object(w, parent);
}

static void put_quantized(writer *w, const fa_quantized *q) {
  if (!q->present) return;
  cJSON *parent = begin_object(w, "quantized");
  put_text(w, "dtype", fa_dtype_name(q->dtype));
  put(w, "queries", cJSON_CreateBool(q->queries));
  if (q->per != FA_PER_TENSOR) put_text(w, "descale", fa_descale_per_name(q->per));
  if (q->values != FA_DESCALES_ANY) put_text(w, "values", fa_descale_values_name(q->values));
  if (q->quantizes_new) put(w, "quantize_new", cJSON_CreateBool(true));
  if (q->amax) put(w, "amax", cJSON_CreateBool(true));
  if (fa_quantizes_o(q)) put_text(w, "o", fa_dtype_name(q->o));
  put_number(w, "o_scale", q->o_scale, 0);
  end_object(w, parent);
}

static void put_merge(writer *w, const fa_problem *p) {
  const fa_parts *m = &p->merge;
  if (p->family != FA_MERGE || (m->parts == 2 && !m->base_2 && m->parts_dtype == p->dtype)) return;
  cJSON *parent = begin_object(w, "merge");
  put_int(w, "parts", m->parts, 2);
  if (m->base_2) put_text(w, "base", "2");
  if (m->parts_dtype != p->dtype) put_text(w, "parts_dtype", fa_dtype_name(m->parts_dtype));
  end_object(w, parent);
}

static void put_strides(writer *w, const fa_case *c) {
  static const char *const axis[] = {"b", "s", "h"};
  cJSON *parent = NULL;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_stride_recipe *r = &c->strides[id];
    if (!fa_case_has_strides(id) || fa_stride_recipe_is_plain(r)) continue;
    if (!parent) parent = begin_object(w, "strides");
    cJSON *outer = begin_object(w, fa_tensor_id_name(id)), *list = cJSON_CreateArray();
    if (r->gap[0] || r->gap[1] || r->gap[2]) {
      for (int i = 0; i < 3; ++i) put_element(w, list, cJSON_CreateNumber((double)r->gap[i]));
      put(w, "gap", list);
      list = cJSON_CreateArray();
    }
    for (int i = 0; i < 3; ++i)
      if (r->expand[i]) put_element(w, list, cJSON_CreateString(axis[i]));
    if (r->expand[0] || r->expand[1] || r->expand[2])
      put(w, "expand", list);
    else
      cJSON_Delete(list);
    put_int(w, "offset", r->offset, 0);
    put_int(w, "tail", r->tail, 0);
    end_object(w, outer);
  }
  if (parent) end_object(w, parent);
}

static const char *fill_name(fa_fill fill) {
  return (unsigned)fill < FA_N_FILLS ? fa_fill_describe(fill)->name : "?";
}

/* The fill that most tensors have becomes the default; ties go to the first in the list of fills. */
static void put_fills(writer *w, const fa_case *c) {
  int count[FA_N_FILLS] = {0}, n = 0, best = FA_FILL_NORMAL;
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_case_has_fill(id) && (unsigned)c->fill[id] < FA_N_FILLS) ++n, ++count[c->fill[id]];
  for (int f = FA_N_FILLS - 1; f >= 0; --f)
    if (count[f] >= count[best] && fa_fill_is_general((fa_fill)f)) best = f;
  if (count[best] == n) {
    if (best != FA_FILL_NORMAL) put_text(w, "fill", fill_name(best));
    return;
  }
  cJSON *parent = begin_object(w, "fill");
  if (best != FA_FILL_NORMAL) put_text(w, "default", fill_name(best));
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_case_has_fill(id) && (int)c->fill[id] != best)
      put_text(w, fa_tensor_id_name(id), fill_name(c->fill[id]));
  end_object(w, parent);
}

static void put_zero(writer *w, const fa_case *c) {
  cJSON *parent = NULL;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const int64_t shape[2] = {c->zero[id].n / 2, 2};
    const int32_t *v = c->zero[id].v;
    if (shape[0] == 0) continue;
    if (!parent) parent = begin_object(w, "zero");
    put(w, fa_tensor_id_name(id), nested(w, 2, shape, &v));
  }
  if (parent) end_object(w, parent);
}

/* Repetitions, poison, schedule, and what judges. */
static void put_runs(writer *w, const fa_case *c) {
  if (c->poison != FA_POISON_B) {
    cJSON *parent = begin_object(w, "memory");
    put_word(w, "poison", WORDS("nan", "inf", "zero", "finite"), (int)c->poison - FA_POISON_B, 0);
    end_object(w, parent);
  }
  put_int(w, "repeat", c->repeat, 2);
  put_u64(w, "schedule_seed", c->schedule_seed, 0);
  if (c->law != FA_LAW_NONE)
    put_text(w, "law", (unsigned)c->law < FA_N_LAWS ? fa_law_describe(c->law)->name : "?");
}

/* ---- the case ---- */

/* The scale that follows from "mla" is not that of head_dim: it is always written. */
#define NO_SCALE ((double)NAN)
enum { NOT_DEFAULT = -1 }; /* a capacity has no default where seqlen_q is not written */

static void put_sizes(writer *w, const fa_problem *p) {
  const bool varlen = fa_problem_is_varlen(p), packed_keys = fa_problem_has_packed_keys(p);
  put_int(w, "batch", p->batch, varlen ? p->batch : 1);
  put_int(w, "heads_q", p->heads_q, 1);
  if (p->family != FA_MERGE) put_int(w, "heads_kv", p->heads_kv, p->kvcache.v_in_k ? 1 : p->heads_q);
  put_int(w, "seqlen_q", p->seqlen_q, varlen ? p->seqlen_q : 1);
  if (p->family != FA_MERGE)
    put_int(w, "seqlen_k", p->seqlen_k, packed_keys ? p->seqlen_k : varlen ? NOT_DEFAULT : p->seqlen_q);
  put_int(w, "head_dim", p->head_dim, 64);
  put_int(w, "head_dim_v", p->head_dim_v, p->head_dim);
  put_ints(w, "cu_seqlens_q", &p->cu_seqlens_q);
  put_ints(w, "cu_seqlens_k", &p->cu_seqlens_k);
  put_ints(w, "seqused_k", &p->seqused_k);
  if (p->family != FA_KVCACHE) put_ints(w, "leftpad_k", &p->leftpad_k);
}

static void put_problem_rest(writer *w, const fa_problem *p) {
  put_number(w, "scale", p->scale, p->kvcache.v_in_k ? NO_SCALE : fa_default_scale(p->head_dim));
  put_number(w, "softcap", p->softcap, 0);
  put_mask(w, &p->mask);
  put_alibi(w, p);
  put_bias(w, &p->bias);
  put_dropout(w, &p->dropout);
  put_sinks(w, &p->sinks);
  put_text(w, "score_mod", p->score_mod);
  put_text(w, "mask_mod", p->mask_mod);
  put_captures(w, p);
  put_block_sparse(w, p);
  put_mask_bits(w, &p->mask_bits);
  put_topk(w, &p->topk);
  put_kvcache(w, p);
  put_mla(w, p);
  put_quantized(w, &p->quantized);
  put_merge(w, p);
  put_int(w, "splits", p->splits, 0);
  put_bool(w, "deterministic", p->deterministic, false);
  put_bool(w, "backward", p->backward, fa_problem_default_backward(p));
  put_bool(w, "return_softmax", p->return_softmax, false);
  put_bool(w, "grad_lse", p->grad_lse, false);
  put_word(w, "empty_lse", WORDS("+inf", "-inf", "0"), p->empty_lse, fa_family_default_empty_lse(p->family));
  put_word(w, "lse_layout", WORDS("packed", "padded"), p->lse_padded, false);
}

fa_status fa_case_to_json(const fa_case *c, cJSON **out) {
  const fa_problem *p = &c->problem;
  cJSON *root = cJSON_CreateObject();
  writer w = {root, root == NULL};
  *out = NULL;
  put_text(&w, "name", c->name);
  put_text(&w, "note", c->note);
  put(&w, "family", cJSON_CreateString(fa_family_name(p->family)));
  put(&w, "dtype", cJSON_CreateString(fa_dtype_name(p->dtype)));
  put_sizes(&w, p);
  put_word(&w, "layout", WORDS("bshd", "bhsd", "sbhd"), c->layout, FA_LAYOUT_BSHD);
  put_strides(&w, c);
  put_word(&w, "packed", WORDS("none", "kv", "qkv"), c->packing, FA_PACK_NONE);
  put_problem_rest(&w, p);
  put_fills(&w, c);
  put_zero(&w, c);
  put_u64(&w, "data_seed", c->data_seed, 1);
  put_runs(&w, c);
  put_word(&w, "expect", WORDS("pass", "reject"), c->expect, FA_EXPECT_PASS);
  if (w.failed) {
    cJSON_Delete(root);
    return FA_ERR_MEMORY;
  }
  *out = root;
  return FA_OK;
}

char *fa_case_to_line(const fa_case *c) {
  cJSON *tree;
  if (fa_case_to_json(c, &tree) != FA_OK) return NULL;
  char *line = cJSON_PrintUnformatted(tree);
  cJSON_Delete(tree);
  return line;
}
