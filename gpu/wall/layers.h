/* The layers of defence against a candidate that nobody trusts, by name: those of the wall around its process, and those of
 * the judge. docs/guide/untrusted.md says what each is for. In the untrusted mode all of them are in force, but for those
 * that --without leaves out; the report lists both. */
#ifndef FA_GPU_WALL_LAYERS_H
#define FA_GPU_WALL_LAYERS_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum fa_layer {
  /* of the wall */
  FA_LAYER_PROCESSES,
  FA_LAYER_NETWORK,
  FA_LAYER_FILES,
  FA_LAYER_ENVIRONMENT,
  FA_LAYER_SECCOMP,
  FA_LAYER_LIMITS,
  FA_LAYER_MEMORY,
  FA_LAYER_STDERR,
  /* of the judge, for a candidate that nobody trusts */
  FA_LAYER_CONTRACT,
  FA_LAYER_PROFILE,
  FA_LAYER_SEEDS,
  FA_LAYER_REPLAY,
  FA_LAYER_HIDDEN,
  FA_LAYER_FRESH,
  FA_LAYER_FINAL,
  /* of the judge, always */
  FA_LAYER_BOUNDS,
  FA_LAYER_POISON,
  FA_LAYER_GUARDS,
  FA_LAYER_REPEAT,
  FA_N_LAYERS
} fa_layer;

typedef enum fa_layer_kind { FA_LAYER_OF_WALL, FA_LAYER_OF_JUDGE, FA_LAYER_ALWAYS } fa_layer_kind;

typedef struct fa_layer_row {
  const char *name; /* on the command line and in reports */
  fa_layer_kind kind;
  const char *does; /* a line for people */
} fa_layer_row;

extern const fa_layer_row fa_layers[FA_N_LAYERS];

/* A set of layers: bit l is layer l. */
typedef unsigned fa_layer_set;
#define FA_ALL_LAYERS ((1u << FA_N_LAYERS) - 1)

/* Those of a run that trusts its candidate. */
#define FA_TRUSTED_LAYERS                                                                                    \
  (1u << FA_LAYER_BOUNDS | 1u << FA_LAYER_POISON | 1u << FA_LAYER_GUARDS | 1u << FA_LAYER_REPEAT)

static inline bool fa_layer_in(fa_layer_set set, fa_layer layer) {
  return set >> layer & 1;
}

/* Takes the layer of this name out of the set. FA_ERR_INPUT: there is none; the message lists them. */
fa_status fa_layers_leave_out(fa_layer_set *set, const char *name, fa_error *err);
/* "processes, network": those of the set in the order of the table; "" of none. */
void fa_layers_text(fa_layer_set set, char *out, size_t size);

#endif
