/* Calls that are kept (gpu/cuda/kept.h) launch what they would if nothing were: random calls, calls that differ in a single
 * byte, another device or environment, several threads. */
#include "gpu/cuda/kept.h"

#include "gpu/cuda/run.h"
#include "tests/fake_cuda/padding.h"
#include "tests/fake_cuda/recorded_calls.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 12500, THREADS = 4, OF_A_THREAD = 300 };

/* ---- random calls ---- */

static void test_random(void) {
  int n = 0, n_launched = 0, n_with_maps = 0, n_refused = 0;
  for (int64_t i = 0; i < CASES; ++i) {
    fa_args x;
    if (!make_calls(i, &x)) continue;
    const fa_call *call = pass_of(&x, i);
    const ran first = run(call), second = run(call), fresh = run_fresh(call);
    CHECK_MSG(same(&first, &fresh) && same(&second, &fresh), "case %lld", (long long)i);
    CHECK_MSG((second.n_planned == 0 && second.log.n_maps == 0) == (fresh.status == FA_OK),
              "case %lld: planned %d times", (long long)i, second.n_planned);
    ++n;
    n_launched += fresh.log.n_launches > 0;
    n_with_maps += fresh.log.n_maps > 0;
    n_refused += fresh.status != FA_OK;
    fa_args_free(&x);
  }
  CHECK_MSG(n > CASES / 3 && n_launched > CASES / 4 && n_with_maps > CASES / 50 && n_refused > 0,
            "%d calls, %d launched, %d with maps, %d refused", n, n_launched, n_with_maps, n_refused);
}

/* ---- calls that differ in a byte ---- */

static bool is_followed(const fa_attention *a, const unsigned char *byte) {
  const unsigned char *flex = (const unsigned char *)&a->flex;
  return (byte >= flex && byte < flex + sizeof a->flex) ||
         byte == (const unsigned char *)&a->check_device_data;
}

/* Every byte of the struct, one after the other, while the call as it was is kept; returns how many of them change a launch
 * or the answer. */
static int change_bytes(const fa_call *call, void *of, size_t bytes) {
  const ran before = run_fresh(call);
  int n = 0;
  for (size_t i = 0; i < bytes; ++i) {
    unsigned char *byte = (unsigned char *)of + i;
    if (is_followed(call->a, byte)) continue;
    *byte ^= 1;
    const ran fresh = run_fresh(call);
    *byte ^= 1;
    const ran kept = run(call);
    *byte ^= 1;
    const ran other = run(call);
    *byte ^= 1;
    const ran after = run(call);
    CHECK_MSG(same(&other, &fresh) && same(&kept, &before) && same(&after, &before), "byte %zu of %zu", i,
              bytes);
    n += !same(&fresh, &before);
  }
  return n;
}

static void test_bytes(void) {
  int n_kinds[FA_CALL_CACHE + 1] = {0}, n = 0;
  for (int64_t i = 0; i < 400; ++i) {
    fa_args x;
    if (!make_calls(i, &x)) continue;
    const fa_call *call = pass_of(&x, i);
    if (n_kinds[call->kind]++ < 4) {
      n += change_bytes(call, &x.a, sizeof x.a);
      if (call->kind == FA_CALL_BACKWARD) n += change_bytes(call, &x.g, sizeof x.g);
      if (call->kind == FA_CALL_CACHE) n += change_bytes(call, &x.cache, sizeof x.cache);
    }
    fa_args_free(&x);
  }
  CHECK_MSG(n > 1000, "only %d bytes matter", n);
}

/* ---- what is around a call ---- */

/* One with tensor maps and a tile counter on device 0. */
static void make_plain(fa_attention *a, fa_call *call) {
  static _Alignas(256) char tensor[1 << 16];
  fa_attention_init(a);
  a->batch = 2;
  a->heads_q = a->heads_kv = 4;
  a->seqlen_q = a->seqlen_k = 512;
  a->head_dim = 64;
  a->scale = 0.125;
  a->q = a->k = a->v = a->o = tensor;
  a->lse = (float *)(void *)tensor;
  a->q_stride = a->k_stride = a->v_stride = a->o_stride = fa_strides_dense(512, 4, 64);
  a->lse_stride = (fa_strides){4 * 512, 1, 512};
  *call = (fa_call){.kind = FA_CALL_FORWARD, .a = a, .n_processors = FA_PLAN_PROCESSORS};
}

/* Two of the three devices are alike, but a kernel has to be made ready on each. */
static void test_device(void) {
  fa_attention a;
  fa_call call;
  make_plain(&a, &call);
  const ran hopper = run_fresh(&call);
  recorder_device = 1;
  const ran ampere = run(&call), fresh = run_fresh(&call);
  CHECK(hopper.log.n_maps == 4 && ampere.log.n_maps == 0 && fresh.log.n_maps == 0);
  CHECK(same(&ampere, &fresh) && !same(&ampere, &hopper));
  recorder_device = 0;
  const ran back = run(&call);
  recorder_device = 2;
  const ran twin = run(&call);
  recorder_device = 0;
  CHECK(same(&back, &hopper) && same(&twin, &hopper) && twin.n_planned == 1);
}

static void test_environment(void) {
  fa_attention a;
  fa_call call;
  make_plain(&a, &call);
  const ran on = run_fresh(&call);
  setenv("FA_HOPPER", "off", 1);
  const ran off = run(&call);
  setenv("FA_HOPPER", "no", 1);
  const ran wrong = run(&call);
  unsetenv("FA_HOPPER");
  const ran back = run(&call);
  CHECK(on.log.n_maps == 4 && off.status == FA_OK && off.log.n_maps == 0 && !same(&off, &on));
  CHECK_MSG(wrong.status == FA_ERR_INPUT && wrong.log.n_launches == 0, "%s", wrong.err.text);
  CHECK(same(&back, &on));
  setenv("FA_NVRTC", "auto", 1); /* the recorder has it off */
  const ran compiles = run(&call), again = run(&call);
  setenv("FA_NVRTC", "off", 1);
  CHECK(compiles.n_planned > 0 && again.n_planned == 0 && run(&call).n_planned > 0);
}

/* A kept launch has a counter of its own each time, and a captured one none. */
static void test_counters(void) {
  fa_attention a;
  fa_call call;
  make_plain(&a, &call);
  const ran one = run_fresh(&call), two = run(&call);
  recorder_captures = true;
  const ran captured = run(&call);
  recorder_captures = false;
  CHECK(two.n_planned == 0 && captured.n_planned == 0 && one.log.n_counters == 1);
  CHECK_MSG(one.log.counters[0] >= 0 && two.log.counters[0] >= 0 &&
                one.log.counters[0] != two.log.counters[0],
            "%d, %d", one.log.counters[0], two.log.counters[0]);
  CHECK_MSG(captured.log.counters[0] == -1, "%d", captured.log.counters[0]);
}

/* The workspace may be too small for a call that is kept with a larger one; device data is looked at each time. */
static void test_workspace(void) {
  fa_attention a;
  fa_call call;
  fa_error err = {""};
  make_plain(&a, &call);
  a.splits = 2;
  call.workspace = WORKSPACE;
  CHECK(run_fresh(&call).status == FA_OK && run(&call).n_planned == 0);
  CHECK(fa_cuda_run(&call, 16, NULL, NULL, &err) == FA_ERR_INPUT && strstr(err.text, "workspace_bytes = 16"));
  call.workspace = (char *)WORKSPACE + 256;
  CHECK(run(&call).n_planned == 1);
  a.check_device_data = true;
  CHECK(run(&call).n_planned == 1 && run(&call).n_planned == 1);
}

/* Another workspace, where the place goes by the cache alone. */
static void test_cache_workspace(void) {
  static const int32_t lengths[2] = {512, 512};
  fa_attention a;
  fa_call call;
  fa_inference kv;
  make_plain(&a, &call);
  fa_inference_init(&kv);
  kv.k_cache = kv.v_cache = a.o;
  kv.k_cache_stride = kv.v_cache_stride = a.k_stride;
  kv.cache_rows = 2;
  kv.cache_seqlens = lengths;
  kv.splits = 4;
  call = (fa_call){.kind = FA_CALL_CACHE, .a = &a, .cache = &kv, .n_processors = 132, .workspace = WORKSPACE};
  a.seqlen_q = 20;
  const ran one = run_fresh(&call);
  call.workspace = (char *)WORKSPACE + 256;
  const ran other = run(&call), fresh = run_fresh(&call);
  CHECK_MSG(one.status == FA_OK && other.n_planned == 1 && same(&other, &fresh) && !same(&other, &one), "%s",
            one.err.text);
}

/* Both passes between the same tensors, many of which share a place. */
static void test_passes(void) {
  fa_attention a;
  fa_call forward;
  fa_gradients g;
  make_plain(&a, &forward);
  fa_gradients_init(&g);
  g.d_o = g.dq = g.dk = g.dv = a.o;
  g.do_stride = g.dq_stride = g.dk_stride = g.dv_stride = a.q_stride;
  fa_call backward = forward;
  backward.kind = FA_CALL_BACKWARD;
  backward.g = &g;
  backward.workspace = WORKSPACE;
  forward.workspace = WORKSPACE;
  char *const o = a.o;
  for (int i = 0; i < 2000; ++i) {
    a.o = o + 16 * i;
    const ran back = run(&backward), there = run(&forward);
    CHECK_MSG(back.log.n_launches > 2 && there.log.n_launches == 1, "%d: %d, %d launches", i,
              back.log.n_launches, there.log.n_launches);
  }
}

/* ---- threads ---- */

static ran expected[OF_A_THREAD];

static void *run_all(void *data) {
  const int first = *(const int *)data;
  for (int k = 0; k < 2 * OF_A_THREAD; ++k) {
    const int i = (first + 7 * k) % OF_A_THREAD;
    fa_args x;
    if (!make_calls(i, &x)) continue;
    const ran a = run(pass_of(&x, i)), b = run(pass_of(&x, i));
    if (!same(&a, &expected[i]) || !same(&b, &expected[i])) return data;
    fa_args_free(&x);
  }
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[THREADS];
  int first[THREADS];
  for (int i = 0; i < OF_A_THREAD; ++i) {
    fa_args x;
    if (!make_calls(i, &x)) continue;
    expected[i] = run_fresh(pass_of(&x, i));
    fa_args_free(&x);
  }
  for (int t = 0; t < THREADS; ++t) {
    first[t] = t * OF_A_THREAD / THREADS;
    REQUIRE(pthread_create(&threads[t], NULL, run_all, &first[t]) == 0);
  }
  for (int t = 0; t < THREADS; ++t) {
    void *failed = NULL;
    CHECK(pthread_join(threads[t], &failed) == 0 && !failed);
  }
}

int main(void) {
#ifndef FA_CLEARS_PADDING
  printf("skipped: launches are compared byte by byte, and this compiler cannot tell what is padding\n");
  return 77;
#endif
  unsetenv("FA_HOPPER");
  recorder_use();
  test_random();
  test_bytes();
  test_device();
  test_environment();
  test_counters();
  test_workspace();
  test_cache_workspace();
  test_passes();
  test_threads();
  return check_done();
}
