#include "gpu/kernels/registry/memeff.h"

#include "gpu/kernels/registry/forward_rows.h"
#include "gpu/kernels/memeff/forward_whole.cuh"
#include "gpu/kernels/memeff/kernels.cuh"

/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_FORWARD(name, ...)                                                                                \
  static void name(const void *params) {                                                                     \
    __VA_ARGS__(*static_cast<const fa_attention_params *>(params));                                              \
  }
#define FA_ENTRY(name, T, VC) FA_FORWARD(name, fa::memeff_forward<fa::memeff_forward_config<fa::T, VC>>)
#define FA_ENTRY_WHOLE(name, T, D) FA_FORWARD(name, fa::memeff_forward_whole<fa::memeff_whole_config<D>>)
#define FA_KERNEL(name, ...)                                                                                 \
  static void name(const void *params) {                                                                     \
    __VA_ARGS__(*static_cast<const fa_memeff_backward_params *>(params));                                      \
  }
#define FA_ENTRY_BACKWARD(T) FA_MEMEFF_BACKWARD_KERNELS(FA_KERNEL, T)
#define FA_ENTRY_SINGLE(name, T, D) FA_KERNEL(name, fa::memeff_backward_single<fa::memeff_single_config<D>>)
#include "gpu/kernels/memeff/kernel_list.h"
#endif

/* ---- forward ---- */

#define FA_ENTRY(name, T, VC)                                                                                \
  forward_row_of<fa::memeff_forward_config<fa::T, VC>>(                                                        \
      #name, FA_ON_HOST(name), {"memeff/forward", "FA_ENTRY(" #name "," #T "," #VC ")", 1}),
#define FA_ENTRY_WHOLE(name, T, D)
#define FA_ENTRY_BACKWARD(T)
#define FA_ENTRY_SINGLE(name, T, D)
static const forward_row forwards[] = {
#include "gpu/kernels/memeff/kernel_list.h"
};

#define FA_ENTRY(name, T, VC)
#define FA_ENTRY_WHOLE(name, T, D)                                                                           \
  forward_row_of<fa::memeff_whole_config<D>>(#name, FA_ON_HOST(name),                                          \
                                           {"memeff/forward", "FA_ENTRY_WHOLE(" #name "," #T "," #D ")", 1}),
#define FA_ENTRY_BACKWARD(T)
#define FA_ENTRY_SINGLE(name, T, D)
static const forward_row wholes[] = {
#include "gpu/kernels/memeff/kernel_list.h"
};

const fa_kernel *fa_memeff_forward_find(fa_dtype dtype, int64_t head_dim, int64_t head_dim_v,
                                            const fa_kernel_device *device) {
  for (const forward_row &r : wholes)
    if (r.dtype == dtype && head_dim <= r.kernel.block_cols && head_dim_v <= r.kernel.block_cols &&
        (!device || r.kernel.shared_bytes <= device->max_shared_bytes))
      return &r.kernel;
  return find_forward_row(forwards, dtype, head_dim_v, nullptr); /* they fit every device */
}

/* ---- backward ---- */

struct backward_row {
  fa_dtype dtype;
  fa_memeff_backward_kernels kernels;
};
#define FA_ROW(name, ...) {#name, FA_ON_HOST(name), {"memeff/backward", nullptr, 1}},
template <class T> static constexpr backward_row backward(const fa_kernel_entry (&k)[4], const char *only) {
  typedef fa::memeff_backward_config<T> C;
  const fa_kernel_recipe r = {"memeff/backward", only, 1};
  return {dtype_of<T>(),
          {{{k[0].name, k[0].entry, r}, FA_MEMEFF_PREPARE_ROWS, 0, C::THREADS, 0},
           {{k[1].name, k[1].entry, r}, C::BM, C::VC, C::THREADS, C::KEYS_SHARED_BYTES},
           {{k[2].name, k[2].entry, r}, C::BM, C::VC, C::THREADS, C::QUERIES_SHARED_BYTES},
           {{k[3].name, k[3].entry, r}, C::BM, C::BN, C::THREADS, C::DBIAS_SHARED_BYTES}}};
}

#define FA_ENTRY(name, T, VC)
#define FA_ENTRY_WHOLE(name, T, D)
#define FA_ENTRY_SINGLE(name, T, D)
#define FA_ENTRY_BACKWARD(T)                                                                                 \
  backward<fa::T>({FA_MEMEFF_BACKWARD_KERNELS(FA_ROW, T)}, "FA_ENTRY_BACKWARD(" #T ")"),
static const backward_row backwards[] = {
#include "gpu/kernels/memeff/kernel_list.h"
};

const fa_memeff_backward_kernels *fa_memeff_backward_find(fa_dtype dtype) {
  for (const backward_row &r : backwards)
    if (r.dtype == dtype) return &r.kernels;
  return nullptr;
}

/* In ascending order of their columns. */
template <int D> static constexpr fa_memeff_kernel single(fa_kernel_entry entry) {
  typedef fa::memeff_single_config<D> C;
  return {entry, C::BM, D, C::THREADS, C::SHARED_BYTES};
}
#define FA_ENTRY(name, T, VC)
#define FA_ENTRY_WHOLE(name, T, D)
#define FA_ENTRY_BACKWARD(T)
#define FA_ENTRY_SINGLE(name, T, D)                                                                          \
  single<D>({#name, FA_ON_HOST(name), {"memeff/backward", "FA_ENTRY_SINGLE(" #name "," #T "," #D ")", 1}}),
static const fa_memeff_kernel singles[] = {
#include "gpu/kernels/memeff/kernel_list.h"
};

const fa_memeff_kernel *fa_memeff_single_find(fa_dtype dtype, int64_t widest) {
  if (dtype != FA_F32) return nullptr;
  for (const fa_memeff_kernel &k : singles)
    if (widest <= k.block_cols) return &k;
  return nullptr;
}

const char *fa_memeff_name(int i) {
  for (const forward_row &r : forwards)
    if (i-- == 0) return r.kernel.name;
  for (const forward_row &r : wholes)
    if (i-- == 0) return r.kernel.name;
  for (const backward_row &r : backwards) {
    const fa_memeff_kernel *const all[] = {&r.kernels.prepare, &r.kernels.keys, &r.kernels.queries,
                                         &r.kernels.dbias};
    for (const fa_memeff_kernel *k : all)
      if (i-- == 0) return k->entry.name;
  }
  for (const fa_memeff_kernel &k : singles)
    if (i-- == 0) return k.entry.name;
  return nullptr;
}
