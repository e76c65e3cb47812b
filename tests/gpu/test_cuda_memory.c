/* The arena of tensors on the device, on a driver made of host memory: nothing of an earlier call is visible
 * in it, guards are checked, and a run waits for the device once. */
#include "cases/tensors/guard.h"
#include "gpu/cuda_backend/context.h"
#include "gpu/cuda_backend/memory.h"
#include "tests/fake_cuda/fixture.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static const char large[] = "{\"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 5000, \"head_dim\": 128}";
static const char small[] = "{\"seqlen_q\": 20, \"seqlen_k\": 33, \"head_dim\": 64, \"strides\": {\"q\": "
                            "{\"offset\": 1}}}";

/* Everything in the arena is the host's bytes, or NaN. */
static void check_content(const fa_cuda_driver *d, const fa_cuda_tensors *on_device, const fa_tensors *host) {
  const fa_cuda_arena *arena = on_device->arena;
  unsigned char *want = malloc(arena->bytes), *got = malloc(arena->bytes);
  REQUIRE(want && got);
  memset(want, 0xff, arena->bytes);
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_buffer *b = &host->buffer[i];
    if (!b->base) continue;
    CHECK(on_device->base[i] % 512 == 0 && on_device->base[i] >= arena->base);
    memcpy(want + (on_device->base[i] - arena->base), b->base, b->bytes + 2 * FA_GUARD_BYTES);
  }
  CHECK(d->cuMemcpyDtoH(got, arena->base, arena->bytes) == CUDA_SUCCESS);
  CHECK(memcmp(want, got, arena->bytes) == 0);
  free(want);
  free(got);
}

/* Copied by pieces of a stage, the last of which is not a whole one. */
static void test_pieces(void) {
  enum { BYTES = 10007, STAGE = 4096 };
  static char from[BYTES], to[BYTES], memory[STAGE];
  const fa_cuda_pinned stage = {memory, STAGE};
  fa_cuda_context context;
  CUdeviceptr there = 0;
  fa_error err = {""};
  fake_cuda_start();
  REQUIRE(fa_cuda_context_open(0, &context, &err) == FA_OK);
  const fa_cuda_driver *d = context.driver;
  for (int i = 0; i < BYTES; ++i) from[i] = (char)(i * 7 + i / 251);
  REQUIRE(d->cuMemAlloc(&there, BYTES) == CUDA_SUCCESS);
  CHECK(fa_cuda_copy_pieces(d, there, from, BYTES, &stage, NULL) == CUDA_SUCCESS);
  CHECK(d->cuMemcpyDtoH(to, there, BYTES) == CUDA_SUCCESS && memcmp(from, to, BYTES) == 0);
  CHECK(fa_cuda_copy_pieces(d, there, from, 0, &stage, NULL) == CUDA_SUCCESS);
  d->cuMemFree(there);
  fa_cuda_context_close(&context);
}

/* A call writes all over the arena; then a larger call, a smaller one and a larger one again. */
static void test_nothing_is_left(bool staged) {
  enum { N = 4 };
  const char *const cases[N] = {small, large, small, large};
  fa_case c[N];
  fa_tensors t[N];
  fa_cuda_context context;
  fa_cuda_arena arena = {0};
  size_t sizes[N];
  fa_error err = {""};
  CUresult code;
  for (int i = 0; i < N; ++i) cuda_load(cases[i], &c[i], &t[i]);
  fake_cuda_start();
  fake.no_page_locked = !staged;
  REQUIRE(fa_cuda_context_open(0, &context, &err) == FA_OK);
  const fa_cuda_driver *d = context.driver;
  for (int i = 0; i < N; ++i) {
    fa_cuda_tensors on_device;
    REQUIRE(fa_cuda_tensors_up(d, &arena, &t[i], 1000, &on_device, &code, &err) == FA_OK);
    CHECK((on_device.stage != NULL) == staged);
    CHECK((CUdeviceptr)fa_cuda_tensors_scratch(&on_device) % 512 == 0);
    CHECK(d->cuStreamSynchronize(NULL) == CUDA_SUCCESS);
    check_content(d, &on_device, &t[i]);
    CHECK(d->cuMemsetD8Async(arena.base, 0x77, arena.bytes, NULL) == CUDA_SUCCESS);
    fa_cuda_tensors_free(d, &on_device);
    if (staged) memset(arena.stage.memory, 0x66, arena.stage.bytes);
    sizes[i] = arena.bytes;
  }
  CHECK(sizes[1] > sizes[0] && sizes[2] == sizes[0] && sizes[3] == sizes[1]); /* each size has its own */
  fa_cuda_arena_free(d, &arena);
  fa_cuda_context_close(&context);
  CHECK_MSG(fake.n_allocations == 0 && !fake.misuse[0], "%d %s", fake.n_allocations, fake.misuse);
  for (int i = 0; i < N; ++i) {
    fa_tensors_free(&t[i]);
    fa_case_free(&c[i]);
  }
}

/* A write on either side of scratch memory, with and without page-locked memory; and no write. */
static void test_scratch_guards(bool staged) {
  for (int side = -1; side <= 1; ++side) {
    fa_case c;
    fa_tensors t;
    fa_cuda_context context;
    fa_cuda_arena arena = {0};
    fa_cuda_tensors on_device;
    fa_error err = {""};
    CUresult code;
    bool intact = false;
    char where[200] = "";
    const char byte = 0;
    cuda_load(small, &c, &t);
    fake_cuda_start();
    fake.no_page_locked = !staged;
    REQUIRE(fa_cuda_context_open(0, &context, &err) == FA_OK);
    const fa_cuda_driver *d = context.driver;
    REQUIRE(fa_cuda_tensors_up(d, &arena, &t, 1001, &on_device, &code, &err) == FA_OK);
    const CUdeviceptr scratch = (CUdeviceptr)fa_cuda_tensors_scratch(&on_device);
    CHECK(d->cuMemcpyHtoD(side < 0   ? scratch - 1
                          : side > 0 ? scratch + 1001
                                     : scratch,
                          &byte, 1) == CUDA_SUCCESS);
    CHECK(fa_cuda_tensors_down(d, &on_device, "test", &t, &intact, where, sizeof where, &code, &err) ==
          FA_OK);
    CHECK(intact == (side == 0));
    if (side != 0)
      CHECK_MSG(strstr(where, side < 0 ? "front guard of the workspace: 1 byte"
                                       : "back guard of the workspace: 1 byte"),
                "%s", where);
    fa_cuda_tensors_free(d, &on_device);
    fa_cuda_arena_free(d, &arena);
    fa_cuda_context_close(&context);
    CHECK_MSG(fake.n_allocations == 0 && !fake.misuse[0], "%d %s", fake.n_allocations, fake.misuse);
    fa_tensors_free(&t);
    fa_case_free(&c);
  }
}

/* A set in page-locked memory of its own goes without staging; others do not, and one without such memory has none. */
static void test_block(size_t scratch) {
  fa_case c;
  fa_tensors t, in_block;
  fa_cuda_context context;
  fa_cuda_arena arena = {0};
  fa_cuda_tensors on_device;
  fa_error err = {""};
  CUresult code;
  bool intact = false;
  char where[200] = "";
  const uint16_t one = 0x3c00;
  cuda_load(small, &c, &t);
  fake_cuda_start();
  REQUIRE(fa_cuda_context_open(0, &context, &err) == FA_OK);
  const fa_cuda_driver *d = context.driver;
  char *block = fa_cuda_arena_block(d, &arena, 1, fa_tensors_block_bytes(&t));
  REQUIRE(block);
  CHECK(!fa_cuda_arena_block(d, &arena, 0, FA_CUDA_STAGE_KEPT + 1));
  fa_tensors_clone_poisoned_into(&in_block, &t, FA_POISON_B, block);
  REQUIRE(fa_cuda_tensors_up(d, &arena, &in_block, scratch, &on_device, &code, &err) == FA_OK);
  CHECK(on_device.stage == block && !arena.stage.memory);
  CHECK(d->cuStreamSynchronize(NULL) == CUDA_SUCCESS);
  check_content(d, &on_device, &in_block);
  CHECK(d->cuMemcpyHtoD((CUdeviceptr)on_device.set.t[FA_T_O].data, &one, sizeof one) == CUDA_SUCCESS);
  CHECK(fa_cuda_tensors_down(d, &on_device, "test", &in_block, &intact, where, sizeof where, &code, &err) ==
        FA_OK);
  CHECK(intact && memcmp(in_block.t[FA_T_O].data, &one, sizeof one) == 0);
  CHECK(fa_tensors_guards_intact(&in_block, where, sizeof where) &&
        fa_tensors_inputs_equal(&t, &in_block, where, sizeof where));
  fa_cuda_tensors_free(d, &on_device);
  REQUIRE(fa_cuda_tensors_up(d, &arena, &t, scratch, &on_device, &code, &err) == FA_OK);
  CHECK(on_device.stage && on_device.stage != block);
  fa_cuda_tensors_free(d, &on_device);
  fa_tensors_free(&in_block);
  fa_cuda_arena_free(d, &arena);
  fake.no_page_locked = true;
  CHECK(!fa_cuda_arena_block(d, &arena, 0, 1));
  fa_cuda_context_close(&context);
  CHECK_MSG(fake.n_allocations == 0 && !fake.misuse[0], "%d %s", fake.n_allocations, fake.misuse);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* Once the memory is allocated. */
static void test_one_wait(void) {
  fa_case c;
  fa_tensors t;
  fa_error err = {""};
  fa_outcome out;
  void *self = NULL;
  cuda_load(small, &c, &t);
  fake_cuda_start();
  const fa_run_options opt = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 1};
  CHECK(fa_backend_cuda.open(NULL, &self, &err) == FA_OK);
  for (int run = 0; run < 3; ++run) {
    fake.n_waits = 0;
    CHECK(fa_backend_cuda.run(self, &c.problem, &t, &opt, &out, &err) == FA_OK && out.state == FA_SUBJECT_OK);
    CHECK_MSG(run == 0 || fake.n_waits == 1, "run %d waited %d times", run, fake.n_waits);
    CHECK(fake.n_allocations == 2);
  }
  fa_backend_cuda.close(self);
  CHECK_MSG(fake.n_allocations == 0 && !fake.misuse[0], "%d %s", fake.n_allocations, fake.misuse);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* A fault of the forward kernel that appears only when the backward kernels are launched. */
static void test_fault_before_backward(void) {
  fa_case c;
  fa_tensors t;
  cuda_load(small, &c, &t);
  fake_cuda_start();
  fake.kernel_fault = CUDA_ERROR_ILLEGAL_ADDRESS;
  const cuda_ran r = cuda_run_alone(&fa_backend_cuda, &c.problem, &t, FA_PASS_FORWARD | FA_PASS_BACKWARD);
  CHECK_MSG(r.status == FA_OK && r.out.state == FA_SUBJECT_CRASH && r.spent, "%s%s", r.out.text, r.err.text);
  CHECK_MSG(strstr(r.out.text, "flash_forward") && strstr(r.out.text, "or its backward: CUDA_ERROR_ILLEGAL"),
            "%s", r.out.text);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

int main(void) {
  test_pieces();
  setenv("FA_NVRTC", "off", 1);
  for (int staged = 0; staged < 2; ++staged) {
    test_nothing_is_left(staged);
    test_scratch_guards(staged);
    test_block(staged ? 1001 : 0);
  }
  test_one_wait();
  test_fault_before_backward();
  fake_cuda_reset();
  return check_done();
}
