/* Buffers with offsets beyond 2^31 and 2^32 on a device made of host memory: there is memory only where the
 * tensors are, the gaps are seen to be unchanged, and any other access ends the kernel. */
#include "gpu/cuda_backend/context.h"
#include "gpu/cuda_backend/memory.h"
#include "tests/fake_cuda/fixture.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

/* The smallest of each kind in offset.json. */
static void test_same_as_host(void) {
  cuda_check_same_as_host(
      "{\"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 3, \"seqlen_k\": 3, \"head_dim\": 64, "
      "\"deterministic\": true, \"mask\": {\"type\": \"causal\"}, \"strides\": "
      "{\"q\": {\"gap\": [0, 1073741888, 0]}, \"k\": {\"gap\": [0, 2147483712, 0]}}}");
  cuda_check_same_as_host(
      "{\"batch\": 3, \"heads_q\": 2, \"seqlen_q\": 5, \"seqlen_k\": 6, \"head_dim\": 64, "
      "\"deterministic\": true, \"dtype\": \"bf16\", \"strides\": {\"v\": {\"gap\": "
      "[2147483712, 0, 0]}, \"o\": {\"gap\": [1073741888, 0, 0]}, \"dv\": {\"gap\": "
      "[2147483712, 0, 0]}}}");
  cuda_check_same_as_host("{\"heads_q\": 3, \"seqlen_q\": 5, \"seqlen_k\": 6, \"head_dim\": 64, \"layout\": "
                          "\"bhsd\", \"deterministic\": true, \"strides\": {\"do\": {\"gap\": [0, 0, "
                          "2147483712]}, \"dq\": {\"gap\": [0, 0, 2147483712]}}}");
  cuda_check_same_as_host(
      "{\"cu_seqlens_q\": [0, 2, 2, 5], \"cu_seqlens_k\": [0, 1, 3, 5], \"heads_q\": 2, \"head_dim\": 64, "
      "\"deterministic\": true, \"strides\": {\"o\": {\"gap\": [0, 1073741888, 0]}, \"dk\": {\"gap\": [0, "
      "1073741888, 0]}}}");
  /* rows of 328 bytes and a gap that make an odd number of bytes: the back guard begins amid a word */
  cuda_check_same_as_host(
      "{\"family\": \"kvcache\", \"dtype\": \"bf16\", \"heads_q\": 2, \"seqlen_k\": 3, \"head_dim\": 288, "
      "\"head_dim_v\": 256, \"mla\": {\"kv_lora_rank\": 256, \"qk_rope_head_dim\": 32}, \"quantized\": "
      "{\"dtype\": \"e4m3\", \"queries\": false, \"descale\": \"tile\"}, \"strides\": {\"k\": {\"gap\": "
      "[0, 2147483707, 0]}}, \"kvcache\": {\"len\": [3], \"page_size\": 3}}");
}

static const char far_rows[] = "{\"seqlen_q\": 3, \"seqlen_k\": 3, \"head_dim\": 64, \"strides\": {\"k\": "
                               "{\"gap\": [0, 1073741888, 0]}}}";

/* A byte beside the islands, in a mapped granule, without a counterpart on the host. */
static void test_margins(void) {
  static const struct {
    size_t at;
    bool in_margin;
  } writes[] = {{(2 << 20) - 1, true}, {1 << 20, true}, {0, false}};
  for (size_t i = 0; i < sizeof writes / sizeof *writes; ++i) {
    fa_case c;
    fa_tensors t;
    cuda_load(far_rows, &c, &t);
    fake_cuda_start();
    fake.scribble_mapped = writes[i].at; /* 0: nothing is written */
    const cuda_ran r = cuda_run_alone(&fa_backend_cuda, &c.problem, &t, FA_PASS_FORWARD);
    CHECK(r.status == FA_OK && !r.spent && !fake.misuse[0]);
    CHECK_MSG(r.out.state == (writes[i].in_margin ? FA_SUBJECT_OOB : FA_SUBJECT_OK), "%d", (int)r.out.state);
    if (writes[i].in_margin)
      CHECK_MSG(strstr(r.out.text, "k: byte ") && strstr(r.out.text, "a page or more from any element"), "%s",
                r.out.text);
    CHECK(fake.n_allocations == 0);
    fa_tensors_free(&t);
    fa_case_free(&c);
  }
}

/* With row strides halved, the kernel reads where no granule is mapped. */
static void test_no_memory_between(void) {
  fa_case c;
  fa_tensors t;
  cuda_load(far_rows, &c, &t);
  fake_cuda_start();
  fa_tensor *k = &t.t[FA_T_K];
  const int64_t right = k->stride[1];
  k->stride[1] = right / 2;
  const cuda_ran r = cuda_run_alone(&fa_backend_cuda, &c.problem, &t, FA_PASS_FORWARD);
  CHECK_MSG(r.status == FA_OK && r.out.state == FA_SUBJECT_CRASH && r.spent, "%d %d %s%s", (int)r.status,
            (int)r.out.state, r.err.text, r.out.text);
  CHECK_MSG(strstr(r.out.text, "CUDA_ERROR_ILLEGAL_ADDRESS"), "%s", r.out.text);
  k->stride[1] = right;
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* The device's content between the copies to it and back. */
static void test_content(void) {
  fa_case c;
  fa_tensors t;
  fa_error err = {""};
  fa_cuda_arena arena = {0};
  fa_cuda_tensors on_device;
  fa_cuda_context context;
  CUresult code;
  bool intact = false;
  char where[256] = "";
  cuda_load(far_rows, &c, &t);
  fake_cuda_start();
  REQUIRE(fa_cuda_context_open(0, &context, &err) == FA_OK);
  const fa_cuda_driver *d = context.driver;
  REQUIRE(fa_cuda_tensors_up(d, &arena, &t, 0, &on_device, &code, &err) == FA_OK);
  const fa_cuda_virtual *v = &on_device.sparse[FA_T_K];
  CHECK(on_device.base[FA_T_K] == v->base && v->n == 3 && !on_device.sparse[FA_T_Q].base);
  CHECK_MSG(fake.bytes_in_use < (size_t)64 << 20, "%zu",
            fake.bytes_in_use); /* half of it is the arena's initial size */
  CHECK(v->reserved > (size_t)4 << 30);
  const int64_t last[] = {0, 2, 0, 63};
  uint16_t want, got = 0, new_value = 0x3c00;
  const int64_t offset = fa_tensor_offset(&t.t[FA_T_K], last);
  memcpy(&want, t.t[FA_T_K].data + offset, sizeof want);
  const CUdeviceptr at = (CUdeviceptr)on_device.set.t[FA_T_K].data + (CUdeviceptr)offset;
  CHECK(d->cuMemcpyDtoH(&got, at, sizeof got) == CUDA_SUCCESS && got == want);
  CHECK(d->cuMemcpyHtoD(at, &new_value, sizeof new_value) == CUDA_SUCCESS);
  CHECK(fa_cuda_tensors_down(d, &on_device, "test", &t, &intact, where, sizeof where, &code, &err) == FA_OK &&
        intact);
  memcpy(&got, t.t[FA_T_K].data + offset, sizeof got);
  CHECK(got == new_value);
  /* guards are memory of the device too */
  CHECK(d->cuMemcpyHtoD(v->base + FA_GUARD_BYTES - 2, &new_value, sizeof new_value) == CUDA_SUCCESS);
  CHECK(fa_cuda_tensors_down(d, &on_device, "test", &t, &intact, where, sizeof where, &code, &err) == FA_OK &&
        intact);
  CHECK(!fa_tensors_guards_intact(&t, where, sizeof where));
  CHECK_MSG(strstr(where, "front guard of k: 2 bytes"), "%s", where);
  fa_cuda_tensors_free(d, &on_device);
  fa_cuda_arena_free(d, &arena);
  fa_cuda_context_close(&context);
  CHECK(fake.n_allocations == 0 && fake.bytes_in_use == 0 && !fake.misuse[0]);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* Every call fails in turn, and nothing is left behind. */
static void test_failures(void) {
  fa_case c;
  fa_tensors t;
  cuda_load(far_rows, &c, &t);
  int n_failed = 0;
  for (int n = 1; n < 1000; ++n) {
    fake_cuda_start();
    fake.fail_at = n;
    fake.fail_with = CUDA_ERROR_OUT_OF_MEMORY;
    const cuda_ran r = cuda_run_alone(&fa_backend_cuda, &c.problem, &t, FA_PASS_FORWARD);
    if (fake.n_calls < n) break;
    n_failed += r.status != FA_OK;
    CHECK_MSG(r.status == FA_OK || r.status == FA_ERR_MEMORY || n <= 2, "call %d: %s", n, r.err.text);
    CHECK_MSG(!fake.misuse[0], "call %d: %s", n, fake.misuse);
    /* releasing a handle can fail too, which leaks the handle; so can what follows a run */
    CHECK_MSG(r.status == FA_OK || fake.n_allocations <= 1, "call %d: %d allocations are left", n,
              fake.n_allocations);
  }
  CHECK_MSG(n_failed > 30, "only %d calls were made to fail", n_failed);
  fake_cuda_start();
  fake.no_virtual_memory = true;
  const cuda_ran r = cuda_run_alone(&fa_backend_cuda, &c.problem, &t, FA_PASS_FORWARD);
  CHECK(r.status == FA_ERR_UNSUPPORTED && !r.spent && fake.n_allocations == 0);
  CHECK_MSG(strstr(r.err.text, "virtual memory"), "%s", r.err.text);
  fake_cuda_start();
  fake.memory_bytes = (size_t)5 << 20; /* two granules of three */
  CHECK(cuda_run_alone(&fa_backend_cuda, &c.problem, &t, FA_PASS_FORWARD).status == FA_ERR_MEMORY);
  CHECK(fake.n_allocations == 0);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

int main(void) {
  setenv("FA_NVRTC", "off", 1);
  test_same_as_host();
  test_margins();
  test_no_memory_between();
  test_content();
  test_failures();
  fake_cuda_reset();
  return check_done();
}
