#include "fuzz/inputs/call_arguments.h"

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
    AT(FLAG, a.lse_padded),
    AT(POINTER, a.dropout_seed_at),
    AT(POINTER, a.dropout_offset_at),
    AT(POINTER, a.dropout_used),
    AT(FLAG, cache.v_in_k),
    AT(INTEGER, cache.topk),
    AT(POINTER, cache.topk_indices),
    AT(POINTER, cache.topk_length),
    AT(FLAG, cache.quantized),
    AT(CHOICE, cache.cache_dtype),
    AT(FLAG, cache.descales_of_slots),
    AT(FLAG, cache.quantizes_new),
    AT(STRIDE, cache.descale_slot_stride),
    AT(POINTER, a.k_descale),
    AT(POINTER, a.v_descale),
    AT(FLAG, cache.mixed_rows),
    AT(POINTER, a.amax_p),
    AT(POINTER, a.amax_o),
    AT(POINTER, cache.k_scales),
    AT(POINTER, cache.v_scales),
    STRIDES(cache.k_scales_stride),
    STRIDES(cache.v_scales_stride),
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

void fa_call_argument_set(fa_call_input *x, unsigned number, unsigned how, uint16_t v) {
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
               "as they are copied");

bool fa_call_argument_is_layout(unsigned number) {
  return arguments[number].kind >= POINTER;
}

void fa_call_arguments_point(fa_call_input *x) {
  for (unsigned i = 0; i < N_ARGUMENTS; ++i) {
    void *const to = address(i, 0);
    if (arguments[i].kind == POINTER) memcpy((char *)x + arguments[i].at, &to, sizeof to);
  }
}
