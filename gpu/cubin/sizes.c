#include "gpu/cubin/sizes.h"

#include "cases/vocabulary/mask.h"

#include <math.h>
#include <string.h>

/* ---- sizes of the problem ---- */

#define SIZE(its_name, expression)                                                                           \
  static int64_t get_##its_name(const fa_cubin_sizes *x) {                                                   \
    const fa_problem *p = x->problem;                                                                        \
    (void)p;                                                                                                 \
    return (int64_t)(expression);                                                                            \
  }
SIZE(batch, p->batch)
SIZE(heads_q, p->heads_q)
SIZE(heads_kv, p->heads_kv)
SIZE(group, p->heads_kv > 0 ? p->heads_q / p->heads_kv : 1)
SIZE(seqlen_q, p->seqlen_q)
SIZE(seqlen_k, p->seqlen_k)
SIZE(total_q, fa_problem_total_q(p))
SIZE(total_k, fa_problem_total_k(p))
SIZE(head_dim, p->head_dim)
SIZE(head_dim_v, p->head_dim_v)
SIZE(page_size, p->kvcache.page_size)
SIZE(new_keys, p->kvcache.n_new)
SIZE(rotary_dim, p->kvcache.rotary_dim)
SIZE(splits, p->splits)
SIZE(window_left, fa_mask_window(&p->mask).left)
SIZE(window_right, fa_mask_window(&p->mask).right)
SIZE(chunk, fa_mask_chunk(&p->mask))
SIZE(top_left, p->mask.align == FA_ALIGN_TOP_LEFT)
SIZE(varlen, p->cu_seqlens_q.n > 0)
SIZE(is_f16, p->dtype == FA_F16)
SIZE(is_bf16, p->dtype == FA_BF16)
SIZE(is_f32, p->dtype == FA_F32)
SIZE(deterministic, p->deterministic)
SIZE(processors, x->n_processors)

static const struct {
  const char *name;
  int64_t (*get)(const fa_cubin_sizes *x);
} sizes[] = {
#define ROW(name)                                                                                            \
  { #name, get_##name }
    ROW(batch),      ROW(heads_q), ROW(heads_kv),    ROW(group),        ROW(seqlen_q),      ROW(seqlen_k),
    ROW(total_q),    ROW(total_k), ROW(head_dim),    ROW(head_dim_v),   ROW(page_size),     ROW(new_keys),
    ROW(rotary_dim), ROW(splits),  ROW(window_left), ROW(window_right), ROW(chunk),         ROW(top_left),
    ROW(varlen),     ROW(is_f16),  ROW(is_bf16),     ROW(is_f32),       ROW(deterministic), ROW(processors)};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

const char *fa_cubin_size_name(int i) {
  return i < N_SIZES ? sizes[i].name : NULL;
}

/* ---- sizes of a tensor ---- */

/* Behind the plain ones, this many for each tensor: whether it is there, its shape, its strides. */
enum { PRESENT, SHAPE, STRIDE = SHAPE + FA_MAX_RANK, N_OF_TENSOR = STRIDE + FA_MAX_RANK };

int fa_cubin_tensor_find(const char *name) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const bool is_buffer = (id >= FA_T_BUFFER_0 && id <= (int)FA_T_BUFFER_LAST) ||
                           (id >= FA_T_DBUFFER_0 && id <= (int)FA_T_DBUFFER_LAST) || id == FA_T_DROPOUT_KEEP;
    if (!is_buffer && strcmp(fa_tensor_id_name((fa_tensor_id)id), name) == 0) return id;
  }
  return -1;
}

/* "present", "shape.2", "stride.0" */
static int property_find(const char *text) {
  static const struct {
    const char *prefix;
    int first;
  } rows[] = {{"shape.", SHAPE}, {"stride.", STRIDE}};
  if (strcmp(text, "present") == 0) return PRESENT;
  for (int i = 0; i < 2; ++i) {
    const char *digit = text + strlen(rows[i].prefix);
    if (strncmp(text, rows[i].prefix, strlen(rows[i].prefix)) != 0) continue;
    if (digit[0] >= '0' && digit[0] < '0' + FA_MAX_RANK && !digit[1]) return rows[i].first + digit[0] - '0';
  }
  return -1;
}

int fa_cubin_size_find(const char *name) {
  char tensor[32];
  const char *dot = strchr(name, '.');
  for (int i = 0; i < N_SIZES; ++i)
    if (strcmp(sizes[i].name, name) == 0) return i;
  if (!dot || (size_t)(dot - name) >= sizeof tensor) return -1;
  memcpy(tensor, name, (size_t)(dot - name));
  tensor[dot - name] = 0;
  const int id = fa_cubin_tensor_find(tensor), property = property_find(dot + 1);
  return id < 0 || property < 0 ? -1 : N_SIZES + id * N_OF_TENSOR + property;
}

/* 0 for what an absent tensor, or one of lower rank, does not have. */
static int64_t property_value(const fa_tensor *t, int property) {
  if (property == PRESENT || !t->data) return property == PRESENT && t->data;
  const bool is_stride = property >= STRIDE;
  const int axis = property - (is_stride ? STRIDE : SHAPE);
  if (axis >= t->rank) return 0;
  return is_stride ? t->stride[axis] : t->shape[axis];
}

int64_t fa_cubin_size_value(const void *context, int name) {
  const fa_cubin_sizes *x = context;
  if (name < N_SIZES) return sizes[name].get(x);
  return property_value(&x->tensors->t[(name - N_SIZES) / N_OF_TENSOR], (name - N_SIZES) % N_OF_TENSOR);
}

/* ---- numbers that are no integers ---- */

static double get_scale(const fa_problem *p) {
  return p->scale;
}
static double get_scale_log2(const fa_problem *p) {
  return p->scale * 1.4426950408889634074;
}
static double get_softcap(const fa_problem *p) {
  return p->softcap;
}
static double get_empty_lse(const fa_problem *p) {
  return p->empty_lse == FA_EMPTY_POS_INF ? INFINITY : p->empty_lse == FA_EMPTY_NEG_INF ? -INFINITY : 0;
}

static const struct {
  const char *name;
  double (*get)(const fa_problem *p);
} reals[] = {ROW(scale), ROW(scale_log2), ROW(softcap), ROW(empty_lse)};
enum { N_REALS = sizeof reals / sizeof *reals };

const char *fa_cubin_real_name(int i) {
  return i < N_REALS ? reals[i].name : NULL;
}

int fa_cubin_real_find(const char *name) {
  for (int i = 0; i < N_REALS; ++i)
    if (strcmp(reals[i].name, name) == 0) return i;
  return -1;
}

double fa_cubin_real_value(const fa_problem *p, int name) {
  return reals[name].get(p);
}
