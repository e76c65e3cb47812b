/* Arbitrary arguments of gpu/fa.h (fuzz/inputs/call_input.h): the maker of plans refuses them with a message, or makes a plan
 * that a driver would launch, the same for every workspace, and that needs no more memory than it says. */
#include "fuzz/inputs/call_input.h"
#include "fuzz/inputs/fuzzer.h"
#include "fuzz/inputs/plan_faults.h"

#include <string.h>

/* Where nothing lies. */
#define ONE_WORKSPACE ((uintptr_t)0x6b3d52a49f00)
#define OTHER_WORKSPACE ((uintptr_t)0x6d1f9c37e200)

static fa_status make(const fa_call_input *x, uintptr_t workspace, fa_plan *out, fa_error *err) {
  fa_call call = x->call;
  call.workspace = (void *)workspace; /* NOLINT: never followed */
  memset(out, 0, sizeof *out);
  return fa_plan_make(&call, x->device, out, err);
}

static void check_refusal(fa_status status, const fa_error *err) {
  FA_FUZZ_CHECK(status == FA_ERR_INPUT || status == FA_ERR_UNSUPPORTED, "status %d: %s", (int)status,
                err->text);
  FA_FUZZ_CHECK(err->text[0], "refused without a word");
  for (const char *s = err->text; *s; ++s)
    FA_FUZZ_CHECK((unsigned char)*s >= 0x20 && *s != 0x7f, "the message is no line of text: %s", err->text);
}

static void check_plan(const fa_call_input *x, const fa_plan *sizes) {
  static fa_plan one, other;
  fa_error err = {""};
  FA_FUZZ_CHECK(fa_plan_is_sound(sizes, x->device, &err), "%s", err.text);
  FA_FUZZ_CHECK(make(x, ONE_WORKSPACE, &one, &err) == FA_OK, "with a workspace: %s", err.text);
  FA_FUZZ_CHECK(make(x, OTHER_WORKSPACE, &other, &err) == FA_OK, "with a workspace: %s", err.text);
  FA_FUZZ_CHECK(one.workspace_bytes == sizes->workspace_bytes, "%zu bytes of workspace, and with one %zu",
                sizes->workspace_bytes, one.workspace_bytes);
  FA_FUZZ_CHECK(fa_plan_is_sound(&one, x->device, &err), "%s", err.text);
  FA_FUZZ_CHECK(
      fa_plans_are_alike(&one, (const char *)ONE_WORKSPACE, &other, (const char *)OTHER_WORKSPACE, &err),
      "%s", err.text);
  if (x->call.kind != FA_CALL_BLOCKS)
    FA_FUZZ_CHECK(fa_plan_supported(&x->call, x->device, &err) == FA_OK, "planned, and not supported: %s",
                  err.text);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return fa_call_input_mutate(data, size, max_size, seed, LLVMFuzzerMutate);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fa_call_input x; /* keeps the programs */
  static fa_plan plan;
  fa_error err = {""};
  fa_call_input_read(data, size, &x);
  const fa_status status = make(&x, 0, &plan, &err);
  if (status == FA_OK)
    check_plan(&x, &plan);
  else
    check_refusal(status, &err);
  return 0;
}
