/* The kernels for sm_90a chosen by gpu/fa.h, on a driver made of host memory: what they can do, they do, with
 * the bits of the host backend's (host:hopper); what they cannot, and everything with FA_HOPPER=off or on
 * another device, is left to the others. */
#include "gpu/cuda/target.h"
#include "tests/fake_cuda/fixture.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

typedef struct ran {
  fa_tensors t;
  char last[96], kernel[128], backward[32]; /* the last launched forward kernel; what the report says */
} ran;

static void run_cuda(const char *json, int minor, const char *policy, unsigned passes, ran *out) {
  fa_case c;
  cuda_load(json, &c, &out->t);
  fake_cuda_start();
  fake.minor = minor;
  if (policy)
    setenv("FA_HOPPER", policy, 1);
  else
    unsetenv("FA_HOPPER");
  const cuda_ran r = cuda_run_alone(&fa_backend_cuda, &c.problem, &out->t, passes);
  CHECK_MSG(r.status == FA_OK && r.out.state == FA_SUBJECT_OK, "%s: %s%s", json, r.out.text, r.err.text);
  CHECK_MSG(fake.misuse[0] == 0, "%s: %s", json, fake.misuse);
  snprintf(out->last, sizeof out->last, "%s", fake.last_kernel);
  snprintf(out->kernel, sizeof out->kernel, "%s", r.out.kernel);
  snprintf(out->backward, sizeof out->backward, "%s", r.out.backward_kernel);
  fa_case_free(&c);
}

static void run_host(const char *json, const char *device, unsigned passes, fa_tensors *t) {
  fa_case c;
  void *self = NULL;
  fa_error err = {""};
  fa_outcome out = {.state = FA_SUBJECT_OK};
  const fa_run_options opt = {.passes = passes, .n_threads = 1};
  cuda_load(json, &c, t);
  CHECK(fa_backend_host.open(device, &self, &err) == FA_OK);
  CHECK(fa_backend_host.run(self, &c.problem, t, &opt, &out, &err) == FA_OK && out.state == FA_SUBJECT_OK);
  fa_backend_host.close(self);
  fa_case_free(&c);
}

static bool same(const fa_tensors *x, const fa_tensors *y, fa_tensor_id id) {
  return memcmp(x->buffer[id].base, y->buffer[id].base, x->buffer[id].bytes + 2 * FA_GUARD_BYTES) == 0;
}

/* Which kernel, by the forward call alone. */
static void expect_kernel(const char *json, int minor, const char *policy, const char *name) {
  ran r;
  run_cuda(json, minor, policy, FA_PASS_FORWARD, &r);
  CHECK_MSG(strcmp(r.last, name) == 0, "%s: %s is not %s", json, r.last, name);
  const char *const family = strncmp(name, "hopper", 6) == 0 ? "hopper_forward<" : "flash_forward<";
  CHECK_MSG(strncmp(r.kernel, family, strlen(family)) == 0, "%s: %s", json, r.kernel);
  CHECK_MSG(r.backward[0] == 0, "%s: %s", json, r.backward);
  fa_tensors_free(&r.t);
}

/* Few rows for many keys: a backward call by keys, whatever the number of processors. */
static const char plain[] = "{\"dtype\": \"bf16\", \"batch\": 2, \"heads_q\": 4, \"heads_kv\": 2, "
                            "\"seqlen_q\": 60, \"seqlen_k\": 200, "
                            "\"head_dim\": 64, \"mask\": {\"type\": \"causal\"}}";

static void test_choice(void) {
  expect_kernel(plain, 0, NULL, "hopper_forward_bf16_64");
  expect_kernel(plain, 0, "auto", "hopper_forward_bf16_64");
  expect_kernel(plain, 0, "off", "flash_forward_bf16_64");
  expect_kernel("{\"seqlen_q\": 20, \"head_dim\": 128}", 0, NULL, "hopper_forward_f16_128");
  expect_kernel("{\"seqlen_q\": 20, \"head_dim\": 96}", 0, NULL, "hopper_forward_f16_96");
  expect_kernel("{\"seqlen_q\": 20, \"head_dim\": 200}", 0, NULL, "hopper_forward_f16_256");
  expect_kernel("{\"seqlen_q\": 20, \"head_dim\": 64, \"softcap\": 3}", 0, NULL,
                "hopper_forward_f16_64_softcap");
  expect_kernel("{\"seqlen_q\": 20, \"head_dim\": 64, \"scale\": -1}", 0, NULL, "flash_forward_f16_64");
  expect_kernel("{\"seqlen_q\": 20, \"head_dim\": 64, \"strides\": {\"q\": {\"offset\": 1}}}", 0, NULL,
                "flash_forward_f16_64_general");
  expect_kernel("{\"cu_seqlens_q\": [0, 5, 20], \"cu_seqlens_k\": [0, 9, 20], \"head_dim\": 64}", 0, NULL,
                "hopper_forward_f16_64_varlen");
  expect_kernel("{\"seqlen_q\": 20, \"head_dim\": 64, \"alibi\": {\"slopes\": \"standard\"}}", 0, NULL,
                "hopper_forward_f16_64_alibi");
  expect_kernel("{\"seqlen_q\": 20, \"head_dim\": 64, \"alibi\": {\"slopes\": \"standard\"}, "
                "\"seqused_k\": [9]}",
                0, NULL, "hopper_forward_f16_64_alibi_varlen");
  expect_kernel("{\"seqlen_q\": 20, \"head_dim\": 128, \"softcap\": 3, \"dropout\": {\"p\": 0.3}}", 0, NULL,
                "hopper_forward_f16_128_several");
}

/* Forward and backward, as the host's; each map says that a kernel for sm_90a was launched. */
static void test_bits(void) {
  const unsigned both = FA_PASS_FORWARD | FA_PASS_BACKWARD;
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DK, FA_T_DV};
  fa_tensors host;
  ran r;
  run_host(plain, "hopper", both, &host);
  for (int on = 0; on < 2; ++on) {
    run_cuda(plain, 0, on ? "auto" : "off", both, &r);
    CHECK_MSG(fake.n_maps == (on ? 4 + 6 : 0), "%d maps", fake.n_maps);
    CHECK_MSG(strcmp(r.backward, on ? "hopper_backward" : "flash_backward") == 0, "%s", r.backward);
    for (size_t i = 0; on && i < sizeof ids / sizeof *ids; ++i)
      CHECK_MSG(same(&r.t, &host, ids[i]), "%s", fa_tensor_id_name(ids[i]));
    fa_tensors_free(&r.t);
  }
  fa_tensors_free(&host);
}

/* By queries only where a block by keys would have more to do than its rate makes up for: many rows for few keys, or query
 * heads that share them. */
static void expect_backward(const char *json, const char *name) {
  ran r;
  run_cuda(json, 0, NULL, FA_PASS_FORWARD | FA_PASS_BACKWARD, &r);
  CHECK_MSG(strcmp(r.backward, name) == 0, "%s: %s is not %s", json, r.backward, name);
  fa_tensors_free(&r.t);
}

static void test_by_keys(void) {
  expect_backward("{\"seqlen_q\": 128, \"seqlen_k\": 128, \"head_dim\": 64}", "hopper_backward");
  expect_backward("{\"seqlen_q\": 128, \"seqlen_k\": 128, \"head_dim\": 128}", "hopper_backward");
  expect_backward("{\"seqlen_q\": 257, \"seqlen_k\": 128, \"head_dim\": 64}", "flash_backward");
  expect_backward("{\"seqlen_q\": 128, \"seqlen_k\": 128, \"head_dim\": 64, \"heads_q\": 4, \"heads_kv\": 1}",
                  "flash_backward");
}

/* What does the work where the chosen kernels cannot: reports name that. */
static void test_others_ran(void) {
  fa_case c;
  fa_tensors t;
  cuda_load(plain, &c, &t);
  fake_cuda_start();
  fake.no_maps = true;
  unsetenv("FA_HOPPER");
  const cuda_ran r = cuda_run_alone(&fa_backend_cuda, &c.problem, &t, FA_PASS_FORWARD | FA_PASS_BACKWARD);
  CHECK_MSG(r.status == FA_OK && r.out.state == FA_SUBJECT_OK, "%s%s", r.out.text, r.err.text);
  CHECK_MSG(strncmp(r.out.kernel, "flash_forward<", 14) == 0, "%s", r.out.kernel);
  CHECK_MSG(strcmp(r.out.backward_kernel, "flash_backward") == 0, "%s", r.out.backward_kernel);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

static void test_policy(void) {
  void *self = NULL;
  fa_error err = {""};
  fa_kernel_device target;
  const fa_cuda_device device = {.major = 9, .n_processors = 132};
  fake_cuda_start();
  setenv("FA_HOPPER", "on", 1);
  CHECK_MSG(fa_backend_cuda.open(NULL, &self, &err) == FA_ERR_INPUT &&
                strstr(err.text, "FA_HOPPER=on: off or auto"),
            "%s", err.text);
  CHECK(fa_cuda_target(&device, &target, &err) == FA_ERR_INPUT);
  setenv("FA_HOPPER", "off", 1);
  CHECK(fa_cuda_target(&device, &target, &err) == FA_OK && target.hopper == 0);
  setenv("FA_HOPPER", "", 1); /* as if it were not there */
  CHECK(fa_cuda_target(&device, &target, &err) == FA_OK && target.hopper == 132);
}

int main(void) {
  test_choice();
  test_bits();
  test_by_keys();
  test_others_ran();
  test_policy();
  return check_done();
}
