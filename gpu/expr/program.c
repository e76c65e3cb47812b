/* Prepares the expressions of gpu/fa.h, and computes numbers of blocks. */
#include "gpu/expr/program.h"
#include "cases/vocabulary/problem.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BUFFER ((int64_t)1 << 33)

void fa_flex_init(fa_flex *f) {
  memset(f, 0, sizeof *f);
  f->list_batch = f->list_heads = 1;
}

/* ---- expressions ---- */

static bool is_identifier(const char *s) {
  if (*s >= '0' && *s <= '9') return false;
  return *s && s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] == 0;
}

static fa_status check_name(const fa_flex_buffer *all, int k, fa_error *err) {
  const char *name = all[k].name;
  const size_t most = sizeof((fa_capture *)NULL)->name - 1;
  if (!name || strnlen(name, most + 1) > most || !is_identifier(name))
    return fa_fail(err, FA_ERR_INPUT,
                   "buffers[%d].name: at most %zu letters, digits and _, and no digit first, are needed", k,
                   most);
  if (fa_expr_is_reserved(name))
    return fa_fail(err, FA_ERR_INPUT, "buffers[%d].name = \"%s\" has a meaning in expressions already", k,
                   name);
  for (int i = 0; i < k; ++i)
    if (strcmp(name, all[i].name) == 0)
      return fa_fail(err, FA_ERR_INPUT, "buffers[%d].name = \"%s\" is that of buffers[%d] too", k, name, i);
  return FA_OK;
}

static fa_status take_strides(const fa_flex_buffer *b, int k, fa_capture *out, fa_error *err) {
  if (!b->stride) return FA_OK;
  out->n_strides = b->rank;
  for (int i = 0; i < b->rank; ++i) {
    out->stride[i] = b->stride[i];
    if (b->stride[i] < 0)
      return fa_fail(err, FA_ERR_INPUT, "buffers[%d].stride[%d] = %lld: must not be negative", k, i,
                     (long long)b->stride[i]);
  }
  if (fa_capture_span(out) > MAX_BUFFER)
    return fa_fail(err, FA_ERR_INPUT, "buffers[%d].stride: at most 2^33 elements from the first to the last",
                   k);
  return FA_OK;
}

static fa_status take_buffer(const fa_flex_buffer *all, int k, fa_capture *out, fa_error *err) {
  const fa_flex_buffer *b = &all[k];
  const fa_status status = check_name(all, k, err);
  if (status != FA_OK) return status;
  if (!fa_dtype_is_capture(b->dtype))
    return fa_fail(err, FA_ERR_INPUT,
                   "buffers[%d].dtype: FA_F32, FA_F16, FA_BF16, FA_I32, FA_I64 or FA_BOOL is needed", k);
  if (b->rank < 0 || b->rank > FA_FLEX_MAX_RANK)
    return fa_fail(err, FA_ERR_INPUT, "buffers[%d].rank = %d: 0 .. %d", k, b->rank, FA_FLEX_MAX_RANK);
  *out = (fa_capture){.rank = b->rank, .grad = fa_dtype_is_float(b->dtype), .dtype = b->dtype};
  strcpy(out->name, b->name); /* it fits: checked before */
  int64_t n = 1;
  for (int i = 0; i < b->rank; ++i) {
    out->shape[i] = b->shape[i];
    if (b->shape[i] < 1 || b->shape[i] > FA_MAX_LENGTH || __builtin_mul_overflow(n, b->shape[i], &n) ||
        n > MAX_BUFFER)
      return fa_fail(err, FA_ERR_INPUT,
                     "buffers[%d].shape[%d] = %lld: 1 .. 2^30, and at most 2^33 elements in all", k, i,
                     (long long)b->shape[i]);
  }
  return take_strides(b, k, out, err);
}

static fa_status parse(const char *text, fa_expr_kind kind, const fa_flex_program *p, fa_expr *out,
                       fa_error *err) {
  if (!text) return FA_OK;
  const fa_status status = fa_expr_parse(text, strlen(text), kind, p->buffer, p->n_buffers, out, err);
  if (status != FA_OK) fa_error_prefix(err, "%s", kind == FA_EXPR_SCORE_MOD ? "score_mod" : "mask_mod");
  return status;
}

fa_status fa_flex_prepare(const char *score_mod, const char *mask_mod, const fa_flex_buffer *buffers,
                          int n_buffers, fa_flex_program **out, fa_error *err) {
  if (n_buffers < 0 || n_buffers > FA_FLEX_MAX_BUFFERS)
    return fa_fail(err, FA_ERR_INPUT, "n_buffers = %d: 0 .. %d", n_buffers, FA_FLEX_MAX_BUFFERS);
  if (n_buffers > 0 && !buffers) return fa_fail(err, FA_ERR_INPUT, "buffers is NULL");
  fa_flex_program *p = calloc(1, sizeof *p);
  if (!p) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_status status = FA_OK;
  for (int k = 0; status == FA_OK && k < n_buffers; ++k)
    status = take_buffer(buffers, k, &p->buffer[p->n_buffers++], err);
  if (status == FA_OK) status = parse(score_mod, FA_EXPR_SCORE_MOD, p, &p->score, err);
  if (status == FA_OK) status = parse(mask_mod, FA_EXPR_MASK_MOD, p, &p->mask, err);
  if (status == FA_OK && score_mod) status = fa_expr_differentiate(&p->score, &p->gradient, err);
  if (status == FA_OK)
    *out = p;
  else
    fa_flex_free(p);
  return status;
}

void fa_flex_free(fa_flex_program *p) {
  if (!p) return;
  fa_expr_free(&p->score);
  fa_expr_free(&p->mask);
  fa_expr_gradient_free(&p->gradient);
  free(p);
}

int64_t fa_flex_captured_count(const fa_capture *c) {
  int64_t n = 1;
  for (int i = 0; i < c->rank; ++i) n *= c->shape[i];
  return n;
}

/* ---- blocks ---- */

static int64_t blocks_of(int64_t n, int64_t size) {
  return size ? (n + size - 1) / size : 0;
}

int64_t fa_flex_n_q(const fa_attention *a) {
  return blocks_of(a->seqlen_q, a->flex->q_block);
}
int64_t fa_flex_n_kv(const fa_attention *a) {
  return blocks_of(a->seqlen_k, a->flex->kv_block);
}

bool fa_flex_has_blocks(const fa_attention *a) {
  return fa_flex_n_q(a) * fa_flex_n_kv(a) > 0;
}

int64_t fa_flex_map_batch(const fa_attention *a) {
  if (!a->flex->blocks_from_mask_mod) return a->flex->list_batch > 1 ? a->batch : 1;
  const bool differ =
      fa_expr_uses(&a->flex->program->mask, FA_EXPR_B) || a->seqused_k || a->leftpad_k || a->cu_seqlens_q;
  return differ ? a->batch : 1;
}
int64_t fa_flex_map_heads(const fa_attention *a) {
  if (!a->flex->blocks_from_mask_mod) return a->flex->list_heads > 1 ? a->heads_q : 1;
  return fa_expr_uses(&a->flex->program->mask, FA_EXPR_H) ? a->heads_q : 1;
}
