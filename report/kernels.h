/* Results by the kernel that computed them: what a report says about how many cases each kernel had. */
#ifndef FA_REPORT_KERNELS_H
#define FA_REPORT_KERNELS_H

#include "report/result.h"

struct cJSON;

/* Counts one result in the row of its forward kernel and, if its backward ran, in that one's row too; so the
 * rows add up to more than the cases. A failure counts in both: the case failed, whichever of them it was. */
void fa_kernel_counts_add(fa_kernel_counts *c, const fa_result *r);

/* The same for "cases" of a report. Entries of older versions name no kernel. */
void fa_kernel_counts_add_cases(fa_kernel_counts *c, const struct cJSON *cases);

/* {"flash_forward": {"passed": 12, "failed": 0, "skipped": 0, "error": 0}, ...} by name; "waived" where there
 * are any. */
struct cJSON *fa_kernel_counts_to_json(const fa_kernel_counts *c);

/* "kernel", "backward_kernel": what is known of them. */
void fa_kernels_add_names(struct cJSON *entry, const fa_result *r);
void fa_kernels_read_names(const struct cJSON *entry, fa_result *r);

#endif
