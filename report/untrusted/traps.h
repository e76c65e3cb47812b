/* What is done beside a case's own runs to find a candidate that does not compute its answers (docs/reference/protocol.md). */
#ifndef FA_REPORT_UNTRUSTED_TRAPS_H
#define FA_REPORT_UNTRUSTED_TRAPS_H

#include <stdint.h>

struct cJSON;

typedef enum fa_trap {
  /* the same call in between, with: */
  FA_TRAP_DATA,    /* other data */
  FA_TRAP_KEYS,    /* other data, but for Q and dO */
  FA_TRAP_ELEMENT, /* one element changed */
  FA_TRAP_SCALE,   /* only another scale */
  FA_TRAP_DROPOUT, /* only another seed of dropout */
  FA_TRAP_LENGTHS, /* only other lengths */
  FA_TRAP_PROCESS, /* the case once more, in another process */
  FA_TRAP_SEEDS,   /* after odd statistics, more data, each in another process */
  FA_N_TRAPS
} fa_trap;

const char *fa_trap_name(fa_trap t); /* "data", "element", ... as in reports */

/* A set of them (bits 1 << fa_trap) as the key "traps" of a case's entry: nothing if it is empty. */
void fa_traps_add(struct cJSON *entry, unsigned traps);
unsigned fa_traps_read(const struct cJSON *entry);

#endif
