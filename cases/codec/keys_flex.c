/* The keys of family flex: block lists and captured buffers. */
#include "cases/codec/keys.h"

#include <stdio.h>

/* ---- block_sparse ---- */

static fa_status read_list(fa_case_reader *r, const cJSON *v, int list, int rank, fa_int32_array *out) {
  r->list_given[list] = true;
  return fa_read_nested(r, v, rank, r->list_shape[list], out);
}
READER(read_kv_num) {
  return read_list(r, v, 0, 3, &P.block_sparse.kv_num_blocks);
}
READER(read_kv_idx) {
  return read_list(r, v, 1, 4, &P.block_sparse.kv_indices);
}
READER(read_full_num) {
  return read_list(r, v, 2, 3, &P.block_sparse.full_kv_num_blocks);
}
READER(read_full_idx) {
  return read_list(r, v, 3, 4, &P.block_sparse.full_kv_indices);
}
READER(read_q_block) {
  return fa_read_int(r, v, 1, FA_MAX_BLOCK, &P.block_sparse.q_block);
}
READER(read_kv_block) {
  return fa_read_int(r, v, 1, FA_MAX_BLOCK, &P.block_sparse.kv_block);
}
READER(read_density) {
  r->has_density = true;
  return fa_read_number(r, v, 0, 1, &P.block_sparse.density);
}
READER(read_block_seed) {
  r->has_block_seed = true;
  return fa_read_u64(r, v, &P.block_sparse.seed);
}
READER(read_from) {
  static const char *const words[] = {"mask_mod"};
  int word;
  r->has_from = true;
  return fa_read_word(r, v, words, 1, &word);
}
static const fa_case_key block_keys[] = {{"q_block", read_q_block},
                                         {"kv_block", read_kv_block},
                                         {"kv_num_blocks", read_kv_num},
                                         {"kv_indices", read_kv_idx},
                                         {"full_kv_num_blocks", read_full_num},
                                         {"full_kv_indices", read_full_idx},
                                         {"from", read_from},
                                         {"density", read_density},
                                         {"seed", read_block_seed},
                                         {0}};
fa_status fa_read_block_sparse(fa_case_reader *r, const cJSON *v) {
  P.block_sparse.present = true;
  return fa_read_object(r, v, block_keys);
}

/* ---- buffers ---- */

static fa_status read_capture_shape(fa_case_reader *r, const cJSON *v, fa_capture *c) {
  char buffer[80];
  if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) > FA_MAX_CAPTURE_RANK)
    return fa_read_fail(r, true, "%s is not an array of at most %d sizes", fa_read_describe(v, buffer),
                        FA_MAX_CAPTURE_RANK);
  c->rank = 0;
  for (const cJSON *e = v->child; e; e = e->next) {
    size_t mark = fa_read_push_index(r, c->rank);
    TRY(fa_read_int(r, e, 1, FA_MAX_LENGTH, &c->shape[c->rank++]));
    fa_read_pop(r, mark);
  }
  return FA_OK;
}

static fa_status read_capture_fill(fa_case_reader *r, const cJSON *v, fa_capture *c) {
  fa_fill fill = FA_FILL_NORMAL;
  TRY(fa_read_fill_name(r, v, FA_T_COUNT, &fill));
  snprintf(c->fill, sizeof c->fill, "%s", fa_fill_describe(fill)->name);
  return FA_OK;
}

/* The captured buffer being read; the readers of its keys receive only r. */
static fa_capture *capture_of(fa_case_reader *r) {
  return &P.captures[P.n_captures - 1];
}
READER(read_shape) {
  return read_capture_shape(r, v, capture_of(r));
}
READER(read_capture_dtype) {
  static const char *const words[] = {"f32", "f16", "bf16", "i32", "i64", "bool"};
  int word = 0;
  const fa_status status = fa_read_word(r, v, words, sizeof words / sizeof *words, &word);
  if (status == FA_OK) FA_ASSERT(fa_dtype_from_name(words[word], &capture_of(r)->dtype));
  return status;
}
READER(read_capture_strides) {
  fa_capture *c = capture_of(r);
  char buffer[80];
  if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) > FA_MAX_CAPTURE_RANK)
    return fa_read_fail(r, true, "%s is not an array of at most %d strides", fa_read_describe(v, buffer),
                        FA_MAX_CAPTURE_RANK);
  for (const cJSON *e = v->child; e; e = e->next) {
    size_t mark = fa_read_push_index(r, c->n_strides);
    TRY(fa_read_int(r, e, 0, FA_MAX_ELEMENTS, &c->stride[c->n_strides++]));
    fa_read_pop(r, mark);
  }
  return FA_OK;
}
READER(read_share) {
  return fa_read_number(r, v, 0, 1, &capture_of(r)->share);
}
READER(read_fill_of_capture) {
  return read_capture_fill(r, v, capture_of(r));
}
READER(read_below) {
  return fa_read_int(r, v, 1, FA_MAX_CAPTURE_I64, &capture_of(r)->below);
}
READER(read_sorted) {
  return fa_read_bool(r, v, &capture_of(r)->sorted);
}
READER(read_grad) {
  return fa_read_bool(r, v, &capture_of(r)->grad);
}
static const fa_case_key capture_keys[] = {
    {"shape", read_shape},          {"dtype", read_capture_dtype}, {"strides", read_capture_strides},
    {"fill", read_fill_of_capture}, {"below", read_below},         {"sorted", read_sorted},
    {"share", read_share},          {"grad", read_grad},           {0}};

static bool is_identifier(const char *s) {
  size_t letters = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
  size_t all = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
  return letters > 0 && !s[all] && all < sizeof((fa_capture *)0)->name;
}

/* What is not said depends on the type. */
static fa_status read_capture(fa_case_reader *r, const cJSON *e, fa_capture *c) {
  snprintf(c->fill, sizeof c->fill, "normal");
  c->dtype = FA_F32;
  TRY(fa_read_object(r, e, capture_keys));
  if (!cJSON_GetObjectItemCaseSensitive(e, "grad")) c->grad = fa_capture_is_float(c);
  const bool has_share = cJSON_GetObjectItemCaseSensitive(e, "share");
  if (c->dtype != FA_BOOL && has_share)
    return fa_read_fail(r, false, "share: the buffer is %s; bool ones have a share that is true",
                        fa_dtype_name(c->dtype));
  if (c->dtype == FA_BOOL && !has_share) c->share = 0.5;
  return FA_OK;
}

fa_status fa_read_buffers(fa_case_reader *r, const cJSON *v) {
  char buffer[80];
  if (!cJSON_IsObject(v)) return fa_read_fail(r, true, "%s is not an object", fa_read_describe(v, buffer));
  int n = cJSON_GetArraySize(v);
  if (n > FA_MAX_CAPTURES) return fa_read_fail(r, true, "%d buffers, at most %d", n, FA_MAX_CAPTURES);
  if (n == 0) return FA_OK;
  P.captures = calloc((size_t)n, sizeof *P.captures);
  if (!P.captures) return fa_fail(r->err, FA_ERR_MEMORY, "out of memory");
  for (const cJSON *e = v->child; e; e = e->next) {
    fa_capture *c = &P.captures[P.n_captures++];
    size_t mark = fa_read_push(r, e->string);
    if (!is_identifier(e->string))
      return fa_read_fail(r, true, "the name is not an identifier of 1 .. %zu letters, digits and _",
                          sizeof c->name - 1);
    snprintf(c->name, sizeof c->name, "%s", e->string);
    TRY(read_capture(r, e, c));
    fa_read_pop(r, mark);
  }
  return FA_OK;
}
