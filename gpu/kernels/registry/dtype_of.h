/* The element type that a tag of prim.cuh stands for, for tables of kernels. */
#ifndef FA_GPU_KERNELS_REGISTRY_DTYPE_OF_H
#define FA_GPU_KERNELS_REGISTRY_DTYPE_OF_H

#include "cases/base/dtype.h"
#include "gpu/kernels/machine/prim.cuh"

#include <type_traits>

template <class T> static constexpr fa_dtype dtype_of() {
  return std::is_same<T, fa::f32>::value ? FA_F32 : std::is_same<T, fa::f16>::value ? FA_F16 : FA_BF16;
}

#endif
