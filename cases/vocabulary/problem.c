#include "cases/vocabulary/problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const family_name[FA_N_FAMILIES] = {"flash", "memeff", "flex", "kvcache", "merge"};

const char *fa_family_name(fa_family f) {
  return (unsigned)f < FA_N_FAMILIES ? family_name[f] : "?";
}

bool fa_family_default_backward(fa_family f) {
  return f != FA_KVCACHE;
}

fa_empty_lse fa_family_default_empty_lse(fa_family f) {
  return f == FA_FLEX || f == FA_MERGE ? FA_EMPTY_NEG_INF : FA_EMPTY_POS_INF;
}

double fa_default_scale(int64_t head_dim) {
  return 1.0 / sqrt((double)head_dim);
}

void fa_problem_init(fa_problem *p) {
  *p = (fa_problem){.family = FA_FLASH,
                    .dtype = FA_F16,
                    .batch = 1,
                    .heads_q = 1,
                    .heads_kv = 1,
                    .seqlen_q = 1,
                    .seqlen_k = 1,
                    .head_dim = 64,
                    .head_dim_v = 64,
                    .scale = fa_default_scale(64),
                    .mask = {.left = -1, .right = -1},
                    .block_sparse = {.q_block = 128, .kv_block = 128, .list_batch = 1, .list_heads = 1},
                    .backward = true};
}

void fa_problem_set_family(fa_problem *p, fa_family family) {
  p->family = family;
  p->backward = fa_family_default_backward(family);
  p->empty_lse = fa_family_default_empty_lse(family);
  p->merge =
      family == FA_MERGE ? (fa_parts){.parts = 2, .base_2 = false, .parts_dtype = p->dtype} : (fa_parts){0};
}

/* ---- owned memory ---- */

/* Every int32 array of a problem, so that copying and freeing cannot miss one. */
#define N_ARRAYS 11
static void problem_arrays(const fa_problem *p, const fa_int32_array *a[N_ARRAYS]) {
  a[0] = &p->cu_seqlens_q, a[1] = &p->cu_seqlens_k, a[2] = &p->seqused_k, a[3] = &p->leftpad_k;
  a[4] = &p->kvcache.len, a[5] = &p->kvcache.batch_idx;
  a[6] = &p->block_sparse.kv_num_blocks, a[7] = &p->block_sparse.kv_indices;
  a[8] = &p->block_sparse.full_kv_num_blocks, a[9] = &p->block_sparse.full_kv_indices;
  a[10] = &p->topk.len;
}

void fa_problem_free(fa_problem *p) {
  const fa_int32_array *a[N_ARRAYS];
  problem_arrays(p, a);
  for (int i = 0; i < N_ARRAYS; ++i) free(a[i]->v);
  free(p->alibi.slopes);
  free(p->score_mod);
  free(p->mask_mod);
  free(p->captures);
  fa_problem_init(p);
}

/* malloc'd copy of n elements; sets *ok to false when out of memory. */
static void *copy_elements(const void *from, int64_t n, size_t size, bool *ok) {
  if (n <= 0 || !from) return NULL;
  void *to = malloc((size_t)n * size);
  if (to)
    memcpy(to, from, (size_t)n * size);
  else
    *ok = false;
  return to;
}

static char *copy_text(const char *text, bool *ok) {
  return text ? copy_elements(text, (int64_t)strlen(text) + 1, 1, ok) : NULL;
}

fa_status fa_problem_copy(fa_problem *dst, const fa_problem *src) {
  bool ok = true;
  *dst = *src;
  const fa_int32_array *to[N_ARRAYS], *from[N_ARRAYS];
  problem_arrays(dst, to);
  problem_arrays(src, from);
  for (int i = 0; i < N_ARRAYS; ++i)
    ((fa_int32_array *)to[i])->v = copy_elements(from[i]->v, from[i]->n, sizeof(int32_t), &ok);
  dst->alibi.slopes = copy_elements(src->alibi.slopes, src->alibi.n, sizeof(float), &ok);
  dst->score_mod = copy_text(src->score_mod, &ok);
  dst->mask_mod = copy_text(src->mask_mod, &ok);
  dst->captures = copy_elements(src->captures, src->n_captures, sizeof(fa_capture), &ok);
  if (ok) return FA_OK;
  fa_problem_free(dst);
  return FA_ERR_MEMORY;
}

fa_status fa_int32_array_set(fa_int32_array *a, const int32_t *v, int64_t n) {
  int32_t *copy = NULL;
  if (n > 0) {
    copy = calloc((size_t)n, sizeof *copy);
    if (!copy) return FA_ERR_MEMORY;
    if (v) memcpy(copy, v, (size_t)n * sizeof *copy);
  }
  free(a->v);
  *a = (fa_int32_array){n, copy};
  return FA_OK;
}

/* ---- equality ---- */

static bool same_array(const fa_int32_array *a, const fa_int32_array *b) {
  return a->n == b->n && (a->n <= 0 || memcmp(a->v, b->v, (size_t)a->n * sizeof *a->v) == 0);
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* By bits: a NaN equals itself, and 0 differs from -0. */
static bool same_double(double a, double b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_alibi(const fa_alibi *a, const fa_alibi *b) {
  if (a->present != b->present || a->standard != b->standard || a->n != b->n) return false;
  return a->n <= 0 || memcmp(a->slopes, b->slopes, (size_t)a->n * sizeof *a->slopes) == 0;
}

static bool same_bias(const fa_bias *a, const fa_bias *b) {
  return a->present == b->present && a->grad == b->grad && a->per_batch == b->per_batch &&
         a->per_head == b->per_head && a->per_query == b->per_query;
}

static bool same_sinks(const fa_sinks *a, const fa_sinks *b) {
  return a->present == b->present && a->grad == b->grad && a->in_lse == b->in_lse;
}

static bool same_kvcache(const fa_kvcache *a, const fa_kvcache *b) {
  return a->present == b->present && a->n_new == b->n_new && a->page_size == b->page_size &&
         a->shared_pages == b->shared_pages && a->v_in_k == b->v_in_k && a->rotary_dim == b->rotary_dim &&
         a->rotary_interleaved == b->rotary_interleaved;
}

static bool same_blocks(const fa_block_sparse *a, const fa_block_sparse *b) {
  return a->present == b->present && a->source == b->source && a->q_block == b->q_block &&
         a->kv_block == b->kv_block && a->list_batch == b->list_batch && a->list_heads == b->list_heads &&
         same_double(a->density, b->density) && a->seed == b->seed;
}

static bool same_bits(const fa_mask_bits *a, const fa_mask_bits *b) {
  return a->present == b->present && a->source == b->source && same_double(a->density, b->density) &&
         same_double(a->empty_rows, b->empty_rows) && a->hide_diagonal == b->hide_diagonal &&
         a->seed == b->seed;
}

static bool same_topk(const fa_topk *a, const fa_topk *b) {
  return a->present == b->present && a->k == b->k && same_double(a->none, b->none) &&
         a->none_at == b->none_at && same_double(a->repeated, b->repeated) &&
         same_double(a->empty_rows, b->empty_rows) && a->beyond == b->beyond && a->seed == b->seed;
}

static bool same_merge(const fa_parts *a, const fa_parts *b) {
  return a->parts == b->parts && a->base_2 == b->base_2 && a->parts_dtype == b->parts_dtype;
}

static bool same_quantized(const fa_quantized *a, const fa_quantized *b) {
  return a->present == b->present && a->dtype == b->dtype && a->queries == b->queries && a->per == b->per &&
         a->values == b->values && a->quantizes_new == b->quantizes_new && a->amax == b->amax &&
         a->o == b->o && same_double(a->o_scale, b->o_scale);
}

static bool same_capture(const fa_capture *a, const fa_capture *b) {
  if (strcmp(a->name, b->name) != 0 || strcmp(a->fill, b->fill) != 0) return false;
  if (a->rank != b->rank || a->grad != b->grad || a->dtype != b->dtype || a->sorted != b->sorted ||
      a->below != b->below || a->n_strides != b->n_strides || !same_double(a->share, b->share))
    return false;
  for (int i = 0; i < a->rank; ++i)
    if (a->shape[i] != b->shape[i] || (a->n_strides && a->stride[i] != b->stride[i])) return false;
  return true;
}

static bool same_numbers(const fa_problem *a, const fa_problem *b) {
  return a->family == b->family && a->dtype == b->dtype && a->batch == b->batch && a->heads_q == b->heads_q &&
         a->heads_kv == b->heads_kv && a->seqlen_q == b->seqlen_q && a->seqlen_k == b->seqlen_k &&
         a->head_dim == b->head_dim && a->head_dim_v == b->head_dim_v && same_double(a->scale, b->scale) &&
         same_double(a->softcap, b->softcap) && a->mask.type == b->mask.type &&
         a->mask.align == b->mask.align && a->mask.left == b->mask.left && a->mask.right == b->mask.right &&
         same_double(a->dropout.p, b->dropout.p) && a->dropout.seed == b->dropout.seed &&
         a->dropout.offset == b->dropout.offset && a->splits == b->splits &&
         a->deterministic == b->deterministic && a->backward == b->backward &&
         a->return_softmax == b->return_softmax && a->grad_lse == b->grad_lse &&
         a->empty_lse == b->empty_lse && a->lse_padded == b->lse_padded;
}

bool fa_problem_equal(const fa_problem *a, const fa_problem *b) {
  if (!same_numbers(a, b) || a->mask.size != b->mask.size || !same_alibi(&a->alibi, &b->alibi) ||
      !same_bias(&a->bias, &b->bias) || !same_sinks(&a->sinks, &b->sinks) ||
      !same_kvcache(&a->kvcache, &b->kvcache) || !same_blocks(&a->block_sparse, &b->block_sparse) ||
      !same_merge(&a->merge, &b->merge) || !same_bits(&a->mask_bits, &b->mask_bits) ||
      !same_topk(&a->topk, &b->topk) || !same_quantized(&a->quantized, &b->quantized) ||
      !same_text(a->score_mod, b->score_mod) || !same_text(a->mask_mod, b->mask_mod) ||
      a->n_captures != b->n_captures)
    return false;
  const fa_int32_array *x[N_ARRAYS], *y[N_ARRAYS];
  problem_arrays(a, x);
  problem_arrays(b, y);
  for (int i = 0; i < N_ARRAYS; ++i)
    if (!same_array(x[i], y[i])) return false;
  for (int i = 0; i < a->n_captures; ++i)
    if (!same_capture(&a->captures[i], &b->captures[i])) return false;
  return true;
}

/* ---- derived values ---- */

fa_dtype fa_problem_operand_dtype(const fa_problem *p) {
  return p->quantized.queries ? p->quantized.dtype : p->dtype;
}

bool fa_problem_has_descales_of_keys(const fa_problem *p) {
  const fa_descale_per per = p->quantized.per;
  return (per == FA_PER_TOKEN || per == FA_PER_PAGE) && !p->quantized.queries;
}

bool fa_problem_default_backward(const fa_problem *p) {
  return fa_family_default_backward(p->family) && !p->quantized.present;
}

bool fa_problem_is_varlen(const fa_problem *p) {
  return p->cu_seqlens_q.n > 0;
}

bool fa_problem_has_packed_keys(const fa_problem *p) {
  return p->cu_seqlens_k.n > 0;
}

bool fa_problem_has_buffer(const fa_problem *p, fa_dtype dtype, bool with_gradient) {
  for (int k = 0; k < p->n_captures; ++k)
    if (p->captures[k].dtype == dtype && (!with_gradient || (p->backward && p->captures[k].grad)))
      return true;
  return false;
}

int64_t fa_problem_total_q(const fa_problem *p) {
  const fa_int32_array *cu = &p->cu_seqlens_q;
  return cu->n > 0 ? cu->v[cu->n - 1] : p->batch * p->seqlen_q;
}

int64_t fa_problem_total_k(const fa_problem *p) {
  const fa_int32_array *cu = &p->cu_seqlens_k;
  return cu->n > 0 ? cu->v[cu->n - 1] : p->batch * p->seqlen_k;
}

int64_t fa_problem_cache_rows(const fa_problem *p) {
  const fa_int32_array *idx = &p->kvcache.batch_idx;
  if (idx->n <= 0) return p->batch;
  int64_t rows = 1;
  for (int64_t b = 0; b < idx->n; ++b)
    if (idx->v[b] >= rows) rows = (int64_t)idx->v[b] + 1;
  return rows;
}

int64_t fa_problem_page_owner(const fa_problem *p, int64_t b, int64_t m) {
  const fa_kvcache *k = &p->kvcache;
  const int64_t end = (m + 1) * k->page_size;
  if (m >= k->shared_pages || k->len.v[b] < end) return b;
  int64_t first = 0;
  while (k->len.v[first] < end) ++first;
  return first;
}

void fa_alibi_standard(int64_t n_heads, float *slopes) {
  int64_t power = 1; /* the largest power of two <= n_heads */
  while (power <= n_heads / 2) power *= 2;
  for (int64_t h = 0; h < n_heads; ++h) {
    /* Heads beyond the power of two take every other slope of the sequence for the next power. */
    double exponent = h < power ? -8.0 * (double)(h + 1) / (double)power
                                : -8.0 * (double)(2 * (h - power) + 1) / (double)(2 * power);
    slopes[h] = (float)exp2(exponent);
  }
}

/* Of a merge, what other families have in its place. */
static void complete_merge(fa_problem *p) {
  p->heads_kv = p->heads_q;
  p->seqlen_k = p->seqlen_q;
  p->head_dim_v = p->head_dim;
  p->scale = fa_default_scale(p->head_dim);
}

static int64_t longest_sequence(const fa_int32_array *cu) {
  int64_t longest = 0;
  for (int64_t b = 0; b + 1 < cu->n; ++b) {
    int64_t length = (int64_t)cu->v[b + 1] - cu->v[b];
    if (length > longest) longest = length;
  }
  return longest;
}

fa_status fa_problem_complete(fa_problem *p) {
  if (p->cu_seqlens_q.n > 0) {
    p->batch = p->cu_seqlens_q.n - 1;
    p->seqlen_q = longest_sequence(&p->cu_seqlens_q);
  }
  if (p->cu_seqlens_k.n > 0) p->seqlen_k = longest_sequence(&p->cu_seqlens_k);
  if (p->family == FA_MERGE) complete_merge(p);
  if (p->block_sparse.present && p->block_sparse.source != FA_BLOCKS_LISTS) {
    p->block_sparse.list_batch = p->batch;
    p->block_sparse.list_heads = p->heads_q;
  }
  if (p->alibi.present && p->alibi.standard && p->heads_q >= 1 && p->heads_q <= FA_MAX_HEADS) {
    float *slopes = malloc((size_t)p->heads_q * sizeof *slopes);
    if (!slopes) return FA_ERR_MEMORY;
    fa_alibi_standard(p->heads_q, slopes);
    free(p->alibi.slopes);
    p->alibi.slopes = slopes;
    p->alibi.n = p->heads_q;
  }
  return FA_OK;
}
