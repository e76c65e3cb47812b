/* libFuzzer's hooks for the targets whose inputs are draws; linked only into these. */
#include "fuzz/inputs/draws.h"
#include "fuzz/inputs/fuzzer.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  return fa_draws_mutate(data, size, max_size, seed, LLVMFuzzerMutate);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned seed) {
  return fa_draws_cross(a, a_size, b, b_size, out, max_size, seed);
}
