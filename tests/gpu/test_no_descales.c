/* A C caller may leave out descales, which no case does: then they are 1, and the call's bytes are those of descales that are. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "gpu/args/calls.h"
#include "gpu/host/device.h"
#include "gpu/host/launch.h"
#include "tests/support/check.h"

#include <string.h>

/* The plan of a call, with a workspace and without. */
static fa_status run(fa_call *call, const fa_host_device *device, const fa_tensors *t, fa_error *err) {
  const fa_run_options opt = {.passes = FA_PASS_FORWARD, .n_threads = 1};
  fa_host_scratch scratch;
  fa_outcome out = {0};
  fa_plan plan;
  REQUIRE(fa_plan_make(call, &device->limits, &plan, err) == FA_OK);
  REQUIRE(fa_host_scratch_alloc(plan.workspace_bytes, &opt, &scratch, err) == FA_OK);
  call->workspace = fa_buffer_payload(&scratch.buffer);
  REQUIRE(fa_plan_make(call, &device->limits, &plan, err) == FA_OK);
  const fa_status status = fa_host_run_plan(&plan, t, &scratch, &opt, &out, err);
  CHECK_MSG(out.state == FA_SUBJECT_OK, "%s", out.text);
  fa_host_scratch_free(&scratch);
  return status;
}

static void run_case(const char *text, const char *device, bool left_out, fa_case *c, fa_tensors *t) {
  fa_host_device d;
  fa_args args;
  const char *why = NULL;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(text, c, &err) == FA_OK, "%s", err.text);
  REQUIRE(fa_case_build(c, t, &err) == FA_OK && fa_host_device_parse(device, &d, &err) == FA_OK);
  REQUIRE(fa_args_make(&c->problem, t, false, d.n_processors, &args, &why, &err) == FA_OK && !why);
  if (left_out) args.a.q_descale = args.a.k_descale = args.a.v_descale = NULL;
  CHECK_MSG(run(&args.forward, &d, t, &err) == FA_OK, "%s", err.text);
  fa_args_free(&args);
}

static void check(const char *text, const char *device) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_K, FA_T_V};
  fa_case c[2];
  fa_tensors t[2];
  for (int i = 0; i < 2; ++i) run_case(text, device, i == 1, &c[i], &t[i]);
  for (int i = 0; i < 4; ++i) {
    const fa_tensor *a = &t[0].t[ids[i]], *b = &t[1].t[ids[i]];
    CHECK(memcmp(a->data, b->data, (size_t)fa_tensor_count(a) * fa_dtype_size(a->dtype)) == 0);
  }
  for (int i = 0; i < 2; ++i) fa_tensors_free(&t[i]), fa_case_free(&c[i]);
}

int main(void) {
  check(
      "{\"dtype\":\"bf16\",\"heads_q\":2,\"seqlen_q\":20,\"seqlen_k\":150,\"head_dim\":64,\"backward\":false,"
      "\"quantized\":{\"dtype\":\"e4m3\",\"values\":\"one\"}}",
      "hopper");
  check("{\"family\":\"kvcache\",\"dtype\":\"bf16\",\"heads_q\":2,\"seqlen_q\":3,\"seqlen_k\":40,\"head_"
        "dim\":64,"
        "\"kvcache\":{\"len\":[30],\"new\":3},\"quantized\":{\"dtype\":\"e4m3\",\"values\":\"one\","
        "\"quantize_new\":true}}",
        "");
  return check_done();
}
