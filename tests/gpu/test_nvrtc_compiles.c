/* The real NVRTC, if there is one (it needs no GPU): kernels outside the build's list compile from the
 * sources inside this program, without spills and without a warning of ptxas, and load quickly from disk
 * afterwards. */
#include "gpu/modules/cache.h"
#include "gpu/modules/rtc.h"
#include "tests/support/check.h"
#include "tests/support/flex_units.h"
#include "tests/support/kernel_units.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Every "N bytes spill" must say 0, and there must be at least one; counted, so that a missing report
 * fails. */
static bool log_is_clean(const char *log) {
  int n = 0;
  if (!log || strstr(log, "warning") || strstr(log, "C75")) return false;
  for (const char *at = log; (at = strstr(at, "bytes spill")); at += 11, ++n)
    if (at - log < 2 || at[-2] != '0' || (at[-3] >= '0' && at[-3] <= '9')) return false;
  return n >= 2;
}

/* Of a kernel with a call's expressions, which its first user waits for: what is larger takes half a minute. */
#define MOST_BYTES ((size_t)400000)

static void test_text(const char *name, const fa_kernel_recipe *recipe, const char *text, int major,
                      size_t most_bytes) {
  char only[300];
  const char *const options[] = {only, "--ptxas-options=-v"};
  const fa_rtc_unit unit = {.name = recipe->source, .text = text, .options = options, .n_options = 2};
  fa_rtc_code code, again;
  fa_error err = {""};
  snprintf(only, sizeof only, "-DFA_ONLY=%s", recipe->only);
  REQUIRE(unit.text);
  const double begin = now_ms();
  const fa_status status = fa_rtc_build(&unit, major, 0, &code, &err);
  const double compiled = now_ms();
  CHECK_MSG(status == FA_OK, "%s", err.text);
  if (status != FA_OK) return;
  CHECK(!code.from_disk && code.cubin_bytes > 1000 && memcmp(code.cubin, "\177ELF", 4) == 0);
  CHECK_MSG(code.cubin_bytes <= most_bytes, "%s: %zu bytes", name, code.cubin_bytes);
  CHECK_MSG(log_is_clean(code.log), "%s: %s", name, code.log);
  CHECK(fa_rtc_build(&unit, major, 0, &again, &err) == FA_OK);
  const double read = now_ms();
  CHECK(again.from_disk && again.cubin_bytes == code.cubin_bytes &&
        memcmp(again.cubin, code.cubin, code.cubin_bytes) == 0);
  printf("%-44s sm_%d0  %5.0f ms, from disk %4.1f ms, %zu bytes\n", name, major, compiled - begin,
         read - compiled, code.cubin_bytes);
  fa_rtc_code_free(&code);
  fa_rtc_code_free(&again);
}

static void test_unit(const kernel_unit *u, int major) {
  test_text(u->name, &u->recipe, fa_kernel_source_find(u->recipe.source), major, SIZE_MAX);
}

/* Kernels with a call's expressions: every function, and a table whose gradient is wanted; ten reads; on sm_80 the
 * portable ones. */
static void test_flex(void) {
  static const char all[] = "sin(score) + cos(score) + sqrt(abs(score)) + log(score * score + 1.0) + 20 * "
                            "tanh(exp(-score) / 20) + table[h, max(q_idx - kv_idx, 0) % 9] + floor(score)";
  static const char kinds[] =
      "(keep[q_idx] ? score : 0.5 * score) + half[h, kv_idx % 9] * brain[h, q_idx % 9]";
  static const char ten[] =
      "score + slopes[0] + slopes[1] + slopes[2] + slopes[3] + table[h, 0] + table[h, 1] + "
      "table[h, 2] + half[h, 3] + brain[h, 4] + table[h, 5]";
  static const struct {
    flex_units_call call;
    int major, n;
  } calls[] = {{{FA_BF16, 64, all, "doc[q_idx] == doc[kv_idx]", false, true, 0}, 9, 2},
               {{FA_F16, 128, "score + slopes[h] * (kv_idx - q_idx)", NULL, true, true, 0}, 9, 1},
               {{FA_BF16, 64, kinds, "doc[q_idx] == id[kv_idx]", false, true, 0}, 9, 2},
               {{FA_F16, 128, "score + half[h, 2] * (kv_idx - q_idx)", "keep[kv_idx]", true, true, 0}, 9, 2},
               {{FA_BF16, 256, "20 * tanh(score / 20)", "doc[q_idx] >= doc[kv_idx]", true, true, 0}, 9, 2},
               {{FA_F16, 80, ten, NULL, true, false, 600}, 9, 2},
               {{FA_BF16, 96, all, NULL, true, false, 0}, 8, 2}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    flex_units u;
    fa_error err = {""};
    const bool made = flex_units_of(&calls[i].call, &u, &err);
    CHECK_MSG(made && u.n == calls[i].n, "call %zu: %d kernels %s", i, u.n, err.text);
    for (int k = 0; k < u.n; ++k) {
      const fa_cuda_flex_wanted *w = &u.unit[k];
      char *text = fa_flex_unit_text(&w->unit, fa_kernel_source_find(w->recipe->source));
      test_text(w->name, w->recipe, text, calls[i].major, MOST_BYTES);
      free(text);
    }
    flex_units_free(&u);
  }
}

static void test_log_check(void) {
  CHECK(log_is_clean("ptxas info: 0 bytes spill stores, 0 bytes spill loads"));
  CHECK(!log_is_clean("ptxas info: 8 bytes spill stores, 0 bytes spill loads"));
  CHECK(!log_is_clean("ptxas info: 0 bytes spill stores, 40 bytes spill loads"));
  CHECK(!log_is_clean("0 bytes spill stores, 0 bytes spill loads\nwarning: what ptxas did not like"));
  CHECK(!log_is_clean("(C7510) Potential Performance Loss: 0 bytes spill stores, 0 bytes spill loads"));
  CHECK(!log_is_clean("") && !log_is_clean(NULL));
}

static void test_bad_unit(void) {
  const fa_rtc_unit unit = {.name = "unit",
                            .text = "#include \"gpu/kernels/parts/tile.cuh\"\nint f() { return nothing; }\n"};
  fa_rtc_code code;
  fa_error err = {""};
  CHECK(fa_rtc_build(&unit, 9, 0, &code, &err) == FA_ERR_UNSUPPORTED);
  CHECK_MSG(strstr(err.text, "compiling unit: NVRTC_ERROR_COMPILATION: unit(2): error"), "%s", err.text);
}

int main(void) {
  fa_ahead_replace(NULL, 0); /* what the build has is not compiled */
  char folder[] = "/tmp/fa-nvrtc-XXXXXX", command[64];
  fa_error err = {""};
  if (!fa_nvrtc_get(NULL, &err)) {
    printf("skipped: %s\n", err.text);
    return 77;
  }
  REQUIRE(mkdtemp(folder));
  setenv("FA_CACHE_DIR", folder, 1);
  test_log_check();
  test_bad_unit();
  const struct {
    fa_dtype dtype;
    int head_dim;
    unit_feature feature;
    bool backward;
    int major;
    bool all;          /* its first two, although they are in the build too */
    int n_at_run_time; /* of its kernels outside the build */
  } calls[] = {
      {FA_BF16, 96, UNIT_DROPOUT, false, 9, false, 1}, {FA_F16, 256, UNIT_SOFTCAP, false, 8, false, 1},
      {FA_F16, 32, UNIT_DROPOUT, true, 9, true, 1},    {FA_BF16, 192, UNIT_SOFTCAP, true, 9, false, 1},
      {FA_F32, 64, UNIT_PLAIN, false, 9, true, 0},     {FA_F32, 300, UNIT_PLAIN, false, 8, true, 0},
      {FA_F32, 128, UNIT_PLAIN, true, 9, true, 0}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    kernel_unit units[8];
    int n_at_run_time = 0;
    const int n =
        kernel_units_of(calls[i].dtype, calls[i].head_dim, calls[i].feature, calls[i].backward, units, 8);
    for (int k = 0; k < n; ++k) {
      if (units[k].recipe.is_ahead_of_time && !calls[i].all) continue;
      n_at_run_time += !units[k].recipe.is_ahead_of_time;
      if (k < 2 || !units[k].recipe.is_ahead_of_time) test_unit(&units[k], calls[i].major);
    }
    CHECK_MSG(n_at_run_time == calls[i].n_at_run_time, "call %zu: %d kernels are not ahead of time", i,
              n_at_run_time);
  }
  kernel_unit units[3];
  const int n = kernel_units_over_cache(FA_BF16, 128, UNIT_PLAIN, units, 3);
  CHECK(n == 3);
  for (int k = 0; k < n; ++k) test_unit(&units[k], k == 1 ? 8 : 9);
  test_flex();
  snprintf(command, sizeof command, "rm -rf %s", folder);
  CHECK(system(command) == 0);
  return check_done();
}
