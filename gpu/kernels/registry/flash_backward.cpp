#include "gpu/kernels/registry/flash_backward.h"

#include "gpu/kernels/registry/flash_ability.cuh"
#include "gpu/kernels/flash/backward_kernels.cuh"

/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_KERNEL(name, ...)                                                                                 \
  static void name(const void *params) {                                                                     \
    __VA_ARGS__(*static_cast<const fa_backward_params *>(params));                                     \
  }
#define FA_ENTRY(name, T, D, kind, shape)                                                                    \
  FA_KERNEL(name, fa::flash_backward_main<fa::flash_backward_config<fa::T, D, fa::kind, fa::shape>>)
#define FA_ENTRY_ROWS(name, T, D) FA_ROW_KERNELS(FA_KERNEL, name, T, D)
#define FA_ENTRY_DBIAS(name, T) FA_DBIAS_KERNELS(FA_KERNEL, name, T)
#include "gpu/kernels/flash/backward_list.h"
#endif

template <class C> static constexpr bool is_bf16() {
  return std::is_same<typename C::T, fa::bf16>::value;
}

struct main_kernel {
  fa_kernel_main main;
  fa_kernel_ability ability;
  bool by_queries;
};
template <class C> static constexpr main_kernel describe_main(fa_kernel_entry entry) {
  return {{entry, C::BM, C::BN, C::THREADS, static_cast<size_t>(C::SHARED_BYTES), C::BIAS},
          fa::flash_ability_of<C>(false),
          C::BY_QUERIES};
}
#define FA_DESCRIBE(name, entry, T, D, kind, shape, is_ahead_of_time)                                        \
  describe_main<fa::flash_backward_config<fa::T, D, fa::kind, fa::shape>>(                                   \
      {#name,                                                                                                \
       entry,                                                                                                \
       {"flash/backward", "FA_ENTRY(" #name "," #T "," #D "," #kind "," #shape ")", is_ahead_of_time}}),
#define FA_ENTRY(name, T, D, kind, shape) FA_DESCRIBE(name, FA_ON_HOST(name), T, D, kind, shape, true)
#define FA_ENTRY_AT_RUN_TIME(name, T, D, kind, shape) FA_DESCRIBE(name, nullptr, T, D, kind, shape, false)
#define FA_ENTRY_ROWS(name, T, D)
#define FA_ENTRY_DBIAS(name, T)
static const main_kernel main_kernels[] = {
#include "gpu/kernels/flash/backward_list.h"
};

/* Of one type and head dim, in the order of FA_ROW_KERNELS. */
#define N_ROW_KERNELS 5
struct row_kernels {
  fa_kernel_entry entry[N_ROW_KERNELS];
  const char *only;
  int bf16, head_dim;
};
#define FA_ROW(name, ...) {#name, FA_ON_HOST(name), {"flash/backward", nullptr, true}},
#define FA_ENTRY(name, T, D, kind, shape)
#define FA_ENTRY_DBIAS(name, T)
#define FA_ENTRY_ROWS(name, T, D)                                                                            \
  {{FA_ROW_KERNELS(FA_ROW, name, T, D)},                                                                     \
   "FA_ENTRY_ROWS(" #name "," #T "," #D ")",                                                                 \
   is_bf16<fa::flash_backward_row_config<fa::T, D>>(),                                                       \
   D},
static const row_kernels rows_kernels[] = {
#include "gpu/kernels/flash/backward_list.h"
};

struct dbias_kernels {
  fa_kernel_entry clear, convert;
  int bf16;
};
#define FA_ENTRY(name, T, D, kind, shape)
#define FA_ENTRY_ROWS(name, T, D)
#define FA_ENTRY_DBIAS(name, T) {FA_DBIAS_KERNELS(FA_ROW, name, T) std::is_same<fa::T, fa::bf16>::value},
static const dbias_kernels dbias_table[] = {
#include "gpu/kernels/flash/backward_list.h"
};

static bool can_be_had(const fa_kernel_main &k, const fa_kernel_device *device) {
  return device ? k.shared_bytes <= device->max_shared_bytes &&
                      (k.kernel.recipe.is_ahead_of_time || device->compiles)
                : k.kernel.recipe.is_ahead_of_time;
}

static const main_kernel *find_main(const fa_kernel_ability &wanted, const fa_kernel_device *device,
                                    bool by_queries) {
  for (const main_kernel &k : main_kernels)
    if (k.by_queries == by_queries && fa_kernel_is_able(&k.ability, &wanted) && can_be_had(k.main, device))
      return &k;
  return nullptr;
}

/* One by queries goes with it if it has the same workspace and reads the same from there. */
static fa_kernel_main find_by_queries(const fa_kernel_ability &wanted, const fa_kernel_device *device,
                                     const main_kernel &by_keys) {
  const main_kernel *k = find_main(wanted, device, true);
  return k && k->ability.head_dim == by_keys.ability.head_dim &&
                 k->main.subtracts_first == by_keys.main.subtracts_first
             ? k->main
             : fa_kernel_main{};
}

static fa_kernel_entry row_kernel(const row_kernels &rows, int i) {
  fa_kernel_entry entry = rows.entry[i];
  entry.recipe.only = rows.only;
  return entry;
}

static fa_kernel_entry dbias_kernel(int bf16, fa_kernel_entry dbias_kernels::*which) {
  for (const dbias_kernels &k : dbias_table) {
    fa_kernel_entry entry = k.*which;
    entry.recipe.only =
        bf16 ? "FA_ENTRY_DBIAS(flash_backward_bf16,bf16)" : "FA_ENTRY_DBIAS(flash_backward_f16,f16)";
    if (k.bf16 == bf16) return entry;
  }
  return fa_kernel_entry{};
}

int fa_flash_backward_find(fa_kernel_ability wanted, const fa_kernel_device *device,
                           fa_flash_backward_kernels *out) {
  wanted.p_debug = 0;
  const main_kernel *by_keys = find_main(wanted, device, false);
  for (const row_kernels &rows : rows_kernels) {
    if (!by_keys || rows.bf16 != wanted.bf16 || rows.head_dim != by_keys->ability.head_dim) continue;
    *out = {row_kernel(rows, 0),
            row_kernel(rows, 1),
            row_kernel(rows, 2),
            row_kernel(rows, 3),
            row_kernel(rows, 4),
            by_keys->main,
            find_by_queries(wanted, device, *by_keys),
            dbias_kernel(wanted.bf16, &dbias_kernels::clear),
            dbias_kernel(wanted.bf16, &dbias_kernels::convert),
            rows.head_dim};
    return 1;
  }
  return 0;
}

const char *fa_flash_backward_name(int i) {
  for (const main_kernel &k : main_kernels)
    if (k.main.kernel.recipe.is_ahead_of_time && i-- == 0) return k.main.kernel.name;
  for (const row_kernels &rows : rows_kernels)
    for (const fa_kernel_entry &entry : rows.entry)
      if (i-- == 0) return entry.name;
  for (const dbias_kernels &k : dbias_table) {
    if (i-- == 0) return k.clear.name;
    if (i-- == 0) return k.convert.name;
  }
  return nullptr;
}
