#include "gpu/kernels/wide_host.h"

#include "gpu/kernels/wide_backward_keys.cuh"
#include "gpu/kernels/wide_backward_queries.cuh"
#include "gpu/kernels/wide_forward.cuh"

#include <type_traits>

template <class T> static constexpr fa_dtype dtype_of() {
  return std::is_same<T, fa::f32>::value ? FA_F32 : std::is_same<T, fa::f16>::value ? FA_F16 : FA_BF16;
}

/* ---- forward ---- */

template <class C> static void run_forward(const void *params) {
  fa::wide_forward<C>(*static_cast<const fa_flash_params *>(params));
}

struct forward_row {
  fa_dtype dtype;
  fa_wide_kernel kernel;
};
template <class C> static constexpr forward_row forward(const char *name) {
  return {dtype_of<typename C::T>(), {name, run_forward<C>, C::BM, C::VC, C::THREADS, C::SHARED_BYTES}};
}

#define FA_ENTRY(name, T, VC) forward<fa::wide_forward_config<fa::T, VC>>(#name),
static const forward_row forwards[] = {
#include "gpu/kernels/wide_list.h"
};

const fa_wide_kernel *fa_wide_forward_find(fa_dtype dtype, int64_t head_dim_v) {
  const fa_wide_kernel *widest = nullptr;
  for (const forward_row &r : forwards) {
    if (r.dtype != dtype) continue;
    widest = &r.kernel;
    if (head_dim_v <= r.kernel.block_cols) break;
  }
  return widest;
}

/* ---- backward ---- */

template <class T> static void run_prepare(const void *params) {
  fa::wide_backward_prepare<T>(*static_cast<const fa_wide_backward_params *>(params));
}
template <class C> static void run_keys(const void *params) {
  fa::wide_backward_keys<C>(*static_cast<const fa_wide_backward_params *>(params));
}
template <class C> static void run_queries(const void *params) {
  fa::wide_backward_queries<C>(*static_cast<const fa_wide_backward_params *>(params));
}

template <class C>
static constexpr fa_wide_backward_kernels backward(const char *prepare, const char *keys,
                                                   const char *queries) {
  return {{prepare, run_prepare<typename C::T>, FA_WIDE_PREPARE_ROWS, 0, C::THREADS, 0},
          {keys, run_keys<C>, C::BM, C::VC, C::THREADS, C::KEYS_SHARED_BYTES},
          {queries, run_queries<C>, C::BM, C::VC, C::THREADS, C::QUERIES_SHARED_BYTES}};
}

#define FA_BACKWARD(T)                                                                                       \
  backward<fa::wide_backward_config<fa::T>>("wide_backward_" #T "_prepare", "wide_backward_" #T "_keys",     \
                                            "wide_backward_" #T "_queries")

const fa_wide_backward_kernels *fa_wide_backward_find(fa_dtype dtype) {
  static const fa_wide_backward_kernels f32 = FA_BACKWARD(f32), f16 = FA_BACKWARD(f16),
                                        bf16 = FA_BACKWARD(bf16);
  switch (dtype) {
  case FA_F32:
    return &f32;
  case FA_F16:
    return &f16;
  case FA_BF16:
    return &bf16;
  default:
    return nullptr;
  }
}
