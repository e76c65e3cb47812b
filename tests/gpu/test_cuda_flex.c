/* Calls with expressions and block lists through gpu/fa.h on a driver made of host memory: kernels are
 * compiled, found again without compiling, and give the host backend's bits. */
#include "gpu/args/problem.h"
#include "gpu/modules/flex.h"
#include "tests/fake_cuda/fixture.h"
#include "tests/fake_cuda/flex.h"
#include "tests/fake_cuda/nvrtc.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static void start(void) {
  fake_nvrtc_use(13, 0, "/bin/sh");
  fa_cuda_flex_forget();
}

static const char *const alike[] = {
    "{\"family\": \"flex\", \"seqlen_q\": 70, \"seqlen_k\": 90, \"heads_q\": 4, \"heads_kv\": 2, \"batch\": "
    "2,"
    " \"dtype\": \"bf16\", \"score_mod\": \"score + 0.05 * slopes[h] * (kv_idx - q_idx)\","
    " \"buffers\": {\"slopes\": {\"shape\": [4]}}}",
    "{\"family\": \"flex\", \"seqlen_q\": 130, \"heads_q\": 2, \"mask_mod\": \"q_idx >= kv_idx && doc[q_idx] "
    "== "
    "doc[kv_idx]\", \"block_sparse\": {\"from\": \"mask_mod\", \"q_block\": 64, \"kv_block\": 64},"
    " \"buffers\": {\"doc\": {\"shape\": [130], \"dtype\": \"i32\", \"below\": 3, \"sorted\": true}}}",
    "{\"family\": \"flex\", \"seqlen_q\": 100, \"seqlen_k\": 150, \"heads_q\": 2, \"block_sparse\":"
    " {\"q_block\": 32, \"kv_block\": 128, \"density\": 0.5, \"seed\": \"3\"}}",
    "{\"family\": \"flex\", \"seqlen_q\": 65, \"heads_q\": 2, \"dtype\": \"f32\", \"deterministic\": true,"
    " \"score_mod\": \"score * scales[h] + one\", \"buffers\": {\"scales\": {\"shape\": [2]}, \"one\": {}},"
    " \"bias\": {\"shape\": [1, \"h\", \"q\", \"k\"], \"grad\": true}}"};

static void test_same_as_host(void) {
  for (size_t i = 0; i < sizeof alike / sizeof *alike; ++i) {
    start();
    cuda_argument = i % 2 ? "graph" : NULL; /* compiling is done before the capture */
    cuda_check_same_as_host(alike[i]);
    cuda_argument = NULL;
    CHECK(fake_compiler.n_compiled > 0 && fake_compiler.n_programs == 0 && fake_compiler.has_headers);
  }
}

/* One without expressions whose kernels are compiled for one, and may be unloaded: made a second time, it has them found
 * again, and compiled where they are gone. */
static void test_never_kept(void) {
  fa_attention a;
  fa_error err = {""};
  CUdeviceptr tensor = 0;
  CUcontext context;
  const fa_cuda_driver *d = fake_cuda_driver();
  fake_cuda_start();
  start();
  REQUIRE(d->cuInit(0) == CUDA_SUCCESS && d->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
          d->cuCtxSetCurrent(context) == CUDA_SUCCESS && d->cuMemAlloc(&tensor, 1 << 14) == CUDA_SUCCESS);
  memset((void *)tensor, 0, 1 << 14);
  fa_attention_init(&a);
  a.dtype = FA_F32;
  a.batch = a.heads_q = a.heads_kv = 1;
  a.seqlen_q = a.seqlen_k = 16;
  a.head_dim = 32;
  a.scale = 0.125f;
  a.softcap = 20;
  a.q = a.k = a.v = (void *)tensor;
  a.o = (char *)tensor + 4096;
  a.lse = (float *)(tensor + 8192);
  a.q_stride = a.k_stride = a.v_stride = a.o_stride = fa_strides_dense(16, 1, 32);
  a.lse_stride = (fa_strides){16, 1, 16};
  const int before = fake_compiler.n_compiled;
  CHECK_MSG(fa_forward(&a, NULL, 0, NULL, &err) == FA_OK, "%s", err.text);
  const int first = fake_compiler.n_compiled;
  CHECK_MSG(fa_forward(&a, NULL, 0, NULL, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(first > before && fake_compiler.n_compiled == first, "%d, %d, %d", before, first,
            fake_compiler.n_compiled);
  fa_cuda_flex_forget();
  CHECK_MSG(fa_forward(&a, NULL, 0, NULL, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(fake_compiler.n_compiled == 2 * first - before, "%d, %d", first, fake_compiler.n_compiled);
}

/* The kernels for sm_90a, forward and backward, give the host's bits. */
static void test_hopper(void) {
  static const char json[] =
      "{\"family\": \"flex\", \"seqlen_q\": 200, \"heads_q\": 2, \"dtype\": \"bf16\", \"deterministic\": "
      "true,"
      " \"score_mod\": \"score + 0.05 * slopes[h] * (kv_idx - q_idx)\", \"mask_mod\": \"q_idx >= kv_idx\","
      " \"block_sparse\": {\"from\": \"mask_mod\", \"q_block\": 128, \"kv_block\": 128},"
      " \"buffers\": {\"slopes\": {\"shape\": [2]}}}";
  static const fa_tensor_id outputs[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBUFFER_0};
  const fa_run_options opt = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 1};
  fa_case c;
  fa_tensors want, got;
  fa_error err = {""};
  fa_outcome out;
  void *host = NULL;
  cuda_load(json, &c, &want);
  REQUIRE(fa_tensors_clone(&got, &want, &err) == FA_OK);
  REQUIRE(fa_backend_host.open("hopper", &host, &err) == FA_OK);
  CHECK(fa_backend_host.run(host, &c.problem, &want, &opt, &out, &err) == FA_OK);
  CHECK_MSG(out.state == FA_SUBJECT_OK && strncmp(out.kernel, "hopper", 6) == 0, "%s %s", out.kernel,
            out.text);
  fa_backend_host.close(host);
  fake_cuda_start();
  start();
  setenv("FA_HOPPER", "auto", 1);
  CHECK(fake_flex_begin(&c.problem, &got, &err) == FA_OK);
  const cuda_ran r = cuda_run_alone(&fa_backend_cuda, &c.problem, &got, opt.passes);
  fake_flex_end();
  setenv("FA_HOPPER", "off", 1);
  CHECK_MSG(r.status == FA_OK && r.out.state == FA_SUBJECT_OK, "%s%s", r.out.text, r.err.text);
  CHECK_MSG(strcmp(r.out.kernel, out.kernel) == 0, "%s is not %s", r.out.kernel, out.kernel);
  CHECK_MSG(strcmp(r.out.backward_kernel, "hopper_flex_backward") == 0 &&
                strcmp(out.backward_kernel, "hopper_flex_backward") == 0,
            "%s, %s", r.out.backward_kernel, out.backward_kernel);
  CHECK_MSG(fake.n_maps == 10 && fake.misuse[0] == 0, "%d maps; %s", fake.n_maps, fake.misuse);
  for (size_t i = 0; i < sizeof outputs / sizeof *outputs; ++i)
    CHECK_MSG(memcmp(want.buffer[outputs[i]].base, got.buffer[outputs[i]].base,
                     want.buffer[outputs[i]].bytes + 2 * FA_GUARD_BYTES) == 0,
              "%s", fa_tensor_id_name(outputs[i]));
  fa_tensors_free(&want);
  fa_tensors_free(&got);
  fa_case_free(&c);
}

/* Lists of blocks from mask_mod made on the device equal those made on the host. */
static void test_blocks(void) {
  static const char json[] = "{\"family\": \"flex\", \"seqlen_q\": 100, \"seqlen_k\": 150, \"heads_q\": 2, "
                             "\"mask_mod\": \"kv_idx >= q_idx "
                             "|| h == 1 && kv_idx < 40\", \"block_sparse\": {\"from\": \"mask_mod\", "
                             "\"q_block\": 32, \"kv_block\": 64}}";
  enum { COUNTS = 2 * 4, ENTRIES = COUNTS * 3, ALL = 2 * COUNTS + 2 * ENTRIES };
  int32_t want[ALL];
  fa_case c;
  fa_tensors t;
  fa_args_flex x;
  fa_attention a;
  fa_error err = {""};
  CUdeviceptr lists = 0, workspace = 0;
  CUcontext context;
  size_t bytes = 0;
  const fa_cuda_driver *d = fake_cuda_driver();
  cuda_load(json, &c, &t);
  fake_cuda_start();
  start();
  REQUIRE(d->cuInit(0) == CUDA_SUCCESS && d->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
          d->cuCtxSetCurrent(context) == CUDA_SUCCESS && d->cuMemAlloc(&lists, sizeof want) == CUDA_SUCCESS);
  REQUIRE(fa_args_flex_make(&c.problem, &x, &err) == FA_OK && !fa_args_tensors(&c.problem, &t, &a) &&
          !fa_args_flex_tensors(&c.problem, &t, &x, &a));
  x.flex.list_heads = 2;
  REQUIRE(fa_flex_blocks_workspace(&a, &bytes, &err) == FA_OK && bytes > 0);
  REQUIRE(d->cuMemAlloc(&workspace, bytes) == CUDA_SUCCESS && fake_flex_begin(&c.problem, &t, &err) == FA_OK);
  int32_t *const at[2] = {want, (int32_t *)lists};
  for (int on_device = 0; on_device < 2; ++on_device) {
    int32_t *p = at[on_device];
    const fa_flex_block_lists out = {p, p + COUNTS, p + COUNTS + ENTRIES, p + 2 * COUNTS + ENTRIES};
    memset(p, 0x5a, sizeof want);
    const fa_status status = on_device ? fa_flex_blocks(&a, &out, (void *)workspace, bytes, NULL, &err)
                                       : fa_flex_blocks_on_host(&a, &out, &err);
    CHECK_MSG(status == FA_OK, "%s", err.text);
    CHECK(!on_device || fa_flex_blocks(&a, &out, (void *)workspace, bytes - 1, NULL, &err) == FA_ERR_INPUT);
  }
  CHECK(memcmp(want, (const void *)lists, sizeof want) == 0 && fake.misuse[0] == 0);
  CHECK(want[0] == 1 && want[3] == 1 && want[COUNTS + ENTRIES] == 2); /* row block 0: one partial, two full */
  fake_flex_end();
  fa_args_flex_free(&x);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* Number of kernels that a case compiles; *status, *err: its result. */
static int compiled_by(const char *json, fa_status *status, fa_error *err) {
  fa_case c;
  fa_tensors t;
  const int before = fake_compiler.n_compiled;
  cuda_load(json, &c, &t);
  CHECK(fake_flex_begin(&c.problem, &t, err) == FA_OK);
  const cuda_ran r = cuda_run_alone(&fa_backend_cuda, &c.problem, &t, FA_PASS_FORWARD | FA_PASS_BACKWARD);
  fake_flex_end();
  *status = r.status;
  *err = r.err;
  fa_tensors_free(&t);
  fa_case_free(&c);
  return fake_compiler.n_compiled - before;
}

#define CASE(score, more)                                                                                    \
  "{\"family\": \"flex\", \"seqlen_q\": 8, \"heads_q\": 2, \"score_mod\": \"" score "\" " more "}"
#define SLOPES(name, shape, grad)                                                                            \
  ", \"buffers\": {\"" name "\": {\"shape\": [" shape "], \"grad\": " grad "}}"

/* A kernel is compiled for what its text depends on, and only once for that. */
static void test_kept(void) {
  static const struct {
    const char *json;
    int n; /* kernels compiled: forward, dK and dV, dQ */
  } runs[] = {{CASE("score * s[h]", SLOPES("s", "2", "true")), 3},
              {CASE("score * s[h]", SLOPES("s", "2", "true")), 0},
              {CASE("score*name[ h ]", SLOPES("name", "2", "true")), 0}, /* the same nodes */
              {CASE("score * s[h]", SLOPES("s", "2", "false")), 2},      /* the forward kernel is the same */
              {CASE("score * s[h]", SLOPES("s", "3", "true")), 3}, /* an index is clamped to another range */
              {CASE("score * s[h]", ", \"dtype\": \"f32\"" SLOPES("s", "2", "true")), 3},
              {CASE("score / 2.0", ""), 3},
              {CASE("score / 3.0", ""), 3},
              {CASE("score / 3.0", ", \"mask_mod\": \"true\""), 3},
              {CASE("score / 3.0", ", \"head_dim\": 64, \"seqlen_k\": 40"), 0}};
  fake_cuda_start();
  start();
  for (size_t i = 0; i < sizeof runs / sizeof *runs; ++i) {
    fa_status status;
    fa_error err = {""};
    const int n = compiled_by(runs[i].json, &status, &err);
    CHECK_MSG(status == FA_OK && n == runs[i].n, "%s: %d compiled, %s", runs[i].json, n, err.text);
  }
  fa_status status;
  fa_error err = {""};
  setenv("FA_FLEX_COMPILE", "quick", 1);
  CHECK(compiled_by(CASE("score / 2.0", ""), &status, &err) == 3 && status == FA_OK);
  CHECK(strcmp(fake_compiler.speed, "mid") == 0);
  setenv("FA_FLEX_COMPILE", "best", 1);
  CHECK(compiled_by(CASE("score / 2.0", ""), &status, &err) == 0 && status == FA_OK);
  setenv("FA_FLEX_COMPILE", "slow", 1);
  CHECK(compiled_by(CASE("score / 2.0", ""), &status, &err) == 0); /* rejected: unknown value */
  unsetenv("FA_FLEX_COMPILE");
  CHECK(fake.misuse[0] == 0);
}

static void test_without_compiler(void) {
  fa_status status;
  fa_error err = {""};
  fake_cuda_start();
  start();
  setenv("FA_NVRTC", "off", 1);
  CHECK(compiled_by(CASE("score", ""), &status, &err) == 0);
  CHECK_MSG(status == FA_ERR_UNSUPPORTED && strstr(err.text, "FA_NVRTC=off"), "%s", err.text);
  unsetenv("FA_NVRTC");
  fake_compiler.fail_with = FA_NVRTC_ERROR_COMPILATION;
  CHECK(compiled_by(CASE("score + 1.0", ""), &status, &err) > 0); /* an empty value is ignored */
  CHECK_MSG(status == FA_ERR_DEVICE && strstr(err.text, "this fake does not like it"), "%s", err.text);
  CHECK(compiled_by(CASE("score + 1.0", ""), &status, &err) == 0 && status == FA_ERR_DEVICE);
  CHECK(fake_compiler.n_programs == 0);
}

/* More kernels than are kept: the oldest are compiled again. */
static void test_many(void) {
  fa_cuda_device device = {.major = 9, .max_shared_bytes = 227 * 1024};
  const fa_cuda_driver *d = fake_cuda_driver();
  const fa_kernel_recipe recipe = {"flex/forward", "FA_ENTRY(flex_forward_f16_64,f16,64)", 0, 0};
  fa_error err = {""};
  fake_cuda_start();
  start();
  CHECK(d->cuInit(0) == CUDA_SUCCESS);
  CUcontext context;
  CHECK(d->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
        d->cuCtxSetCurrent(context) == CUDA_SUCCESS);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < FA_CUDA_FLEX_KEPT + 2; ++i) {
      char text[64];
      fa_flex_program *program;
      snprintf(text, sizeof text, "score * %d", i);
      REQUIRE(fa_flex_prepare(text, NULL, NULL, 0, &program, &err) == FA_OK);
      fa_cuda_flex_wanted w = {.name = "flex_forward_f16_64",
                               .recipe = &recipe,
                               .unit = {.source = recipe.source, .program = program, .has_score = true}};
      const fa_status status = fa_cuda_flex_kernels(d, &device, &w, 1, NULL, &err);
      /* a stream of this driver is always being captured, so that a kernel's end is unknown */
      CHECK_MSG(status == (i < FA_CUDA_FLEX_KEPT ? FA_OK : FA_ERR_UNSUPPORTED), "%d: %s", i, err.text);
      fa_flex_free(program);
    }
    CHECK_MSG(fake_compiler.n_compiled == FA_CUDA_FLEX_KEPT + 2 * (round + 1), "%d compiled",
              fake_compiler.n_compiled);
  }
}

static CUresult never_captured(CUstream stream, CUstreamCaptureStatus *out) {
  (void)stream;
  *out = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

/* Where as many as are kept are there already, the new kernels of one call take the places of the oldest, and
 * not one another's: else all of them would be the last one. test_many has filled the table. */
static void test_many_at_once(void) {
  static const fa_kernel_recipe recipe[2] = {
      {"flex/forward", "FA_ENTRY(flex_forward_f16_64,f16,64)", 0, 0},
      {"flex/forward", "FA_ENTRY(flex_forward_f16_128,f16,128)", 0, 0}};
  static const char *const name[2] = {"flex_forward_f16_64", "flex_forward_f16_128"};
  fa_cuda_device device = {.major = 9, .max_shared_bytes = 227 * 1024};
  fa_cuda_driver d = *fake_cuda_driver();
  fa_cuda_flex_wanted w[2] = {{0}}, again[2];
  fa_flex_program *program;
  fa_error err = {""};
  d.cuStreamIsCapturing = never_captured;
  REQUIRE(fa_flex_prepare("score * 4321", NULL, NULL, 0, &program, &err) == FA_OK);
  for (int i = 0; i < 2; ++i)
    w[i] = (fa_cuda_flex_wanted){.name = name[i],
                                 .recipe = &recipe[i],
                                 .unit = {.source = recipe[i].source, .program = program, .has_score = true}};
  memcpy(again, w, sizeof again);
  CHECK_MSG(fa_cuda_flex_kernels(&d, &device, w, 2, NULL, &err) == FA_OK, "%s", err.text);
  CHECK(w[0].kernel != w[1].kernel);
  const int n_compiled = fake_compiler.n_compiled;
  CHECK(fa_cuda_flex_kernels(&d, &device, again, 2, NULL, &err) == FA_OK);
  CHECK(again[0].kernel == w[0].kernel && again[1].kernel == w[1].kernel);
  CHECK(fake_compiler.n_compiled == n_compiled); /* both were kept */
  fa_flex_free(program);
}

int main(void) {
  setenv("FA_CACHE_DIR", "/dev/null/no-folder", 1); /* nobody else can use what the fake compiler makes */
  test_same_as_host();
  test_never_kept();
  test_hopper();
  test_blocks();
  test_kept();
  test_without_compiler();
  test_many();
  test_many_at_once();
  fake_cuda_reset();
  fa_nvrtc_replace(NULL, NULL);
  return check_done();
}
