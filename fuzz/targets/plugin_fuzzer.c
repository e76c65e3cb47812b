/* Arbitrary bytes as a plugin (fuzz/inputs/hostile_plugin.h): its table, its hello, its answers, what it writes into tensors and
 * their guards. It is refused with a message, or each case has a result: one that prints as lines without control characters,
 * and that a journal keeps. */
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/inputs/hostile_judged.h"
#include "fuzz/inputs/hostile_plugin.h"
#include "gpu/backends/plugin_backend.h"

#include <string.h>

/* The last byte of an input chooses the first of them. */
enum { AT_A_TIME = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  void *self = NULL;
  fa_error err = {""};
  fa_backend_info info;
  const fa_status status = fa_plugin_open_table(fa_hostile_plugin_table(data, size), "hostile", &self, &err);
  if (status != FA_OK) {
    FA_FUZZ_CHECK(status == FA_ERR_INPUT || status == FA_ERR_DEVICE, "%s", err.text);
    FA_FUZZ_CHECK(strncmp(err.text, "hostile:", 8) == 0 && err.text[8], "no name in \"%s\"", err.text);
    return 0;
  }
  fa_backend_plugin.describe(self, &info);
  FA_FUZZ_CHECK(info.usable, "it is open, and not usable: %s", info.why_not);
  for (int i = 0; i < AT_A_TIME; ++i)
    fa_hostile_judge(&fa_backend_plugin, self, (size ? data[size - 1] : 0) + i);
  fa_backend_plugin.close(self);
  return 0;
}
