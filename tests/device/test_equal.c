/* The judge on a device, its kernels compiled as C++, against the judge on the CPU: every value and bound of random cases.
 *
 *   test_device_judge [KERNELS.so [eight] [CASE]]    with the kernels of that library: a copy with a planted fault, which is to be seen,
 *                                                    and then one without it on the case alone, a number, that has shown it; eight: with
 *                                                    operands of 8 bits alone */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "fuzz/generate/draw.h"
#include "tests/device/equal.h"
#include "tests/device/load.h"
#include "tests/support/check.h"
#include "tests/support/share.h"

#include <string.h>

/* A few cases of each: what they have in common with what the judge on a device takes. */
static const struct {
  const char *profile;
  int n;
} drawn[] = {{"rate-host", 12},  {"causal", 12}, {"varlen", 16},   {"window", 16},  {"dropout", 24},
             {"gqa", 16},        {"edge", 24},   {"layout", 12},   {"fills", 24},   {"masks", 24},
             {"everything", 24}, {"memeff", 16}, {"bias", 24},     {"kvcache", 24}, {"mla", 16},
             {"flex", 32},       {"sinks", 32},  {"quantized", 24}};

/* most_bytes: so little that a call is divided. large: as a large call is, in large tiles, and with inputs that come with the
 * turn that reads them. */
static fa_judge_machine *machine_of(const fa_judge_function *functions, size_t most_bytes, bool large) {
  fa_judge_machine *m = fa_judge_machine_host_new(functions, most_bytes);
  REQUIRE(m);
  if (large) m->wide_from = 1;
  if (large) m->turns_from = 1;
  return m;
}

/* machine: of three, each of which has its seed. In shares a day asks each of a fifth of its cases, and of each profile
 * somebody; a fifth, so that days four apart, on which sanitizers take part, come to all. */
static void compare_all(const fa_judge_function *functions, int machine, two_judges *to) {
  static const struct {
    size_t most_bytes;
    bool large;
  } of[] = {{0, false}, {(size_t)24 << 20, false}, {(size_t)64 << 20, true}};
  fa_judge_machine *m = machine_of(functions, of[machine].most_bytes, of[machine].large);
  for (size_t i = 0; i < sizeof drawn / sizeof *drawn; ++i)
    for (int n = 0; n < drawn[i].n && to->wrong == 0; ++n)
      if (fa_share_of_has(5, n + machine))
        compare_judges_on(drawn[i].profile, (uint64_t)machine + 1, n, m, to);
  fa_judge_machine_host_free(m);
}

/* Operands of 8 bits: every type and kind of descale, in caches, beside new keys and in rows that mix types. */
static void compare_eight(const fa_judge_function *functions, two_judges *to) {
  static const char *const files[] = {"cases/quantized_cache.json", "cases/mixed_cache.json",
                                      "cases/quantized.json"};
  fa_judge_machine *m = machine_of(functions, 0, false);
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    fa_case_list cases = {0};
    fa_error err = {""};
    CHECK_MSG(fa_case_file_load(files[i], fa_generate, &cases, &err) == FA_OK, "%s", err.text);
    for (int64_t n = 0; n < cases.n && to->wrong == 0; ++n) compare_judges(&cases.v[n], m, to);
    fa_case_list_free(&cases);
  }
  fa_judge_machine_host_free(m);
}

/* Block lists that leave out whole tiles of some rows. */
static void compare_unvisited(const fa_judge_function *functions, two_judges *to) {
  fa_judge_machine *m = fa_judge_machine_host_new(functions, 0);
  REQUIRE(m);
  compare_judges_on("flex", 1, 189, m, to);
  fa_judge_machine_host_free(m);
}

/* Rows whose sums are taken in parts, and several heads in a wave. large: in shares a day asks one of the calls so, and the other not. */
static void compare_long(const fa_judge_function *functions, size_t most_bytes, bool large, two_judges *to) {
  static const char *const texts[] = {
      "{\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":150,\"seqlen_k\":4500,\"head_dim\":72,\"dtype\":\"bf16\","
      "\"mask\":{\"type\":\"causal\"},\"backward\":true}",
      "{\"heads_q\":2,\"seqlen_q\":700,\"seqlen_k\":700,\"head_dim\":136,\"backward\":true}"};
  fa_judge_machine *m = machine_of(functions, most_bytes, large);
  for (int i = 0; i < (int)(sizeof texts / sizeof *texts) && to->wrong == 0; ++i) {
    fa_case c;
    fa_error err = {""};
    if (!fa_share_of_has(2, i + large)) continue;
    const fa_status status = fa_case_from_text(texts[i], &c, &err);
    CHECK_MSG(status == FA_OK, "%s", err.text);
    if (status != FA_OK) continue;
    compare_judges(&c, m, to);
    fa_case_free(&c);
  }
  fa_judge_machine_host_free(m);
}

/* What random cases seldom have: blocks of rows whose first key is not the sequence's, under an expression; a bias on a key that
 * a list names 512 times. */
static void compare_given(const fa_judge_function *functions, two_judges *to) {
  static const char *const texts[] = {
      "{\"family\":\"flex\",\"dtype\":\"f16\",\"seqlen_q\":600,\"head_dim\":16,\"mask\":{\"type\":\"window\","
      "\"left\":64,"
      "\"right\":0},\"score_mod\":\"score - 0.01 * kv_idx\",\"backward\":true}",
      "{\"family\":\"kvcache\",\"dtype\":\"f16\",\"batch\":2,\"heads_q\":4,\"seqlen_k\":63,\"bias\":{"
      "\"shape\":[\"b\",1,\"q\",\"k\"]},"
      "\"topk\":{\"k\":512,\"repeated\":0.5,\"beyond\":true,\"seed\":\"3\"},\"kvcache\":{\"len\":[1,39]}}"};
  fa_judge_machine *m = fa_judge_machine_host_new(functions, 0);
  REQUIRE(m);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    fa_case c;
    fa_error err = {""};
    CHECK_MSG(fa_case_from_text(texts[i], &c, &err) == FA_OK, "%s", err.text);
    compare_judges(&c, m, to);
    fa_case_free(&c);
  }
  fa_judge_machine_host_free(m);
}

static void compare_others(const fa_judge_function *functions, two_judges *to) {
  compare_given(functions, to);
  for (int machine = 0; machine < 3 && to->wrong == 0; ++machine) compare_all(functions, machine, to);
  if (to->wrong == 0) compare_long(functions, (size_t)128 << 20, false, to);
  if (to->wrong == 0) compare_long(functions, (size_t)224 << 20, true, to);
  if (to->wrong == 0) compare_unvisited(functions, to);
}

int main(int argc, char **argv) {
  const fa_judge_function *functions = load_kernels(argc > 1 ? argv[1] : NULL);
  const bool eight = argc > 2 && strcmp(argv[2], "eight") == 0;
  const char *number = argc > 2 + eight ? argv[2 + eight] : "0";
  two_judges all = {.only = atoll(number)};
  if (!eight) compare_others(functions, &all);
  if (all.wrong == 0) compare_eight(functions, &all);
  CHECK_MSG(all.wrong == 0, "%s", all.first_wrong);
  CHECK(all.only > 0 ? all.calls + all.refused > 0 : all.calls > 100 && all.elements > 1000000);
  if (all.failed_at > 0) fprintf(stderr, "case %lld has shown it\n", (long long)all.failed_at);
  printf("%lld calls, %lld left to the CPU; values differ by %.2g of a bound, bounds by %.2g\n",
         (long long)all.calls, (long long)all.refused, all.value, all.bound);
  return check_done();
}
