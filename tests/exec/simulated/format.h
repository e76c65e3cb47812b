/* Number formats of the simulated kernel: stored elements to float and back, and rounding to a format in the
 * middle of a computation. Written without the project's own conversions, so that it can judge them. */
#ifndef FA_TESTS_EXEC_SIMULATED_FORMAT_H
#define FA_TESTS_EXEC_SIMULATED_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

/* IO: the call's own type, made definite by sim_format_of. */
typedef enum sim_format {
  SIM_IO,
  SIM_F32,
  SIM_3XTF32,
  SIM_TF32,
  SIM_F16,
  SIM_BF16,
  SIM_E4M3,
  SIM_E5M2,
  SIM_INT8,
  SIM_N_FORMATS
} sim_format;

/* The nearest number of the format, ties to even; or the next one towards zero. f16 overflows to infinity, the
 * 8-bit formats saturate. F32, 3XTF32 and INT8 return x. */
float sim_round(float x, sim_format format, bool truncate);

/* x[n] in blocks of `block` elements, each to 255 levels between -max and max of its block. */
void sim_round_int8(float *x, int64_t n, int64_t block);

/* Elements in memory; dtype is one of gpu/plugin.h's. */
float sim_load(const void *data, int dtype, int64_t at);
void sim_store(void *data, int dtype, int64_t at, float x);
int64_t sim_load_int(const void *data, int64_t at); /* of i32 */

sim_format sim_format_of(int dtype);

#endif
