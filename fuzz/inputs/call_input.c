#include "fuzz/inputs/call_input.h"

#include "cases/base/rng.h"

#include <math.h>
#include <string.h>

/* ---- the arguments ---- */

typedef enum kind { INTEGER, REAL, SINGLE, WORD, FLAG, CHOICE, POINTER, STRIDE } kind;

typedef struct argument {
  uint16_t at; /* in fa_call_input */
  uint8_t kind;
} argument;

#define AT(kind, member)                                                                                     \
  { offsetof(fa_call_input, member), kind }
#define STRIDES(member) AT(STRIDE, member.batch), AT(STRIDE, member.row), AT(STRIDE, member.head)

/* Append new rows, because corpora name them by number. */
static const argument arguments[] = {
    AT(CHOICE, a.dtype),
    AT(INTEGER, a.batch),
    AT(INTEGER, a.heads_q),
    AT(INTEGER, a.heads_kv),
    AT(INTEGER, a.seqlen_q),
    AT(INTEGER, a.seqlen_k),
    AT(INTEGER, a.total_q),
    AT(INTEGER, a.total_k),
    AT(INTEGER, a.head_dim),
    AT(INTEGER, a.head_dim_v),
    AT(REAL, a.scale),
    AT(REAL, a.softcap),
    AT(INTEGER, a.window_left),
    AT(INTEGER, a.window_right),
    AT(FLAG, a.mask_top_left),
    AT(INTEGER, a.chunk),
    AT(INTEGER, a.alibi_batch_stride),
    AT(REAL, a.dropout_p),
    AT(CHOICE, a.dropout_scheme),
    AT(WORD, a.dropout_seed),
    AT(WORD, a.dropout_offset),
    AT(SINGLE, a.empty_lse),
    AT(FLAG, a.deterministic),
    AT(INTEGER, a.splits),
    AT(INTEGER, g.num_splits_key),
    AT(INTEGER, cache.cache_rows),
    AT(INTEGER, cache.block_table_stride),
    AT(INTEGER, cache.max_pages),
    AT(INTEGER, cache.page_size),
    AT(INTEGER, cache.n_new),
    AT(INTEGER, cache.rotary_rows),
    AT(INTEGER, cache.rotary_dim),
    AT(FLAG, cache.rotary_interleaved),
    AT(INTEGER, cache.splits),
    AT(CHOICE, states.dtype),
    AT(CHOICE, states.parts_dtype),
    AT(INTEGER, states.parts),
    AT(INTEGER, states.batch),
    AT(INTEGER, states.heads),
    AT(INTEGER, states.rows),
    AT(INTEGER, states.head_dim),
    AT(FLAG, states.base_2),
    AT(INTEGER, flex.q_block),
    AT(INTEGER, flex.kv_block),
    AT(FLAG, flex.blocks_from_mask_mod),
    AT(INTEGER, flex.list_batch),
    AT(INTEGER, flex.list_heads),
    AT(INTEGER, which_program),
    AT(INTEGER, without),
    /* and in the second round: */
    AT(POINTER, a.q),
    AT(POINTER, a.k),
    AT(POINTER, a.v),
    AT(POINTER, a.o),
    AT(POINTER, a.lse),
    STRIDES(a.q_stride),
    STRIDES(a.k_stride),
    STRIDES(a.v_stride),
    STRIDES(a.o_stride),
    STRIDES(a.lse_stride),
    AT(POINTER, a.cu_seqlens_q),
    AT(POINTER, a.cu_seqlens_k),
    AT(POINTER, a.seqused_k),
    AT(POINTER, a.leftpad_k),
    AT(POINTER, a.mask_bits),
    AT(POINTER, a.mask_indptr),
    AT(POINTER, a.bias),
    STRIDES(a.bias_stride),
    AT(POINTER, a.alibi_slopes),
    AT(POINTER, a.p_debug),
    AT(POINTER, g.d_o),
    AT(POINTER, g.d_lse),
    AT(POINTER, g.dq),
    AT(POINTER, g.dk),
    AT(POINTER, g.dv),
    STRIDES(g.do_stride),
    STRIDES(g.dlse_stride),
    STRIDES(g.dq_stride),
    STRIDES(g.dk_stride),
    STRIDES(g.dv_stride),
    AT(POINTER, g.dbias),
    STRIDES(g.dbias_stride),
    AT(POINTER, g.delta),
    STRIDES(g.delta_stride),
    AT(POINTER, g.dbuffer[0]),
    AT(POINTER, g.dbuffer[1]),
    AT(POINTER, g.dbuffer[7]),
    AT(POINTER, cache.k_cache),
    AT(POINTER, cache.v_cache),
    STRIDES(cache.k_cache_stride),
    STRIDES(cache.v_cache_stride),
    AT(POINTER, cache.cache_seqlens),
    AT(POINTER, cache.cache_batch_idx),
    AT(POINTER, cache.block_table),
    AT(POINTER, cache.k_new),
    AT(POINTER, cache.v_new),
    STRIDES(cache.k_new_stride),
    STRIDES(cache.v_new_stride),
    AT(POINTER, cache.rotary_cos),
    AT(POINTER, cache.rotary_sin),
    AT(POINTER, states.o_parts),
    AT(POINTER, states.lse_parts),
    AT(POINTER, states.o),
    AT(POINTER, states.lse),
    AT(STRIDE, states.o_parts_step),
    AT(STRIDE, states.lse_parts_step),
    STRIDES(states.o_parts_stride),
    STRIDES(states.lse_parts_stride),
    STRIDES(states.o_stride),
    STRIDES(states.lse_stride),
    AT(POINTER, states_g.d_o),
    AT(POINTER, states_g.d_lse),
    AT(POINTER, states_g.do_parts),
    AT(POINTER, states_g.dlse_parts),
    AT(STRIDE, states_g.do_parts_step),
    AT(STRIDE, states_g.dlse_parts_step),
    STRIDES(states_g.do_stride),
    STRIDES(states_g.dlse_stride),
    STRIDES(states_g.do_parts_stride),
    STRIDES(states_g.dlse_parts_stride),
    AT(POINTER, flex.buffer[0]),
    AT(POINTER, flex.buffer[1]),
    AT(POINTER, flex.kv_num_blocks),
    AT(POINTER, flex.kv_indices),
    AT(POINTER, flex.full_kv_num_blocks),
    AT(POINTER, flex.full_kv_indices),
    AT(POINTER, lists.kv_num_blocks),
    AT(POINTER, lists.kv_indices),
    AT(POINTER, lists.full_kv_num_blocks),
    AT(POINTER, lists.full_kv_indices),
};
enum { N_ARGUMENTS = sizeof arguments / sizeof *arguments };
_Static_assert(N_ARGUMENTS <= 256, "a change has a byte for it");

int fa_call_input_arguments(void) {
  return N_ARGUMENTS;
}

/* ---- values ---- */

/* Where nothing lies: each tensor has 2^36 bytes of its own. */
static void *address(size_t number, size_t offset) {
  return (void *)(((uintptr_t)1 << 44) + ((uintptr_t)number << 36) + offset); /* NOLINT: never followed */
}

static int64_t integer(unsigned how, uint16_t v) {
  switch (how % 8) {
  case 1:
    return -(int64_t)v;
  case 2:
    return (int64_t)v << 16;
  case 3:
    return (int64_t)v << 32;
  case 4:
    return (int64_t)v << 47;
  case 5:
    return INT64_MAX - v;
  case 6:
    return INT64_MIN + v;
  case 7: /* near a power of two */
    return (int64_t)((uint64_t)1 << v % 63) + (int64_t)(v >> 8) - 128;
  default:
    return v;
  }
}

static double real(unsigned how, uint16_t v) {
  static const double special[] = {0,        -0.0,     1,    -1,        NAN,    INFINITY, -INFINITY,
                                   1e-31,    1e-30,    1e30, 1e31,      1e308,  5e-324,   0.125,
                                   0.999999, 1 - 1e-9, 0.5,  1 - 1e-16, 3.5e38, -0.25};
  if (how % 2) return special[v % (sizeof special / sizeof *special)];
  return v / 65536.0 * (how & 2 ? 100 : 1) * (how & 4 ? -1 : 1);
}

static void set(fa_call_input *x, unsigned number, unsigned how, uint16_t v) {
  char *at = (char *)x + arguments[number].at;
  const int64_t i = integer(how, v);
  const double d = real(how, v);
  const float f = (float)d;
  const uint64_t word = (uint64_t)i;
  const int choice = v % 12;
  const bool flag = v % 2;
  void *const pointer = how % 8 ? address(number, v) : NULL;
  switch (arguments[number].kind) {
  case INTEGER:
  case STRIDE:
    memcpy(at, &i, sizeof i);
    break;
  case REAL:
    memcpy(at, &d, sizeof d);
    break;
  case SINGLE:
    memcpy(at, &f, sizeof f);
    break;
  case WORD:
    memcpy(at, &word, sizeof word);
    break;
  case FLAG:
    memcpy(at, &flag, sizeof flag);
    break;
  case CHOICE:
    memcpy(at, &choice, sizeof choice);
    break;
  default:
    memcpy(at, &pointer, sizeof pointer);
  }
}
_Static_assert(sizeof(fa_dtype) == sizeof(int) && sizeof(fa_dropout_scheme) == sizeof(int),
               "as set() copies them");

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
  x->cache.rotary_rows = 300, x->cache.rotary_dim = 32;
  x->states.batch = 2, x->states.heads = 3, x->states.rows = 20, x->states.head_dim = 64;
  x->flex.q_block = x->flex.kv_block = 64;
  x->which_program = x->without = 0;
}

static void point_everywhere(fa_call_input *x) {
  for (unsigned i = 0; i < N_ARGUMENTS; ++i) {
    void *const to = address(i, 0);
    if (arguments[i].kind == POINTER) memcpy((char *)x + arguments[i].at, &to, sizeof to);
  }
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
  a->lse_stride = g->dlse_stride = g->delta_stride = of_rows(rows, a->heads_q);
  a->bias_stride = g->dbias_stride =
      (fa_strides){times(times(a->heads_q, rows), a->seqlen_k), a->seqlen_k, times(rows, a->seqlen_k)};
}

static void lay_out_cache(fa_call_input *x, bool pages) {
  fa_inference *c = &x->cache;
  const fa_attention *a = &x->a;
  c->k_cache_stride = c->v_cache_stride = dense(pages ? c->page_size : a->seqlen_k, a->heads_kv, a->head_dim);
  c->k_new_stride = c->v_new_stride = dense(c->n_new, a->heads_kv, a->head_dim);
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
  if (!(with & FA_CALL_WITH_DLSE)) x->g.d_lse = NULL, x->states_g.d_lse = NULL;
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
  if (x->call.kind == FA_CALL_CACHE) a->cu_seqlens_k = a->seqused_k = NULL;
}

static void apply(fa_call_input *x, const uint8_t *data, size_t size, bool second) {
  for (size_t at = FA_CALL_INPUT_HEAD; at + FA_CALL_INPUT_CHANGE <= size; at += FA_CALL_INPUT_CHANGE) {
    const unsigned number = data[at] % N_ARGUMENTS;
    if ((arguments[number].kind >= POINTER) == second)
      set(x, number, data[at + 1], (uint16_t)(data[at + 2] | data[at + 3] << 8));
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
  x->a.flex = is_flex && kind != FA_CALL_CACHE ? &x->flex : NULL;
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
  point_everywhere(out);
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

/* ---- mutation ---- */

static uint16_t any_value(fa_rng *r) {
  static const uint16_t values[] = {0,   1,   2,   3,   7,    8,    63,   64,    65,    127,  128,
                                    129, 255, 256, 257, 1023, 1024, 1025, 32767, 32768, 65535};
  const int64_t n = (int64_t)(sizeof values / sizeof *values);
  return fa_rng_chance(r, 0.6) ? values[fa_rng_below(r, n)] : (uint16_t)fa_rng_next(r);
}

static void write_change(uint8_t *at, fa_rng *r) {
  const uint16_t v = any_value(r);
  at[0] = (uint8_t)fa_rng_below(r, N_ARGUMENTS);
  at[1] = (uint8_t)(fa_rng_chance(r, 0.5) ? 0 : fa_rng_below(r, 8));
  at[2] = (uint8_t)v, at[3] = (uint8_t)(v >> 8);
}

static void change_head(uint8_t *head, fa_rng *r) {
  const int64_t bit = fa_rng_below(r, 24);
  if (bit < 16)
    head[2 + bit / 8] ^= (uint8_t)(1 << bit % 8);
  else if (bit < 20)
    head[1] = (uint8_t)fa_rng_next(r);
  else
    head[0] = (uint8_t)fa_rng_below(r, FA_CALL_INPUT_KINDS);
}

/* Returns the new number of changes. */
static size_t change_changes(uint8_t *changes, size_t n, size_t most, fa_rng *r) {
  const size_t at = n ? (size_t)fa_rng_below(r, (int64_t)n) : 0;
  uint8_t *one = changes + at * FA_CALL_INPUT_CHANGE;
  const int64_t what = fa_rng_below(r, 4);
  if (n == 0 || (what < 2 && n < most)) {
    write_change(changes + n * FA_CALL_INPUT_CHANGE, r);
    return n + 1;
  }
  if (what == 2) {
    memmove(one, one + FA_CALL_INPUT_CHANGE, (n - at - 1) * FA_CALL_INPUT_CHANGE);
    return n - 1;
  }
  const uint8_t argument = one[0];
  write_change(one, r);
  one[0] = argument;
  return n;
}

size_t fa_call_input_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed, fa_mutate_fn raw) {
  fa_rng r = fa_rng_make(seed, 0x63616c6c);
  if (max_size < FA_CALL_INPUT_HEAD + FA_CALL_INPUT_CHANGE || fa_rng_chance(&r, 0.1))
    return raw(data, size, max_size);
  if (size < FA_CALL_INPUT_HEAD) memset(data + size, 0, FA_CALL_INPUT_HEAD - size), size = FA_CALL_INPUT_HEAD;
  const size_t most = (max_size - FA_CALL_INPUT_HEAD) / FA_CALL_INPUT_CHANGE;
  size_t n = (size - FA_CALL_INPUT_HEAD) / FA_CALL_INPUT_CHANGE;
  do
    if (fa_rng_chance(&r, 0.2))
      change_head(data, &r);
    else
      n = change_changes(data + FA_CALL_INPUT_HEAD, n, most, &r);
  while (fa_rng_chance(&r, 0.4));
  return FA_CALL_INPUT_HEAD + n * FA_CALL_INPUT_CHANGE;
}
