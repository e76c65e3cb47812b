/* Numbers in memory, and numbers with fewer bits than a double has. */
#ifndef FA_TESTS_EXPLAIN_PLANTED_NUMBER_H
#define FA_TESTS_EXPLAIN_PLANTED_NUMBER_H

#include "gpu/plugin.h"

#include <stdbool.h>

typedef enum pl_format { PL_F16, PL_BF16, PL_F32, PL_TF32, PL_E4M3, PL_E5M2 } pl_format;

/* The nearest number of the format, ties to even; or, cut, the nearest towards 0. */
double pl_round(double x, pl_format f, bool cut);

/* Element `at` of a tensor's memory. What is stored is rounded once, from the double. */
double pl_load(const fa_plugin_tensor *t, int64_t at);
void pl_store(const fa_plugin_tensor *t, int64_t at, double x, bool cut);
pl_format pl_format_of(int dtype);

#endif
