/* Arbitrary bytes as a hostile child of docs/reference/protocol.md: its hello, its answers, what it writes into the shared
 * memory. Whatever it does, the judge has a hello that it refuses with a message, or a result for each case: one that
 * prints as lines without control characters, and that a journal keeps. */
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/inputs/hostile_child.h"
#include "fuzz/inputs/hostile_judged.h"

#include <stdlib.h>
#include <string.h>

/* The first byte of an input chooses the first of them. */
enum { AT_A_TIME = 3 };

static const fa_backend backend = FA_EXEC_BACKEND("exec", "", NULL, NULL);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  void *self = NULL;
  fa_error err = {""};
  fa_backend_info info;
  if (size == 0) return 0;
  char *script = fa_fuzzer_text(data + 1, size - 1);
  fa_hostile_child_follow((const uint8_t *)script, size - 1);
  const fa_status status = fa_exec_open(&fa_hostile_child_reach, "hostile", NULL, NULL, &self, &err);
  if (status == FA_OK) {
    backend.describe(self, &info);
    FA_FUZZ_CHECK(info.usable && strlen(info.device) < sizeof info.device, "%s", info.device);
    for (int i = 0; i < AT_A_TIME; ++i) fa_hostile_judge(&backend, self, data[0] + i);
    backend.close(self);
  } else {
    FA_FUZZ_CHECK(status == FA_ERR_INPUT || status == FA_ERR_DEVICE, "%s", err.text);
    FA_FUZZ_CHECK(strncmp(err.text, "hostile: ", 9) == 0 && err.text[9], "no name in \"%s\"", err.text);
  }
  free(script);
  return 0;
}
