/* How often each named feature occurs in random cases or case files: the answer to "was this ever tried?".
 * The features are those that historic bugs needed, numbered by the kind of bias that draws them. */
#ifndef FA_FUZZ_COVERAGE_TABLE_H
#define FA_FUZZ_COVERAGE_TABLE_H

#include "cases/recipe/case.h"

#include <stdio.h>

typedef enum fa_bias_kind {
  FA_COVER_LENGTHS = 1, /* 1: tile edges, Sq and Sk far apart */
  FA_COVER_VARLEN,      /* 2: empty sequences, tokens past the last */
  FA_COVER_MASKS,       /* 3: windows, alignments */
  FA_COVER_LAYOUT,      /* 4: layouts, strides, gaps, packing, bases */
  FA_COVER_OFFSETS,     /* 5: offsets beyond 32 bits, large batches */
  FA_COVER_DATA,        /* 6: fills */
  FA_COVER_MEMORY,      /* 7: poison */
  FA_COVER_REPETITION,  /* 8: runs, schedules */
  FA_COVER_HEADS,       /* 9: groups, head dims, families, types */
  FA_COVER_DROPOUT,     /* 10 */
  FA_COVER_CACHE,       /* 11: pages, appending, rotary */
  FA_COVER_SPLITS,      /* 12 */
  FA_COVER_SCORES,      /* 13: scale, softcap, slopes, bias, block lists, outputs */
  FA_COVER_N_KINDS
} fa_bias_kind;

typedef struct fa_coverage_row {
  char name[56];
  fa_bias_kind kind;
  int64_t n;        /* cases that have it */
  int64_t expected; /* minimum in 20,000 cases spread over all profiles (tests/fuzz/test_generate.c) */
} fa_coverage_row;

#define FA_MAX_FEATURES 500
typedef struct fa_coverage {
  fa_coverage_row row[FA_MAX_FEATURES];
  int n_rows, next; /* next: where the next feature probably is */
  int64_t n_cases;
} fa_coverage;

/* A zeroed table has no rows: the first case creates all of them, whatever features it has. */
void fa_coverage_add(fa_coverage *v, const fa_case *c);
/* Prints the rows by kind. */
void fa_coverage_print(FILE *out, const fa_coverage *v);
const char *fa_bias_kind_name(fa_bias_kind kind);

/* ---- for the parts ---- */

void fa_coverage_see(fa_coverage *v, fa_bias_kind kind, int64_t expected, const char *name, bool has);
/* The same with a number at the end of the name. */
void fa_coverage_see_number(fa_coverage *v, fa_bias_kind kind, int64_t expected, const char *name,
                            int64_t number, bool has);
void fa_coverage_problem(fa_coverage *v, const fa_problem *p);   /* kinds 1 to 3 and 9 to 13 */
void fa_coverage_cache(fa_coverage *v, const fa_problem *p);     /* of kinds 11 and 12 */
void fa_coverage_operators(fa_coverage *v, const fa_problem *p); /* of expressions */
void fa_coverage_mixed(fa_coverage *v, const fa_problem *p);     /* combinations, of several kinds */
void fa_coverage_masks(fa_coverage *v, const fa_problem *p);     /* chunks and custom masks, of kind 3 */
void fa_coverage_quantized(fa_coverage *v, const fa_problem *p);
void fa_coverage_latent(fa_coverage *v,
                        const fa_problem *p); /* latent caches and lists of keys, of kinds 3, 9 and 11 */
void fa_coverage_merge(fa_coverage *v, const fa_problem *p); /* partial states */
void fa_coverage_memory(fa_coverage *v, const fa_case *c);   /* kinds 4 to 8 */

#endif
