/* Cases of families flex and kvcache on the host kernels, judged as `fa-verify run` judges them.
 *
 * A case record gives types, heads, lengths, masks and data, as in attention_fuzzer. The bytes before it are
 * a seed from which the generator draws the rest: expressions and block lists, or pages, new keys and
 * rotation. */
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/inputs/to_case.h"
#include "fuzz/one/run_case.h"

const bool fa_fuzzer_has_tape = true;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fa_result r; /* large */
  fa_case c;
  fa_error err = {""};
  if (fa_input_families.to_case(data, size, &c, &err) != FA_OK) return 0;
  const fa_run_config config = {.backend = &fa_backend_host, .n_threads = 1};
  fa_result_init(&r);
  const fa_status status = fa_run_case(&c, &config, &r, &err);
  if (fa_fuzzer_is_finding(&r, status)) fa_fuzzer_finding(&c, &r);
  fa_result_free(&r);
  fa_case_free(&c);
  return 0;
}
