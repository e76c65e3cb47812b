#include "gpu/kernels/flash_backward_host.h"

#include "gpu/kernels/flash_backward.cuh"
#include "gpu/kernels/flash_backward_convert.cuh"
#include "gpu/kernels/flash_backward_prepare.cuh"

#include <type_traits>

#define FA_KERNEL(name, ...)                                                                                 \
  static void name(const void *params) {                                                                     \
    __VA_ARGS__(*static_cast<const fa_flash_backward_params *>(params));                                     \
  }
#define FA_ENTRY(name, T, D, ALIGNED, SCORE_MOD)                                                             \
  FA_KERNEL(name, fa::flash_backward<fa::flash_backward_config<fa::T, D, ALIGNED, SCORE_MOD>>)
#define FA_ENTRY_ROWS(name, T, D, ALIGNED)                                                                   \
  FA_KERNEL(name##_prepare,                                                                                  \
            fa::flash_backward_prepare<fa::flash_backward_prepare_config<fa::T, D, ALIGNED, true>>)          \
  FA_KERNEL(name##_convert, fa::flash_backward_convert<fa::flash_backward_convert_config<fa::T, D, ALIGNED>>)
#include "gpu/kernels/flash_backward_list.h"

template <class C> static constexpr bool is_bf16() {
  return std::is_same<typename C::T, fa::bf16>::value;
}

struct main_kernel {
  fa_flash_entry entry;
  int bf16, head_dim, aligned, score_mod;
};
template <class C> static constexpr main_kernel describe_main(fa_flash_entry entry) {
  static_assert(C::SHARED_BYTES == fa_flash_backward_shared_bytes(C::D),
                "the plan says what the kernel uses");
  return {entry, is_bf16<C>(), C::D, C::ALIGNED, C::SCORE_MOD};
}
#define FA_ENTRY(name, T, D, ALIGNED, SCORE_MOD)                                                             \
  describe_main<fa::flash_backward_config<fa::T, D, ALIGNED, SCORE_MOD>>({#name, name}),
#define FA_ENTRY_ROWS(name, T, D, ALIGNED)
static const main_kernel main_kernels[] = {
#include "gpu/kernels/flash_backward_list.h"
};

struct row_kernels {
  fa_flash_entry prepare, convert;
  int bf16, head_dim, aligned;
};
template <class C>
static constexpr row_kernels describe_rows(fa_flash_entry prepare, fa_flash_entry convert) {
  return {prepare, convert, is_bf16<C>(), C::D, C::ALIGNED};
}
#define FA_ENTRY(name, T, D, ALIGNED, SCORE_MOD)
#define FA_ENTRY_ROWS(name, T, D, ALIGNED)                                                                   \
  describe_rows<fa::flash_backward_convert_config<fa::T, D, ALIGNED>>({#name "_prepare", name##_prepare},    \
                                                                      {#name "_convert", name##_convert}),
static const row_kernels rows_kernels[] = {
#include "gpu/kernels/flash_backward_list.h"
};

int fa_flash_backward_find(int bf16, int head_dim, int aligned, int score_mod,
                           fa_flash_backward_kernels *out) {
  const main_kernel *main = nullptr;
  const row_kernels *rows = nullptr;
  for (const main_kernel &k : main_kernels)
    if (k.bf16 == bf16 && k.head_dim == head_dim && k.aligned == aligned && k.score_mod == score_mod)
      main = &k;
  for (const row_kernels &k : rows_kernels)
    if (k.bf16 == bf16 && k.head_dim == head_dim && k.aligned == aligned) rows = &k;
  if (!main || !rows) return 0;
  *out = {rows->prepare, main->entry, rows->convert};
  return 1;
}
