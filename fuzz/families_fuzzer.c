/* Cases of families flex and kvcache on the host kernels, judged as `fa-verify run` judges them.
 *
 * A case record gives types, heads, lengths, masks and data, as for attention_fuzzer; the bytes before it are
 * a seed from which the generator draws the rest: expressions and block lists, or pages, new keys and
 * rotation. */
#include "fuzz/fuzzer.h"

#include "fuzz/generate.h"
#include "fuzz/run_case.h"

#include <string.h>

/* Expressions are interpreted. */
#define WORK (FA_RECORD_WORK / 4)

const bool fa_fuzzer_has_tape = true;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fa_result r; /* large */
  const size_t n = fa_record_bytes(), n_seed = size > n ? size - n : 0;
  fa_record record;
  fa_case c;
  fa_error err = {""};
  uint64_t seed = 0;
  memcpy(&seed, data + (n_seed > 8 ? n_seed - 8 : 0), n_seed > 8 ? 8 : n_seed);
  fa_record_read(data, size, &record);
  if (fa_record_to_case(&record, WORK, &c, &err) != FA_OK) return 0; /* out of memory */
  const fa_family family = seed & 3 ? FA_FLEX : FA_KVCACHE;
  const fa_run_config config = {.backend = &fa_backend_host, .n_threads = 1};
  fa_result_init(&r);
  if (fa_generate_family(&c, family, seed, &err) == FA_OK) fa_run_case(&c, &config, &r, &err);
  /* Data that some expression makes meaningless, or too easy, are not the kernels' fault. */
  const bool judged = r.state != FA_UNTESTED && !r.malformed && r.state != FA_VACUOUS;
  if (judged && r.state != FA_PASS && r.state != FA_SKIP) fa_fuzzer_finding(&c, &r);
  fa_result_free(&r);
  fa_case_free(&c);
  return 0;
}
