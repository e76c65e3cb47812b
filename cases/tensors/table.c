#include "cases/tensors/table.h"

#include "cases/tensors/mixed.h"
#include "cases/tensors/nibbles.h"

_Static_assert(FA_T_COUNT <= 126, "a bit for every tensor");

#define IN FA_TENSOR_INPUT
#define OUT FA_TENSOR_OUTPUT
#define FORWARD FA_PASS_FORWARD
#define BACKWARD FA_PASS_BACKWARD
#define SUMS(flag) .sums = offsetof(fa_profile, flag)
#define GRADIENT(input) .gradient = true, .of = (input)

/* clang-format off */
/* A captured buffer, and its gradient. */
#define BUFFER(k)                                                                                            \
  [FA_T_BUFFER_0 + (k)] = {"buffer_" #k, IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_BUFFER},                  \
  [FA_T_DBUFFER_0 + (k)] = {"dbuffer_" #k, OUT, BACKWARD, FA_AXES_OWN, FA_DATA_NONE,                         \
                            GRADIENT(FA_T_BUFFER_0 + (k)), SUMS(dbuffer_atomic)}

/* name, direction, pass, axes, data, when */
static const fa_tensor_info table[FA_T_COUNT] = {
    [FA_T_Q] = {"q", IN, FORWARD, FA_AXES_TOKENS, .data = FA_DATA_QUERY, .when = FA_WHEN_ATTENTION},
    [FA_T_K] = {"k", FA_TENSOR_UPDATED, FORWARD, FA_AXES_TOKENS, FA_DATA_KEY, FA_WHEN_ATTENTION,
                .on_keys = true},
    [FA_T_V] = {"v", FA_TENSOR_UPDATED, FORWARD, FA_AXES_TOKENS, FA_DATA_VALUE, FA_WHEN_ATTENTION,
                .on_keys = true, .on_values = true},
    [FA_T_BIAS] = {"bias", IN, FORWARD, FA_AXES_BIAS, FA_DATA_BIAS, .when = FA_WHEN_BIAS},
    [FA_T_ALIBI_SLOPES] = {"alibi_slopes", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_PROBLEM},
    [FA_T_DO] = {"do", IN, BACKWARD, FA_AXES_TOKENS, FA_DATA_GRADIENT, FA_WHEN_BACKWARD, .on_values = true},
    [FA_T_DLSE] = {"dlse", IN, BACKWARD, FA_AXES_ROWS, FA_DATA_PLAIN, FA_WHEN_BACKWARD | FA_WHEN_GRAD_LSE,
                   .f32 = true},
    [FA_T_CU_SEQLENS_Q] = {"cu_seqlens_q", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_PROBLEM},
    [FA_T_CU_SEQLENS_K] = {"cu_seqlens_k", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_PROBLEM},
    [FA_T_SEQUSED_K] = {"seqused_k", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_PROBLEM},
    [FA_T_LEFTPAD_K] = {"leftpad_k", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_PROBLEM},
    [FA_T_K_NEW] = {"k_new", IN, FORWARD, FA_AXES_NEW, FA_DATA_KEY, FA_WHEN_NEW_KEYS, .on_keys = true,
                    .of = FA_T_K},
    [FA_T_V_NEW] = {"v_new", IN, FORWARD, FA_AXES_NEW, FA_DATA_VALUE, FA_WHEN_NEW_KEYS, .on_keys = true,
                    .on_values = true, .of = FA_T_V},
    [FA_T_CACHE_SEQLENS] = {"cache_seqlens", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_PROBLEM},
    [FA_T_CACHE_BATCH_IDX] = {"cache_batch_idx", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_PROBLEM},
    [FA_T_BLOCK_TABLE] = {"block_table", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_ROTARY_COS] = {"rotary_cos", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_ROTARY_SIN] = {"rotary_sin", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_KV_NUM_BLOCKS] = {"kv_num_blocks", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_KV_INDICES] = {"kv_indices", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_FULL_KV_NUM_BLOCKS] = {"full_kv_num_blocks", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_FULL_KV_INDICES] = {"full_kv_indices", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_MASK_BITS] = {"mask_bits", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_MASK_INDPTR] = {"mask_indptr", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_O] = {"o", OUT, FORWARD, FA_AXES_TOKENS, .on_values = true},
    [FA_T_LSE] = {"lse", OUT, FORWARD, FA_AXES_ROWS, .f32 = true},
    [FA_T_P_DEBUG] = {"p_debug", OUT, FORWARD, FA_AXES_SCORES, .when = FA_WHEN_RETURN_SOFTMAX},
    [FA_T_DROPOUT_KEEP] = {"dropout_keep", OUT, FORWARD, FA_AXES_SCORES, .when = FA_WHEN_RECORDED},
    [FA_T_DQ] = {"dq", OUT, BACKWARD, FA_AXES_TOKENS, .when = FA_WHEN_BACKWARD | FA_WHEN_ATTENTION, GRADIENT(FA_T_Q),
                 SUMS(dq_atomic)},
    [FA_T_DK] = {"dk", OUT, BACKWARD, FA_AXES_TOKENS, .when = FA_WHEN_BACKWARD | FA_WHEN_ATTENTION, .on_keys = true,
                 GRADIENT(FA_T_K), SUMS(dkv_atomic)},
    [FA_T_DV] = {"dv", OUT, BACKWARD, FA_AXES_TOKENS, .when = FA_WHEN_BACKWARD | FA_WHEN_ATTENTION, .on_keys = true,
                 .on_values = true, GRADIENT(FA_T_V), SUMS(dkv_atomic)},
    [FA_T_DBIAS] = {"dbias", OUT, BACKWARD, FA_AXES_BIAS,
                    .when = FA_WHEN_BIAS | FA_WHEN_BIAS_GRAD | FA_WHEN_BACKWARD, GRADIENT(FA_T_BIAS),
                    SUMS(dbias_atomic)},
    [FA_T_O_PARTS] = {"o_parts", IN, FORWARD, FA_AXES_PARTS, .data = FA_DATA_VALUE, .when = FA_WHEN_MERGE},
    [FA_T_LSE_PARTS] = {"lse_parts", IN, FORWARD, FA_AXES_PART_ROWS, FA_DATA_LSE, FA_WHEN_MERGE, .f32 = true},
    [FA_T_DO_PARTS] = {"do_parts", OUT, BACKWARD, FA_AXES_PARTS, .when = FA_WHEN_BACKWARD | FA_WHEN_MERGE,
                       GRADIENT(FA_T_O_PARTS)},
    [FA_T_DLSE_PARTS] = {"dlse_parts", OUT, BACKWARD, FA_AXES_PART_ROWS,
                         .when = FA_WHEN_BACKWARD | FA_WHEN_MERGE, .f32 = true, GRADIENT(FA_T_LSE_PARTS)},
    [FA_T_SINKS] = {"sinks", IN, FORWARD, FA_AXES_HEADS, FA_DATA_SINKS, FA_WHEN_SINKS, .f32 = true},
    [FA_T_DSINKS] = {"dsinks", OUT, BACKWARD, FA_AXES_HEADS,
                     .when = FA_WHEN_SINKS | FA_WHEN_SINKS_GRAD | FA_WHEN_BACKWARD, .f32 = true,
                     GRADIENT(FA_T_SINKS), SUMS(dsinks_atomic)},
    [FA_T_TOPK_INDICES] = {"topk_indices", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_TOPK_LENGTH] = {"topk_length", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_PROBLEM},
    [FA_T_Q_DESCALE] = {"q_descale", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_K_DESCALE] = {"k_descale", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_V_DESCALE] = {"v_descale", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_K_SCALES] = {"k_scales", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_V_SCALES] = {"v_scales", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    [FA_T_AMAX_P] = {"amax_p", OUT, FORWARD, FA_AXES_ONE, .when = FA_WHEN_AMAX, .f32 = true},
    [FA_T_AMAX_O] = {"amax_o", OUT, FORWARD, FA_AXES_ONE, .when = FA_WHEN_AMAX, .f32 = true},
    [FA_T_O_SCALE] = {"o_scale", IN, FORWARD, FA_AXES_OWN, .data = FA_DATA_MADE},
    BUFFER(0), BUFFER(1), BUFFER(2), BUFFER(3), BUFFER(4), BUFFER(5), BUFFER(6), BUFFER(7),
    BUFFER(8), BUFFER(9), BUFFER(10), BUFFER(11), BUFFER(12), BUFFER(13), BUFFER(14), BUFFER(15),
    BUFFER(16), BUFFER(17), BUFFER(18), BUFFER(19), BUFFER(20), BUFFER(21), BUFFER(22), BUFFER(23),
    BUFFER(24), BUFFER(25), BUFFER(26), BUFFER(27), BUFFER(28), BUFFER(29), BUFFER(30), BUFFER(31),
};
/* clang-format on */

const fa_tensor_info *fa_tensor_describe(fa_tensor_id id) {
  FA_ASSERT((unsigned)id < FA_T_COUNT);
  return &table[id];
}

const char *fa_tensor_id_name(fa_tensor_id id) {
  return fa_tensor_describe(id)->name;
}

bool fa_tensor_id_is_output(fa_tensor_id id) {
  return fa_tensor_describe(id)->direction == FA_TENSOR_OUTPUT;
}

bool fa_tensor_is_filled(fa_tensor_id id) {
  return fa_tensor_describe(id)->data >= FA_DATA_QUERY;
}

fa_tensor_id fa_tensor_gradient_of(fa_tensor_id id) {
  int g = 0;
  while (g < FA_T_COUNT && !(table[g].gradient && table[g].of == id)) ++g;
  return (fa_tensor_id)g;
}

bool fa_tensor_is_through_ds(fa_tensor_id id) {
  const fa_tensor_info *info = fa_tensor_describe(id);
  return info->gradient && table[info->of].data != FA_DATA_VALUE;
}

bool fa_tensor_sums_in_any_order(const fa_profile *profile, fa_tensor_id id) {
  const size_t at = fa_tensor_describe(id)->sums;
  return at > 0 && *(const bool *)((const char *)profile + at);
}

fa_tensor_bits fa_tensors_written_by(unsigned passes) {
  fa_tensor_bits set = 0;
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (table[id].direction == FA_TENSOR_OUTPUT && (table[id].pass & passes)) set |= FA_TENSOR_BIT(id);
  return set;
}

/* ---- of a problem ---- */

bool fa_tensor_is_updated(const fa_problem *p, fa_tensor_id id) {
  return fa_tensor_describe(id)->direction == FA_TENSOR_UPDATED && p->kvcache.present && p->kvcache.n_new > 0;
}

bool fa_tensor_is_in_k(const fa_problem *p, fa_tensor_id id) {
  return p->kvcache.v_in_k && (id == FA_T_V || id == FA_T_V_NEW);
}

bool fa_tensor_is_padding(const fa_problem *p, fa_tensor_id id, const int64_t *index) {
  if (!p->lse_padded || fa_tensor_describe(id)->axes != FA_AXES_ROWS) return false;
  const int32_t *cu = p->cu_seqlens_q.v;
  return index[2] >= (int64_t)cu[index[0] + 1] - cu[index[0]];
}

bool fa_tensor_has_parts(fa_tensor_id id) {
  const fa_tensor_axes axes = fa_tensor_describe(id)->axes;
  return axes == FA_AXES_PARTS || axes == FA_AXES_PART_ROWS;
}

fa_tensor_id fa_tensor_descale_of(const fa_problem *p, fa_tensor_id id) {
  const bool keys = p->quantized.present && p->quantized.per != FA_PER_TILE,
             fresh = keys && !p->quantized.quantizes_new;
  if (id == FA_T_Q && p->quantized.queries) return FA_T_Q_DESCALE;
  if ((keys && id == FA_T_K) || (fresh && id == FA_T_K_NEW)) return FA_T_K_DESCALE;
  return (keys && id == FA_T_V) || (fresh && id == FA_T_V_NEW) ? FA_T_V_DESCALE : FA_T_COUNT;
}

fa_dtype fa_tensor_dtype(const fa_problem *p, fa_tensor_id id) {
  const fa_tensor_info *info = fa_tensor_describe(id);
  if (info->f32) return FA_F32;
  if (id == FA_T_O && fa_quantizes_o(&p->quantized)) return p->quantized.o;
  if (fa_tensor_is_nibbles(p, id)) return FA_U8;
  if (fa_tensor_descale_of(p, id) != FA_T_COUNT) return p->quantized.dtype;
  if (fa_tensor_is_mixed(p, id)) return FA_U8;
  return info->axes == FA_AXES_PARTS ? p->merge.parts_dtype : p->dtype;
}

bool fa_tensor_is_asked_for(const fa_problem *p, fa_tensor_id id) {
  const fa_tensor_info *info = fa_tensor_describe(id);
  unsigned has = 0;
  if (p->bias.present) has |= FA_WHEN_BIAS;
  if (p->bias.grad) has |= FA_WHEN_BIAS_GRAD;
  if (p->backward) has |= FA_WHEN_BACKWARD;
  if (p->grad_lse) has |= FA_WHEN_GRAD_LSE;
  if (p->kvcache.n_new > 0) has |= FA_WHEN_NEW_KEYS;
  has |= p->family == FA_MERGE ? FA_WHEN_MERGE : FA_WHEN_ATTENTION;
  if (p->return_softmax) has |= FA_WHEN_RETURN_SOFTMAX;
  if (p->sinks.present) has |= FA_WHEN_SINKS;
  if (p->sinks.grad) has |= FA_WHEN_SINKS_GRAD;
  if (p->quantized.amax) has |= FA_WHEN_AMAX;
  return info->axes != FA_AXES_OWN && (info->when & ~has) == 0;
}

static void set_shape(int64_t shape[4], int64_t b, int64_t s, int64_t h, int64_t d) {
  shape[0] = b, shape[1] = s, shape[2] = h, shape[3] = d;
}

/* Rows and heads of queries, or of keys that are not in a cache. */
static void token_shape(const fa_problem *p, bool on_keys, int64_t d, int64_t shape[4]) {
  const bool varlen = on_keys ? fa_problem_has_packed_keys(p) : fa_problem_is_varlen(p);
  const int64_t total = on_keys ? fa_problem_total_k(p) : fa_problem_total_q(p);
  const int64_t length = on_keys ? p->seqlen_k : p->seqlen_q;
  set_shape(shape, varlen ? 1 : p->batch, varlen ? total : length, on_keys ? p->heads_kv : p->heads_q, d);
}

static void cache_shape(const fa_problem *p, int64_t d, int64_t shape[4]) {
  const int64_t page = p->kvcache.page_size;
  if (page)
    set_shape(shape, p->batch * (p->seqlen_k / page), page, p->heads_kv, d);
  else
    set_shape(shape, fa_problem_cache_rows(p), p->seqlen_k, p->heads_kv, d);
}

void fa_tensor_shape(const fa_problem *p, fa_tensor_id id, int64_t shape[4]) {
  const fa_tensor_info *info = fa_tensor_describe(id);
  const int64_t columns = info->on_values             ? p->head_dim_v
                          : fa_tensor_is_mixed(p, id) ? fa_mixed_bytes(p)
                                                      : p->head_dim;
  const int64_t d = fa_tensor_is_nibbles(p, id) ? columns / 2 : columns;
  switch (info->axes) {
  case FA_AXES_TOKENS:
    if (p->family == FA_KVCACHE && info->on_keys)
      cache_shape(p, d, shape);
    else
      token_shape(p, info->on_keys, d, shape);
    break;
  case FA_AXES_NEW:
    set_shape(shape, p->batch, p->kvcache.n_new, p->heads_kv, d);
    break;
  case FA_AXES_PARTS:
    token_shape(p, false, d, shape);
    break;
  case FA_AXES_ROWS:
    if (p->lse_padded) {
      set_shape(shape, p->batch, p->seqlen_q, p->heads_q, 1);
      break;
    }
    token_shape(p, false, 1, shape);
    break;
  case FA_AXES_PART_ROWS:
    token_shape(p, false, 1, shape);
    break;
  case FA_AXES_BIAS:
    set_shape(shape, p->bias.per_batch ? p->batch : 1, p->bias.per_query ? p->seqlen_q : 1,
              p->bias.per_head ? p->heads_q : 1, p->seqlen_k);
    break;
  case FA_AXES_HEADS:
    set_shape(shape, 1, 1, p->heads_q, 1);
    break;
  case FA_AXES_ONE:
    set_shape(shape, 1, 1, 1, 1);
    break;
  default:
    FA_ASSERT(!"a tensor whose axes the table knows");
  }
}
