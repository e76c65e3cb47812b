/* Lists of blocks from mask_mod: what a call is asked for, and the lists worked out on the CPU. */
#include "gpu/call/check.h"
#include "gpu/expr/functions.h"
#include "gpu/expr/program.h"
#include "gpu/plan/make.h"

/* The map is made for as many sequences and heads as there are lists, whatever mask_mod depends on. */
static fa_status check_map(const fa_attention *a, fa_error *err) {
  const fa_flex *f = a->flex;
  const int64_t blocks = fa_flex_n_q(a) * fa_flex_n_kv(a);
  if ((__int128)blocks * f->list_batch * f->list_heads <= FA_FLEX_MAX_MAP) return FA_OK;
  return fa_fail(
      err, FA_ERR_UNSUPPORTED,
      "flex.list_batch = %lld, flex.list_heads = %lld: lists of %lld blocks to a head are too many",
      (long long)f->list_batch, (long long)f->list_heads, (long long)blocks);
}

fa_status fa_flex_blocks_problem(const fa_attention *a, fa_attention *out, fa_flex *flex, fa_error *err) {
  if (!a) return fa_fail(err, FA_ERR_INPUT, "the fa_attention is NULL");
  if (!a->flex) return fa_fail(err, FA_ERR_INPUT, "flex is NULL");
  if (!fa_flex_has_mask(a->flex->program))
    return fa_fail(err, FA_ERR_INPUT, "flex.program: there is no mask_mod");
  if (!a->flex->q_block && !a->flex->kv_block)
    return fa_fail(err, FA_ERR_INPUT, "flex.q_block = 0: 1 .. 2^20 is needed");
  *flex = *a->flex;
  flex->blocks_from_mask_mod = true;
  flex->kv_num_blocks = flex->kv_indices = flex->full_kv_num_blocks = flex->full_kv_indices = NULL;
  fa_attention_init(out);
  out->batch = a->batch;
  out->heads_q = a->heads_q;
  out->seqlen_q = a->seqlen_q;
  out->seqlen_k = a->seqlen_k;
  out->total_q = a->total_q;
  out->total_k = a->total_k;
  out->cu_seqlens_q = a->cu_seqlens_q;
  out->cu_seqlens_k = a->cu_seqlens_k;
  out->seqused_k = a->seqused_k;
  out->leftpad_k = a->leftpad_k;
  out->head_dim = 1;
  out->scale = 1;
  out->flex = flex;
  fa_status status = fa_attention_check_problem(out, err);
  if (status == FA_OK) status = check_map(out, err);
  if (status == FA_OK) status = fa_attention_check_arrays(out, err);
  return status == FA_OK ? fa_flex_check_tensors(out, err) : status;
}

fa_status fa_flex_blocks_check(const fa_attention *a, const fa_flex_block_lists *lists, fa_error *err) {
  const struct {
    const char *name;
    const int32_t *at;
    bool is_count;
  } outputs[] = {{"kv_num_blocks", lists->kv_num_blocks, true},
                 {"kv_indices", lists->kv_indices, false},
                 {"full_kv_num_blocks", lists->full_kv_num_blocks, true},
                 {"full_kv_indices", lists->full_kv_indices, false}};
  if (a->batch * fa_flex_n_q(a) == 0) return FA_OK;
  for (int i = 0; i < 4; ++i) {
    if (!outputs[i].at && (outputs[i].is_count || fa_flex_n_kv(a) > 0))
      return fa_fail(err, FA_ERR_INPUT, "%s is NULL", outputs[i].name);
    const fa_status status = fa_alignment_check(outputs[i].name, outputs[i].at, 4, err);
    if (status != FA_OK) return status;
  }
  return FA_OK;
}

fa_status fa_flex_blocks_workspace(const fa_attention *a, size_t *bytes, fa_error *err) {
  fa_plan plan;
  *bytes = 0;
  const fa_call call = {.kind = FA_CALL_BLOCKS, .a = a};
  const fa_status status = fa_plan_make(&call, NULL, &plan, err);
  if (status == FA_OK) *bytes = plan.workspace_bytes;
  return status;
}

/* ---- on the CPU ---- */

/* Bit 0: mask_mod shows some pair of the block at q, k that exists, bit 1: it hides one. */
static int look_at_block(const fa_flex *f, const fa_flex_functions *x, fa_flex_pair at, int64_t q,
                         int64_t k) {
  const int64_t row0 = q * f->q_block, key0 = k * f->kv_block;
  const int64_t row1 = row0 + f->q_block < at.len_q ? row0 + f->q_block : at.len_q;
  const int64_t key1 = key0 + f->kv_block < at.len_k ? key0 + f->kv_block : at.len_k;
  int seen = 0;
  for (int64_t i = row0; i < row1 && seen != 3; ++i)
    for (int64_t j = key0; j < key1 && seen != 3; ++j) {
      at.i = (int)i;
      at.j = (int)j;
      seen |= x->mask(x->self, &at) ? 1 : 2;
    }
  return seen;
}

static void make_row(const fa_attention *a, const fa_flex_functions *x, fa_flex_pair at, int64_t q,
                     int64_t row, const fa_flex_block_lists *out) {
  const int64_t n_kv = fa_flex_n_kv(a);
  int32_t *const count[2] = {out->kv_num_blocks + row, out->full_kv_num_blocks + row};
  int32_t *const index[2] = {out->kv_indices + row * n_kv, out->full_kv_indices + row * n_kv};
  *count[0] = *count[1] = 0;
  for (int64_t k = 0; k < n_kv; ++k) {
    index[0][k] = index[1][k] = 0; /* no more entries than blocks so far */
    const int seen = look_at_block(a->flex, x, at, q, k);
    const int full = seen == 1;
    if (seen & 1) index[full][(*count[full])++] = (int32_t)k;
  }
}

static int64_t length_of(const int32_t *cu_seqlens, int64_t b, int64_t fixed) {
  return cu_seqlens ? cu_seqlens[b + 1] - cu_seqlens[b] : fixed;
}

static void make_lists(const fa_attention *a, const fa_flex_functions *x, const fa_flex_block_lists *out) {
  const fa_flex *f = a->flex;
  const int64_t n_q = fa_flex_n_q(a);
  for (int64_t b = 0; b < f->list_batch && b < a->batch; ++b) {
    const int64_t keys = a->seqused_k ? a->seqused_k[b] : length_of(a->cu_seqlens_k, b, a->seqlen_k);
    const fa_flex_pair at = {.b = (int)b,
                             .len_q = (int)length_of(a->cu_seqlens_q, b, a->seqlen_q),
                             .len_k = (int)(keys - (a->leftpad_k ? a->leftpad_k[b] : 0))};
    for (int64_t h = 0; h < f->list_heads; ++h)
      for (int64_t q = 0; q < n_q; ++q) {
        fa_flex_pair of_head = at;
        of_head.h = (int)h;
        make_row(a, x, of_head, q, (b * f->list_heads + h) * n_q + q, out);
      }
  }
}

fa_status fa_flex_blocks_on_host(const fa_attention *a, const fa_flex_block_lists *out, fa_error *err) {
  fa_attention call;
  fa_flex flex;
  fa_flex_interpreter *interpreter = NULL;
  fa_status status = fa_flex_blocks_problem(a, &call, &flex, err);
  if (status == FA_OK) status = fa_flex_blocks_check(&call, out, err);
  if (status == FA_OK)
    status = fa_attention_check_lengths(&call, call.cu_seqlens_q, call.cu_seqlens_k, call.seqused_k,
                                        call.leftpad_k, err);
  if (status == FA_OK)
    status = fa_flex_interpreter_make(NULL, &flex.program->mask, flex.program->buffer,
                                      flex.program->n_buffers, flex.buffer, NULL, &interpreter, err);
  if (status == FA_OK) make_lists(&call, fa_flex_interpreter_functions(interpreter), out);
  fa_flex_interpreter_free(interpreter);
  return status;
}
