/* The host body of prim_sm90.cuh. */
#ifndef FA_GPU_KERNELS_MACHINE_PRIM_SM90_HOST_CUH
#define FA_GPU_KERNELS_MACHINE_PRIM_SM90_HOST_CUH

#include "gpu/simt/device_sm90.h"

#include <type_traits>

namespace fa {

FA_DEVICE float greater(float a, float b) {
  return fmaxf(a, b);
}
/* An array that knows where it ends. */
template <int N> struct counters {
  unsigned v[N];
  unsigned *operator+(int i) {
    if (i < 0 || i >= N) { /* an address that no pointer into v can be moved to */
      const intptr_t outside =
          reinterpret_cast<intptr_t>(v) + static_cast<intptr_t>(i) * static_cast<intptr_t>(sizeof *v);
      fa_simt_global(reinterpret_cast<void *>(outside), 4, true, fa_simt_place{__FILE__, __LINE__});
    }
    return v + i;
  }
};
#define FA_COUNTERS(name, n) inline counters<n> name; /* one for all sources */
FA_DEVICE int counter_fetch_add(unsigned *p) {
  return static_cast<int>(__atomic_fetch_add(p, 1u, __ATOMIC_RELAXED));
}
FA_DEVICE void counter_store(unsigned *p, unsigned x) {
  __atomic_store_n(p, x, __ATOMIC_RELAXED);
}
FA_DEVICE void semaphore_release(unsigned *p, unsigned x, FA_FROM) {
  fa_simt_expect_written(p, 4, FA_AT); /* others may have looked at it before: it has to have been cleared */
  fa_simt_release_global(static_cast<unsigned *>(fa_simt_global(p, 4, true, FA_AT)), x);
}
FA_DEVICE void semaphore_wait(const unsigned *p, unsigned x, FA_FROM) {
  fa_simt_wait_global(static_cast<const unsigned *>(fa_simt_global(p, 4, false, FA_AT)), x, FA_AT);
}
FA_DEVICE int uniform(int x) {
  return x;
}
FA_DEVICE uint32_t in_uniform_register(uint32_t x) {
  return x;
}
FA_DEVICE uint64_t multiply_wide(uint32_t a, uint32_t b) {
  return static_cast<uint64_t>(a) * b;
}
FA_DEVICE uint64_t word_as_double(uint32_t word) {
  return 0x4530000000000000u | word;
}
/* What is no such double gives another one's product, or none. */
template <uint32_t FACTOR> FA_DEVICE uint64_t multiply_double(uint64_t x) {
  return ((x - word_as_double(0)) * FACTOR >> 32) + word_as_double(0);
}
FA_DEVICE void or_if_at_least(uint32_t &to, uint32_t bits, uint32_t x, uint32_t limit) {
  if (x >= limit) to |= bits;
}
FA_DEVICE void stmatrix_x4(uint32_t shared, const uint32_t (&r)[4], FA_FROM) {
  vec4 row;
  fa_simt_stmatrix_row(reinterpret_cast<uint32_t *>(&row), r, false, FA_AT);
  store_shared16(shared, row, file, line);
}
FA_DEVICE void stmatrix_x4_trans(uint32_t shared, const uint32_t (&r)[4], FA_FROM) {
  vec4 row;
  fa_simt_stmatrix_row(reinterpret_cast<uint32_t *>(&row), r, true, FA_AT);
  store_shared16(shared, row, file, line);
}
FA_DEVICE int from_lane(int x, int lane, FA_FROM) {
  const int own = static_cast<int>(threadIdx.x % 32);
  return static_cast<int>(fa_simt_shfl_xor(static_cast<uint32_t>(x), own ^ lane, FA_AT));
}
FA_DEVICE bool elected(FA_FROM) {
  fa_simt_any(false, FA_AT); /* orders no memory */
  return threadIdx.x % 32 == 0;
}
FA_DEVICE bool any_lane(bool x, FA_FROM) {
  return fa_simt_any(x, FA_AT);
}
template <int N> FA_DEVICE void registers_up() {}
template <int N> FA_DEVICE void registers_down() {}

FA_DEVICE void mbarrier_init(uint32_t bar, uint32_t count, FA_FROM) {
  fa_simt_mbarrier_init(bar, count, FA_AT);
}
FA_DEVICE void mbarrier_init_fence() {}
FA_DEVICE void mbarrier_arrive(uint32_t bar, FA_FROM) {
  fa_simt_mbarrier_arrive(bar, 0, FA_AT);
}
FA_DEVICE void mbarrier_arrive_expect(uint32_t bar, uint32_t bytes, FA_FROM) {
  fa_simt_mbarrier_arrive(bar, bytes, FA_AT);
}
FA_DEVICE void mbarrier_wait(uint32_t bar, int parity, FA_FROM) {
  fa_simt_mbarrier_wait(bar, parity, FA_AT);
}
template <int THREADS> FA_DEVICE void named_sync(int id, FA_FROM) {
  fa_simt_named_barrier(id, THREADS, true, FA_AT);
}
template <int THREADS> FA_DEVICE void named_sync_of_roles(int id, FA_FROM) {
  fa_simt_named_barrier(id, THREADS, true, FA_AT);
}
template <int THREADS> FA_DEVICE void named_arrive(int id, FA_FROM) {
  fa_simt_named_barrier(id, THREADS, false, FA_AT);
}

FA_DEVICE int cluster_rank() {
  return static_cast<int>(fa_simt_self->rank);
}
FA_DEVICE void cluster_sync(FA_FROM) {
  fa_simt_sync_cluster(FA_AT);
}
FA_DEVICE uint32_t cluster_address(uint32_t shared, int rank) {
  return shared - fa_simt_self->shared_base + (static_cast<uint32_t>(rank) << 18);
}
FA_DEVICE void cluster_end(FA_FROM) {
  fa_simt_sync_cluster(FA_AT);
}
FA_DEVICE uint32_t load_cluster4(uint32_t address, FA_FROM) {
  uint32_t v;
  __builtin_memcpy(&v, fa_simt_cluster_read(address, 4, FA_AT), 4);
  return v;
}
FA_DEVICE vec4 load_cluster16(uint32_t address, FA_FROM) {
  vec4 v;
  __builtin_memcpy(&v, fa_simt_cluster_read(address, 16, FA_AT), 16);
  return v;
}
FA_DEVICE void mbarrier_arrive_at(uint32_t bar, FA_FROM) {
  fa_simt_mbarrier_arrive(bar, 0, FA_AT);
}
FA_DEVICE void copy_shared_to_cluster(uint32_t to, uint32_t from, uint32_t bytes, uint32_t bar, FA_FROM) {
  fa_simt_bulk_copy(to, from, bytes, bar, FA_AT);
}

FA_DEVICE void fence_async() {
  fa_simt_fence_async();
}
FA_DEVICE void tma_prefetch_map(const fa_tensor_map *) {}
FA_DEVICE void tma_load(uint32_t shared, const fa_tensor_map *map, uint32_t bar, int c0, int c1, int c2,
                        int c3, FA_FROM) {
  const int c[4] = {c0, c1, c2, c3};
  fa_simt_tma_load(shared, map, bar, c, FA_AT);
}
FA_DEVICE void tma_load_both(uint32_t shared, const fa_tensor_map *map, uint32_t bar, int c0, int c1, int c2,
                             int c3, FA_FROM) {
  for (int rank = 0; rank < 2; ++rank)
    tma_load(cluster_address(shared, rank), map, cluster_address(bar, rank), c0, c1, c2, c3, file, line);
}
FA_DEVICE void tma_store(const fa_tensor_map *map, uint32_t shared, int c0, int c1, int c2, int c3, FA_FROM) {
  const int c[4] = {c0, c1, c2, c3};
  fa_simt_tma_store(map, shared, c, FA_AT);
}
FA_DEVICE void bulk_add(float *to, uint32_t shared, uint32_t bytes, FA_FROM) {
  fa_simt_bulk_add(to, shared, bytes, FA_AT);
}
FA_DEVICE void tma_store_commit() {
  fa_simt_tma_store_commit();
}
FA_DEVICE void tma_store_wait() {
  fa_simt_tma_store_wait();
}
template <int N> FA_DEVICE void tma_store_wait_read() {
  fa_simt_tma_store_wait_read(N);
}

FA_DEVICE void wgmma_fence(FA_FROM) {
  fa_simt_wgmma_fence(FA_AT);
}
FA_DEVICE void wgmma_commit(FA_FROM) {
  fa_simt_wgmma_commit(FA_AT);
}
template <int TILES> FA_DEVICE void pin(float (&)[TILES][4]) {}
template <int N, int TILES> FA_DEVICE void wgmma_wait(float (&)[TILES][4], FA_FROM) {
  fa_simt_wgmma_wait(N, FA_AT);
}

template <int N> FA_DEVICE void wgmma_wait_operands(FA_FROM) {
  fa_simt_wgmma_wait(N, FA_AT);
}

template <class T> constexpr fa_simt_element element_of() {
  return std::is_same<T, f32>::value    ? FA_SIMT_TF32
         : std::is_same<T, e4m3>::value ? FA_SIMT_E4M3
         : std::is_same<T, bf16>::value ? FA_SIMT_BF16
                                        : FA_SIMT_F16;
}
template <class T> constexpr bool has_one_order() {
  return std::is_same<T, e4m3>::value || std::is_same<T, f32>::value;
}
template <int TRANS_A, int TRANS_B, int TILES, class T>
FA_DEVICE void wgmma_ss(float (&d)[TILES][4], uint64_t a, uint64_t b, int accumulate, T, FA_FROM) {
  static_assert(!has_one_order<T>() || (!TRANS_A && !TRANS_B), "only 16-bit elements have two orders");
  const fa_simt_mma p = {
      d[0], TILES, nullptr, a, b, TRANS_A != 0, TRANS_B != 0, accumulate != 0, element_of<T>()};
  fa_simt_wgmma(&p, FA_AT);
}
template <int TRANS_B, int TILES, class T>
FA_DEVICE void wgmma_rs(float (&d)[TILES][4], const uint32_t (&a)[4], uint64_t b, int accumulate, T,
                        FA_FROM) {
  static_assert(!has_one_order<T>() || !TRANS_B, "only 16-bit elements have two orders");
  const fa_simt_mma p = {
      d[0], TILES, a, 0, b, false, TRANS_B != 0, accumulate != 0, element_of<T>()};
  fa_simt_wgmma(&p, FA_AT);
}

} // namespace fa

#endif
