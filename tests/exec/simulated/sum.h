/* Sums of products in the accumulator that is simulated. */
#ifndef FA_TESTS_EXEC_SIMULATED_SUM_H
#define FA_TESTS_EXEC_SIMULATED_SUM_H

#include "tests/exec/simulated/config.h"

typedef struct sim_unit {
  sim_sum sum;
  int block, extra_bits;
  bool three; /* each operand as two tf32 numbers, three products */
} sim_unit;

sim_unit sim_unit_of(const sim_config *c, sim_product which);
/* start + sum of a[i] b[i]. */
float sim_dot(const sim_unit *u, int64_t n, const float *a, const float *b, float start);

#endif
