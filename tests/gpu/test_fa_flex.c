/* Expressions and block lists in gpu/fa.h: what is rejected, with which message, and lists of blocks made on
 * the CPU. None of it needs a GPU, and none may reach one. */
#include "gpu/expr/program.h"
#include "gpu/plan/make.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

/* Addresses that are never dereferenced. */
static char memory[1 << 16] __attribute__((aligned(256)));
static int32_t ints[64];

static const fa_flex_buffer buffers[] = {{"slopes", FA_F32, 1, {4}, NULL}, {"doc", FA_I32, 2, {2, 20}, NULL}};
static fa_flex_program *program, *maskless, *wide; /* wide: a condition, 16 bits, an int64 */

/* ---- preparing ---- */

static void refuse(const char *score, const char *mask, const fa_flex_buffer *b, int n, const char *text,
                   int line) {
  fa_flex_program *out = (fa_flex_program *)ints;
  fa_error err = {""};
  const fa_status status = fa_flex_prepare(score, mask, b, n, &out, &err);
  CHECK_MSG(status == FA_ERR_INPUT && strstr(err.text, text), "line %d: status %d, \"%s\" is not \"%s\"",
            line, (int)status, err.text, text);
  CHECK(out == (fa_flex_program *)ints); /* untouched */
  CHECK(fa_flex_prepare(score, mask, b, n, &out, NULL) == FA_ERR_INPUT);
}
#define REFUSE(score, mask, b, n, text) refuse(score, mask, b, n, text, __LINE__)

static void refuse_buffer(fa_flex_buffer second, const char *text, int line) {
  const fa_flex_buffer both[] = {buffers[0], second};
  refuse("score", NULL, both, 2, text, line);
}
#define REFUSE_BUFFER(text, ...) refuse_buffer((fa_flex_buffer){__VA_ARGS__}, text, __LINE__)

static void test_prepare(void) {
  REFUSE("score + slope[h]", NULL, buffers, 2, "score_mod: column 9: \"slope\" is unknown");
  REFUSE("score + slope[h]", NULL, buffers, 2, "\n          ^");
  REFUSE("score", "score > 0.0", buffers, 2, "mask_mod: column 1");
  REFUSE(NULL, "q_idx >= ", NULL, 0, "mask_mod: column 10: the end");
  REFUSE("", NULL, NULL, 0, "score_mod: column 1");
  REFUSE("score", NULL, buffers, -1, "n_buffers = -1: 0 .. 32");
  REFUSE("score", NULL, buffers, 33, "n_buffers = 33: 0 .. 32");
  REFUSE("score", NULL, NULL, 1, "buffers is NULL");
  REFUSE_BUFFER("buffers[1].name: at most 63 letters", .name = NULL, .dtype = FA_F32);
  REFUSE_BUFFER("buffers[1].name: at most 63 letters", .name = "", .dtype = FA_F32);
  REFUSE_BUFFER("and no digit first", .name = "2nd", .dtype = FA_F32);
  REFUSE_BUFFER("letters, digits and _", .name = "a b", .dtype = FA_F32);
  REFUSE_BUFFER("at most 63", .name = "a23456789012345678901234567890123456789012345678901234567890123456",
                .dtype = FA_F32);
  REFUSE_BUFFER("buffers[1].name = \"tanh\" has a meaning", .name = "tanh", .dtype = FA_F32);
  REFUSE_BUFFER("buffers[1].name = \"slopes\" is that of buffers[0] too", .name = "slopes", .dtype = FA_F32);
  REFUSE_BUFFER("buffers[1].dtype: FA_F32, FA_F16, FA_BF16, FA_I32, FA_I64 or FA_BOOL is needed", .name = "x",
                .dtype = FA_F64);
  static const int64_t minus[] = {1, -1}, far[] = {1ll << 32, 1}, beyond[] = {INT64_MAX, 1};
  REFUSE_BUFFER("buffers[1].stride[1] = -1: must not be negative", .name = "x", .dtype = FA_F32, .rank = 2,
                .shape = {2, 2}, .stride = minus);
  REFUSE_BUFFER("buffers[1].stride: at most 2^33 elements", .name = "x", .dtype = FA_F32, .rank = 2,
                .shape = {4, 2}, .stride = far);
  REFUSE_BUFFER("buffers[1].stride: at most 2^33 elements", .name = "x", .dtype = FA_F32, .rank = 2,
                .shape = {4, 2}, .stride = beyond);
  REFUSE_BUFFER("buffers[1].rank = 5: 0 .. 4", .name = "x", .dtype = FA_F32, .rank = 5);
  REFUSE_BUFFER("buffers[1].rank = -1", .name = "x", .dtype = FA_F32, .rank = -1);
  REFUSE_BUFFER("buffers[1].shape[0] = 0: 1 .. 2^30", .name = "x", .dtype = FA_F32, .rank = 1);
  REFUSE_BUFFER("buffers[1].shape[1] = 1073741824", .name = "x", .dtype = FA_F32, .rank = 2,
                .shape = {16, 1 << 30});
  fa_flex_program *p = NULL;
  CHECK(fa_flex_prepare(NULL, NULL, NULL, 0, &p, NULL) == FA_OK && p);
  fa_flex_free(p);
  fa_flex_free(NULL);
}

/* ---- calls ---- */

static void valid(fa_attention *a, fa_gradients *g, fa_flex *f) {
  fa_attention_init(a);
  a->batch = 2, a->heads_q = 4, a->heads_kv = 2, a->seqlen_q = 10, a->seqlen_k = 20, a->head_dim = 64;
  a->scale = 0.125;
  a->q = a->k = a->v = a->o = memory;
  a->lse = (float *)(void *)memory;
  a->q_stride = a->o_stride = fa_strides_dense(10, 4, 64);
  a->k_stride = a->v_stride = fa_strides_dense(20, 2, 64);
  a->lse_stride = (fa_strides){40, 1, 10};
  a->empty_lse = -INFINITY;
  fa_gradients_init(g);
  g->d_o = g->dq = g->dk = g->dv = memory;
  g->do_stride = g->dq_stride = a->q_stride;
  g->dk_stride = g->dv_stride = a->k_stride;
  fa_flex_init(f);
  f->program = program;
  f->buffer[0] = f->buffer[1] = memory;
  f->q_block = f->kv_block = 8;
  f->kv_num_blocks = f->kv_indices = f->full_kv_num_blocks = f->full_kv_indices = ints;
  a->flex = f;
}

/* All calls must agree; nothing may run, whatever driver there is. */
static void expect(const fa_attention *a, const fa_gradients *g, bool forward_too, fa_status want,
                   const char *text, int line) {
  size_t bytes = 77;
  fa_error err[6] = {{""}};
  const fa_status got[6] = {fa_backward_check(a, g, &err[0]),
                            fa_backward_workspace(a, g, &bytes, &err[1]),
                            fa_backward(a, g, memory, sizeof memory, NULL, &err[2]),
                            forward_too ? fa_forward_check(a, &err[3]) : want,
                            forward_too ? fa_forward_workspace(a, &bytes, &err[4]) : want,
                            forward_too ? fa_forward(a, memory, sizeof memory, NULL, &err[5]) : want};
  for (int i = 0; i < (forward_too ? 6 : 3); ++i)
    CHECK_MSG(got[i] == want && strstr(err[i].text, text),
              "line %d, call %d: status %d, \"%s\" is not \"%s\"", line, i, (int)got[i], err[i].text, text);
}

#define BAD_CALL(forward_too, change, status, text)                                                          \
  do {                                                                                                       \
    fa_attention a;                                                                                          \
    fa_gradients g;                                                                                          \
    fa_flex f;                                                                                               \
    valid(&a, &g, &f);                                                                                       \
    change;                                                                                                  \
    expect(&a, &g, forward_too, status, text, __LINE__);                                                     \
  } while (0)
#define BAD(change, status, text) BAD_CALL(true, change, status, text)
#define BAD_GRADIENT(change, status, text) BAD_CALL(false, change, status, text)
#define INPUT FA_ERR_INPUT
#define UNSUPPORTED FA_ERR_UNSUPPORTED

static void test_calls(void) {
  BAD(f.q_block = 0, INPUT, "flex.q_block = 0: 1 .. 2^20, or 0 for both");
  BAD(f.kv_block = -1, INPUT, "flex.kv_block = -1: 1 .. 2^20");
  BAD(f.q_block = (1 << 20) + 1, INPUT, "flex.q_block = 1048577");
  BAD(f.q_block = f.kv_block = 0, INPUT, "flex.q_block = 0: blocks need a size");
  BAD(f.list_batch = 3, INPUT, "flex.list_batch = 3: a divisor of batch = 2");
  BAD(f.list_batch = 0, INPUT, "flex.list_batch = 0: a divisor of batch = 2");
  BAD(f.list_heads = 3, INPUT, "flex.list_heads = 3: a divisor of heads_q = 4");
  BAD(f.list_heads = -2, INPUT, "flex.list_heads = -2: a divisor of heads_q = 4");
  BAD(f.kv_num_blocks = NULL, INPUT, "flex.kv_num_blocks is NULL, but flex.kv_indices is given");
  BAD(f.full_kv_indices = NULL, INPUT, "flex.full_kv_indices is NULL, but flex.full_kv_num_blocks is given");
  BAD((f.kv_num_blocks = f.kv_indices = f.full_kv_num_blocks = f.full_kv_indices = NULL), INPUT,
      "there are neither lists nor flex.blocks_from_mask_mod");
  BAD(f.kv_indices = (int32_t *)(void *)(memory + 2), INPUT, "flex.kv_indices: not aligned to 4 bytes");
  BAD(f.blocks_from_mask_mod = true, INPUT, "flex.blocks_from_mask_mod: there are lists too");
  BAD((f.blocks_from_mask_mod = true, f.program = maskless), INPUT, "there is no mask_mod");
  BAD(f.buffer[1] = NULL, INPUT, "flex.buffer[1] (doc) is NULL");
  BAD(f.buffer[0] = memory + 1, INPUT, "flex.buffer[0] (slopes) = ");
  BAD((f.program = wide, f.buffer[0] = memory + 1, f.buffer[2] = memory + 4), INPUT,
      "flex.buffer[2] (id) = ");
  BAD((f.program = wide, f.buffer[1] = memory + 1, f.buffer[2] = memory), INPUT, "not aligned to 2 bytes");
  BAD((a.dropout_p = 0.5, a.p_debug = memory), UNSUPPORTED, "p_debug: not together with flex");
  BAD((a.seqlen_q = a.seqlen_k = (1 << 29) - 1, f.q_block = f.kv_block = 1), UNSUPPORTED,
      "blocks to a head are too many");
  BAD((a.seqlen_q = a.seqlen_k = (1 << 29) - 1, a.lse_stride.batch = (int64_t)1 << 34,
       a.lse_stride.head = 1 << 30, a.q_stride = a.o_stride = fa_strides_dense(a.seqlen_q, 4, 64),
       a.k_stride = a.v_stride = a.q_stride,
       g.do_stride = g.dq_stride = g.dk_stride = g.dv_stride = a.q_stride, f.q_block = f.kv_block = 1 << 20),
      UNSUPPORTED, "need more memory than devices have");
  BAD(a.head_dim = 0, INPUT, "head_dim = 0");
  BAD(a.q = NULL, INPUT, "q is NULL");
}

static void test_gradients(void) {
  float *const out = (float *)(void *)memory;
  BAD_GRADIENT(g.dbuffer[2] = out, INPUT, "dbuffer[2] is wanted, but there are 2 buffers");
  BAD_GRADIENT(g.dbuffer[1] = out, INPUT, "dbuffer[1] is wanted, but buffer doc holds integers");
  BAD_GRADIENT(g.dbuffer[0] = (float *)(void *)(memory + 2), INPUT, "dbuffer[0] = ");
  BAD_GRADIENT((f.program = wide, f.buffer[2] = memory, g.dbuffer[1] = memory + 1), INPUT,
               "not aligned to 2 bytes");
  BAD_GRADIENT((f.program = wide, f.buffer[2] = memory, g.dbuffer[0] = out), INPUT,
               "dbuffer[0] is wanted, but buffer keep holds conditions");
  BAD_GRADIENT((a.flex = NULL, g.dbuffer[0] = out), INPUT, "dbuffer[0] is wanted, but there are 0 buffers");
  BAD_GRADIENT((f.program = NULL, g.dbuffer[0] = out), INPUT, "dbuffer[0] is wanted");
  BAD_GRADIENT((a.deterministic = true, g.dbuffer[0] = out, a.seqlen_q = a.seqlen_k = 1 << 18,
                a.lse_stride = (fa_strides){1 << 20, 1, 1 << 18}, f.q_block = f.kv_block = 1 << 10,
                a.q_stride = a.o_stride = fa_strides_dense(a.seqlen_q, 4, 64),
                a.k_stride = a.v_stride = a.q_stride,
                g.do_stride = g.dq_stride = g.dk_stride = g.dv_stride = a.q_stride),
               UNSUPPORTED, "deterministic: 524288 rows of 4 heads with 262144 keys");
  fa_attention a;
  fa_gradients g;
  fa_flex f;
  valid(&a, &g, &f);
  g.dbuffer[0] = out;
  fa_error err = {""};
  CHECK_MSG(fa_backward_check(&a, &g, &err) == FA_OK, "%s", err.text);
  size_t atomics = 0, exact = 0;
  CHECK(fa_backward_workspace(&a, &g, &atomics, NULL) == FA_OK);
  a.deterministic = true;
  CHECK(fa_backward_workspace(&a, &g, &exact, NULL) == FA_OK && exact > atomics);
}

/* Features that other families lack work; without blocks no memory is needed. */
static void test_good(void) {
  fa_attention a;
  fa_gradients g;
  fa_flex f;
  fa_inference kv;
  size_t bytes = 0;
  fa_error err = {""};
  valid(&a, &g, &f);
  a.dtype = FA_F32, a.softcap = 30, a.head_dim_v = 32, a.bias = memory, a.dropout_p = 0.5;
  a.alibi_slopes = (const float *)(const void *)memory;
  CHECK_MSG(fa_forward_workspace(&a, &bytes, &err) == FA_OK && bytes > 0, "%s", err.text);
  valid(&a, &g, &f);
  a.cu_seqlens_q = a.cu_seqlens_k = ints, a.total_q = 15, a.total_k = 33,
  a.lse_stride.head = 15; /* lists of packed sequences */
  CHECK_MSG(fa_forward_check(&a, &err) == FA_OK && fa_backward_check(&a, &g, &err) == FA_OK, "%s", err.text);
  valid(&a, &g, &f);
  f.kv_num_blocks = f.kv_indices = f.full_kv_num_blocks = f.full_kv_indices = NULL;
  f.q_block = f.kv_block = 0;
  CHECK(fa_forward_workspace(&a, &bytes, &err) == FA_OK && bytes == 0);
  f.program = NULL; /* nothing at all */
  CHECK(fa_forward_check(&a, &err) == FA_OK && fa_backward_check(&a, &g, &err) == FA_OK);
  fa_inference_init(&kv); /* over a cache too, with its own faults */
  CHECK(fa_forward_kvcache_check(&a, &kv, &err) == FA_ERR_INPUT && strstr(err.text, "cache_seqlens is NULL"));
}

/* ---- lists ---- */

static void test_contents(void) {
  fa_attention a;
  fa_gradients g;
  fa_flex f;
  fa_error err = {""};
  valid(&a, &g, &f); /* 2 rows of 3 blocks */
  const int32_t good[] = {2, 0}, blocks[] = {2, 0, 99, -7, -7, -7}, twice[] = {1, 1, 0, 0, 0, 0},
                far[] = {3, 0};
  CHECK(fa_flex_check_lists(&a, good, blocks, NULL, NULL, &err) == FA_OK);
  CHECK(fa_flex_check_lists(&a, good, twice, NULL, NULL, &err) == FA_ERR_INPUT &&
        strstr(err.text, "flex.kv_indices: row 0 lists block 1, which is listed already"));
  CHECK(fa_flex_check_lists(&a, good, blocks, good, blocks, &err) == FA_ERR_INPUT &&
        strstr(err.text, "flex.full_kv_indices: row 0 lists block 2"));
  CHECK(fa_flex_check_lists(&a, far, blocks, NULL, NULL, &err) == FA_ERR_INPUT &&
        strstr(err.text, "flex.kv_indices: row 0 lists block 99; 0 .. 2"));
  const int32_t many[] = {0, 4}, negative[] = {0, -1};
  CHECK(fa_flex_check_lists(&a, many, blocks, NULL, NULL, &err) == FA_ERR_INPUT &&
        strstr(err.text, "flex.kv_num_blocks: row 1 has 4 blocks; 0 .. 3"));
  CHECK(fa_flex_check_lists(&a, negative, blocks, NULL, NULL, &err) == FA_ERR_INPUT);
}

static void test_blocks(void) {
  static fa_plan plan;
  fa_attention a;
  fa_gradients g;
  fa_flex f;
  fa_error err = {""};
  fa_flex_program *causal = NULL;
  int32_t n[2] = {7, 7}, at[6] = {7, 7, 7, 7, 7, 7}, full_n[2] = {7, 7}, full_at[6] = {7, 7, 7, 7, 7, 7};
  const fa_flex_block_lists out = {n, at, full_n, full_at};
  REQUIRE(fa_flex_prepare(NULL, "q_idx + 10 >= kv_idx", NULL, 0, &causal, NULL) == FA_OK);
  valid(&a, &g, &f); /* its lists, scale and tensors are ignored */
  f.program = causal;
  a.scale = NAN;
  a.q = NULL;
  CHECK_MSG(fa_flex_blocks_on_host(&a, &out, &err) == FA_OK, "%s", err.text);
  const int32_t want[] = {2, 1}, want_at[] = {1, 2, 0, 2, 0, 0}, want_full[] = {1, 2},
                full[] = {0, 0, 0, 0, 1, 0};
  CHECK(memcmp(n, want, sizeof n) == 0 && memcmp(full_n, want_full, sizeof n) == 0);
  CHECK(memcmp(at, want_at, sizeof at) == 0 && memcmp(full_at, full, sizeof at) == 0);
  size_t bytes = 0;
  CHECK(fa_flex_blocks_workspace(&a, &bytes, &err) == FA_OK && bytes > 0);
  const fa_flex_block_lists hole = {n, at, NULL, full_at},
                            odd = {n, (int32_t *)(void *)(memory + 1), full_n, full_at};
  CHECK(fa_flex_blocks_on_host(&a, &hole, &err) == FA_ERR_INPUT &&
        strstr(err.text, "full_kv_num_blocks is NULL"));
  CHECK(fa_flex_blocks_on_host(&a, &odd, &err) == FA_ERR_INPUT && strstr(err.text, "kv_indices = "));
  const fa_call call = {.kind = FA_CALL_BLOCKS, .a = &a, .lists = &hole};
  CHECK(fa_plan_make(&call, NULL, &plan, &err) == FA_ERR_INPUT);
  f.list_heads = 3;
  CHECK(fa_flex_blocks_workspace(&a, &bytes, &err) == FA_ERR_INPUT &&
        strstr(err.text, "flex.list_heads = 3"));
  f.list_heads = 1;
  /* What divides a batch of 0 is not yet a number of lists; lists of their own for many sequences and heads, of a mask_mod
   * that is the same for all. */
  f.list_batch = INT64_MAX, a.batch = 0;
  CHECK(fa_flex_blocks_workspace(&a, &bytes, &err) == FA_ERR_INPUT &&
        strstr(err.text, "a divisor of batch = 0"));
  f.list_batch = f.list_heads = a.batch = a.heads_q = 65535, a.heads_kv = 1;
  CHECK(fa_flex_blocks_workspace(&a, &bytes, &err) == FA_ERR_UNSUPPORTED &&
        strstr(err.text, "flex.list_batch = 65535, flex.list_heads = 65535: lists of 6 blocks"));
  valid(&a, &g, &f);
  f.program = maskless;
  CHECK(fa_flex_blocks_workspace(&a, &bytes, &err) == FA_ERR_INPUT &&
        strstr(err.text, "there is no mask_mod"));
  f.program = causal, f.q_block = f.kv_block = 0;
  CHECK(fa_flex_blocks_workspace(&a, &bytes, &err) == FA_ERR_INPUT && strstr(err.text, "flex.q_block = 0"));
  a.flex = NULL;
  CHECK(fa_flex_blocks_on_host(&a, &out, &err) == FA_ERR_INPUT && strstr(err.text, "flex is NULL"));
  CHECK(fa_flex_blocks_on_host(NULL, &out, &err) == FA_ERR_INPUT);
  fa_flex_free(causal);
}

int main(void) {
  REQUIRE(fa_flex_prepare("score + slopes[h]", "doc[b, q_idx] == doc[b, kv_idx]", buffers, 2, &program,
                          NULL) == FA_OK);
  static const int64_t turned[] = {1, 2};
  const fa_flex_buffer others[] = {
      {"keep", FA_BOOL, 1, {20}, NULL}, {"table", FA_BF16, 2, {2, 4}, turned}, {"id", FA_I64, 0, {0}, NULL}};
  REQUIRE(fa_flex_prepare("score * slopes[h]", NULL, buffers, 2, &maskless, NULL) == FA_OK);
  REQUIRE(fa_flex_prepare("score * table[b, h]", "keep[kv_idx] && id > 0", others, 3, &wide, NULL) == FA_OK);
  test_prepare();
  test_calls();
  test_gradients();
  test_good();
  test_contents();
  test_blocks();
  fa_flex_free(program);
  fa_flex_free(maskless);
  fa_flex_free(wide);
  return check_done();
}
