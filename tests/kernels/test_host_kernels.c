/* The case files reach every kernel, on a device with large and on one with small shared memory:
 * cases/kernels.json, for sm_90a cases/hopper.json and cases/mla.json, for a cache cases/kvcache.json, for the memory-efficient
 * family cases/memeff.json, and for expressions cases/flex.json. What they compute is judged elsewhere.
 * fa_simt_run is wrapped (CMakeLists.txt) to see what is launched. */
#include "cases/codec/file.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "gpu/backend.h"
#include "gpu/kernels/registry/kernel.h"
#include "gpu/simt/launch.h"
#include "tests/support/check.h"

#include <string.h>

enum { MAX_LAUNCHED = 2048 };
static char launched[MAX_LAUNCHED][96];
static int n_launched;

static bool was_launched(const char *name) {
  for (int i = 0; i < n_launched; ++i)
    if (strcmp(launched[i], name) == 0) return true;
  return false;
}

fa_status __real_fa_simt_run(const fa_simt_launch *launch, fa_simt_report *out, fa_error *err);
fa_status __wrap_fa_simt_run(const fa_simt_launch *launch, fa_simt_report *out, fa_error *err);
fa_status __wrap_fa_simt_run(const fa_simt_launch *launch, fa_simt_report *out, fa_error *err) {
  if (!was_launched(launch->name) && n_launched < MAX_LAUNCHED)
    snprintf(launched[n_launched++], sizeof *launched, "%s", launch->name);
  return __real_fa_simt_run(launch, out, err);
}

/* Those cases that are wanted. */
static void run_some(const fa_case_list *list, const char *device, bool backward,
                     bool (*wanted)(const fa_problem *)) {
  void *self = NULL;
  fa_error err = {""};
  CHECK(fa_backend_host.open(device, &self, &err) == FA_OK);
  for (int64_t i = 0; i < list->n; ++i) {
    const fa_case *c = &list->v[i];
    const fa_run_options opt = {
        .passes = FA_PASS_FORWARD | (backward && c->problem.backward ? FA_PASS_BACKWARD : 0), .n_threads = 2};
    fa_tensors t;
    fa_outcome out = {.state = FA_SUBJECT_OK};
    if (!wanted(&c->problem)) continue;
    fa_status status = fa_case_build(c, &t, &err);
    CHECK(status == FA_OK);
    if (status != FA_OK) continue;
    status = fa_backend_host.run(self, &c->problem, &t, &opt, &out, &err);
    CHECK_MSG(status == FA_OK && out.state == FA_SUBJECT_OK, "%s: %s", c->name,
              status == FA_OK ? out.text : err.text);
    fa_tensors_free(&t);
  }
  fa_backend_host.close(self);
}

static bool is_any(const fa_problem *p) {
  (void)p;
  return true;
}

static bool appends(const fa_problem *p) {
  return p->kvcache.n_new > 0;
}

static bool is_cache(const fa_problem *p) {
  return p->family == FA_KVCACHE && p->quantized.dtype == FA_I8;
}

static void run_all(const fa_case_list *list, const char *device, bool backward) {
  run_some(list, device, backward, is_any);
}

/* A source of kernels: those that are compiled ahead of time, or for the expressions of a call. */
typedef struct source {
  const char *name;
  bool of_calls;
} source;

/* Kernels of these sources that were never launched; those for devices alone do not count. */
static int missing(const source *sources, int n_sources, bool say) {
  const fa_kernel *k;
  int n = 0;
  for (int i = 0; (k = fa_kernel_at(i)) != NULL; ++i) {
    bool counts = false;
    for (int s = 0; s < n_sources; ++s)
      counts |= k->ability.flex == sources[s].of_calls && strcmp(k->recipe.source, sources[s].name) == 0;
    if (!counts || !k->entry || was_launched(k->name)) continue;
    ++n;
    if (say) fprintf(stderr, "never launched: %s\n", k->name);
  }
  return n;
}

static void load(const char *path, fa_case_list *list) {
  fa_error err = {""};
  const fa_status status = fa_case_file_load(path, NULL, list, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
}

static void check_arguments(void) {
  static const char *const wrong[] = {
      "shared", "shared=0", "shared=228", "processors=-1", "x=3", "hopper=", "hopper=x", "shared=99;", "3"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    void *self = NULL;
    fa_error err = {""};
    CHECK_MSG(fa_backend_host.open(wrong[i], &self, &err) == FA_ERR_INPUT && strstr(err.text, "shared=KIB"),
              "%s", wrong[i]);
  }
}

/* Kernels of the other families. Those with expressions are compiled per call, but listed too. */
static void test_families(void) {
  static const source of_memeff[] = {{"memeff/forward", false}, {"memeff/backward", false}};
  static const source flex[] = {{"flex/forward", true},
                                {"flex/forward_short", true},
                                {"flex/backward", true},
                                {"flex/exact", false},
                                {"flex/mask", true}};
  static const source of_sm90[] = {{"hopper_backward/main", true}};
  static const source lists[] = {{"flex/lists", false}};
  fa_case_list memeff = {0}, sinks = {0}, mods = {0};
  load("cases/memeff.json", &memeff);
  CHECK(missing(of_memeff, 2, false) > 0);
  run_all(&memeff, NULL, true);
  CHECK(missing(of_memeff, 2, false) == 3); /* those for gradients of sinks */
  load("cases/sinks.json", &sinks);
  run_all(&sinks, NULL, true);
  CHECK(missing(of_memeff, 2, true) == 0);
  load("cases/flex.json", &mods);
  CHECK(missing(flex, 5, false) > 0);
  run_all(&mods, NULL, true);
  CHECK(missing(flex, 5, true) == 0);
  CHECK(missing(of_sm90, 1, false) > 0);
  run_all(&mods, "hopper", true);
  CHECK(missing(of_sm90, 1, true) == 0);
  /* flex_lists_blocks: only fa_flex_blocks launches it, which no case calls (test_flex_lists.c) */
  CHECK(missing(lists, 1, false) == 1 && !was_launched("flex_lists_blocks"));
  fa_case_list_free(&memeff);
  fa_case_list_free(&sinks);
  fa_case_list_free(&mods);
}

int main(void) {
  static const source flash[] = {{"flash/forward", false}, {"flash/backward", false}};
  static const source hopper[] = {{"hopper/forward", false},
                                  {"hopper/forward", true},
                                  {"hopper_backward/main", false},
                                  {"hopper_backward/pair", false},
                                  {"hopper_backward/pair", true}};
  static const source cache[] = {{"cache/forward", false}, {"cache/append", false}, {"cache/gather", false}};
  static const source latent[] = {{"hopper_latent/main", false}};
  fa_case_list list = {0}, of_hopper = {0}, of_latent = {0}, over_cache = {0}, gathered = {0}, eight = {0},
               amax = {0};
  load("cases/kernels.json", &list);
  run_all(&list, NULL, true);
  CHECK(missing(flash, 2, false) > 0); /* those for small devices: the check can fail */
  run_all(&list, "shared=99", true);
  CHECK(missing(flash, 2, true) == 0);
  CHECK(missing(hopper, 5, false) > 0);
  load("cases/hopper.json", &of_hopper);
  run_all(&of_hopper, "hopper", true);
  CHECK(missing(hopper, 5, true) == 0);
  load("cases/mla.json", &of_latent);
  CHECK(missing(latent, 1, false) > 0);
  run_all(&of_latent, "hopper", false);
  CHECK(missing(latent, 1, true) == 0);
  load("cases/kvcache.json", &over_cache);
  CHECK(missing(cache, 3, false) > 0);
  run_all(&over_cache, NULL, true);
  CHECK(missing(cache, 3, false) ==
        9); /* what appends by elements in bf16 and f32, or to 8 bits, or clears amax */
  load("cases/kvcache_mods.json", &gathered);
  run_all(&gathered, NULL, true);
  load("cases/quantized_cache.json", &eight);
  run_some(&eight, NULL, false, appends);
  CHECK(missing(cache, 3, false) == 1);
  load("cases/amax.json", &amax);
  run_some(&amax, NULL, false, is_cache);
  CHECK(missing(cache, 3, true) == 0);
  fa_case_list_free(&list);
  fa_case_list_free(&of_hopper);
  fa_case_list_free(&of_latent);
  fa_case_list_free(&over_cache);
  fa_case_list_free(&gathered);
  fa_case_list_free(&eight);
  fa_case_list_free(&amax);
  test_families();
  check_arguments();
  return check_done();
}
