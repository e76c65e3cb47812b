/* Includes all flash backward kernels, for the files that instantiate gpu/kernels/flash/backward_list.h. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_KERNELS_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_KERNELS_CUH

#include "gpu/kernels/flash/backward.cuh"
#include "gpu/kernels/flash/backward_convert.cuh"
#include "gpu/kernels/flash/backward_dbias.cuh"
#include "gpu/kernels/flash/backward_prepare.cuh"
#include "gpu/kernels/flash/backward_queries.cuh"

namespace fa {

template <class C> FA_DEVICE void flash_backward_main(const fa_backward_params &p) {
  if constexpr (C::BY_QUERIES)
    flash_backward_queries<C>(p);
  else
    flash_backward<C>(p);
}

} // namespace fa

/* The kernels around the main ones, for a macro entry(name, function<configuration>):
 *   name_prepare         delta, LSE; clears the dQ accumulators
 *   name_prepare_only    the same without clearing
 *   name_clear           clears the dK and dV accumulators
 *   name_convert         dQ
 *   name_convert_keys    dK and dV */
#define FA_ROW_KERNELS(entry, name, T, D)                                                                    \
  entry(name##_prepare, fa::flash_backward_prepare<fa::flash_backward_prepare_config<fa::T, D, true>>)       \
      entry(name##_prepare_only,                                                                             \
            fa::flash_backward_prepare<fa::flash_backward_prepare_config<fa::T, D, false>>)                  \
          entry(name##_clear, fa::flash_backward_clear<fa::flash_backward_row_config<fa::T, D>>)             \
              entry(name##_convert, fa::flash_backward_convert<fa::flash_backward_row_config<fa::T, D>>)     \
                  entry(name##_convert_keys,                                                                 \
                        fa::flash_backward_convert_keys<fa::flash_backward_row_config<fa::T, D>>)

/* The same for the summed gradient of a bias of one element type. */
#define FA_DBIAS_KERNELS(entry, name, T)                                                                     \
  entry(name##_dbias_clear, fa::flash_backward_dbias_clear)                                                  \
      entry(name##_dbias_convert, fa::flash_backward_dbias_convert<fa::T>)

#endif
