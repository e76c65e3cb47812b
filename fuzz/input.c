#include "fuzz/input.h"

#include "fuzz/generate.h"
#include "fuzz/mutate.h"

#include <string.h>

size_t fa_input_tape_bytes(size_t size) {
  const size_t n = fa_record_bytes();
  return size > n ? size - n : 0;
}

static fa_status attention_case(const uint8_t *data, size_t size, fa_case *out, fa_error *err) {
  fa_record record;
  fa_record_read(data, size, &record);
  return fa_record_to_case(&record, FA_RECORD_WORK, out, err);
}

/* A quarter of the work: expressions are interpreted. The last eight bytes before the record are the seed. */
static fa_status families_case(const uint8_t *data, size_t size, fa_case *out, fa_error *err) {
  const size_t n = fa_input_tape_bytes(size);
  uint64_t seed = 0;
  fa_record record;
  memcpy(&seed, data + (n > 8 ? n - 8 : 0), n > 8 ? 8 : n);
  fa_record_read(data, size, &record);
  fa_status status = fa_record_to_case(&record, FA_RECORD_WORK / 4, out, err);
  if (status != FA_OK) return status;
  status = fa_generate_family(out, seed & 3 ? FA_FLEX : FA_KVCACHE, seed, err);
  if (status != FA_OK) fa_case_free(out);
  return status;
}

/* A quarter of the work: what an order can spoil, it spoils in one tile or between two. */
static fa_status schedule_case(const uint8_t *data, size_t size, fa_case *out, fa_error *err) {
  fa_record record;
  fa_record_read(data, size, &record);
  record.v[FA_F_RETURN_SOFTMAX] = 0; /* one kernel whose debug matrix costs more than everything else */
  return fa_record_to_case(&record, FA_RECORD_WORK / 4, out, err);
}

const fa_input_target fa_input_attention = {"attention", attention_case, false};
const fa_input_target fa_input_families = {"families", families_case, false};
const fa_input_target fa_input_schedule = {"schedule", schedule_case, true};

const fa_input_target *fa_input_find(const char *name) {
  static const fa_input_target *const all[] = {&fa_input_attention, &fa_input_families, &fa_input_schedule};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (strcmp(all[i]->name, name) == 0) return all[i];
  return NULL;
}
