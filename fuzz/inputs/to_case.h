/* Turns an input of a target whose inputs are cases, as records or as draws, into its case. The targets and corpus_tool share it, so
 * that both mean the same case by the same bytes. */
#ifndef FA_FUZZ_INPUTS_TO_CASE_H
#define FA_FUZZ_INPUTS_TO_CASE_H

#include "fuzz/inputs/mutate.h"

#include <stddef.h>

/* *out is set only on FA_OK, then owned by the caller. FA_ERR_MEMORY is the only error. */
typedef fa_status (*fa_input_fn)(const uint8_t *data, size_t size, fa_case *out, fa_error *err);

typedef struct fa_input_target {
  const char *name; /* of <name>_fuzzer */
  fa_input_fn to_case;
  /* The bytes before the record affect how the case runs and are not part of the case: only the target
   * itself, or replay_<name>, can reproduce the input's behaviour. */
  bool case_lacks_tape;
  /* Finds the record that alone gives this case, apart from name and note; false: there is none. NULL: the
   * target's inputs are no records. */
  bool (*from_case)(const fa_case *c, fa_record *out);
} fa_input_target;

extern const fa_input_target fa_input_attention, fa_input_families, fa_input_schedule, fa_input_hopper;
/* Finds a target by name; NULL: there is none. Names: all of them, for messages. */
const fa_input_target *fa_input_find(const char *name);
#define FA_INPUT_NAMES "attention, families, schedule, hopper"

/* Number of bytes before the record. */
size_t fa_input_tape_bytes(size_t size);

#endif
