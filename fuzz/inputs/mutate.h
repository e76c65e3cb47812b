/* Attention cases as fuzz inputs: a record of numbers, each with a minimum that is its simplest value.
 *
 * Format: version 1, little-endian, fixed width per field, read from the END of the input, so that the bytes
 * before the record are free for other uses (the schedule target's tape) and removing bytes from the front
 * makes the case simpler. Missing bytes read as 0. Any bytes are a record, and any record is a valid case:
 * numbers are taken modulo their range, and contradictory features are dropped. */
#ifndef FA_FUZZ_INPUTS_MUTATE_H
#define FA_FUZZ_INPUTS_MUTATE_H

#include "cases/recipe/case.h"

#include <stddef.h>

enum { FA_RECORD_ENTRIES = 4, FA_RECORD_TENSORS = 8, FA_RECORD_LENGTH = 140 };

typedef enum fa_field {
  FA_F_VERSION, /* 0 is version 1; others are read as it */
  FA_F_DTYPE,
  FA_F_BACKWARD,
  FA_F_BATCH,
  FA_F_HEADS_KV,
  FA_F_GROUP,
  FA_F_HEAD_DIM,
  FA_F_LENGTH_Q, /* one per sequence; fixed length: the first */
  FA_F_LENGTH_K = FA_F_LENGTH_Q + FA_RECORD_ENTRIES,
  FA_F_VARLEN = FA_F_LENGTH_K + FA_RECORD_ENTRIES,
  FA_F_MASK,
  FA_F_LEFT,
  FA_F_RIGHT,
  FA_F_HAS_USED,
  FA_F_USED,
  FA_F_HAS_LEFTPAD = FA_F_USED + FA_RECORD_ENTRIES,
  FA_F_LEFTPAD,
  FA_F_SCALE = FA_F_LEFTPAD + FA_RECORD_ENTRIES,
  FA_F_SOFTCAP,
  FA_F_ALIBI,
  FA_F_SLOPE,
  FA_F_DROPOUT,
  FA_F_DROPOUT_SEED,
  FA_F_DROPOUT_OFFSET,
  FA_F_DETERMINISTIC,
  FA_F_RETURN_SOFTMAX,
  FA_F_GRAD_LSE,
  FA_F_EMPTY_LSE,
  FA_F_FILL,
  FA_F_FILL_V,
  FA_F_FILL_DO,
  FA_F_DATA_SEED,
  FA_F_SCHEDULE_SEED,
  FA_F_REPEAT,
  FA_F_POISON,
  FA_F_LAYOUT,
  FA_F_PACKING,
  FA_F_GAP, /* [tensor][axis] */
  FA_F_EXPAND = FA_F_GAP + 3 * FA_RECORD_TENSORS,
  FA_F_OFFSET = FA_F_EXPAND + FA_RECORD_TENSORS,
  FA_N_FIELDS = FA_F_OFFSET + FA_RECORD_TENSORS
} fa_field;

/* Values within their ranges; 0 is the simplest. */
typedef struct fa_record {
  uint64_t v[FA_N_FIELDS];
} fa_record;

/* Number of values of a field; 0: all that its bytes can represent. */
uint64_t fa_record_field_count(fa_field f);
size_t fa_record_bytes(void);

void fa_record_read(const uint8_t *data, size_t size, fa_record *out);
/* bytes[fa_record_bytes()] */
void fa_record_write(const fa_record *r, uint8_t *bytes);

/* Limit of a case's work: query heads x lengths, rounded up to multiples of 64, x head_dim. */
#define FA_RECORD_WORK ((int64_t)192 * 192 * 96)

/* The case of a record, family flash. work: heads, batch and lengths are reduced until it costs no more.
 * FA_ERR_MEMORY is the only error. */
fa_status fa_record_to_case(const fa_record *r, int64_t work, fa_case *out, fa_error *err);
/* Finds the record that gives this case, apart from name and note; false: there is none. */
bool fa_record_from_case(const fa_case *c, fa_record *out);
/* The steps of the above, for targets in which a record means more. Finds the case's fields, which may be out
 * of range; false: the case has features without a field. */
bool fa_record_find(const fa_case *c, fa_record *out);
bool fa_record_is_in_range(const fa_record *r);
/* Compares apart from names, and from fills that the case does not use, which it copies to got. */
bool fa_record_same_case(const fa_case *want, fa_case *got);

/* ---- for LLVMFuzzerCustomMutator and LLVMFuzzerCustomCrossOver ---- */

typedef size_t (*fa_mutate_fn)(uint8_t *data, size_t size, size_t max_size);

/* The record mutator: changes one or a few fields in place. The bytes before the record, or now and then the
 * whole input, are passed to raw (libFuzzer's own mutator). tape: bytes before the record have a meaning.
 * Returns the new size. */
size_t fa_record_mutate(uint8_t *data, size_t size, size_t max_size, unsigned seed, bool tape,
                        fa_mutate_fn raw);
/* Takes each field from one of the two records, in runs of neighbours. The tape is one of theirs. */
size_t fa_record_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                       size_t max_size, unsigned seed);

#endif
