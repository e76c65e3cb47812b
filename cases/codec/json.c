/* The keys of a case: tables with one small reader per key; then defaults for the keys that were not given.
 * To add a key: a reader here, a line in the table, its default in finish(), a line in cases/codec/write.c,
 * an entry in schema.json, and a rule in problem_check.c if it can contradict another key. */
#include "cases/base/json.h"
#include "cases/codec/json.h"
#include "cases/codec/keys.h"

#include <stdio.h>

READER(read_name) {
  return fa_read_text(r, v, 0, FA_MAX_NAME_CHARACTERS, &r->c.name);
}
READER(read_note) {
  return fa_read_text(r, v, 0, FA_MAX_NOTE_CHARACTERS, &r->c.note);
}
READER(read_family) {
  READ_WORD(P.family, "flash", "memeff", "flex", "kvcache", "merge");
}
READER(read_dtype) {
  READ_WORD(P.dtype, "f16", "bf16", "f32");
}
READER(read_heads_q) {
  return fa_read_int(r, v, 1, FA_MAX_HEADS, &P.heads_q);
}
READER(read_seqlen_q) {
  return fa_read_int(r, v, 0, FA_MAX_LENGTH, &P.seqlen_q);
}
READER(read_head_dim) {
  r->has_head_dim = true;
  return fa_read_int(r, v, 1, FA_MAX_HEAD_DIM, &P.head_dim);
}
READER(read_softcap) {
  return fa_read_number(r, v, 0, FLT_MAX, &P.softcap);
}
READER(read_splits) {
  return fa_read_int(r, v, 0, FA_MAX_SPLITS, &P.splits);
}
READER(read_deterministic) {
  return fa_read_bool(r, v, &P.deterministic);
}
READER(read_return_softmax) {
  return fa_read_bool(r, v, &P.return_softmax);
}
READER(read_grad_lse) {
  return fa_read_bool(r, v, &P.grad_lse);
}
READER(read_score_mod) {
  return fa_read_text(r, v, 1, FA_MAX_NOTE_CHARACTERS, &P.score_mod);
}
READER(read_mask_mod) {
  return fa_read_text(r, v, 1, FA_MAX_NOTE_CHARACTERS, &P.mask_mod);
}
READER(read_layout) {
  READ_WORD(r->c.layout, "bshd", "bhsd", "sbhd");
}
READER(read_packed) {
  READ_WORD(r->c.packing, "none", "kv", "qkv");
}
READER(read_expect) {
  READ_WORD(r->c.expect, "pass", "reject");
}
READER(read_data_seed) {
  return fa_read_u64(r, v, &r->c.data_seed);
}
READER(read_poison) {
  static const char *const words[] = {"nan", "inf", "zero", "finite"};
  int word = 0;
  TRY(fa_read_word(r, v, words, 4, &word));
  r->c.poison = (fa_poison)(FA_POISON_B + word);
  return FA_OK;
}
static const fa_case_key memory_keys[] = {{"poison", read_poison}, {0}};
READER(read_memory) {
  return fa_read_object(r, v, memory_keys);
}
READER(read_repeat) {
  return fa_read_int(r, v, 1, FA_MAX_REPEAT, &r->c.repeat);
}
READER(read_schedule_seed) {
  return fa_read_u64(r, v, &r->c.schedule_seed);
}
READER(read_law) {
  const char *words[FA_N_LAWS];
  int law = 0;
  for (int k = 0; k < FA_N_LAWS; ++k) words[k] = fa_law_describe((fa_law)k)->name;
  TRY(fa_read_word(r, v, words, FA_N_LAWS, &law));
  r->c.law = (fa_law)law;
  return FA_OK;
}
READER(read_cu_q) {
  return fa_read_ints(r, v, 0, FA_MAX_LENGTH, 2, &P.cu_seqlens_q);
}
READER(read_cu_k) {
  return fa_read_ints(r, v, 0, FA_MAX_LENGTH, 2, &P.cu_seqlens_k);
}
READER(read_seqused_k) {
  return fa_read_ints(r, v, 0, FA_MAX_LENGTH, 1, &P.seqused_k);
}

/* Keys whose default depends on other keys. */
READER(read_batch) {
  r->has_batch = true;
  return fa_read_int(r, v, 1, FA_MAX_BATCH, &P.batch);
}
READER(read_heads_kv) {
  r->has_heads_kv = true;
  return fa_read_int(r, v, 1, FA_MAX_HEADS, &P.heads_kv);
}
READER(read_seqlen_k) {
  r->has_seqlen_k = true;
  return fa_read_int(r, v, 0, FA_MAX_LENGTH, &P.seqlen_k);
}
READER(read_head_dim_v) {
  r->has_head_dim_v = true;
  return fa_read_int(r, v, 1, FA_MAX_HEAD_DIM, &P.head_dim_v);
}
READER(read_scale) {
  r->has_scale = true;
  return fa_read_number(r, v, -FLT_MAX, FLT_MAX, &P.scale);
}
READER(read_backward) {
  r->has_backward = true;
  return fa_read_bool(r, v, &P.backward);
}
READER(read_empty_lse) {
  r->has_empty_lse = true;
  READ_WORD(P.empty_lse, "+inf", "-inf", "0");
}
READER(read_lse_layout) {
  READ_WORD(P.lse_padded, "packed", "padded");
}
READER(read_leftpad_k) {
  r->has_leftpad_k = true;
  return fa_read_ints(r, v, 0, FA_MAX_LENGTH, 1, &P.leftpad_k);
}

const fa_case_key fa_case_keys[] = {{"name", read_name},
                                    {"note", read_note},
                                    {"family", read_family},
                                    {"dtype", read_dtype},
                                    {"batch", read_batch},
                                    {"heads_q", read_heads_q},
                                    {"heads_kv", read_heads_kv},
                                    {"seqlen_q", read_seqlen_q},
                                    {"seqlen_k", read_seqlen_k},
                                    {"head_dim", read_head_dim},
                                    {"head_dim_v", read_head_dim_v},
                                    {"cu_seqlens_q", read_cu_q},
                                    {"cu_seqlens_k", read_cu_k},
                                    {"seqused_k", read_seqused_k},
                                    {"leftpad_k", read_leftpad_k},
                                    {"layout", read_layout},
                                    {"strides", fa_read_strides},
                                    {"packed", read_packed},
                                    {"scale", read_scale},
                                    {"softcap", read_softcap},
                                    {"mask", fa_read_mask},
                                    {"alibi", fa_read_alibi},
                                    {"bias", fa_read_bias},
                                    {"dropout", fa_read_dropout},
                                    {"score_mod", read_score_mod},
                                    {"mask_mod", read_mask_mod},
                                    {"buffers", fa_read_buffers},
                                    {"block_sparse", fa_read_block_sparse},
                                    {"mask_bits", fa_read_mask_bits},
                                    {"topk", fa_read_topk},
                                    {"sinks", fa_read_sinks},
                                    {"kvcache", fa_read_kvcache},
                                    {"mla", fa_read_mla},
                                    {"quantized", fa_read_quantized},
                                    {"merge", fa_read_merge},
                                    {"splits", read_splits},
                                    {"deterministic", read_deterministic},
                                    {"backward", read_backward},
                                    {"return_softmax", read_return_softmax},
                                    {"grad_lse", read_grad_lse},
                                    {"empty_lse", read_empty_lse},
                                    {"lse_layout", read_lse_layout},
                                    {"fill", fa_read_fill},
                                    {"zero", fa_read_zero},
                                    {"data_seed", read_data_seed},
                                    {"memory", read_memory},
                                    {"repeat", read_repeat},
                                    {"schedule_seed", read_schedule_seed},
                                    {"law", read_law},
                                    {"expect", read_expect},
                                    {0}};

/* ---- first stage ---- */

fa_status fa_case_reader_init(fa_case_reader *r, const char *base, fa_error *err) {
  *r = (fa_case_reader){.base = base, .err = err};
  if (fa_case_init(&r->c) == FA_OK) return FA_OK;
  return fa_fail(err, FA_ERR_MEMORY, "out of memory");
}

void fa_case_reader_free(fa_case_reader *r) {
  fa_case_free(&r->c);
}

fa_status fa_case_reader_read(fa_case_reader *r) {
  for (int64_t i = 0; i < r->n_fields; ++i) {
    const fa_case_field *f = &r->field[i];
    if (!f->value) continue;
    const fa_case_key *k = fa_read_find_key(fa_case_keys, f->key);
    if (!k) return fa_read_unknown_key(r, f->key, fa_case_keys);
    size_t mark = fa_read_push(r, f->key);
    TRY(k->read(r, f->value));
    fa_read_pop(r, mark);
  }
  return FA_OK;
}

/* ---- second stage: defaults, and contradictions visible only in the text ---- */

/* Reports a contradiction at a key of the case. */
#define CONTRADICTION(key, ...)                                                                              \
  do {                                                                                                       \
    snprintf(r->path, sizeof r->path, ".%s", key);                                                           \
    return fa_read_fail(r, false, __VA_ARGS__);                                                              \
  } while (0)

static fa_status finish_blocks(fa_case_reader *r) {
  static const char *const name[] = {"kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"};
  fa_block_sparse *s = &P.block_sparse;
  if (!s->present) return FA_OK;
  int first = -1;
  for (int i = 0; i < 4; ++i) {
    if (!r->list_given[i]) continue;
    if (first < 0) first = i;
    for (int axis = 0; axis < 3; ++axis)
      if (r->list_shape[i][axis] != r->list_shape[first][axis])
        CONTRADICTION("block_sparse", "%s and %s differ in size: %lld and %lld along axis %d", name[first],
                      name[i], (long long)r->list_shape[first][axis], (long long)r->list_shape[i][axis],
                      axis);
  }
  if ((first >= 0) + r->has_from + r->has_density != 1)
    CONTRADICTION("block_sparse", "needs one of the lists kv_num_blocks and kv_indices, from, and density");
  if (r->has_block_seed && !r->has_density) CONTRADICTION("block_sparse.seed", "only density has a seed");
  s->source = r->has_from ? FA_BLOCKS_MASK_MOD : r->has_density ? FA_BLOCKS_DENSITY : FA_BLOCKS_LISTS;
  if (first >= 0) s->list_batch = r->list_shape[first][0], s->list_heads = r->list_shape[first][1];
  return FA_OK;
}

static fa_status finish_bits(fa_case_reader *r) {
  if (P.mask_bits.present && r->has_bits_density == r->has_bits_tree)
    CONTRADICTION("mask_bits", "needs one of density and tree");
  return FA_OK;
}

static fa_status finish_defaults(fa_case_reader *r) {
  if (!r->has_heads_kv) P.heads_kv = P.heads_q;
  if (!r->has_seqlen_k) P.seqlen_k = P.seqlen_q;
  if (!r->has_head_dim_v) P.head_dim_v = P.head_dim;
  if (!r->has_scale) P.scale = fa_default_scale(P.head_dim);
  if (!r->has_backward) P.backward = fa_problem_default_backward(&P);
  if (!r->has_empty_lse) P.empty_lse = fa_family_default_empty_lse(P.family);
  fa_read_quantized_finish(r);
  TRY(fa_read_mla_finish(r));
  TRY(fa_read_merge_finish(r));
  if (r->has_bias_fill && r->has_fill_bias && r->bias_fill != r->c.fill[FA_T_BIAS])
    CONTRADICTION("bias.fill", "differs from fill.bias");
  if (r->has_bias_fill) r->c.fill[FA_T_BIAS] = r->bias_fill;
  if (r->has_leftpad_k && r->has_cache_leftpad)
    CONTRADICTION("kvcache.leftpad", "leftpad_k is given too; they mean the same");
  if (r->has_batch && P.cu_seqlens_q.n > 0 && P.batch != P.cu_seqlens_q.n - 1)
    CONTRADICTION("batch", "%lld, but cu_seqlens_q is for %lld entries", (long long)P.batch,
                  (long long)P.cu_seqlens_q.n - 1);
  if (fa_problem_complete(&P) != FA_OK) return fa_fail(r->err, FA_ERR_MEMORY, "out of memory");
  if (r->slopes_shape[0] && (r->slopes_shape[0] != P.batch || r->slopes_shape[1] != P.heads_q))
    CONTRADICTION("alibi.slopes", "is %lld x %lld, must be batch %lld x heads_q %lld",
                  (long long)r->slopes_shape[0], (long long)r->slopes_shape[1], (long long)P.batch,
                  (long long)P.heads_q);
  return FA_OK;
}

fa_status fa_case_reader_finish(fa_case_reader *r, fa_case *out) {
  r->path[0] = 0;
  TRY(finish_blocks(r));
  TRY(finish_bits(r));
  TRY(finish_defaults(r));
  fa_error local = {""};
  fa_status status = fa_case_validate(&r->c, &local);
  if (status == FA_OK) {
    *out = r->c;
    r->c = (fa_case){0};
    return FA_OK;
  }
  /* "$.heads_q: ..." is relative to the case: find where in the file its key is. */
  const char *colon = strchr(local.text, ':');
  if (local.text[0] != '$' || !colon) return fa_fail(r->err, status, "%s", local.text);
  snprintf(r->path, sizeof r->path, "%.*s", (int)(colon - local.text - 1), local.text + 1);
  fa_read_fail(r, false, "%s", colon + 2);
  return status;
}

/* ---- a single case ---- */

void fa_case_fields_add(fa_case_field *field, int64_t *n, const cJSON *object, const char *container) {
  int64_t old = *n;
  for (const cJSON *e = object ? object->child : NULL; e; e = e->next) {
    int64_t i = 0;
    while (i < old && strcmp(field[i].key, e->string) != 0) ++i;
    if (i == old) field[(*n)++] = (fa_case_field){e->string, e, container, -1};
  }
}

fa_status fa_case_from_json(const cJSON *object, const char *path, fa_case *out, fa_error *err) {
  fa_case_reader r;
  fa_case_field *field = NULL;
  int64_t n = 0;
  if (!cJSON_IsObject(object)) {
    char buffer[80];
    return fa_fail(err, FA_ERR_INPUT, "%s: %s is not an object", path, fa_read_describe(object, buffer));
  }
  fa_status status = fa_case_reader_init(&r, path, err);
  if (status != FA_OK) return status;
  field = calloc((size_t)cJSON_GetArraySize(object) + 1, sizeof *field);
  if (!field) {
    status = fa_fail(err, FA_ERR_MEMORY, "out of memory");
    goto out;
  }
  fa_case_fields_add(field, &n, object, path);
  r.field = field;
  r.n_fields = n;
  status = fa_case_reader_read(&r);
  if (status == FA_OK) status = fa_case_reader_finish(&r, out);
out:
  free(field);
  fa_case_reader_free(&r);
  return status;
}

fa_status fa_case_from_text(const char *json, fa_case *out, fa_error *err) {
  cJSON *tree;
  fa_status status = fa_json_parse(json, strlen(json), "case", &tree, err);
  if (status != FA_OK) return status;
  status = fa_case_from_json(tree, "$", out, err);
  cJSON_Delete(tree);
  return status;
}
