/* What a kernel source makes of its lines: entry points for a device, by nvcc or NVRTC; rows of a table (kernel.h)
 * for the host, by a C++ compiler.
 *
 *   FA_UNIT_BEGIN(folder, file)
 *     the lines, or FA_ONLY's
 *   FA_UNIT_END(folder, file)
 *
 *   FA_KERNEL(name, params, attributes, text, row, function...)
 *     attributes: the launch bounds. text: the line as FA_ONLY has it. row: the rest of its fa_kernel, all but name,
 *     entry, parameters and recipe; only for the host.
 *   FA_KERNEL_LATE, the same arguments
 *     compiled at run time when it is needed, by FA_ONLY and FA_KERNEL, and only for devices
 *   FA_TEXT_2(a, b) and so on
 *     "a,b", for the text */
#ifndef FA_GPU_KERNELS_REGISTRY_UNIT_CUH
#define FA_GPU_KERNELS_REGISTRY_UNIT_CUH

#ifdef __CUDACC__

#define FA_UNIT_BEGIN(folder, file)
#define FA_UNIT_END(folder, file)
#define FA_KERNEL(name, params, attributes, text, row, ...)                                                  \
  extern "C" __global__ void attributes name(const __grid_constant__ params p) {                             \
    __VA_ARGS__(p);                                                                                          \
  }
#define FA_KERNEL_LATE(...)

#else

#include "gpu/kernels/registry/row.h"

#define FA_UNIT_BEGIN(folder, file)                                                                          \
  static constexpr char unit_source[] = #folder "/" #file;                                                   \
  static const fa_kernel unit_rows[] = {
#define FA_UNIT_END(folder, file)                                                                            \
  }                                                                                                          \
  ;                                                                                                          \
  extern "C" const fa_kernel_table fa_kernels_##folder##_##file;                                             \
  const fa_kernel_table fa_kernels_##folder##_##file = {unit_rows, sizeof unit_rows / sizeof *unit_rows};
/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(...) nullptr
#else
#define FA_ON_HOST(...) fa::run_on_host<__VA_ARGS__>
#endif
#define FA_KERNEL(name, params, attributes, text, row, ...)                                                  \
  fa::kernel_row<params>(row, #name, FA_ON_HOST(params, __VA_ARGS__), unit_source, text),
#define FA_KERNEL_LATE(name, params, attributes, text, row, ...)                                             \
  fa::kernel_row<params>(fa::at_run_time(row), #name, nullptr, unit_source, text),

#endif

#define FA_TEXT_1(a) #a
#define FA_TEXT_2(a, b) #a "," #b
#define FA_TEXT_3(a, b, c) #a "," #b "," #c
#define FA_TEXT_4(a, b, c, d) #a "," #b "," #c "," #d
#define FA_TEXT_5(a, b, c, d, e) #a "," #b "," #c "," #d "," #e

#endif
