/* Custom masks: a bit for every pair of a row and a key, as FlashInfer packs them. The case has a recipe; the
 * bits are tensors (FA_T_MASK_BITS, FA_T_MASK_INDPTR).
 *
 * Sequence b has rows x keys bits in row-major order, where keys are those that exist: what seqused_k or the
 * cache's lengths leave, less leftpad_k. Bit n of the sequence is bit n % 8, counted from the least significant,
 * of its byte n / 8; each sequence begins on a byte. 1: visible. All heads share them. */
#ifndef FA_CASES_VOCABULARY_MASK_BITS_H
#define FA_CASES_VOCABULARY_MASK_BITS_H

#include <stdbool.h>
#include <stdint.h>

struct fa_problem;

/* DENSITY: each pair is visible with this probability. The others are trees of draft tokens, which are the last
 * keys, as many as there are rows: a row sees itself, its ancestors, and all keys before the first draft token.
 * Parents are drawn among the rows before it, or there is none (RANDOM); the row before it (CHAIN, which is a
 * causal mask); row 0 (STAR). */
typedef enum fa_bits_source {
  FA_BITS_DENSITY,
  FA_BITS_RANDOM,
  FA_BITS_CHAIN,
  FA_BITS_STAR,
  FA_N_BITS_SOURCES
} fa_bits_source;

typedef struct fa_mask_bits {
  bool present;
  fa_bits_source source;
  double density;     /* of DENSITY, in 0 .. 1; else 0 */
  double empty_rows;  /* probability that a row sees nothing, in 0 .. 1 */
  bool hide_diagonal; /* row i does not see key i + keys - rows */
  uint64_t seed;
} fa_mask_bits;

/* Rows and keys of sequence b, keys that are hidden by leftpad_k excluded. */
void fa_problem_pairs(const struct fa_problem *p, int64_t b, int64_t *rows, int64_t *keys);
/* Bytes of the bits of the first n sequences; -1: more than 2^62. */
int64_t fa_problem_mask_bytes(const struct fa_problem *p, int64_t n);
/* As in the case JSON: "density", "random", "chain", "star"; "?" out of range. */
const char *fa_bits_source_name(fa_bits_source source);

#endif
