#include "gpu/kernels/flash_backward_host.h"

#include "gpu/kernels/flash_backward.cuh"
#include "gpu/kernels/flash_backward_convert.cuh"
#include "gpu/kernels/flash_backward_prepare.cuh"

#include <type_traits>

/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_KERNEL(name, ...)                                                                                 \
  static void name(const void *params) {                                                                     \
    __VA_ARGS__(*static_cast<const fa_flash_backward_params *>(params));                                     \
  }
#define FA_ENTRY(name, T, D, kind)                                                                           \
  FA_KERNEL(name, fa::flash_backward<fa::flash_backward_config<fa::T, D, fa::kind>>)
#define FA_ENTRY_ROWS(name, T, D)                                                                            \
  FA_KERNEL(name##_prepare, fa::flash_backward_prepare<fa::flash_backward_prepare_config<fa::T, D, true>>)   \
  FA_KERNEL(name##_prepare_only,                                                                             \
            fa::flash_backward_prepare<fa::flash_backward_prepare_config<fa::T, D, false>>)                  \
  FA_KERNEL(name##_convert, fa::flash_backward_convert<fa::flash_backward_convert_config<fa::T, D>>)
#include "gpu/kernels/flash_backward_list.h"
#endif

template <class C> static constexpr bool is_bf16() {
  return std::is_same<typename C::T, fa::bf16>::value;
}

struct main_kernel {
  fa_flash_entry entry;
  fa_flash_ability ability;
  int block_n;
  size_t shared_bytes;
};
template <class C> static constexpr main_kernel describe_main(fa_flash_entry entry) {
  return {entry,
          {is_bf16<C>(), C::D, !C::ALIGNED, C::SCORE_MOD, C::DROPOUT, 0},
          C::BN,
          static_cast<size_t>(C::SHARED_BYTES)};
}
#define FA_DESCRIBE(name, entry, T, D, kind, is_ahead_of_time)                                               \
  describe_main<fa::flash_backward_config<fa::T, D, fa::kind>>(                                              \
      {#name, entry, {"flash_backward", "FA_ENTRY(" #name "," #T "," #D "," #kind ")", is_ahead_of_time}}),
#define FA_ENTRY(name, T, D, kind) FA_DESCRIBE(name, FA_ON_HOST(name), T, D, kind, true)
#define FA_ENTRY_AT_RUN_TIME(name, T, D, kind) FA_DESCRIBE(name, nullptr, T, D, kind, false)
#define FA_ENTRY_ROWS(name, T, D)
static const main_kernel main_kernels[] = {
#include "gpu/kernels/flash_backward_list.h"
};

struct row_kernels {
  fa_flash_entry prepare, prepare_only, convert;
  int bf16, head_dim;
};
#define FA_ENTRY(name, T, D, kind)
#define FA_ROW_KERNEL(name, which, T, D)                                                                     \
  {                                                                                                          \
#name #which, FA_ON_HOST(name##which), {                                                                 \
      "flash_backward", "FA_ENTRY_ROWS(" #name "," #T "," #D ")", true                                       \
    }                                                                                                        \
  }
#define FA_ENTRY_ROWS(name, T, D)                                                                            \
  {FA_ROW_KERNEL(name, _prepare, T, D), FA_ROW_KERNEL(name, _prepare_only, T, D),                            \
   FA_ROW_KERNEL(name, _convert, T, D), is_bf16<fa::flash_backward_convert_config<fa::T, D>>(), D},
static const row_kernels rows_kernels[] = {
#include "gpu/kernels/flash_backward_list.h"
};

/* head_dim of a kernel: the largest of the 32 that it takes. */
static bool takes(int bf16, int head_dim, const fa_flash_ability &wanted) {
  return bf16 == wanted.bf16 && wanted.head_dim <= head_dim && wanted.head_dim > head_dim - 32;
}

static bool can_be_had(const main_kernel &k, const fa_flash_device *device) {
  return device ? k.shared_bytes <= device->max_shared_bytes &&
                      (k.entry.recipe.is_ahead_of_time || device->compiles)
                : k.entry.recipe.is_ahead_of_time;
}

int fa_flash_backward_find(fa_flash_ability wanted, const fa_flash_device *device,
                           fa_flash_backward_kernels *out) {
  for (const row_kernels &rows : rows_kernels) {
    if (!takes(rows.bf16, rows.head_dim, wanted)) continue;
    for (const main_kernel &k : main_kernels) {
      if (!takes(k.ability.bf16, k.ability.head_dim, wanted) || k.ability.unaligned < wanted.unaligned ||
          k.ability.score_mod < wanted.score_mod || k.ability.dropout < wanted.dropout ||
          !can_be_had(k, device))
        continue;
      *out = {rows.prepare, rows.prepare_only, k.entry, rows.convert, k.block_n, k.shared_bytes};
      return 1;
    }
  }
  return 0;
}
