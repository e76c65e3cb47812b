/* Checks of expressions and block lists in gpu/fa.h. */
#include "gpu/call/check.h"
#include "gpu/expr/program.h"
#include "gpu/kernels/params/flex.h"
#include "gpu/kernels/params/flex_functions.h"

#include <stdlib.h>

#define MAX_BLOCK ((int64_t)1 << 20)
#define MAX_MASK (((int64_t)1 << 31) - 64) /* blocks of one head that a kernel numbers */

/* ---- the problem ---- */

static fa_status check_sizes(const fa_attention *a, fa_error *err) {
  const fa_flex *f = a->flex;
  const struct {
    const char *name;
    int64_t x;
  } sizes[] = {{"flex.q_block", f->q_block}, {"flex.kv_block", f->kv_block}};
  for (int i = 0; i < 2; ++i)
    if (sizes[i].x < 1 || sizes[i].x > MAX_BLOCK)
      return fa_fail(err, FA_ERR_INPUT, "%s = %lld: 1 .. 2^20, or 0 for both and no blocks", sizes[i].name,
                     (long long)sizes[i].x);
  if (f->blocks_from_mask_mod && !fa_flex_has_mask(f->program))
    return fa_fail(err, FA_ERR_INPUT, "flex.blocks_from_mask_mod: there is no mask_mod");
  /* Everything divides a batch of 0, but there are no more lists than sequences. */
  if (f->list_batch < 1 || a->batch % f->list_batch != 0 || (f->list_batch > 1 && a->batch == 0))
    return fa_fail(err, FA_ERR_INPUT, "flex.list_batch = %lld: a divisor of batch = %lld",
                   (long long)f->list_batch, (long long)a->batch);
  if (f->list_heads < 1 || a->heads_q % f->list_heads != 0)
    return fa_fail(err, FA_ERR_INPUT, "flex.list_heads = %lld: a divisor of heads_q = %lld",
                   (long long)f->list_heads, (long long)a->heads_q);
  const int64_t blocks = fa_flex_n_q(a) * fa_flex_n_kv(a); /* below 2^58 */
  if ((f->blocks_from_mask_mod && blocks > MAX_MASK) ||
      (__int128)blocks * fa_flex_map_batch(a) * fa_flex_map_heads(a) > FA_FLEX_MAX_MAP)
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "flex.q_block = %lld, flex.kv_block = %lld: %lld blocks to a head are too many",
                   (long long)f->q_block, (long long)f->kv_block, (long long)blocks);
  return FA_OK;
}

fa_status fa_flex_check_problem(const fa_attention *a, fa_error *err) {
  const fa_flex *f = a->flex;
  if (a->p_debug) return fa_fail(err, FA_ERR_UNSUPPORTED, "p_debug: not together with flex");
  if (a->mask_bits) return fa_fail(err, FA_ERR_UNSUPPORTED, "mask_bits: not together with flex");
  if (f->q_block || f->kv_block) return check_sizes(a, err);
  if (f->blocks_from_mask_mod || f->kv_num_blocks || f->kv_indices || f->full_kv_num_blocks ||
      f->full_kv_indices)
    return fa_fail(err, FA_ERR_INPUT, "flex.q_block = 0: blocks need a size, 1 .. 2^20");
  return FA_OK;
}

/* ---- pointers ---- */

static fa_status check_list(const char *name, const int32_t *count, const int32_t *index, fa_error *err) {
  if (!count != !index)
    return fa_fail(err, FA_ERR_INPUT, "flex.%skv_%s is NULL, but flex.%skv_%s is given: both or neither",
                   name, count ? "indices" : "num_blocks", name, count ? "num_blocks" : "indices");
  if ((uintptr_t)count % 4 != 0 || (uintptr_t)index % 4 != 0)
    return fa_fail(err, FA_ERR_INPUT, "flex.%skv_%s: not aligned to 4 bytes", name,
                   (uintptr_t)count % 4 ? "num_blocks" : "indices");
  return FA_OK;
}

static fa_status check_lists(const fa_attention *a, fa_error *err) {
  const fa_flex *f = a->flex;
  const bool any = f->kv_num_blocks || f->kv_indices || f->full_kv_num_blocks || f->full_kv_indices;
  if (f->blocks_from_mask_mod)
    return any ? fa_fail(err, FA_ERR_INPUT, "flex.blocks_from_mask_mod: there are lists too") : FA_OK;
  if (!fa_flex_has_blocks(a)) return FA_OK;
  if (!any)
    return fa_fail(err, FA_ERR_INPUT,
                   "flex.kv_num_blocks: blocks have a size, but there are neither lists nor "
                   "flex.blocks_from_mask_mod");
  const fa_status status = check_list("", f->kv_num_blocks, f->kv_indices, err);
  return status == FA_OK ? check_list("full_", f->full_kv_num_blocks, f->full_kv_indices, err) : status;
}

static fa_status check_buffers(const fa_flex *f, fa_error *err) {
  for (int k = 0; f->program && k < f->program->n_buffers; ++k) {
    const char *name = f->program->buffer[k].name;
    const size_t size = fa_dtype_size(f->program->buffer[k].dtype);
    if (!f->buffer[k]) return fa_fail(err, FA_ERR_INPUT, "flex.buffer[%d] (%s) is NULL", k, name);
    if ((uintptr_t)f->buffer[k] % size != 0)
      return fa_fail(err, FA_ERR_INPUT, "flex.buffer[%d] (%s) = %p: not aligned to %zu bytes", k, name,
                     f->buffer[k], size);
  }
  return FA_OK;
}

fa_status fa_flex_check_tensors(const fa_attention *a, fa_error *err) {
  const fa_status status = check_buffers(a->flex, err);
  return status == FA_OK ? check_lists(a, err) : status;
}

/* ---- gradients ---- */

/* Order-independent sums allow this many additions to one element. */
static fa_status check_additions(const fa_attention *a, int64_t reads, fa_error *err) {
  const int64_t rows = fa_attention_is_varlen(a) ? a->total_q : a->batch * a->seqlen_q;
  if (!a->deterministic || (__int128)rows * a->seqlen_k * a->heads_q * reads <= FA_FLEX_EXACT_ADDITIONS)
    return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "deterministic: %lld rows of %lld heads with %lld keys read buffers %lld times, and exact "
                 "sums take at most 2^38 reads",
                 (long long)rows, (long long)a->heads_q, (long long)a->seqlen_k, (long long)reads);
}

fa_status fa_flex_check_gradients(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  const fa_flex_program *p = a->flex ? a->flex->program : NULL;
  bool wanted[FA_FLEX_MAX_BUFFERS];
  for (int k = 0; k < FA_FLEX_MAX_BUFFERS; ++k) {
    wanted[k] = g->dbuffer[k] != NULL;
    if (wanted[k] && (!p || k >= p->n_buffers))
      return fa_fail(err, FA_ERR_INPUT, "dbuffer[%d] is wanted, but there are %d buffers", k,
                     p ? p->n_buffers : 0);
    if (!wanted[k]) continue;
    const fa_capture *c = &p->buffer[k];
    if (!fa_capture_is_float(c))
      return fa_fail(err, FA_ERR_INPUT, "dbuffer[%d] is wanted, but buffer %s holds %s", k, c->name,
                     c->dtype == FA_BOOL ? "conditions" : "integers");
    if ((uintptr_t)g->dbuffer[k] % fa_dtype_size(c->dtype) != 0)
      return fa_fail(err, FA_ERR_INPUT, "dbuffer[%d] = %p: not aligned to %zu bytes", k, g->dbuffer[k],
                     fa_dtype_size(c->dtype));
  }
  int64_t reads = 0;
  for (int i = 0; p && i < p->gradient.n_reads; ++i)
    reads += wanted[p->gradient.e.node[p->gradient.read[i].load].buffer];
  if (reads > FA_FLEX_MAX_READS)
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "dbuffer: score_mod reads the buffers %lld times, and kernels take at most %d",
                   (long long)reads, FA_FLEX_MAX_READS);
  return check_additions(a, reads, err);
}

/* ---- contents ---- */

/* seen[block] is the row + 1 that last listed the block. */
static fa_status check_row(const char *name, int64_t row, const int32_t *index, int64_t n, int64_t n_kv,
                           int64_t *seen, fa_error *err) {
  if (n < 0 || n > n_kv)
    return fa_fail(err, FA_ERR_INPUT, "flex.%skv_num_blocks: row %lld has %lld blocks; 0 .. %lld", name,
                   (long long)row, (long long)n, (long long)n_kv);
  for (int64_t i = 0; i < n; ++i) {
    if (index[i] < 0 || index[i] >= n_kv)
      return fa_fail(err, FA_ERR_INPUT, "flex.%skv_indices: row %lld lists block %d; 0 .. %lld", name,
                     (long long)row, index[i], (long long)(n_kv - 1));
    if (seen[index[i]] == row + 1)
      return fa_fail(err, FA_ERR_INPUT, "flex.%skv_indices: row %lld lists block %d, which is listed already",
                     name, (long long)row, index[i]);
    seen[index[i]] = row + 1;
  }
  return FA_OK;
}

fa_status fa_flex_check_lists(const fa_attention *a, const int32_t *kv_num_blocks, const int32_t *kv_indices,
                              const int32_t *full_kv_num_blocks, const int32_t *full_kv_indices,
                              fa_error *err) {
  const int64_t n_kv = fa_flex_n_kv(a), rows = a->flex->list_batch * a->flex->list_heads * fa_flex_n_q(a);
  int64_t *seen = calloc((size_t)n_kv + 1, sizeof *seen);
  fa_status status = seen ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int64_t row = 0; status == FA_OK && row < rows; ++row) {
    if (kv_num_blocks)
      status = check_row("", row, kv_indices + row * n_kv, kv_num_blocks[row], n_kv, seen, err);
    if (status == FA_OK && full_kv_num_blocks)
      status =
          check_row("full_", row, full_kv_indices + row * n_kv, full_kv_num_blocks[row], n_kv, seen, err);
  }
  free(seen);
  return status;
}
