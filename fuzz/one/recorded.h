/* Recorded runs: a group of a safetensors file as a case, its inputs and its outputs. */
#ifndef FA_FUZZ_ONE_RECORDED_H
#define FA_FUZZ_ONE_RECORDED_H

#include "cases/recipe/case.h"
#include "cases/tensors/safetensors.h"

typedef struct fa_recorded {
  fa_case c;      /* as recorded, but with plain strides, because files are row-major */
  fa_tensors in;  /* inputs from the file, integer ones from the case; shapes of the outputs */
  fa_tensors got; /* the outputs in the file; after an append, also k and v */
  bool backward;  /* there is at least one gradient */
} fa_recorded;

/* The group names of a file, in the order of their first tensor; the caller frees each name and *names.
 * FA_ERR_INPUT: there is none, a tensor is outside any group, or a group has no case. */
fa_status fa_recorded_groups(const fa_safetensors *f, const char *path, char ***names, int64_t *n,
                             fa_error *err);

/* Reads and checks one group. Required: q, k, v, every other float input that the case has, and one output.
 * LSE may have a padded last axis. Messages name file, group and tensor. FA_ERR_UNSUPPORTED: well formed, but
 * this build cannot judge it. On failure *out owns nothing. */
fa_status fa_recorded_load(const fa_safetensors *f, const char *path, const char *group, fa_recorded *out,
                           fa_error *err);
void fa_recorded_free(fa_recorded *r);

#endif
