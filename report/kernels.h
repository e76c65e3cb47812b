/* Results by the kernel that computed them: how many cases of a report each kernel ran. */
#ifndef FA_REPORT_KERNELS_H
#define FA_REPORT_KERNELS_H

#include "report/result.h"

struct cJSON;

/* Counts one result in the row of its forward kernel and, if its backward ran, also in that kernel's row, so
 * that the rows add up to more than the cases. A failure counts in both, whichever of them caused it. */
void fa_kernel_counts_add(fa_kernel_counts *c, const fa_result *r);

/* The same for an entry of a report's "cases", and for all of them. Entries from older versions name no kernel. */
void fa_kernel_counts_add_entry(fa_kernel_counts *c, const struct cJSON *entry);
void fa_kernel_counts_add_cases(fa_kernel_counts *c, const struct cJSON *cases);

/* {"flash_forward": {"passed": 12, "failed": 0, "skipped": 0, "error": 0}, ...} by name; "waived" if not
 * 0. */
struct cJSON *fa_kernel_counts_to_json(const fa_kernel_counts *c);

/* Adds "kernel" and "backward_kernel" as far as they are known. */
void fa_kernels_add_names(struct cJSON *entry, const fa_result *r);
void fa_kernels_read_names(const struct cJSON *entry, fa_result *r);

#endif
