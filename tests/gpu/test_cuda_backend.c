/* The cuda backend on a driver made of host memory (tests/fake_cuda/fake.h): the same bits as the host backend, device
 * memory around the tensors checked, and every call's failure handled. What only a real GPU can show is left
 * to test_real_device.sh. */
#include "gpu/args/problem.h"
#include "gpu/cuda_backend/bench.h"
#include "gpu/cuda_backend/context.h"
#include "tests/fake_cuda/fixture.h"
#include "tests/support/check.h"

#include <string.h>

static const fa_backend *const cuda = &fa_backend_cuda;

static const char small[] = "{\"seqlen_q\": 40, \"seqlen_k\": 50, \"head_dim\": 64}";

static void test_same_results(void) {
  cuda_check_same_as_host(small);
  /* few rows for many keys: a backward parallel over keys, whatever the number of processors */
  cuda_check_same_as_host(
      "{\"batch\": 2, \"heads_q\": 4, \"heads_kv\": 2, \"seqlen_q\": 60, \"seqlen_k\": 200, "
      "\"head_dim\": 128, \"dtype\": "
      "\"bf16\", \"mask\": {\"type\": \"causal\"}, \"scale\": -0.2}");
  cuda_check_same_as_host(
      "{\"cu_seqlens_q\": [0, 5, 5, 40], \"cu_seqlens_k\": [0, 0, 30, 90], \"seqused_k\": [0, 20, 60], "
      "\"heads_q\": 2, \"head_dim\": 64, \"deterministic\": true}");
  cuda_check_same_as_host(
      "{\"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 30, \"head_dim\": 64, \"strides\": {\"q\": "
      "{\"offset\": 1}, \"k\": {\"gap\": [3, 5, 1]}, \"o\": {\"gap\": [0, 7, 0]}}}");
  cuda_check_same_as_host(
      "{\"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 30, \"head_dim\": 64, \"packed\": \"qkv\"}");
  cuda_check_same_as_host(
      "{\"seqlen_q\": 30, \"head_dim\": 64, \"softcap\": 3, \"alibi\": {\"slopes\": [0.5]}}");
  cuda_check_same_as_host("{\"seqlen_q\": 0, \"seqlen_k\": 8, \"head_dim\": 64}");
  /* the memeff kernels: forward, prepare, keys, queries, and the sums of dbias */
  cuda_check_same_as_host(
      "{\"family\": \"memeff\", \"dtype\": \"f32\", \"batch\": 2, \"heads_q\": 2, \"heads_kv\": 1, "
      "\"seqlen_q\": 20, \"seqlen_k\": 70, \"head_dim\": 24, \"head_dim_v\": 56, \"mask\": {\"type\": "
      "\"causal\", \"align\": \"top_left\"}, \"bias\": {\"shape\": [1, \"h\", 1, \"k\"], \"grad\": true}, "
      "\"dropout\": {\"p\": 0.3, \"seed\": \"4\", \"offset\": \"9\"}}");
  cuda_check_same_as_host("{\"family\": \"memeff\", \"dtype\": \"bf16\", \"seqlen_q\": 5, \"seqlen_k\": 9, "
                          "\"head_dim\": 300, \"grad_lse\": true}");
  cuda_check_same_as_host(
      "{\"family\": \"memeff\", \"cu_seqlens_q\": [0, 5, 9], \"cu_seqlens_k\": [0, 4, 9], "
      "\"head_dim\": 12}");
}

/* Over a cache. Only splits = 1 is the same on every device; the chosen number depends on the processors. */
static void test_same_over_cache(void) {
  cuda_check_same_as_host("{\"family\": \"kvcache\", \"batch\": 2, \"heads_q\": 4, \"heads_kv\": 2, "
                          "\"seqlen_k\": 80, \"kvcache\": {\"len\": [70, 3]}, \"splits\": 1}");
  cuda_check_same_as_host(
      "{\"family\": \"kvcache\", \"dtype\": \"bf16\", \"batch\": 2, \"heads_q\": 4, \"heads_kv\": 2, "
      "\"seqlen_q\": 3, \"seqlen_k\": 96, \"head_dim\": 80, \"mask\": {\"type\": \"causal\"}, \"splits\": 3, "
      "\"kvcache\": {\"len\": [80, 15], \"new\": 3, \"page_size\": 16, \"leftpad\": [2, 0], "
      "\"rotary\": {\"dim\": 32, \"interleaved\": true}}}");
  cuda_check_same_as_host(
      "{\"family\": \"kvcache\", \"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 0, \"seqlen_k\": 8, "
      "\"kvcache\": {\"len\": [5, 0], \"new\": 2, \"batch_idx\": [2, 0]}, "
      "\"strides\": {\"k\": {\"offset\": 1}, \"v_new\": {\"gap\": [0, 3, 0]}}}");
}

/* As graphs, and with another stream at work: rehearsed, captured, launched once, with dropout twice, and nothing is left
 * behind. */
static void test_issued(void) {
  static const char *const cases[] = {
      small,
      "{\"cu_seqlens_q\": [0, 5, 5, 40], \"cu_seqlens_k\": [0, 0, 30, 90], \"seqused_k\": [0, 20, 60], "
      "\"heads_q\": 2, \"head_dim\": 64, \"deterministic\": true}",
      "{\"family\": \"kvcache\", \"batch\": 2, \"heads_q\": 4, \"heads_kv\": 2, \"seqlen_q\": 3, "
      "\"seqlen_k\": 96, \"splits\": 3, \"kvcache\": {\"len\": [80, 15], \"new\": 3, \"page_size\": 16}}",
      "{\"family\": \"memeff\", \"dtype\": \"f32\", \"seqlen_q\": 20, \"seqlen_k\": 70, \"head_dim\": 24, "
      "\"bias\": {\"shape\": [1, 1, 1, \"k\"], \"grad\": true}}"};
  static const char *const drops[] = {
      "{\"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 40, \"seqlen_k\": 50, \"head_dim\": 64, "
      "\"dropout\": {\"p\": 0.3, \"seed\": \"4294967301\", \"offset\": \"3\"}}",
      "{\"family\": \"memeff\", \"dtype\": \"f32\", \"seqlen_q\": 20, \"seqlen_k\": 70, \"head_dim\": 24, "
      "\"dropout\": {\"p\": 0.3, \"seed\": \"4\", \"offset\": \"8589934592\"}}"};
  static const char *const arguments[] = {"0", "graph", "company,0", "0,graph,company"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    for (int how = 0; how < 4; ++how) {
      cuda_argument = arguments[how];
      cuda_check_same_as_host(cases[i]);
      CHECK_MSG(fake.n_graph_launches == (how & 1) && (fake.n_concurrent_writes > 0) == (how >= 2),
                "%s: %d graphs, %d writes", cases[i], fake.n_graph_launches, fake.n_concurrent_writes);
    }
  cuda_argument = "graph";
  for (size_t i = 0; i < sizeof drops / sizeof *drops; ++i) {
    /* the second launch draws what the first did not */
    cuda_check_same_as_host(drops[i]);
    CHECK_MSG(fake.n_graph_launches == 2, "%s: %d graphs", drops[i], fake.n_graph_launches);
  }
  /* and nothing to launch */
  cuda_check_same_as_host("{\"seqlen_q\": 0, \"seqlen_k\": 8, \"head_dim\": 64}");
  cuda_argument = NULL;
  static const char *const wrong[] = {"x", ",", "graph,", "1,,2", "-1", "1024", "graphs", "company graph"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    void *self = NULL;
    fa_error err = {""};
    CHECK_MSG(cuda->open(wrong[i], &self, &err) == FA_ERR_INPUT && strstr(err.text, wrong[i]), "%s: %s",
              wrong[i], err.text);
  }
}

/* Where several work in a process nothing is done in the default stream, which waits for those of the others. */
static void test_lanes(void) {
  static const char *const cases[] = {
      small,
      "{\"cu_seqlens_q\": [0, 5, 5, 40], \"cu_seqlens_k\": [0, 0, 30, 90], \"seqused_k\": [0, 20, 60], "
      "\"heads_q\": 2, \"head_dim\": 64, \"deterministic\": true}",
      "{\"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 40, \"seqlen_k\": 50, \"head_dim\": 64, "
      "\"dropout\": {\"p\": 0.3, \"seed\": \"4294967301\", \"offset\": \"3\"}}",
      "{\"family\": \"kvcache\", \"batch\": 2, \"seqlen_k\": 24, \"kvcache\": {\"len\": [9, 3], \"new\": 2, "
      "\"page_size\": 8, \"leftpad\": [1, 0]}}"};
  static const char *const arguments[] = {NULL, "graph,company"};
  for (int n = 1; n <= 3; n += 2)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
      for (int how = 0; how < 2; ++how) {
        cuda->lanes(n);
        cuda_argument = arguments[how];
        cuda_check_same_as_host(cases[i]);
        CHECK_MSG((fake.n_default == 0) == (n > 1), "%d lanes, %s: %d calls in the default stream", n,
                  cases[i], fake.n_default);
      }
  cuda->lanes(1);
  cuda_argument = NULL;
}

/* What check_device_data finds in a cache's integers; element `at` of tensor id becomes x. */
static void expect_refused(const char *json, fa_tensor_id id, int64_t at, int32_t x, const char *text) {
  fa_case c;
  fa_tensors t;
  cuda_load(json, &c, &t);
  memcpy(t.t[id].data + at * 4, &x, 4);
  fake_cuda_start();
  const cuda_ran r = cuda_run_alone(cuda, &c.problem, &t, FA_PASS_FORWARD);
  CHECK_MSG(r.status == FA_OK && r.out.state == FA_SUBJECT_REJECTED && strstr(r.out.text, text),
            "status %d, state %d, \"%s%s\" is not \"%s\"", (int)r.status, (int)r.out.state, r.out.text,
            r.err.text, text);
  CHECK_MSG(fake.n_launches == 0, "%d kernels were launched", fake.n_launches);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

static void check_passes(const char *json, unsigned want, const char *why) {
  const fa_backend *const both[] = {cuda, &fa_backend_host};
  fa_case c;
  fa_tensors t;
  cuda_load(json, &c, &t);
  fake_cuda_start();
  for (int i = 0; i < 2; ++i) {
    void *self = NULL;
    char reason[256] = "";
    fa_error err = {""};
    CHECK(both[i]->open(NULL, &self, &err) == FA_OK);
    const unsigned got = both[i]->supports(self, &c.problem, reason, sizeof reason);
    CHECK_MSG(got == want && strcmp(reason, why) == 0, "%s: %u, \"%s\"", both[i]->name, got, reason);
    both[i]->close(self);
  }
  fa_tensors_free(&t);
  fa_case_free(&c);
}

static void test_cache_data(void) {
  static const char paged[] = "{\"family\": \"kvcache\", \"batch\": 2, \"seqlen_k\": 24, \"kvcache\": "
                              "{\"len\": [9, 3], \"new\": 2, \"page_size\": 8, \"leftpad\": [1, 0]}}";
  static const char rows[] = "{\"family\": \"kvcache\", \"batch\": 2, \"seqlen_k\": 24, \"kvcache\": "
                             "{\"len\": [9, 3], \"new\": 2, \"batch_idx\": [1, 0]}}";
  check_passes(paged, FA_PASS_FORWARD, "the KV cache has no backward pass");
  check_passes(small, FA_PASS_FORWARD | FA_PASS_BACKWARD, "");
  cuda_check_same_as_host(paged); /* unused entries of its table are garbage */
  cuda_check_same_as_host(rows);
  expect_refused(paged, FA_T_CACHE_SEQLENS, 1, 23, "cache_seqlens[1] = 23: 0 .. 22");
  expect_refused(paged, FA_T_CACHE_SEQLENS, 0, INT32_MIN, "cache_seqlens[0] = -2147483648");
  expect_refused(paged, FA_T_LEFTPAD_K, 0, 12, "leftpad_k[0] = 12: 0 .. 11");
  expect_refused(paged, FA_T_BLOCK_TABLE, 1, 9, "block_table[0][1] = 9: 0 .. 8");
  expect_refused(paged, FA_T_BLOCK_TABLE, 3, -1, "block_table[1][0] = -1: 0 .. 8");
  expect_refused(rows, FA_T_CACHE_BATCH_IDX, 1, 3, "cache_batch_idx[1] = 3: 0 .. 2");
  expect_refused(rows, FA_T_CACHE_BATCH_IDX, 1, 1, "cache row 1 gets new keys of entries 0 and 1");
}

/* A write into a guard on the device appears in the host's guard afterwards. */
static void test_guards(void) {
  for (int far = -1; far <= 1; far += 2) {
    fa_case c;
    fa_tensors t;
    char where[256] = "";
    cuda_load(small, &c, &t);
    fake_cuda_start();
    fake.scribble = far;
    CHECK(cuda_run_alone(cuda, &c.problem, &t, FA_PASS_FORWARD).status == FA_OK);
    CHECK(!fa_tensors_guards_intact(&t, where, sizeof where));
    CHECK_MSG(strstr(where, far < 0 ? "front guard" : "back guard") && strstr(where, "1 byte"), "%s", where);
    fa_tensors_free(&t);
    fa_case_free(&c);
  }
}

/* Fails call number n, for every n: an error of the world or a crash of the subject, and nothing is left
 * behind. */
static void test_failures(CUresult code, fa_status want, fa_subject_state state) {
  fa_case c;
  fa_tensors t;
  cuda_load(small, &c, &t);
  int n_failed = 0;
  for (int n = 1; n < 1000; ++n) {
    fake_cuda_start();
    fake.fail_at = n;
    fake.fail_with = code;
    const cuda_ran r = cuda_run_alone(cuda, &c.problem, &t, cuda_passes_of(&c.problem));
    if (fake.n_calls < n) break; /* every call has failed once */
    fake.fail_at = 0;
    ++n_failed;
    if (r.status == FA_OK && r.out.state == FA_SUBJECT_OK)
      continue; /* freeing failed, which does not matter */
    CHECK_MSG(r.status == want || (want == FA_ERR_MEMORY && n <= 2 && r.status == FA_ERR_DEVICE) ||
                  (r.status == FA_OK && r.out.state == state),
              "call %d: status %d, state %d, %s%s", n, (int)r.status, (int)r.out.state, r.err.text,
              r.out.text);
    CHECK_MSG(strstr(r.status == FA_OK ? r.out.text : r.err.text, ": "), "call %d: no message", n);
    CHECK_MSG(r.spent == (r.status == FA_OK), "call %d", n);
  }
  CHECK_MSG(n_failed > 30, "only %d calls were made to fail", n_failed);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

static void test_kernel_faults(void) {
  fa_case c;
  fa_tensors t;
  cuda_load(small, &c, &t);
  fake_cuda_start();
  fake.kernel_fault = CUDA_ERROR_ILLEGAL_ADDRESS;
  void *self = NULL;
  fa_error err = {""};
  fa_outcome out;
  const fa_run_options opt = {.passes = FA_PASS_FORWARD, .n_threads = 1};
  CHECK(cuda->open(NULL, &self, &err) == FA_OK);
  CHECK(!cuda->spent(self));
  CHECK(cuda->run(self, &c.problem, &t, &opt, &out, &err) == FA_OK);
  CHECK(out.state == FA_SUBJECT_CRASH && cuda->spent(self));
  CHECK_MSG(strstr(out.text, "CUDA_ERROR_ILLEGAL_ADDRESS 700 (made up)") && strstr(out.text, "flash_forward"),
            "%s", out.text);
  CHECK(cuda->run(self, &c.problem, &t, &opt, &out, &err) == FA_ERR_DEVICE);
  CHECK_MSG(strstr(err.text, "earlier case"), "%s", err.text);
  cuda->close(self);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

static void describe(fa_backend_info *info, const char *arg) {
  void *self = NULL;
  fa_error err = {""};
  CHECK(cuda->open(arg, &self, &err) == FA_OK);
  cuda->describe(self, info);
  cuda->close(self);
}

static void test_describe(void) {
  fa_backend_info info;
  fake_cuda_start();
  describe(&info, NULL);
  CHECK_MSG(info.usable && strstr(info.device, "Fake GPU, sm_90, 3 SMs") && strstr(info.driver, "CUDA "),
            "%s %s", info.device, info.why_not);
  CHECK(fake.n_contexts == 0 && fake.n_allocations == 0 && !fake.misuse[0]);
  describe(&info, "1");
  CHECK_MSG(!info.usable && strstr(info.why_not, "no device 1: the driver finds 1"), "%s", info.why_not);
  fake_cuda_start();
  fake.n_devices = 0;
  describe(&info, NULL);
  CHECK_MSG(!info.usable && strstr(info.why_not, "finds no device"), "%s", info.why_not);
  fake_cuda_start();
  fake.major = 7, fake.minor = 5;
  describe(&info, NULL);
  CHECK_MSG(!info.usable &&
                strstr(info.why_not, "compute capability 7.5; this build has kernels for sm_80, sm_90a"),
            "%s", info.why_not);
  fake_cuda_start();
  fa_cuda_kernels_replace(fake_cubins, 0);
  describe(&info, NULL);
  CHECK_MSG(!info.usable && strstr(info.why_not, "no device kernels (") &&
                strstr(info.why_not, "FA_NVRTC=off"),
            "%s", info.why_not);
  void *self = NULL;
  fa_error err = {""};
  CHECK(cuda->open("x", &self, &err) == FA_ERR_INPUT && strstr(err.text, "cuda:N"));
}

static void test_no_driver(void) {
  fa_backend_info info;
  fa_cuda_driver_replace(NULL);
  setenv("FA_LIBCUDA", "libcuda-is-not-here.so", 1);
  describe(&info, NULL);
  CHECK_MSG(!info.usable && strstr(info.why_not, "no CUDA driver: libcuda-is-not-here.so"), "%s",
            info.why_not);
  fa_cuda_driver_replace(NULL);
  setenv("FA_LIBCUDA", "libm.so.6", 1);
  describe(&info, NULL);
  CHECK_MSG(!info.usable && strstr(info.why_not, "libm.so.6 has no cuInit"), "%s", info.why_not);
  unsetenv("FA_LIBCUDA");
}

/* A device of 8.6 has 99 KiB of shared memory per block and runs code for 8.0: every head dim finds
 * kernels. */
static void test_small_device(void) {
  static const int dims[] = {32, 64, 96, 128, 160, 192, 224, 256};
  for (size_t i = 0; i < sizeof dims / sizeof *dims; ++i) {
    char json[200];
    fa_case c;
    fa_tensors t;
    snprintf(json, sizeof json, "{\"seqlen_q\": 20, \"seqlen_k\": 30, \"head_dim\": %d%s}", dims[i],
             i % 2 ? ", \"softcap\": 5" : "");
    cuda_load(json, &c, &t);
    fake_cuda_start();
    fake.major = 8, fake.minor = 6, fake.max_shared_bytes = 99 * 1024;
    const cuda_ran r = cuda_run_alone(cuda, &c.problem, &t, cuda_passes_of(&c.problem));
    CHECK_MSG(r.status == FA_OK && r.out.state == FA_SUBJECT_OK, "%s: %s%s", json, r.err.text, r.out.text);
    CHECK_MSG(!fake.misuse[0] && fake.n_launches >= 4, "%s: %d launches, %s", json, fake.n_launches,
              fake.misuse);
    fa_tensors_free(&t);
    fa_case_free(&c);
  }
}

static void test_devices(void) {
  fa_case c;
  fa_tensors t;
  cuda_load("{\"seqlen_q\": 40, \"head_dim\": 128}", &c, &t);
  for (int major = 8; major <= 9; ++major) {
    void *self = NULL;
    fa_profile profile;
    fa_error err = {""};
    fake_cuda_start();
    fake.major = major;
    CHECK(cuda->open(NULL, &self, &err) == FA_OK);
    cuda->profile(self, &c.problem, &profile);
    CHECK_MSG(strcmp(profile.name, major == 8 ? "mma-ampere" : "mma-hopper") == 0, "%s", profile.name);
    cuda->close(self);
  }
  fake_cuda_start();
  fake.max_shared_bytes = 48 * 1024; /* a kernel with smaller tiles runs */
  cuda_ran r = cuda_run_alone(cuda, &c.problem, &t, FA_PASS_FORWARD);
  CHECK_MSG(r.status == FA_OK && r.out.state == FA_SUBJECT_OK, "%s%s", r.err.text, r.out.text);
  CHECK_MSG(!fake.misuse[0] && fake.n_launches == 1, "%s", fake.misuse);
  fake_cuda_start();
  fake.max_shared_bytes = 32 * 1024; /* no kernel fits */
  r = cuda_run_alone(cuda, &c.problem, &t, FA_PASS_FORWARD);
  CHECK_MSG(r.status == FA_ERR_UNSUPPORTED &&
                strstr(r.err.text, "needs more than the device's 32768 bytes of shared memory"),
            "%s", r.err.text);
  CHECK(fake.n_launches == 0);
  CHECK(fa_cubin_fits("80", 8, 0) && fa_cubin_fits("80", 8, 9) && !fa_cubin_fits("80", 9, 0));
  CHECK(fa_cubin_fits("90a", 9, 0) && !fa_cubin_fits("90a", 9, 1) && !fa_cubin_fits("90a", 10, 0));
  CHECK(!fa_cubin_fits("89", 8, 6) && fa_cubin_fits("100", 10, 3));
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* Contents of device arrays, the workspace and the context: what only fa_forward itself can check. */
static void test_calls(void) {
  int32_t cu_q[4] = {0, 3, 2, 5}, cu_k[4] = {0, 1, 2, 3};
  uint16_t memory[16 * 64] __attribute__((aligned(16))) = {0};
  float lse[16];
  fa_attention a;
  fa_error err = {""};
  CUcontext context;
  fake_cuda_start();
  fa_attention_init(&a);
  a.batch = 3, a.seqlen_q = 3, a.seqlen_k = 1, a.total_q = 5, a.total_k = 3, a.head_dim = 64, a.scale = 0.125;
  a.q = a.k = a.v = memory;
  a.o = memory, a.lse = lse;
  a.q_stride = a.k_stride = a.v_stride = a.o_stride = fa_strides_dense(1, 1, 64);
  a.lse_stride = (fa_strides){0, 1, 16};
  a.check_device_data = true;
  const fa_cuda_driver *d = fa_cuda_driver_get(&err);
  REQUIRE(d);
  CHECK(fa_forward(&a, NULL, 0, NULL, &err) ==
        FA_ERR_INPUT); /* without variable length, rows of the batch overlap */
  CUdeviceptr q = 0, k = 0;
  fa_attention v = a;
  CHECK(fa_forward(&v, NULL, 0, NULL, &err) == FA_ERR_INPUT);
  CHECK(d->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
        d->cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(d->cuMemAlloc(&q, sizeof cu_q) == CUDA_SUCCESS && d->cuMemAlloc(&k, sizeof cu_k) == CUDA_SUCCESS);
  CHECK(d->cuMemcpyHtoD(q, cu_q, sizeof cu_q) == CUDA_SUCCESS &&
        d->cuMemcpyHtoD(k, cu_k, sizeof cu_k) == CUDA_SUCCESS);
  v.cu_seqlens_q = (const int32_t *)q;
  v.cu_seqlens_k = (const int32_t *)k;
  CHECK(fa_forward(&v, NULL, 0, NULL, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "cu_seqlens_q[2] = 2 comes after 3"), "%s", err.text);
  fake.no_context = true;
  CHECK(fa_forward(&v, NULL, 0, NULL, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "no CUDA context is current"), "%s", err.text);
  CHECK(fake.n_launches == 0);
  fa_cuda_driver_replace(NULL);
  setenv("FA_LIBCUDA", "libcuda-is-not-here.so", 1);
  CHECK(fa_forward(&v, NULL, 0, NULL, &err) == FA_ERR_DEVICE);
  CHECK_MSG(strstr(err.text, "no CUDA driver"), "%s", err.text);
  unsetenv("FA_LIBCUDA");
}

static void test_bench(void) {
  fa_case c;
  fa_tensors t;
  fa_error err = {""};
  fa_bench_result r;
  cuda_load(small, &c, &t);
  for (int cold = 0; cold < 2; ++cold) {
    const fa_bench_options opt = {.n_warm = 2, .n_runs = 5, .cold = cold};
    fake_cuda_start();
    CHECK_MSG(fa_cuda_bench(&c.problem, &t, &opt, &r, &err) == FA_OK, "%s", err.text);
    CHECK(r.n_runs == 5 && r.median_us == 1000 && r.min_us == 1000 && r.max_us == 1000 &&
          fake.n_launches == 7);
    CHECK_MSG(fake.n_allocations == 0 && fake.n_contexts == 0 && !fake.misuse[0], "%s", fake.misuse);
  }
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* A kernel whose name differs from its source's is looked up in that source's code first, because memory
 * checkers report a failed lookup as an error. */
static void test_where_kernels_are(void) {
  static const char flash[] = "\177ELF (flash_forward,", kv[] = "\177ELF (cache_,";
  static const fa_cubin two[] = {{"flash/forward", "90a", flash, flash + sizeof flash},
                                 {"cache/forward", "90a", kv, kv + sizeof kv}};
  const fa_kernel_recipe recipe = {"cache/forward", "", 1, 0};
  fa_cuda_context c;
  CUkernel kernel = NULL;
  fa_error err = {""};
  fake_cuda_start();
  fa_cuda_kernels_replace(two, 2);
  REQUIRE(fa_cuda_context_open(0, &c, &err) == FA_OK);
  CHECK(fa_cuda_kernel(c.driver, &c.device, "cache_combine_f16", &recipe, 0, &kernel, &err) == FA_OK &&
        kernel);
  CHECK_MSG(fake.n_libraries == 1, "%d", fake.n_libraries);
  fa_cuda_context_close(&c);
}

int main(void) {
  setenv("FA_NVRTC", "off", 1); /* test_nvrtc.c tests the others */
  test_no_driver();
  test_same_results();
  test_same_over_cache();
  test_issued();
  test_lanes();
  test_cache_data();
  test_guards();
  test_failures(CUDA_ERROR_OUT_OF_MEMORY, FA_ERR_MEMORY, FA_SUBJECT_OK);
  test_failures(CUDA_ERROR_DEVICE_UNAVAILABLE, FA_ERR_DEVICE, FA_SUBJECT_OK);
  test_failures(CUDA_ERROR_ILLEGAL_ADDRESS, FA_ERR_DEVICE, FA_SUBJECT_CRASH);
  cuda_argument = "graph,company";
  test_failures(CUDA_ERROR_OUT_OF_MEMORY, FA_ERR_MEMORY, FA_SUBJECT_OK);
  test_failures(CUDA_ERROR_ILLEGAL_ADDRESS, FA_ERR_DEVICE, FA_SUBJECT_CRASH);
  cuda_argument = NULL;
  cuda->lanes(2);
  test_failures(CUDA_ERROR_OUT_OF_MEMORY, FA_ERR_MEMORY, FA_SUBJECT_OK);
  test_failures(CUDA_ERROR_ILLEGAL_ADDRESS, FA_ERR_DEVICE, FA_SUBJECT_CRASH);
  cuda->lanes(1);
  test_kernel_faults();
  test_describe();
  test_devices();
  test_small_device();
  test_calls();
  test_bench();
  test_where_kernels_are();
  fake_cuda_reset();
  return check_done();
}
