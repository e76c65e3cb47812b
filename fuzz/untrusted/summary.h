/* What is said of a run of a candidate that nobody trusts: before its first case, after its last, and in the report. */
#ifndef FA_FUZZ_UNTRUSTED_SUMMARY_H
#define FA_FUZZ_UNTRUSTED_SUMMARY_H

#include "fuzz/untrusted/claims.h"
#include "report/untrusted/traps.h"

#include <stdio.h>

struct cJSON;

typedef struct fa_rules_counts {
  fa_claims claims;
  int64_t trapped[FA_N_TRAPS]; /* cases, by the trap that they were tried with */
  int64_t cases, hidden;       /* that ended; of these, those that nobody knew before */
} fa_rules_counts;

/* hidden: the case was drawn from the secret. */
void fa_rules_count(fa_rules_counts *c, const fa_result *r, bool hidden);

/* The commitment, the layers in force, and large: those left out. */
void fa_rules_print_begin(const fa_rules *r, FILE *out);
/* The secret, the counts, and large: what cannot be judged, and what is claimed and was not tested. What is not claimed
 * is said of trusted kernels too (report/claims.h). */
void fa_rules_print_end(const fa_rules *r, const fa_rules_counts *c, FILE *out);
/* The key "untrusted" of a report (docs/reference/report.md). */
void fa_rules_add_to_report(const fa_rules *r, const fa_rules_counts *c, struct cJSON *root);

#endif
