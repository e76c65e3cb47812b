/* Golden outputs: the reference's outputs for a case, stored in float64 in the recorded-run format, so that a
 * change of the reference, of the fills or of the random numbers is noticed.
 *
 *   <name>.forward.safetensors   group <name>: inputs, o, lse (and keep masks, the caches afterwards)
 *   <name>.backward.safetensors  inputs and gradients
 *
 * Besides the case, __metadata__ has "generator", "inputs_sha256" (every input's logical elements in the
 * order of fa_tensor_id) and "reference_sha256" (the same of the outputs); backward files also have "forward"
 * and "forward_sha256": the file and the reference_sha256 of the forward that the gradients belong to. */
#ifndef FA_FUZZ_ONE_GOLDEN_H
#define FA_FUZZ_ONE_GOLDEN_H

#include "cases/recipe/case.h"

/* Largest difference between a recomputed value and the stored one, relative to max(1, |stored|). */
#define FA_GOLDEN_TOLERANCE 1e-12

/* Computes and writes. FA_ERR_UNSUPPORTED: the reference cannot do this case. */
fa_status fa_golden_write(const char *folder, const char *name, const fa_case *c, int n_threads,
                          fa_error *err);

/* Recomputes inputs and outputs and compares them with the stored ones. *same = false: why names the file,
 * the tensor and the element, or the hash, that differs. A missing or malformed file is an error. */
fa_status fa_golden_check(const char *folder, const char *name, const fa_case *c, int n_threads, bool *same,
                          char *why, size_t why_size, fa_error *err);

#endif
