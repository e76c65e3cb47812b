/* What foreign kernels do not claim to compute: the key "contracts" of a report, which has gpu/contract/claims.h's tree for
 * each of them by backend. A kernel that claims little has little to be wrong in, so that this belongs beside its verdict. */
#ifndef FA_REPORT_CLAIMS_H
#define FA_REPORT_CLAIMS_H

#include <stdbool.h>
#include <stdio.h>

struct cJSON;

typedef struct fa_not_claimed {
  const char *what; /* "families", "dtypes", "features", "passes", "outputs", "limits" */
  char text[1200];  /* the words, each after a blank but the first; of limits "head_dim at most 128; ..." */
} fa_not_claimed;
enum { FA_NOT_CLAIMED_ROWS = 6 };

/* The rows that a contract leaves something out in; returns how many. */
int fa_not_claimed_rows(const struct cJSON *contract, fa_not_claimed row[FA_NOT_CLAIMED_ROWS]);

/* True if people should be told: something was required, or the kernel is not trusted. */
bool fa_claims_matter(const struct cJSON *root);
/* Prints the block "NOT CLAIMED by BACKEND" for each contract of the report. */
void fa_claims_print(FILE *out, const struct cJSON *root);

#endif
