/* Kernels that the build has compiled one by one: found by what is compiled, for the devices that they are for, and left alone where
 * everything is to be compiled at run time; and whether this build's are what calls ask for. */
#include "gpu/expr/unit.h"
#include "gpu/modules/rtc.h"
#include "tests/fake_cuda/nvrtc.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const options[] = {"-DFA_ONLY=FA_ENTRY(a,b)"};
static const fa_rtc_unit there = {"flash/forward", "FA_ONLY", options, 1};

/* A file of two: another unit's code before this one's. */
static struct {
  fa_ahead_head head;
  fa_ahead_entry entry[2];
  char code[2][8];
} made;

static void make_file(void) {
  memcpy(made.head.magic, FA_AHEAD_MAGIC, sizeof made.head.magic);
  made.head.n = 2;
  memset(made.entry[0].key, '0', FA_AHEAD_KEY_SIZE - 1);
  fa_rtc_unit_key(&there, made.entry[1].key);
  for (int i = 0; i < 2; ++i) {
    made.entry[i].at = (uint64_t)(made.code[i] - (char *)&made);
    made.entry[i].bytes = 6;
    snprintf(made.code[i], sizeof made.code[i], "code%d", i);
  }
}

/* Whether it comes from the build, and not from the compiler. */
static bool is_from_build(const fa_rtc_unit *unit, int major, int minor) {
  fa_rtc_code code;
  fa_error err = {""};
  const int before = fake_compiler.n_compiled;
  CHECK_MSG(fa_rtc_build(unit, major, minor, &code, &err) == FA_OK, "%s", err.text);
  const bool is = code.from_build;
  CHECK(is == (fake_compiler.n_compiled == before));
  if (is) CHECK(code.cubin_bytes == 6 && memcmp(code.cubin, "code1", 6) == 0);
  fa_rtc_code_free(&code);
  return is;
}

static void test_found(void) {
  const fa_ahead_file file = {"80", (const char *)&made, (const char *)(&made + 1)};
  const char *const others[] = {"-DFA_ONLY=FA_ENTRY(a,c)"};
  const fa_rtc_unit other_text = {"flash/forward", "FA_ONLY ", options, 1},
                    other_line = {"flash/forward", "FA_ONLY", others, 1};
  fa_ahead_replace(&file, 1);
  CHECK(is_from_build(&there, 8, 0) && is_from_build(&there, 8, 6));
  CHECK(!is_from_build(&there, 9, 0));
  CHECK(!is_from_build(&other_text, 8, 0) && !is_from_build(&other_line, 8, 0));
  setenv("FA_NVRTC", "always", 1);
  CHECK(!is_from_build(&there, 8, 0));
  unsetenv("FA_NVRTC");
  fa_ahead_replace(NULL, 0);
  CHECK(!is_from_build(&there, 8, 0));
  fa_ahead_replace(NULL, -1);
}

static bool build_has(const fa_kernel *k, const char *text) {
  char only[300], key[FA_AHEAD_KEY_SIZE];
  const char *const line[] = {only};
  const fa_rtc_unit unit = {.name = k->recipe.source, .text = text, .options = line, .n_options = 1};
  size_t bytes = 0;
  const int number = fa_n_ahead_files ? atoi(fa_ahead_files[0].arch) : 0;
  snprintf(only, sizeof only, "-DFA_ONLY=%s", k->recipe.only);
  fa_rtc_unit_key(&unit, key);
  return fa_ahead_find(key, number / 10, number % 10, &bytes) != NULL && bytes > 1000;
}

/* How many of the build's are what a call would ask for: a key that the program makes otherwise than the build would find nothing. */
static int count_asked_for(void) {
  const fa_kernel *k;
  int n = 0;
  for (int i = 0; (k = fa_kernel_at(i)) != NULL; ++i) {
    const char *source = fa_kernel_source_find(k->recipe.source);
    if (!source || k->recipe.is_ahead_of_time) continue;
    n += build_has(k, source);
    for (int drops = 0; drops < 2 && k->ability.flex; ++drops) {
      const fa_flex_unit flex = {.source = k->recipe.source, .has_score = true, .drops = drops};
      char *text = fa_flex_unit_text(&flex, source);
      REQUIRE(text);
      n += build_has(k, text);
      free(text);
    }
  }
  return n;
}

static void test_build(void) {
  if (fa_n_ahead_files == 0) {
    printf("this build has none\n");
    return;
  }
  const fa_ahead_head *head = (const fa_ahead_head *)fa_ahead_files[0].begin;
  const int n = count_asked_for();
  CHECK_MSG(n > 0 && (uint64_t)n == head->n, "the build has %d, of which calls ask for %d", (int)head->n, n);
}

int main(void) {
  setenv("FA_CACHE_DIR", "/dev/null/no-folder", 1);
  fake_nvrtc_use(13, 0, "/bin/sh");
  make_file();
  test_found();
  test_build();
  return check_done();
}
