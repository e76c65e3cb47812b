/* gpu/fa.h with bad arguments, one at a time: the status, and a message that names the field. None of it
 * needs a GPU, and none may reach one. */
#include "gpu/call/check.h"
#include "gpu/fa.h"
#include "gpu/plan/make.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

/* Addresses that are never dereferenced. */
static char memory[1 << 16] __attribute__((aligned(256)));
static int32_t ints[16];

static void valid(fa_attention *a, fa_gradients *g) {
  fa_attention_init(a);
  a->batch = 2, a->heads_q = 4, a->heads_kv = 2, a->seqlen_q = 10, a->seqlen_k = 20, a->head_dim = 64;
  a->scale = 0.125;
  a->q = a->k = a->v = a->o = memory;
  a->lse = (float *)memory;
  a->q_stride = a->o_stride = fa_strides_dense(10, 4, 64);
  a->k_stride = a->v_stride = fa_strides_dense(20, 2, 64);
  a->lse_stride = (fa_strides){40, 1, 10};
  fa_gradients_init(g);
  g->d_o = g->dq = g->dk = g->dv = memory;
  g->do_stride = g->dq_stride = a->q_stride;
  g->dk_stride = g->dv_stride = a->k_stride;
}

static void varlen(fa_attention *a) {
  a->cu_seqlens_q = a->cu_seqlens_k = ints;
  a->total_q = 15, a->total_k = 33;
  a->lse_stride = (fa_strides){0, 1, 15};
}

/* Both calls and both checks must agree; nothing may run, whatever driver there is. */
static void expect(const fa_attention *a, fa_status want, const char *text, int line) {
  fa_gradients g;
  fa_attention ignored;
  valid(&ignored, &g);
  size_t bytes = 77;
  fa_error err[6] = {{""}};
  const fa_status got[6] = {fa_forward_check(a, &err[0]),
                            fa_forward_workspace(a, &bytes, &err[1]),
                            fa_forward(a, NULL, 0, NULL, &err[2]),
                            fa_backward_check(a, &g, &err[3]),
                            fa_backward_workspace(a, &g, &bytes, &err[4]),
                            fa_backward(a, &g, memory, sizeof memory, NULL, &err[5])};
  for (int i = 0; i < 6; ++i)
    CHECK_MSG(got[i] == want && strstr(err[i].text, text),
              "line %d, call %d: status %d, \"%s\" is not \"%s\"", line, i, (int)got[i], err[i].text, text);
  CHECK(fa_forward_check(a, NULL) == want); /* the message is optional */
}

#define BAD(change, status, text)                                                                            \
  do {                                                                                                       \
    fa_attention a;                                                                                          \
    fa_gradients g;                                                                                          \
    valid(&a, &g);                                                                                           \
    change;                                                                                                  \
    expect(&a, status, text, __LINE__);                                                                      \
  } while (0)
#define INPUT FA_ERR_INPUT
#define UNSUPPORTED FA_ERR_UNSUPPORTED

static void test_sizes(void) {
  BAD(a.batch = -1, INPUT, "batch = -1: at least 0");
  BAD(a.batch = 65536, UNSUPPORTED, "batch = 65536: the kernels take at most 65535");
  BAD(a.heads_q = 0, INPUT, "heads_q = 0: at least 1");
  BAD(a.heads_kv = 0, INPUT, "heads_kv = 0: at least 1");
  BAD(a.heads_q = 65538, UNSUPPORTED, "heads_q = 65538");
  BAD(a.heads_kv = 3, INPUT, "heads_q = 4 is no multiple of heads_kv = 3");
  BAD(a.seqlen_q = -5, INPUT, "seqlen_q = -5");
  BAD(a.seqlen_k = -5, INPUT, "seqlen_k = -5");
  BAD(a.seqlen_k = 1 << 29, UNSUPPORTED, "seqlen_k = 536870912: the kernels take at most 536870911");
  BAD(a.head_dim = 0, INPUT, "head_dim = 0: at least 1");
  BAD(a.head_dim = 65537, UNSUPPORTED, "head_dim = 65537: the kernels take at most 65536");
  BAD(a.head_dim = INT64_MAX, UNSUPPORTED, "head_dim");
  BAD(a.head_dim_v = -1, INPUT, "head_dim_v = -1: at least 0");
  BAD(a.head_dim_v = 65537, UNSUPPORTED, "head_dim_v = 65537: the kernels take at most 65536");
  BAD((a.seqlen_k = (1 << 29) - 1, a.head_dim_v = 65536), UNSUPPORTED,
      "536870911 rows or keys of 65536 elements are more than a grid holds");
  BAD(a.dtype = FA_U8, UNSUPPORTED, "dtype u8: the kernels take f16, bf16 and f32");
  BAD(a.dtype = (fa_dtype)99, UNSUPPORTED, "dtype out of range");
  BAD((varlen(&a), a.total_q = -1), INPUT, "total_q = -1");
  BAD((varlen(&a), a.total_q = 9), INPUT,
      "seqlen_q = 10, the longest entry, is more than all total_q = 9 tokens");
  BAD((varlen(&a), a.total_k = 19), INPUT,
      "seqlen_k = 20, the longest entry, is more than all total_k = 19 tokens");
}

static void test_numbers(void) {
  BAD(a.scale = NAN, INPUT, "scale is not set");
  BAD(a.scale = INFINITY, INPUT, "scale is infinite");
  BAD(a.scale = 1e-31, UNSUPPORTED, "scale = 1e-31: outside the kernels' float range");
  BAD(a.scale = -1e31, UNSUPPORTED, "scale = -1e+31");
  BAD(a.softcap = -1, INPUT, "softcap = -1: a finite number >= 0");
  BAD(a.softcap = NAN, INPUT, "softcap = nan");
  BAD(a.softcap = INFINITY, INPUT, "softcap = inf");
  BAD(a.softcap = 1e-40, UNSUPPORTED, "softcap = 1e-40");
  BAD(a.dropout_p = 1, INPUT, "dropout_p = 1: 0 <= p < 1");
  BAD(a.dropout_p = -0.1, INPUT, "dropout_p = -0.1");
  BAD(a.dropout_p = NAN, INPUT, "dropout_p = nan");
  BAD(a.dropout_p = 1 - 1e-9, INPUT, "dropout_p = 0.99999999900000003: it is 1 in float32");
  BAD(a.dropout_scheme = (fa_dropout_scheme)7, INPUT, "dropout_scheme = 7");
  BAD(a.dropout_seed_at = (uint64_t *)(void *)memory, INPUT,
      "dropout_offset_at is NULL, but dropout_seed_at is given");
  BAD(a.dropout_offset_at = (uint64_t *)(void *)memory, INPUT,
      "dropout_seed_at is NULL, but dropout_offset_at is given");
  BAD((a.dropout_seed_at = (uint64_t *)(void *)(memory + 4),
       a.dropout_offset_at = (uint64_t *)(void *)memory),
      INPUT, "dropout_seed_at = ");
  BAD((a.dropout_seed_at = (uint64_t *)(void *)memory,
       a.dropout_offset_at = (uint64_t *)(void *)(memory + 4)),
      INPUT, "dropout_offset_at = ");
  BAD(a.dropout_used = (uint64_t *)(void *)(memory + 4), INPUT, "dropout_used = ");
  BAD(a.window_left = -2, INPUT, "window_left = -2: -1 (no bound) or more");
  BAD(a.window_right = INT64_MIN, INPUT, "window_right = -9223372036854775808");
  BAD(a.empty_lse = NAN, INPUT, "empty_lse is NaN");
  BAD(a.p_debug = memory + 2, INPUT, "not aligned to 16 bytes");
}

static void test_tensors(void) {
  BAD(a.q = NULL, INPUT, "q is NULL");
  BAD(a.k = NULL, INPUT, "k is NULL");
  BAD(a.v = NULL, INPUT, "v is NULL");
  BAD(a.o = NULL, INPUT, "o is NULL");
  BAD(a.lse = NULL, INPUT, "lse is NULL");
  BAD(a.q = memory + 1, INPUT, "not aligned to its elements of 2 bytes");
  BAD(a.lse = (float *)(void *)(memory + 2), INPUT, "not aligned to its elements of 4 bytes");
  BAD(a.q_stride.head = -64, INPUT, "q: head stride -64: negative strides are not supported");
  BAD(a.v_stride.batch = -1, INPUT, "v: batch stride -1");
  BAD(a.k_stride.row = INT64_MAX, INPUT, "k: its strides reach over 2^48 elements");
  BAD(a.o_stride.batch = 0, INPUT, "o is written, but with strides (0, 256, 64)");
  BAD(a.o_stride.head = 63, INPUT, "its elements overlap");
  BAD(a.o_stride.row = 64, INPUT, "its elements overlap");
  BAD(a.lse_stride.row = 0, INPUT, "lse is written");
  BAD((varlen(&a), a.lse_padded = true, a.lse_stride = ((fa_strides){0, 1, 10})), INPUT,
      "lse is written, but with strides (0, 1, 10)");
  BAD((varlen(&a), a.lse_padded = true, a.lse_stride.batch = -40), INPUT, "lse: batch stride -40");
  BAD(a.cu_seqlens_q = ints, INPUT, "cu_seqlens_k is NULL, but cu_seqlens_q is given: both or neither");
  BAD(a.cu_seqlens_k = ints, INPUT, "cu_seqlens_q is NULL");
  BAD((varlen(&a), a.cu_seqlens_q = (int32_t *)(void *)(memory + 2)), INPUT, "cu_seqlens_q = ");
  BAD(a.seqused_k = (int32_t *)(void *)(memory + 1), INPUT, "not aligned to 4 bytes");
  BAD(a.leftpad_k = (int32_t *)(void *)(memory + 1), INPUT, "leftpad_k = ");
  BAD(a.alibi_slopes = (float *)(void *)(memory + 1), INPUT, "alibi_slopes = ");
  BAD((a.alibi_slopes = (float *)memory, a.alibi_batch_stride = -4), INPUT, "alibi_batch_stride = -4");
  BAD(a.sinks = (float *)(void *)(memory + 1), INPUT, "sinks = ");
  BAD((a.e4m3 = true, a.amax_p = (float *)memory), INPUT, "amax_o is NULL, but not amax_p");
  BAD(a.amax_p = a.amax_o = (float *)memory, UNSUPPORTED, "amax_p and amax_o: only of e4m3");
  BAD((a.e4m3 = true, a.amax_p = (float *)memory, a.amax_o = (float *)(void *)(memory + 2)), INPUT,
      "amax_o = ");
  BAD((a.bias = memory + 1), INPUT, "bias = ");
  BAD((a.bias = memory, a.dtype = FA_F32, a.bias = memory + 2), INPUT,
      "not aligned to its elements of 4 bytes");
  BAD((a.bias = memory, a.bias_stride.row = -20), INPUT, "bias: row stride -20: negative strides");
  BAD((varlen(&a), a.bias = memory, a.bias_stride.batch = -20), INPUT,
      "bias: batch stride -20: negative strides");
  BAD((a.bias = memory, a.bias_stride.head = INT64_MAX), INPUT, "bias: its strides reach over 2^48 elements");
  fa_error err;
  CHECK(fa_forward_check(NULL, &err) == FA_ERR_INPUT && strstr(err.text, "the fa_attention is NULL"));
  CHECK(fa_forward(NULL, NULL, 0, NULL, &err) == FA_ERR_INPUT);
}

/* What only some of the fast kernels have, and not even those for expressions, beside what those have not. */
static void test_combinations(void) {
  static const uint8_t bits[1];
  static const int32_t starts[8];
  BAD((a.dtype = FA_F32, a.p_debug = memory), UNSUPPORTED, "p_debug: not together with dtype f32");
  BAD((a.bias = memory, a.p_debug = memory), UNSUPPORTED, "p_debug: not together with a bias");
  BAD((a.bias = memory, a.softcap = 30, a.p_debug = memory), UNSUPPORTED,
      "p_debug: not together with a bias");
  BAD((a.head_dim = 264, a.mask_bits = bits, a.mask_indptr = starts), UNSUPPORTED,
      "mask_bits: not together with a head_dim above 256");
}

/* The backward pass knows no splits, and ignores them. */
static void test_splits_beside_expressions(void) {
  fa_attention a;
  fa_gradients g;
  fa_flex nothing;
  fa_error err = {""};
  valid(&a, &g);
  fa_flex_init(&nothing);
  a.flex = &nothing;
  CHECK_MSG(fa_forward_check(&a, &err) == FA_OK && fa_backward_check(&a, &g, &err) == FA_OK, "%s", err.text);
  a.splits = 2;
  CHECK_MSG(fa_forward_check(&a, &err) == FA_ERR_UNSUPPORTED &&
                strstr(err.text, "splits = 2: not together with expressions or block lists"),
            "%s", err.text);
  CHECK(fa_forward(&a, memory, 1 << 20, NULL, &err) == FA_ERR_UNSUPPORTED);
  CHECK_MSG(fa_backward_check(&a, &g, &err) == FA_OK, "%s", err.text);
}

#define TAKEN(change)                                                                                        \
  do {                                                                                                       \
    fa_attention a;                                                                                          \
    fa_gradients g;                                                                                          \
    fa_error error = {""};                                                                                   \
    valid(&a, &g);                                                                                           \
    change;                                                                                                  \
    CHECK_MSG(fa_forward_check(&a, &error) == FA_OK && fa_backward_check(&a, &g, &error) == FA_OK, "%s",     \
              error.text);                                                                                   \
  } while (0)

/* Features of two families of kernels: those for expressions have both. */
static void test_features_of_two_families(void) {
  static const float slopes[4];
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
  TAKEN((a.dtype = FA_F32, a.softcap = 30));
  TAKEN((a.head_dim_v = 32, a.softcap = 30));
  TAKEN((a.head_dim = 60, a.alibi_slopes = slopes));
  TAKEN((a.head_dim = 60, a.dropout_p = 0.5));
  TAKEN((a.dropout_scheme = FA_DROPOUT_LINEAR, a.dropout_p = 0.5, a.softcap = 1));
  TAKEN(
      (a.bias = memory, a.bias_stride.row = 20, a.softcap = 30, a.alibi_slopes = slopes, a.dropout_p = 0.5));
  TAKEN((a.softcap = 30, g.delta = (float *)memory, g.delta_stride = a.lse_stride));
  valid(&a, &g);
  a.bias = memory, a.softcap = 30, a.splits = 2; /* of which the kernels for expressions have none */
  CHECK(fa_forward_check(&a, &err) == FA_ERR_UNSUPPORTED &&
        strstr(err.text, "splits = 2: not together with a bias"));
  a.splits = -1;
  CHECK(fa_forward_check(&a, &err) == FA_ERR_INPUT && strstr(err.text, "splits = -1: at least 0"));
}

/* What must be accepted. */
static void test_good(void) {
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
#define GOOD(change)                                                                                         \
  valid(&a, &g);                                                                                             \
  change;                                                                                                    \
  CHECK_MSG(fa_forward_check(&a, &err) == FA_OK, "%s: %s", #change, err.text)
  GOOD((void)0);
  GOOD(varlen(&a));
  GOOD((varlen(&a), a.lse_padded = true, a.lse_stride = ((fa_strides){40, 1, 10})));
  GOOD(a.scale = 0);
  GOOD(a.scale = -1);
  GOOD((a.k_stride.batch = 0, a.v_stride.head = 0)); /* inputs may repeat */
  GOOD(a.o_stride = ((fa_strides){2560, 64, 640}));  /* [B,H,S,D] */
  GOOD(a.o_stride = ((fa_strides){1 << 20, 300, 70}));
  GOOD(a.q = memory + 2); /* rows that begin anywhere */
  GOOD((a.seqlen_k = 0, a.k = a.v = NULL));
  GOOD((a.batch = 0, a.q = a.k = a.v = a.o = NULL, a.lse = NULL));
  GOOD((a.window_left = 1 << 30, a.window_right = 0));
  GOOD(a.dtype = FA_F32);
  GOOD((a.head_dim = 12, a.head_dim_v = 57));
  GOOD((a.head_dim = 264, a.q_stride = a.o_stride = fa_strides_dense(10, 4, 264)));
  GOOD((a.mask_top_left = true, a.softcap = 30)); /* the fast kernels support that */
  GOOD((a.mask_top_left = true, a.alibi_slopes = (float *)memory));
  GOOD(a.bias = memory);
  GOOD((varlen(&a), a.bias = memory, a.bias_stride = ((fa_strides){800, 20, 200})));
  GOOD((a.bias = memory, a.bias_stride = ((fa_strides){800, 20, 200})));
  GOOD((a.dropout_scheme = FA_DROPOUT_LINEAR, a.dropout_p = 0.5));
  GOOD((a.dropout_scheme = FA_DROPOUT_LINEAR, a.softcap = 1)); /* p = 0: no dropout */
  GOOD((a.dtype = FA_BF16, a.deterministic = true));
  size_t bytes = 1;
  CHECK(fa_forward_workspace(&a, &bytes, &err) == FA_OK && bytes == 0);
  CHECK_MSG(fa_backward_check(&a, &g, &err) == FA_OK, "%s", err.text);
  CHECK(fa_backward_workspace(&a, &g, &bytes, &err) == FA_OK && bytes > 0);
  size_t one = 0;
  a.deterministic = false;
  CHECK(fa_backward_workspace(&a, &g, &one, &err) == FA_OK && one > 0 && one <= bytes);
}

#define BAD_BACKWARD(change, bytes, message)                                                                 \
  do {                                                                                                       \
    fa_attention a;                                                                                          \
    fa_gradients g;                                                                                          \
    void *workspace = memory;                                                                                \
    fa_error err = {""};                                                                                     \
    valid(&a, &g);                                                                                           \
    change;                                                                                                  \
    CHECK_MSG(fa_backward(&a, &g, workspace, bytes, NULL, &err) == FA_ERR_INPUT &&                           \
                  strstr(err.text, message),                                                                 \
              "line %d: %s", __LINE__, err.text);                                                            \
  } while (0)

static void test_backward(void) {
  const size_t plenty = (size_t)1 << 30;
  BAD_BACKWARD(g.d_o = NULL, plenty, "d_o is NULL");
  BAD_BACKWARD(g.dq = NULL, plenty, "dq is NULL");
  BAD_BACKWARD(g.dk = NULL, plenty, "dk is NULL");
  BAD_BACKWARD(g.dv = NULL, plenty, "dv is NULL");
  BAD_BACKWARD(g.dv = memory + 1, plenty, "not aligned to its elements");
  BAD_BACKWARD(g.dk_stride.head = 0, plenty, "dk is written");
  BAD_BACKWARD(g.do_stride.row = -1, plenty, "d_o: row stride -1");
  BAD_BACKWARD((g.d_lse = (float *)(void *)(memory + 2)), plenty, "d_lse = ");
  BAD_BACKWARD(g.num_splits_key = -1, plenty, "num_splits_key = -1: 0 (chosen) .. 1024");
  BAD_BACKWARD(g.num_splits_key = 1025, plenty, "num_splits_key = 1025");
  BAD_BACKWARD(g.dbias = memory, plenty, "dbias is wanted, but there is no bias");
  BAD_BACKWARD((a.bias = memory, g.dbias = memory + 1), plenty, "dbias = ");
  BAD_BACKWARD((a.bias = g.dbias = memory, g.dbias_stride.row = -1), plenty, "dbias: row stride -1");
  BAD_BACKWARD((a.bias = g.dbias = memory, g.dbias_stride.row = 19), plenty, "dbias is written");
  BAD_BACKWARD((a.bias = g.dbias = memory, g.dbias_stride = (fa_strides){800, 20, 20}), plenty,
               "dbias is written, but with strides (800, 20, 20)");
  BAD_BACKWARD(g.dsinks = (float *)memory, plenty, "dsinks is wanted, but there are no sinks");
  BAD_BACKWARD((a.sinks = (float *)memory, g.dsinks = (float *)(void *)(memory + 2)), plenty, "dsinks = ");
  BAD_BACKWARD((a.sinks = g.dsinks = (float *)memory, a.sinks_in_lse = false, g.d_lse = (float *)memory),
               plenty, "d_lse: with sinks it needs sinks_in_lse");
  BAD_BACKWARD(g.delta = (float *)(void *)(memory + 2), plenty, "delta = ");
  BAD_BACKWARD((g.delta = (float *)memory, g.delta_stride.head = -1), plenty, "delta: head stride -1");
#ifdef FA_TEST_CUDA_BACKEND /* otherwise the workspace is not checked */
  BAD_BACKWARD((void)0, 16, "workspace_bytes = 16: this call needs ");
  BAD_BACKWARD(workspace = NULL, plenty, "workspace is NULL");
  BAD_BACKWARD(workspace = memory + 128, plenty, "not aligned to 256 bytes");
#endif
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
  valid(&a, &g);
  CHECK(fa_backward_check(&a, NULL, &err) == FA_ERR_INPUT && strstr(err.text, "the fa_gradients is NULL"));
  g.delta = (float *)memory, a.p_debug = memory;
  CHECK(fa_backward_check(&a, &g, &err) == FA_ERR_UNSUPPORTED &&
        strstr(err.text, "p_debug: not together with a given delta"));
}

/* A gradient of the bias needs no memory of its own, along whatever axes it is summed; with a given delta
 * none is needed at all. */
static void test_memeff_workspace(void) {
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
  size_t bytes = 0;
  for (int sums = 0; sums < 8; ++sums) {
    valid(&a, &g);
    a.dtype = FA_F32, a.bias = g.dbias = memory;
    g.dbias_stride = (fa_strides){sums & 1 ? 0 : 800, sums & 2 ? 0 : 20, sums & 4 ? 0 : 200};
    CHECK_MSG(fa_backward_workspace(&a, &g, &bytes, &err) == FA_OK && bytes == 2 * 4 * 10 * 4, "%d: %zu, %s",
              sums, bytes, err.text);
    g.delta = (float *)memory;
    g.num_splits_key = 8;
    CHECK(fa_backward_workspace(&a, &g, &bytes, &err) == FA_OK && bytes == 0);
  }
}

/* The contents of integer arrays, as check_device_data sees them. */
static void test_lengths(void) {
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
  valid(&a, &g);
  varlen(&a);
  const int32_t q[3] = {0, 10, 15}, k[3] = {0, 13, 33}, used[2] = {13, 0}, pad[2] = {2, 0};
  CHECK(fa_attention_check_lengths(&a, q, k, used, pad, &err) == FA_OK);
#define BAD_LENGTHS(message, ...)                                                                            \
  CHECK_MSG(fa_attention_check_lengths(&a, __VA_ARGS__, &err) == FA_ERR_INPUT && strstr(err.text, message),  \
            "%s", err.text)
  BAD_LENGTHS("cu_seqlens_q[0] = 1: 0 is needed", ((int32_t[]){1, 10, 15}), k, used, pad);
  BAD_LENGTHS("cu_seqlens_q[2] = 9 comes after 10", ((int32_t[]){0, 10, 9}), k, used, pad);
  BAD_LENGTHS("cu_seqlens_k: entry 1 has 21 tokens, more than the longest, 20", q, ((int32_t[]){0, 12, 33}),
              used, pad);
  BAD_LENGTHS("cu_seqlens_k ends at 32, but there are 33 tokens", q, ((int32_t[]){0, 13, 32}), used, pad);
  BAD_LENGTHS("seqused_k[0] = 14: 0 .. 13", q, k, ((int32_t[]){14, 0}), pad);
  BAD_LENGTHS("seqused_k[1] = -1", q, k, ((int32_t[]){13, -1}), pad);
  BAD_LENGTHS("leftpad_k[1] = 1: 0 .. 0", q, k, used, ((int32_t[]){0, 1}));
  valid(&a, &g);
  BAD_LENGTHS("seqused_k[1] = 21: 0 .. 20", NULL, NULL, ((int32_t[]){0, 21}), NULL);
}

/* A given delta chooses other kernels, which lack what some have: who asks beforehand hears the same. */
static void test_given_delta(void) {
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
  valid(&a, &g);
  a.softcap = 30;
  const fa_call call = {.kind = FA_CALL_BACKWARD, .a = &a, .g = &g, .n_processors = FA_PLAN_PROCESSORS};
  CHECK_MSG(fa_backward_check(&a, &g, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(fa_plan_supported(&call, NULL, &err) == FA_OK, "%s", err.text);
  g.delta = (float *)memory, g.delta_stride = a.lse_stride;
  CHECK_MSG(fa_backward_check(&a, &g, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(fa_plan_supported(&call, NULL, &err) == FA_OK, "%s", err.text);
  a.p_debug = memory;
  CHECK(fa_backward_check(&a, &g, &err) == FA_ERR_UNSUPPORTED);
  CHECK(fa_plan_supported(&call, NULL, &err) == FA_ERR_UNSUPPORTED);
}

/* The fast kernels have no chunks beside a bias; the memory-efficient ones take the call. */
static void test_chunks_beside_a_bias(void) {
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
  valid(&a, &g);
  a.bias = memory, a.bias_stride = (fa_strides){800, 20, 200};
  a.chunk = 5, a.window_right = 0;
  CHECK_MSG(fa_forward_check(&a, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(fa_backward_check(&a, &g, &err) == FA_OK, "%s", err.text);
  a.softcap = 30;
  CHECK_MSG(fa_forward_check(&a, &err) == FA_OK && fa_backward_check(&a, &g, &err) == FA_OK, "%s", err.text);
  a.p_debug = memory;
  CHECK(fa_forward_check(&a, &err) == FA_ERR_UNSUPPORTED);
  CHECK_MSG(strstr(err.text, "p_debug: not together with chunks beside a bias"), "%s", err.text);
}

/* Of packed sequences the gradient of the bias has the lengths of the longest, and an axis of all sequences. The fast
 * kernels take it where they add it up in memory, which needs some; the memory-efficient ones in any other way. */
static void test_bias_of_packed_sequences(void) {
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
  size_t added = 0, written = 0;
  valid(&a, &g);
  varlen(&a);
  a.bias = g.dbias = memory;
  g.dbias_stride = (fa_strides){0, 20, 200};
  CHECK_MSG(fa_backward_workspace(&a, &g, &added, &err) == FA_OK, "%s", err.text);
  g.dbias_stride = (fa_strides){800, 20, 200};
  CHECK_MSG(fa_backward_workspace(&a, &g, &written, &err) == FA_OK && written == 4 * 4 * (size_t)a.total_q,
            "%zu, %s", written, err.text);
  CHECK(added > 4 * 4 * 10 * 20);
  g.dbias_stride.batch = 799;
  CHECK(fa_backward_check(&a, &g, &err) == FA_ERR_INPUT &&
        strstr(err.text, "dbias is written, but with strides"));
  g.dbias_stride.batch = 800;
  a.softcap = 30; /* of the kernels for expressions */
  CHECK_MSG(fa_forward_check(&a, &err) == FA_OK && fa_backward_check(&a, &g, &err) == FA_OK, "%s", err.text);
}

int main(void) {
  test_sizes();
  test_numbers();
  test_tensors();
  test_combinations();
  test_splits_beside_expressions();
  test_features_of_two_families();
  test_good();
  test_memeff_workspace();
  test_backward();
  test_lengths();
  test_given_delta();
  test_chunks_beside_a_bias();
  test_bias_of_packed_sequences();
  return check_done();
}
