/* In which kind of call a question is put: some subjects take packed sequences only, or a cache, or one query a
 * sequence. */
#ifndef FA_FUZZ_PROBE_WAY_H
#define FA_FUZZ_PROBE_WAY_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"

typedef enum probe_storage { PROBE_DENSE, PROBE_PACKED, PROBE_CACHE } probe_storage;

typedef struct probe_way {
  const char *name;
  probe_storage storage;
  int64_t page_size;       /* of a cache; 0: no pages */
  bool rows_are_sequences; /* row i of a question is the only query of sequence i; all have the same keys */
} probe_way;

/* Every way, the usual one first. NULL: there are no more. */
const probe_way *probe_way_at(int i);

/* The sizes of a question in this way: so many rows and keys, of which sequence 0 has none if no_keys. Everything else
 * of the problem stays. False: it cannot be put so, and *why says what is in the way (static); or there is no memory. */
bool probe_way_apply(const probe_way *w, int64_t rows, int64_t keys, bool no_keys, fa_problem *p,
                     const char **why);
/* The families of the way, in the order in which they are tried: the i-th, or FA_N_FAMILIES. */
fa_family probe_way_family(const probe_way *w, int i);

/* Where row or key s of a question stands in a tensor [B, S, H, D], of sequence b; rows look at no b. False: no such
 * key. */
void probe_way_row(const probe_way *w, int64_t s, int64_t at[2]);
bool probe_way_key(const probe_way *w, const fa_problem *p, const fa_tensor *block_table, int64_t b,
                   int64_t s, int64_t at[2]);

#endif
