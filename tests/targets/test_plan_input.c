/* What plan_fuzzer asks of plans: each fault that it knows is seen in a plan that was sound before, and inputs reach calls of
 * every kind. */
#include "cases/base/rng.h"
#include "fuzz/inputs/call_input.h"
#include "fuzz/inputs/plan_faults.h"
#include "tests/support/check.h"

#include <string.h>

static fa_call_input input; /* keeps its programs */

static const fa_kernel_device h100 = {.max_shared_bytes = 232448, .compiles = 1, .hopper = 132};

static fa_status plan_of(const uint8_t *bytes, size_t n, char *workspace, fa_plan *out, fa_error *err) {
  fa_call_input_read(bytes, n, &input);
  fa_call call = input.call;
  call.workspace = workspace;
  memset(out, 0, sizeof *out);
  return fa_plan_make(&call, input.device, out, err);
}

/* ---- faults ---- */

static fa_plan plan;

static fa_tensor_box box_of(const fa_launch *l) {
  fa_tensor_box x;
  memcpy(&x, l->params, sizeof x);
  return x;
}

static void set_box(fa_launch *l, fa_tensor_box x) {
  memcpy(l->params, &x, sizeof x);
}

#define BREAK(change, words)                                                                                 \
  do {                                                                                                       \
    static const uint8_t hopper[] = {FA_CALL_FORWARD, 0x18, 0, 0};                                           \
    fa_error why = {""};                                                                                     \
    REQUIRE(plan_of(hopper, sizeof hopper, NULL, &plan, &why) == FA_OK && plan.is_hopper);                   \
    fa_launch *l = &plan.launch[0];                                                                          \
    fa_tensor_box box = box_of(l);                                                                           \
    CHECK_MSG(fa_plan_is_sound(&plan, &h100, &why), "%s", why.text);                                         \
    change;                                                                                                  \
    if (l->n_maps && l->params) set_box(l, box);                                                             \
    CHECK(!fa_plan_is_sound(&plan, &h100, &why));                                                            \
    CHECK_MSG(strstr(why.text, words), "\"%s\" is not \"%s\"", why.text, words);                             \
  } while (0)

static void test_faults(void) {
  BREAK(plan.n_launches = 13, "13 launches");
  BREAK(plan.workspace_bytes = ~(size_t)0, "a workspace of");
  BREAK(plan.n_splits = 0, "0 splits");
  BREAK(l->kernel.name = "no_such_kernel", "there is no kernel \"no_such_kernel\"");
  BREAK(l->kernel.name = NULL, "there is no kernel");
  BREAK(l->grid[0] = 0, "grid.x = 0");
  BREAK(l->grid[0] = 0x80000000u, "grid.x = 2147483648");
  BREAK(l->grid[1] = 65536, "grid[1] = 65536");
  BREAK(l->grid[2] = 0, "grid[2] = 0");
  BREAK(l->n_threads = 1056, "1056 threads");
  BREAK(l->n_threads = 100, "100 threads");
  BREAK(l->shared_bytes = h100.max_shared_bytes + 1, "bytes of shared memory of");
  BREAK((l->cluster = 2, l->grid[0] = 3), "3 blocks in clusters of 2");
  BREAK(l->cluster = 16, "in clusters of 16");
  BREAK(l->writes = 0, "it writes 0");
  BREAK(l->writes |= FA_WRITES(125), "it writes");
  BREAK(l->params = (char *)l->params + 64, "not in the plan");
  BREAK(plan.params_bytes = 64, "not in the plan");
  BREAK(l->n_maps = 1, "1 maps of");
  BREAK(box.base = (const char *)box.base + 2, "a map begins at");
  BREAK(box.base = NULL, "a map begins at");
  BREAK(box.size[2] = 0, "0 elements along axis 2");
  BREAK(box.size[1] = (uint64_t)1 << 33, "elements along axis 1");
  BREAK(box.box[3] = 257, "box has 257 elements along axis 3");
  BREAK(box.bytes[0] = 24, "axis 1 steps over 24 bytes");
  BREAK(box.bytes[2] = (uint64_t)1 << 40, "axis 3 steps over");
  BREAK(box.swizzle = 9, "swizzle is 9");
}

/* ---- two plans of one call ---- */

static char one[256], other[256];
static fa_plan second;

/* Where the last part of the workspace begins that a launch is told of. */
static size_t last_part(void) {
  size_t last = 0;
  for (size_t at = 0; at + 8 <= plan.params_bytes; at += 8) {
    uint64_t a, b;
    memcpy(&a, plan.params + at, 8);
    memcpy(&b, second.params + at, 8);
    if (a != b && a - (uintptr_t)one > last) last = a - (uintptr_t)one;
  }
  return last;
}

#define DIFFER(change, words)                                                                                \
  do {                                                                                                       \
    static const uint8_t backward[] = {FA_CALL_BACKWARD, 0, 0, 0};                                           \
    fa_error why = {""};                                                                                     \
    REQUIRE(plan_of(backward, sizeof backward, one, &plan, &why) == FA_OK);                                  \
    REQUIRE(plan_of(backward, sizeof backward, other, &second, &why) == FA_OK);                              \
    CHECK_MSG(fa_plans_are_alike(&plan, one, &second, other, &why), "%s", why.text);                         \
    change;                                                                                                  \
    CHECK(!fa_plans_are_alike(&plan, one, &second, other, &why));                                            \
    CHECK_MSG(strstr(why.text, words), "\"%s\" is not \"%s\"", why.text, words);                             \
  } while (0)

static void test_two_plans(void) {
  DIFFER(second.workspace_bytes += 256, "a workspace of");
  DIFFER(--second.n_launches, "launches, then");
  DIFFER(second.launch[1].kernel.name = "else", ", then else");
  DIFFER(++second.launch[1].grid[0], "launched differently");
  DIFFER(++second.params[0], "depends on where the workspace lies");
  /* What the kernels need is more than what the plan says. */
  DIFFER(plan.workspace_bytes = second.workspace_bytes = last_part(), "bytes into a workspace of");
  DIFFER(plan.workspace_bytes = second.workspace_bytes = 256, "bytes into a workspace of 256");
}

/* ---- inputs ---- */

/* Any bytes are a call that is planned or refused, and every kind of call is planned. */
static void test_any_bytes(void) {
  int n_planned[FA_CALL_INPUT_KINDS] = {0}, n_refused = 0;
  fa_rng r = fa_rng_make(21, 1);
  for (int i = 0; i < 20000; ++i) {
    uint8_t bytes[40];
    const size_t n = (size_t)fa_rng_below(&r, i % 4 ? 9 : (int64_t)sizeof bytes);
    for (size_t k = 0; k < n; ++k) bytes[k] = (uint8_t)fa_rng_next(&r);
    if (n > 3) bytes[3] = i % 3 ? 0 : bytes[3], bytes[2] &= (uint8_t)fa_rng_next(&r);
    fa_error err = {""};
    const fa_status status = plan_of(bytes, n, NULL, &plan, &err);
    CHECK(status == FA_OK || status == FA_ERR_INPUT || status == FA_ERR_UNSUPPORTED);
    if (status == FA_OK) ++n_planned[input.call.kind];
    n_refused += status != FA_OK;
  }
  for (int k = 0; k < FA_CALL_INPUT_KINDS; ++k)
    CHECK_MSG(n_planned[k] > 50, "kind %d: %d plans", k, n_planned[k]);
  CHECK(n_refused > 1000);
}

/* Each change reaches its argument and no other, in calls that are the same otherwise. */
static void test_changes(void) {
  static fa_call_input plain;
  for (int i = 0; i < fa_call_input_arguments(); ++i) {
    const uint8_t bytes[] = {FA_CALL_FORWARD, 0, 255, 255, (uint8_t)i, 1, 7, 0};
    size_t n_changed = 0;
    fa_call_input_read(bytes, FA_CALL_INPUT_HEAD, &plain);
    fa_call_input_read(bytes, sizeof bytes, &input);
    const unsigned char *a = (const unsigned char *)&plain, *b = (const unsigned char *)&input;
    for (size_t k = offsetof(fa_call_input, a); k < offsetof(fa_call_input, program); ++k)
      n_changed += a[k] != b[k];
    n_changed += plain.which_program != input.which_program || plain.without != input.without;
    CHECK_MSG(n_changed > 0, "argument %d does not change", i);
  }
  fa_call_input_free(&plain);
}

static size_t raw_mutate(uint8_t *data, size_t size, size_t max_size) {
  if (size < max_size) data[size++] = 0x5a;
  return size;
}

/* Every argument is named in time, and inputs stay within their size. */
static void test_mutations(void) {
  uint8_t a[68] = {0};
  int named[256] = {0}, kinds[FA_CALL_INPUT_KINDS] = {0};
  size_t size = 0;
  for (unsigned seed = 0; seed < 20000; ++seed) {
    size = fa_call_input_mutate(a, size, sizeof a, seed, raw_mutate);
    REQUIRE(size <= sizeof a);
    if (size) ++kinds[a[0] % FA_CALL_INPUT_KINDS];
    for (size_t at = FA_CALL_INPUT_HEAD; at + FA_CALL_INPUT_CHANGE <= size; at += FA_CALL_INPUT_CHANGE)
      ++named[a[at]];
  }
  for (int i = 0; i < fa_call_input_arguments(); ++i)
    CHECK_MSG(named[i] > 0, "argument %d is never changed", i);
  for (int k = 0; k < FA_CALL_INPUT_KINDS; ++k) CHECK(kinds[k] > 0);
  CHECK(fa_call_input_mutate(a, 3, 3, 1, raw_mutate) == 3);
}

int main(void) {
  test_faults();
  test_two_plans();
  test_any_bytes();
  test_changes();
  test_mutations();
  fa_call_input_free(&input);
  return check_done();
}
