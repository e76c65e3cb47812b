/* libFuzzer's hooks for the targets that read case records; linked only into these. */
#include "fuzz/inputs/fuzzer.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return fa_record_mutate(data, size, max_size, seed, fa_fuzzer_has_tape, LLVMFuzzerMutate);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned seed) {
  return fa_record_cross(a, a_size, b, b_size, out, max_size, seed);
}
