/* Arbitrary bytes as waiver files: what is accepted waives only failures of the kind that it names, until its
 * expiry date; everything else is rejected with a message. */
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/campaign/waivers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Regular expressions are compiled by the C library, and some exhaust memory: "a{255}{255}", "a+++++++++".
 * Only the user can write them, so they are skipped here. */
static bool may_take_forever(const uint8_t *text, size_t n) {
  int repeats = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint8_t next = i + 1 < n ? text[i + 1] : 0;
    if (text[i] == '{' && next >= '0' && next <= '9') return true;
    if (text[i] == '\\' && next == 'u') return true; /* any of these, escaped */
    repeats += text[i] == '*' || text[i] == '+' || text[i] == '\\';
  }
  return repeats > 8;
}

static fa_result *result_of(fa_state state) {
  static fa_result r; /* large */
  fa_result_init(&r);
  r.state = state;
  r.name = strdup("thirteen");
  FA_ASSERT(r.name);
  snprintf(r.backend, sizeof r.backend, "faulty:wrong_o");
  r.n_verdicts = state == FA_FAIL ? 2 : 0;
  r.verdict[0].id = FA_T_O;
  r.verdict[0].fail = true;
  r.verdict[1].id = FA_T_DQ;
  return &r;
}

static void check_use(fa_waivers *w, bool all_expired) {
  static const fa_state states[] = {FA_PASS, FA_FAIL, FA_CRASH, FA_SKIP, FA_ERROR, FA_VACUOUS};
  fa_problem p;
  char *text = NULL;
  size_t n = 0;
  fa_problem_init(&p);
  for (size_t s = 0; s < sizeof states / sizeof *states; ++s) {
    fa_result *r = result_of(states[s]);
    fa_waivers_apply(w, &p, "CPU", r);
    FA_FUZZ_CHECK(!r->waived || fa_state_is_failure(states[s]), "%s is waived", fa_state_name(states[s]));
    FA_FUZZ_CHECK(!r->waived || !all_expired, "an expired waiver waives: %s", r->waiver);
    FA_FUZZ_CHECK(!r->waived || r->waiver[0], "no reason for %s", fa_state_name(states[s]));
    fa_result_free(r);
  }
  FILE *out = open_memstream(&text, &n);
  FA_ASSERT(out);
  const bool fails = fa_waivers_conclude(w, true, out);
  FA_ASSERT(fclose(out) == 0);
  FA_FUZZ_CHECK(!fails || n > 0, "it fails and does not say why");
  FA_FUZZ_CHECK(!fails || !all_expired, "an expired waiver fails the run: %s", text);
  free(text);
  fa_problem_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const days[] = {"2026-11-21", "9999-99-99"}; /* the second: all have expired */
  char *text = fa_fuzzer_text(data, size);
  for (int d = 0; d < 2 && !may_take_forever(data, size); ++d) {
    fa_waivers *w = NULL;
    fa_error err = {""};
    if (fa_waivers_parse(text, size, "fuzz.json", days[d], &w, &err) == FA_OK) {
      check_use(w, d == 1);
      fa_waivers_free(w);
    } else {
      FA_FUZZ_CHECK(w == NULL && strncmp(err.text, "fuzz.json", 9) == 0, "no file in \"%s\"", err.text);
    }
  }
  free(text);
  return 0;
}
