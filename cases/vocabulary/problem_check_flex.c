/* The rules of block lists, expressions and captured buffers. */
#include "cases/expr/ast.h"
#include "cases/vocabulary/fill.h"
#include "cases/vocabulary/problem_check.h"
#include "cases/vocabulary/problem_expr.h"

#include <stdlib.h>
#include <string.h>

/* ---- block lists ---- */

/* Checks one row of a list, whose first n entries are tile numbers; seen[tile] is the list that named it. */
static fa_status check_list_row(const char *field, int64_t row, const int32_t *index, int64_t n,
                                int64_t n_tiles, int64_t *seen, fa_error *err) {
  for (int64_t i = 0; i < n; ++i) {
    if (index[i] < 0 || index[i] >= n_tiles)
      BAD("$.block_sparse.%s: row %lld entry %lld: %d is not a key block in 0 .. %lld", field, (long long)row,
          (long long)i, index[i], (long long)(n_tiles - 1));
    if (seen[index[i]] == row + 1)
      BAD("$.block_sparse.%s: row %lld entry %lld: key block %d is listed twice", field, (long long)row,
          (long long)i, index[i]);
    seen[index[i]] = row + 1;
  }
  return FA_OK;
}

static fa_status check_list_rows(const fa_block_sparse *s, int64_t n_rows, int64_t n_tiles, int64_t *seen,
                                 fa_error *err) {
  for (int64_t r = 0; r < n_rows; ++r) {
    TRY(check_list_row("kv_indices", r, s->kv_indices.v + r * n_tiles, s->kv_num_blocks.v[r], n_tiles, seen,
                       err));
    if (s->full_kv_num_blocks.n)
      TRY(check_list_row("full_kv_indices", r, s->full_kv_indices.v + r * n_tiles, s->full_kv_num_blocks.v[r],
                         n_tiles, seen, err));
  }
  return FA_OK;
}

static fa_status check_lists(const fa_problem *p, int64_t n_rows, int64_t n_kv, fa_error *err) {
  const fa_block_sparse *s = &p->block_sparse;
  const int64_t n_indices = n_rows * n_kv;
  if (n_rows && !s->kv_num_blocks.n) BAD("$.block_sparse.kv_num_blocks: missing");
  if (n_indices && !s->kv_indices.n) BAD("$.block_sparse.kv_indices: missing");
  if (n_indices && (s->full_kv_num_blocks.n != 0) != (s->full_kv_indices.n != 0))
    BAD("$.block_sparse.%s: missing; both full lists come together",
        s->full_kv_indices.n ? "full_kv_num_blocks" : "full_kv_indices");
  TRY(fa_check_array("block_sparse.kv_num_blocks", &s->kv_num_blocks, n_rows, 0, n_kv, err));
  TRY(fa_check_array("block_sparse.kv_indices", &s->kv_indices, n_indices, INT32_MIN, INT32_MAX, err));
  TRY(fa_check_array("block_sparse.full_kv_num_blocks", &s->full_kv_num_blocks, n_rows, 0, n_kv, err));
  TRY(fa_check_array("block_sparse.full_kv_indices", &s->full_kv_indices, n_indices, INT32_MIN, INT32_MAX,
                     err));
  if (n_indices == 0) return FA_OK;
  int64_t *seen = calloc((size_t)n_kv, sizeof *seen);
  if (!seen) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_status status = check_list_rows(s, n_rows, n_kv, seen, err);
  free(seen);
  return status;
}

fa_status fa_check_block_sparse(const fa_problem *p, fa_error *err) {
  const fa_block_sparse *s = &p->block_sparse;
  if (!s->present) return FA_OK;
  TRY(fa_check_range("block_sparse.q_block", s->q_block, 1, FA_MAX_BLOCK, err));
  TRY(fa_check_range("block_sparse.kv_block", s->kv_block, 1, FA_MAX_BLOCK, err));
  if (s->list_batch < 1 || p->batch % s->list_batch != 0)
    BAD("$.block_sparse: lists for %lld batch entries; must be a divisor of batch %lld",
        (long long)s->list_batch, (long long)p->batch);
  if (s->list_heads < 1 || p->heads_q % s->list_heads != 0)
    BAD("$.block_sparse: lists for %lld heads; must be a divisor of heads_q %lld", (long long)s->list_heads,
        (long long)p->heads_q);
  if (s->source == FA_BLOCKS_DENSITY && !(s->density >= 0 && s->density <= 1))
    BAD("$.block_sparse.density: %g is not in [0, 1]", s->density);
  if (s->source == FA_BLOCKS_MASK_MOD && !p->mask_mod)
    BAD("$.block_sparse.from: \"mask_mod\", but the case has no mask_mod");
  int64_t n_q = (p->seqlen_q + s->q_block - 1) / s->q_block;
  int64_t n_kv = (p->seqlen_k + s->kv_block - 1) / s->kv_block;
  int64_t n_rows, n_indices;
  if (__builtin_mul_overflow(s->list_batch * s->list_heads, n_q, &n_rows) ||
      __builtin_mul_overflow(n_rows, n_kv, &n_indices) || n_indices > FA_MAX_ELEMENTS)
    BAD("$.block_sparse: tensor kv_indices would have more elements than the limit %lld",
        (long long)FA_MAX_ELEMENTS);
  if (s->source == FA_BLOCKS_LISTS) return check_lists(p, n_rows, n_kv, err);
  if (s->list_batch != p->batch || s->list_heads != p->heads_q)
    BAD("$.block_sparse: lists that are made are made for every entry and head (fa_problem_complete)");
  if (s->kv_num_blocks.n || s->kv_indices.n || s->full_kv_num_blocks.n || s->full_kv_indices.n)
    BAD("$.block_sparse: lists are given, and a source to make them from too");
  return FA_OK;
}

/* ---- captured buffers ---- */

static bool is_identifier(const char *s, size_t max) {
  size_t n = strnlen(s, max);
  if (n == 0 || n == max) return false;
  for (size_t i = 0; i < n; ++i) {
    bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || s[i] == '_';
    if (!letter && !(i > 0 && s[i] >= '0' && s[i] <= '9')) return false;
  }
  return true;
}

static fa_status check_ints(const fa_capture *c, const char *type, fa_error *err) {
  const int64_t most = c->dtype == FA_I32 ? INT32_MAX : FA_MAX_CAPTURE_I64;
  if (!fa_capture_is_int(c)) {
    if (c->below)
      BAD("$.buffers.%s.below: the buffer is %s; i32 and i64 ones are drawn below a number", c->name, type);
    if (c->sorted)
      BAD("$.buffers.%s.sorted: the buffer is %s; i32 and i64 ones can be sorted", c->name, type);
    return FA_OK;
  }
  if (c->below < 1 || c->below > most)
    BAD("$.buffers.%s.below: %lld; an %s buffer holds 0 .. below - 1, of at least 1 and at most %lld",
        c->name, (long long)c->below, type, (long long)most);
  if (c->sorted && c->below > FA_MAX_SORTED_BELOW)
    BAD("$.buffers.%s.below: %lld; at most %d where sorted", c->name, (long long)c->below,
        FA_MAX_SORTED_BELOW);
  return FA_OK;
}

static fa_status check_capture_type(const fa_capture *c, fa_fill fill, fa_error *err) {
  const char *type = (unsigned)c->dtype < FA_N_DTYPES ? fa_dtype_name(c->dtype) : "out of range";
  if (!fa_dtype_is_capture(c->dtype))
    BAD("$.buffers.%s.dtype: %s; must be f32, f16, bf16, i32, i64 or bool", c->name, type);
  TRY(check_ints(c, type, err));
  if (c->dtype == FA_BOOL ? !(c->share >= 0 && c->share <= 1) : c->share != 0)
    BAD("$.buffers.%s.share: %g; a bool buffer has one in [0, 1], and no other has any", c->name, c->share);
  if (fa_capture_is_float(c)) return FA_OK;
  if (fill != FA_FILL_NORMAL)
    BAD("$.buffers.%s.fill: the buffer is %s; f32, f16 and bf16 ones are filled", c->name, type);
  if (c->grad) BAD("$.buffers.%s.grad: the buffer is %s and has no gradient", c->name, type);
  return FA_OK;
}

static fa_status check_capture_strides(const fa_capture *c, fa_error *err) {
  if (c->n_strides == 0) return FA_OK;
  if (c->n_strides != c->rank)
    BAD("$.buffers.%s.strides: %d of them, and %d axes", c->name, c->n_strides, c->rank);
  for (int i = 0; i < c->rank; ++i)
    if (c->stride[i] < 0 || c->stride[i] > FA_MAX_ELEMENTS)
      BAD("$.buffers.%s.strides[%d]: %lld is not in 0 .. %lld", c->name, i, (long long)c->stride[i],
          (long long)FA_MAX_ELEMENTS);
  if (fa_capture_span(c) > FA_MAX_ELEMENTS)
    BAD("$.buffers.%s.strides: the buffer spans more than %lld elements", c->name,
        (long long)FA_MAX_ELEMENTS);
  if (!fa_capture_is_distinct(c))
    BAD("$.buffers.%s.strides: elements share memory; only an axis of stride 0 may repeat them", c->name);
  return FA_OK;
}

static fa_status check_capture(const fa_problem *p, int k, fa_error *err) {
  const fa_capture *c = &p->captures[k];
  fa_fill fill;
  if (!is_identifier(c->name, sizeof c->name))
    BAD("$.buffers: buffer %d's name is not an identifier of 1 .. %zu characters", k, sizeof c->name - 1);
  if (fa_expr_is_reserved(c->name)) BAD("$.buffers.%s: the name has a meaning in score_mod already", c->name);
  for (int i = 0; i < k; ++i)
    if (strcmp(c->name, p->captures[i].name) == 0) BAD("$.buffers.%s: given twice", c->name);
  if (c->rank < 0 || c->rank > FA_MAX_CAPTURE_RANK)
    BAD("$.buffers.%s.shape: %d axes, at most %d", c->name, c->rank, FA_MAX_CAPTURE_RANK);
  int64_t count = 1;
  for (int i = 0; i < c->rank; ++i) {
    if (c->shape[i] < 1 || c->shape[i] > FA_MAX_LENGTH)
      BAD("$.buffers.%s.shape[%d]: %lld is not in 1 .. %lld", c->name, i, (long long)c->shape[i],
          (long long)FA_MAX_LENGTH);
    if (__builtin_mul_overflow(count, c->shape[i], &count) || count > FA_MAX_ELEMENTS)
      BAD("$.buffers.%s.shape: more than %lld elements", c->name, (long long)FA_MAX_ELEMENTS);
  }
  if (!memchr(c->fill, 0, sizeof c->fill) || !fa_fill_from_name(c->fill, &fill))
    BAD("$.buffers.%s.fill: \"%.*s\" is no fill", c->name, (int)sizeof c->fill, c->fill);
  if (!fa_fill_is_general(fill)) BAD("$.buffers.%s.fill: \"%s\" is not for buffers", c->name, c->fill);
  TRY(check_capture_strides(c, err));
  return check_capture_type(c, fill, err);
}

static fa_status check_expression(const fa_problem *p, fa_expr_kind kind, fa_error *err) {
  fa_expr e;
  fa_status status = fa_expr_of(p, kind, &e, err);
  fa_expr_free(&e);
  return status;
}

fa_status fa_check_captures(const fa_problem *p, fa_error *err) {
  TRY(fa_check_range("buffers", p->n_captures, 0, FA_MAX_CAPTURES, err));
  if (p->n_captures && !p->captures) BAD("$.buffers: missing");
  for (int k = 0; k < p->n_captures; ++k) TRY(check_capture(p, k, err));
  TRY(check_expression(p, FA_EXPR_SCORE_MOD, err));
  return check_expression(p, FA_EXPR_MASK_MOD, err);
}
