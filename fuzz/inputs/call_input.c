#include "fuzz/inputs/call_arguments.h"

#include <string.h>

/* ---- a sound call ---- */

/* Sizes may be anything: what does not fit 64 bits wraps around, and the strides are as wrong as the sizes. */
static int64_t times(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

static fa_strides dense(int64_t rows, int64_t heads, int64_t dim) {
  return (fa_strides){times(times(rows, heads), dim), times(heads, dim), dim};
}

/* Of LSE: rows are contiguous. */
static fa_strides of_rows(int64_t rows, int64_t heads) {
  return (fa_strides){times(rows, heads), 1, rows};
}

static void begin(fa_call_input *x) {
  fa_attention_init(&x->a);
  fa_gradients_init(&x->g);
  fa_inference_init(&x->cache);
  fa_states_init(&x->states);
  fa_states_gradients_init(&x->states_g);
  fa_flex_init(&x->flex);
  x->a.batch = 2, x->a.heads_q = 4, x->a.heads_kv = 2, x->a.seqlen_q = 130, x->a.seqlen_k = 260,
  x->a.head_dim = 64;
  x->a.total_q = 200, x->a.total_k = 400, x->a.scale = 0.125;
  x->cache.cache_rows = 8, x->cache.n_new = 1, x->cache.max_pages = 20, x->cache.page_size = 16;
  x->cache.rotary_rows = 300, x->cache.rotary_dim = 32, x->cache.topk = 64;
  x->states.batch = 2, x->states.heads = 3, x->states.rows = 20, x->states.head_dim = 64;
  x->flex.q_block = x->flex.kv_block = 64;
  x->which_program = x->without = 0;
}

static void lay_out_attention(fa_call_input *x, bool varlen) {
  fa_attention *a = &x->a;
  fa_gradients *g = &x->g;
  const int64_t rows = varlen ? a->total_q : a->seqlen_q, keys = varlen ? a->total_k : a->seqlen_k;
  const int64_t dim_v = a->head_dim_v ? a->head_dim_v : a->head_dim;
  a->q_stride = g->dq_stride = dense(rows, a->heads_q, a->head_dim);
  a->o_stride = g->do_stride = dense(rows, a->heads_q, dim_v);
  a->k_stride = g->dk_stride = dense(keys, a->heads_kv, a->head_dim);
  a->v_stride = g->dv_stride = dense(keys, a->heads_kv, dim_v);
  a->lse_stride = g->dlse_stride = g->delta_stride = of_rows(a->lse_padded ? a->seqlen_q : rows, a->heads_q);
  a->bias_stride = g->dbias_stride =
      (fa_strides){times(times(a->heads_q, rows), a->seqlen_k), a->seqlen_k, times(rows, a->seqlen_k)};
}

static void lay_out_cache(fa_call_input *x, bool pages) {
  fa_inference *c = &x->cache;
  const fa_attention *a = &x->a;
  const int64_t slots = pages ? c->page_size : a->seqlen_k,
                dim_v = a->head_dim_v ? a->head_dim_v : a->head_dim;
  c->k_cache_stride = dense(slots, a->heads_kv, a->head_dim);
  c->v_cache_stride = dense(slots, a->heads_kv, dim_v);
  c->k_new_stride = dense(c->n_new, a->heads_kv, a->head_dim);
  c->v_new_stride = dense(c->n_new, a->heads_kv, dim_v);
  c->k_scales_stride = c->v_scales_stride = dense(slots, a->heads_kv, a->head_dim / 16);
  c->block_table_stride = c->max_pages;
}

static void lay_out_states(fa_call_input *x) {
  fa_states *s = &x->states;
  fa_states_gradients *g = &x->states_g;
  s->o_stride = s->o_parts_stride = g->do_stride = g->do_parts_stride = dense(s->rows, s->heads, s->head_dim);
  s->lse_stride = s->lse_parts_stride = g->dlse_stride = g->dlse_parts_stride = of_rows(s->rows, s->heads);
  s->o_parts_step = g->do_parts_step = times(s->batch, s->o_stride.batch);
  s->lse_parts_step = g->dlse_parts_step = times(s->batch, s->lse_stride.batch);
}

/* What the call does not have. */
static void leave_out(fa_call_input *x, unsigned with) {
  fa_attention *a = &x->a;
  if (!(with & FA_CALL_WITH_VARLEN)) a->cu_seqlens_q = a->cu_seqlens_k = NULL;
  if (!(with & FA_CALL_WITH_BIAS)) a->bias = NULL, x->g.dbias = NULL;
  if (!(with & FA_CALL_WITH_ALIBI)) a->alibi_slopes = NULL;
  if (!(with & FA_CALL_WITH_MASK_BITS)) a->mask_bits = NULL, a->mask_indptr = NULL;
  if (!(with & FA_CALL_WITH_USED)) a->seqused_k = a->leftpad_k = NULL;
  if (!(with & FA_CALL_WITH_P_DEBUG)) a->p_debug = NULL;
  if (!(with & FA_CALL_WITH_DROPOUT_STATE))
    a->dropout_seed_at = a->dropout_offset_at = NULL, a->dropout_used = NULL;
  if (!(with & FA_CALL_WITH_DLSE)) x->g.d_lse = NULL, x->states_g.d_lse = NULL;
  /* of a cache, which has no dLSE */
  if (!(with & FA_CALL_WITH_DLSE) || x->call.kind != FA_CALL_CACHE || !x->cache.quantized)
    a->amax_p = a->amax_o = NULL;
  if (!(with & FA_CALL_WITH_DELTA)) x->g.delta = NULL;
  if (!(with & FA_CALL_WITH_BLOCKS)) {
    x->flex.q_block = x->flex.kv_block = 0;
    x->flex.kv_num_blocks = x->flex.kv_indices = x->flex.full_kv_num_blocks = x->flex.full_kv_indices = NULL;
  }
  if (x->flex.blocks_from_mask_mod)
    x->flex.kv_num_blocks = x->flex.kv_indices = x->flex.full_kv_num_blocks = x->flex.full_kv_indices = NULL;
  memset(x->g.dbuffer, 0, sizeof x->g.dbuffer);
  if (with & FA_CALL_WITH_SUMS) x->g.dbias_stride.batch = x->g.dbias_stride.head = 0;
  if (!(with & FA_CALL_WITH_PAGES)) x->cache.block_table = NULL, x->cache.page_size = 0;
  if (with & FA_CALL_WITH_PAGES) x->cache.cache_batch_idx = NULL;
  if (!(with & FA_CALL_WITH_ROTARY)) x->cache.rotary_dim = 0;
  if (!(with & FA_CALL_WITH_LISTS)) x->cache.topk_indices = x->cache.topk_length = NULL;
  if (x->call.kind == FA_CALL_CACHE) a->cu_seqlens_k = a->seqused_k = NULL;
}

static void apply(fa_call_input *x, const uint8_t *data, size_t size, bool second) {
  for (size_t at = FA_CALL_INPUT_HEAD; at + FA_CALL_INPUT_CHANGE <= size; at += FA_CALL_INPUT_CHANGE) {
    const unsigned number = data[at] % (unsigned)fa_call_input_arguments();
    if (fa_call_argument_is_layout(number) == second)
      fa_call_argument_set(x, number, data[at + 1], (uint16_t)(data[at + 2] | data[at + 3] << 8));
  }
}

/* ---- what it points to ---- */

static void prepare_programs(fa_call_input *x) {
  static const fa_flex_buffer buffers[] = {{.name = "slope", .dtype = FA_F32, .rank = 1, .shape = {4}},
                                           {.name = "doc", .dtype = FA_I32, .rank = 1, .shape = {260}}};
  static const char *const text[4][2] = {{"score + slope[h & 3]", "doc[0] <= doc[kv_idx & 255]"},
                                         {"score * 0.5", NULL},
                                         {NULL, "q_idx >= kv_idx"},
                                         {"score + slope[0] * slope[h & 3]", "(b ^ h ^ q_idx) >= doc[3]"}};
  for (int i = 0; i < 4 && !x->program[i]; ++i)
    FA_ASSERT(fa_flex_prepare(text[i][0], text[i][1], buffers, 2, &x->program[i], NULL) == FA_OK);
}

/* A bit of `without` for every struct that is not there. */
static void connect(fa_call_input *x, int kind, unsigned with) {
  const bool merges = kind == FA_CALL_MERGE || kind == FA_CALL_MERGE_BACKWARD;
  const bool is_flex = with & FA_CALL_WITH_FLEX || kind == FA_CALL_BLOCKS;
  const uint64_t without = (uint64_t)x->without;
  const uint64_t program = (uint64_t)x->which_program % 5;
  x->flex.program = program < 4 ? x->program[program] : NULL;
  x->a.flex = is_flex ? &x->flex : NULL;
  x->call.a = merges || without & 1 ? NULL : &x->a;
  x->call.g = kind == FA_CALL_BACKWARD && !(without & 2) ? &x->g : NULL;
  x->call.cache = kind == FA_CALL_CACHE && !(without & 4) ? &x->cache : NULL;
  x->call.states = merges && !(without & 8) ? &x->states : NULL;
  x->call.states_g = kind == FA_CALL_MERGE_BACKWARD && !(without & 16) ? &x->states_g : NULL;
  x->call.lists = kind == FA_CALL_BLOCKS && !(without & 32) ? &x->lists : NULL;
  x->call.functions = NULL;
  x->call.workspace = NULL;
}

static void choose_device(fa_call_input *x, unsigned byte) {
  static const size_t shared[] = {232448, 166912, 101376, 101376}; /* every device has 99 KiB */
  static const int processors[] = {132, 1, 108, 1024};
  x->its = (fa_kernel_device){.max_shared_bytes = shared[byte >> 1 & 3],
                              .compiles = byte >> 3 & 1,
                              .hopper = byte >> 4 & 1 ? 132 : 0};
  x->device = byte & 1 ? NULL : &x->its;
  x->call.n_processors = processors[byte >> 5 & 3];
}

void fa_call_input_read(const uint8_t *data, size_t size, fa_call_input *out) {
  uint8_t head[FA_CALL_INPUT_HEAD] = {0};
  memcpy(head, data, size < sizeof head ? size : sizeof head);
  const int kind = head[0] % FA_CALL_INPUT_KINDS;
  const unsigned with = head[2] | (unsigned)head[3] << 8;
  prepare_programs(out);
  begin(out);
  choose_device(out, head[1]);
  apply(out, data, size, false);
  fa_call_arguments_point(out);
  lay_out_attention(out, with & FA_CALL_WITH_VARLEN);
  lay_out_cache(out, with & FA_CALL_WITH_PAGES);
  lay_out_states(out);
  out->call.kind = (fa_call_kind)kind;
  leave_out(out, with);
  apply(out, data, size, true);
  connect(out, kind, with);
}

void fa_call_input_free(fa_call_input *x) {
  for (int i = 0; i < 4; ++i) fa_flex_free(x->program[i]);
  memset(x->program, 0, sizeof x->program);
}
