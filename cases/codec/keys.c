/* Keys of a case whose value is an object, each with the table of its own keys. */
#include "cases/codec/keys.h"
#include "cases/tensors/table.h"

/* ---- mask, dropout ---- */

READER(read_mask_type) {
  const char *words[FA_N_MASKS];
  int word = 0;
  for (int type = 0; type < FA_N_MASKS; ++type) words[type] = fa_mask_describe((fa_mask_type)type)->name;
  TRY(fa_read_word(r, v, words, FA_N_MASKS, &word));
  P.mask.type = (fa_mask_type)word;
  return FA_OK;
}
READER(read_mask_align) {
  READ_WORD(P.mask.align, "bottom_right", "top_left");
}
READER(read_mask_left) {
  return fa_read_int(r, v, -1, INT32_MAX, &P.mask.left);
}
READER(read_mask_right) {
  return fa_read_int(r, v, -1, INT32_MAX, &P.mask.right);
}
READER(read_mask_size) {
  return fa_read_int(r, v, 1, INT32_MAX, &P.mask.size);
}
static const fa_case_key mask_keys[] = {{"type", read_mask_type}, {"align", read_mask_align},
                                        {"left", read_mask_left}, {"right", read_mask_right},
                                        {"size", read_mask_size}, {0}};
fa_status fa_read_mask(fa_case_reader *r, const cJSON *v) {
  return fa_read_object(r, v, mask_keys);
}

READER(read_dropout_p) {
  char buffer[80];
  TRY(fa_read_number(r, v, 0, 1, &P.dropout.p));
  if (P.dropout.p < 1) return FA_OK;
  return fa_read_fail(r, true, "%s is not in [0, 1): dropping everything leaves no scale 1/(1-p)",
                      fa_read_describe(v, buffer));
}
READER(read_dropout_seed) {
  return fa_read_u64(r, v, &P.dropout.seed);
}
READER(read_dropout_offset) {
  return fa_read_u64(r, v, &P.dropout.offset);
}
static const fa_case_key dropout_keys[] = {
    {"p", read_dropout_p}, {"seed", read_dropout_seed}, {"offset", read_dropout_offset}, {0}};
fa_status fa_read_dropout(fa_case_reader *r, const cJSON *v) {
  return fa_read_object(r, v, dropout_keys);
}

/* ---- ALiBi ---- */

/* The shortest decimal text of the largest f32 is a double slightly above it that rounds to it. */
#define MAX_SLOPE 3.4028235e38

static fa_status read_slope_row(fa_case_reader *r, const cJSON *v, int64_t *n, float *slopes) {
  int64_t index = 0;
  for (const cJSON *e = v->child; e; e = e->next, ++index) {
    double x;
    size_t mark = fa_read_push_index(r, index);
    TRY(fa_read_number(r, e, -MAX_SLOPE, MAX_SLOPE, &x));
    fa_read_pop(r, mark);
    slopes[(*n)++] = (float)x;
  }
  return FA_OK;
}

static int64_t count_leaves(const cJSON *v) {
  int64_t n = 0;
  for (const cJSON *e = v->child; e; e = e->next) n += cJSON_IsArray(e) ? cJSON_GetArraySize(e) : 1;
  return n;
}

static fa_status read_slope_rows(fa_case_reader *r, const cJSON *v, int64_t *n, float *slopes) {
  char buffer[80];
  int64_t columns = -1;
  for (const cJSON *e = v->child; e; e = e->next) {
    size_t mark = fa_read_push_index(r, r->slopes_shape[0]++);
    if (!cJSON_IsArray(e))
      return fa_read_fail(r, true, "%s is not an array, as the element before it",
                          fa_read_describe(e, buffer));
    int64_t before = *n;
    if (!e->child) return fa_read_fail(r, true, "an empty array");
    TRY(read_slope_row(r, e, n, slopes));
    if (columns >= 0 && *n - before != columns)
      return fa_read_fail(r, false, "has %lld slopes, the entry before it %lld", (long long)(*n - before),
                          (long long)columns);
    columns = *n - before;
    fa_read_pop(r, mark);
  }
  r->slopes_shape[1] = columns;
  return FA_OK;
}

READER(read_slopes) {
  char buffer[80];
  fa_alibi *a = &P.alibi;
  a->standard = cJSON_IsString(v) && strcmp(v->valuestring, "standard") == 0;
  if (a->standard) return FA_OK;
  if (!cJSON_IsArray(v) || !v->child)
    return fa_read_fail(r, true,
                        "%s is not \"standard\", [slope of each head] or [[slope ...] of each entry]",
                        cJSON_IsArray(v) ? "an empty array" : fa_read_describe(v, buffer));
  a->slopes = malloc((size_t)count_leaves(v) * sizeof *a->slopes + 1);
  if (!a->slopes) return fa_fail(r->err, FA_ERR_MEMORY, "out of memory");
  return cJSON_IsArray(v->child) ? read_slope_rows(r, v, &a->n, a->slopes)
                                 : read_slope_row(r, v, &a->n, a->slopes);
}
static const fa_case_key alibi_keys[] = {{"slopes", read_slopes}, {0}};
fa_status fa_read_alibi(fa_case_reader *r, const cJSON *v) {
  P.alibi.present = P.alibi.standard = true;
  return fa_read_object(r, v, alibi_keys);
}

/* ---- fills ---- */

fa_status fa_read_fill_name(fa_case_reader *r, const cJSON *v, fa_tensor_id id, fa_fill *out) {
  const char *words[FA_N_FILLS];
  fa_fill fills[FA_N_FILLS];
  int n = 0, word = 0;
  for (int f = 0; f < FA_N_FILLS; ++f) {
    const fa_fill_info *info = fa_fill_describe(f);
    const fa_tensor_data data = id < FA_T_COUNT ? fa_tensor_describe(id)->data : FA_DATA_NONE;
    if ((info->bias_only && data != FA_DATA_BIAS) || (info->do_only && data != FA_DATA_GRADIENT) ||
        (info->lse_only && data != FA_DATA_LSE) || (info->sinks_only && data != FA_DATA_SINKS))
      continue;
    fills[n] = f;
    words[n++] = info->name;
  }
  TRY(fa_read_word(r, v, words, n, &word));
  *out = fills[word];
  return FA_OK;
}

#define FILL_READER(name, id)                                                                                \
  READER(name) {                                                                                             \
    return fa_read_fill_name(r, v, id, &r->c.fill[id]);                                                      \
  }
FILL_READER(read_fill_q, FA_T_Q)
FILL_READER(read_fill_k, FA_T_K)
FILL_READER(read_fill_v, FA_T_V)
FILL_READER(read_fill_do, FA_T_DO)
FILL_READER(read_fill_dlse, FA_T_DLSE)
FILL_READER(read_fill_sinks, FA_T_SINKS)
FILL_READER(read_fill_k_new, FA_T_K_NEW)
FILL_READER(read_fill_v_new, FA_T_V_NEW)
FILL_READER(read_fill_o_parts, FA_T_O_PARTS)
FILL_READER(read_fill_lse_parts, FA_T_LSE_PARTS)
READER(read_fill_bias) {
  r->has_fill_bias = true;
  return fa_read_fill_name(r, v, FA_T_BIAS, &r->c.fill[FA_T_BIAS]);
}
READER(read_fill_default) {
  fa_fill ignored; /* read_fill has handled this key first */
  return fa_read_fill_name(r, v, FA_T_COUNT, &ignored);
}
static const fa_case_key fill_keys[] = {{"default", read_fill_default},
                                        {"q", read_fill_q},
                                        {"k", read_fill_k},
                                        {"v", read_fill_v},
                                        {"bias", read_fill_bias},
                                        {"do", read_fill_do},
                                        {"dlse", read_fill_dlse},
                                        {"k_new", read_fill_k_new},
                                        {"v_new", read_fill_v_new},
                                        {"o_parts", read_fill_o_parts},
                                        {"lse_parts", read_fill_lse_parts},
                                        {"sinks", read_fill_sinks},
                                        {0}};
fa_status fa_read_fill(fa_case_reader *r, const cJSON *v) {
  const cJSON *all = cJSON_IsObject(v) ? cJSON_GetObjectItemCaseSensitive(v, "default") : v;
  if (all) {
    fa_fill fill;
    size_t mark = all == v ? strlen(r->path) : fa_read_push(r, "default");
    TRY(fa_read_fill_name(r, all, FA_T_COUNT, &fill));
    fa_read_pop(r, mark);
    fa_case_set_fill(&r->c, fill);
  }
  return all == v ? FA_OK : fa_read_object(r, v, fill_keys);
}

/* ---- bias ---- */

READER(read_bias_shape) {
  static const char *const letter[] = {"b", "h", "q", "k"};
  char buffer[80];
  bool *axis[] = {&P.bias.per_batch, &P.bias.per_head, &P.bias.per_query};
  if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) != 4)
    return fa_read_fail(r, true, "%s is not [\"b\" or 1, \"h\" or 1, \"q\" or 1, \"k\"]",
                        fa_read_describe(v, buffer));
  int i = 0;
  for (const cJSON *e = v->child; e; e = e->next, ++i) {
    bool one = i < 3 && cJSON_IsNumber(e) && e->valuedouble == 1;
    if (!one && !(cJSON_IsString(e) && strcmp(e->valuestring, letter[i]) == 0)) {
      fa_read_push_index(r, i);
      return fa_read_fail(r, true, "%s is not \"%s\"%s", fa_read_describe(e, buffer), letter[i],
                          i < 3 ? " or 1" : "");
    }
    if (i < 3) *axis[i] = !one;
  }
  return FA_OK;
}
READER(read_bias_grad) {
  return fa_read_bool(r, v, &P.bias.grad);
}
READER(read_bias_fill) {
  r->has_bias_fill = true;
  return fa_read_fill_name(r, v, FA_T_BIAS, &r->bias_fill);
}
static const fa_case_key bias_keys[] = {
    {"shape", read_bias_shape}, {"grad", read_bias_grad}, {"fill", read_bias_fill}, {0}};
fa_status fa_read_bias(fa_case_reader *r, const cJSON *v) {
  P.bias = (fa_bias){true, true, true, true, true};
  return fa_read_object(r, v, bias_keys);
}

/* ---- sinks ---- */

READER(read_sinks_grad) {
  return fa_read_bool(r, v, &P.sinks.grad);
}
READER(read_sinks_in_lse) {
  return fa_read_bool(r, v, &P.sinks.in_lse);
}
static const fa_case_key sinks_keys[] = {{"grad", read_sinks_grad}, {"in_lse", read_sinks_in_lse}, {0}};
fa_status fa_read_sinks(fa_case_reader *r, const cJSON *v) {
  char buffer[80];
  if (cJSON_IsFalse(v)) {
    P.sinks = (fa_sinks){0};
    return FA_OK;
  }
  if (!cJSON_IsTrue(v) && !cJSON_IsObject(v))
    return fa_read_fail(r, true, "%s is neither true, false nor an object", fa_read_describe(v, buffer));
  P.sinks = (fa_sinks){true, true, true};
  return cJSON_IsTrue(v) ? FA_OK : fa_read_object(r, v, sinks_keys);
}

/* ---- kvcache ---- */

READER(read_cache_len) {
  return fa_read_ints(r, v, 0, FA_MAX_LENGTH, 1, &P.kvcache.len);
}
READER(read_cache_new) {
  return fa_read_int(r, v, 0, FA_MAX_LENGTH, &P.kvcache.n_new);
}
READER(read_cache_page) {
  return fa_read_int(r, v, 0, FA_MAX_LENGTH, &P.kvcache.page_size);
}
READER(read_cache_shared) {
  return fa_read_int(r, v, 0, FA_MAX_LENGTH, &P.kvcache.shared_pages);
}
READER(read_cache_idx) {
  return fa_read_ints(r, v, 0, FA_MAX_BATCH - 1, 1, &P.kvcache.batch_idx);
}
READER(read_cache_leftpad) {
  r->has_cache_leftpad = true;
  return fa_read_ints(r, v, 0, FA_MAX_LENGTH, 1, &P.leftpad_k);
}
READER(read_rotary_dim) {
  return fa_read_int(r, v, 0, FA_MAX_HEAD_DIM, &P.kvcache.rotary_dim);
}
READER(read_rotary_interleaved) {
  return fa_read_bool(r, v, &P.kvcache.rotary_interleaved);
}
static const fa_case_key rotary_keys[] = {
    {"dim", read_rotary_dim}, {"interleaved", read_rotary_interleaved}, {0}};
READER(read_rotary) {
  return fa_read_object(r, v, rotary_keys);
}
static const fa_case_key kvcache_keys[] = {
    {"len", read_cache_len},        {"new", read_cache_new},
    {"page_size", read_cache_page}, {"shared_pages", read_cache_shared},
    {"batch_idx", read_cache_idx},  {"leftpad", read_cache_leftpad},
    {"rotary", read_rotary},        {0}};
fa_status fa_read_kvcache(fa_case_reader *r, const cJSON *v) {
  P.kvcache.present = true;
  return fa_read_object(r, v, kvcache_keys);
}

/* ---- strides ---- */

static fa_status read_expand(fa_case_reader *r, const cJSON *v, fa_stride_recipe *s) {
  static const char *const axis[] = {"b", "s", "h"};
  char buffer[80];
  if (!cJSON_IsArray(v))
    return fa_read_fail(r, true, "%s is not an array of \"b\", \"s\", \"h\"", fa_read_describe(v, buffer));
  int64_t index = 0;
  for (const cJSON *e = v->child; e; e = e->next, ++index) {
    int i = 0;
    size_t mark = fa_read_push_index(r, index);
    TRY(fa_read_word(r, e, axis, 3, &i));
    if (s->expand[i]) return fa_read_fail(r, true, "\"%s\" is given twice", axis[i]);
    s->expand[i] = true;
    fa_read_pop(r, mark);
  }
  return FA_OK;
}

static fa_status read_gap(fa_case_reader *r, const cJSON *v, fa_stride_recipe *s) {
  char buffer[80];
  if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) != 3)
    return fa_read_fail(r, true, "%s is not three gaps: after each batch entry, row and head",
                        fa_read_describe(v, buffer));
  int i = 0;
  for (const cJSON *e = v->child; e; e = e->next, ++i) {
    size_t mark = fa_read_push_index(r, i);
    TRY(fa_read_int(r, e, 0, FA_MAX_ELEMENTS, &s->gap[i]));
    fa_read_pop(r, mark);
  }
  return FA_OK;
}

static const fa_case_key recipe_keys[] = {
    {"gap", NULL}, {"expand", NULL}, {"offset", NULL}, {"tail", NULL}, {0}};
static fa_status read_recipe(fa_case_reader *r, const cJSON *v, fa_stride_recipe *s) {
  char buffer[80];
  if (!cJSON_IsObject(v)) return fa_read_fail(r, true, "%s is not an object", fa_read_describe(v, buffer));
  for (const cJSON *e = v->child; e; e = e->next) {
    const fa_case_key *k = fa_read_find_key(recipe_keys, e->string);
    if (!k) return fa_read_unknown_key(r, e->string, recipe_keys);
    size_t mark = fa_read_push(r, e->string);
    if (k == &recipe_keys[0])
      TRY(read_gap(r, e, s));
    else if (k == &recipe_keys[1])
      TRY(read_expand(r, e, s));
    else
      TRY(fa_read_int(r, e, 0, FA_MAX_LENGTH, k == &recipe_keys[2] ? &s->offset : &s->tail));
    fa_read_pop(r, mark);
  }
  return FA_OK;
}

fa_status fa_read_strides(fa_case_reader *r, const cJSON *v) {
  fa_case_key keys[FA_T_COUNT + 1];
  char buffer[80];
  int n = 0;
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_case_has_strides(id)) keys[n++] = (fa_case_key){fa_tensor_id_name(id), NULL};
  keys[n] = (fa_case_key){0};
  if (!cJSON_IsObject(v)) return fa_read_fail(r, true, "%s is not an object", fa_read_describe(v, buffer));
  for (const cJSON *e = v->child; e; e = e->next) {
    if (!fa_read_find_key(keys, e->string)) return fa_read_unknown_key(r, e->string, keys);
    int id = 0;
    while (strcmp(fa_tensor_id_name(id), e->string) != 0) ++id;
    size_t mark = fa_read_push(r, e->string);
    TRY(read_recipe(r, e, &r->c.strides[id]));
    fa_read_pop(r, mark);
  }
  return FA_OK;
}
