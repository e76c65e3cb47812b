/* The device body of prim_sm90.cuh: inline PTX for sm_90a. */
#ifndef FA_GPU_KERNELS_MACHINE_PRIM_SM90_PTX_CUH
#define FA_GPU_KERNELS_MACHINE_PRIM_SM90_PTX_CUH

namespace fa {

FA_DEVICE float greater(float a, float b) {
  return fmaxf(a, b);
}
#define FA_COUNTERS(name, n) __device__ unsigned name[n];
FA_DEVICE int counter_fetch_add(unsigned *p) {
  return static_cast<int>(atomicAdd(p, 1u));
}
FA_DEVICE void counter_store(unsigned *p, unsigned x) {
  atomicExch(p, x);
}
FA_DEVICE void semaphore_release(unsigned *p, unsigned x) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(x) : "memory");
}
FA_DEVICE void semaphore_wait(const unsigned *p, unsigned x) {
  unsigned is;
  do
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(is)
                 : "l"(__cvta_generic_to_global(p))
                 : "memory");
  while (is != x);
}
FA_DEVICE int uniform(int x) {
  return __shfl_sync(0xffffffffu, x, 0);
}
/* What is added is 0: a block has at most 1,024 threads. ptxas does not look so far, and so keeps the shuffle, whose
 * result it holds in a uniform register. */
FA_DEVICE uint32_t in_uniform_register(uint32_t x) {
  return __shfl_sync(0xffffffffu, x + (threadIdx.x >> 12), 0);
}
FA_DEVICE uint64_t multiply_wide(uint32_t a, uint32_t b) {
  uint64_t product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
}
FA_DEVICE uint64_t word_as_double(uint32_t word) {
  return 0x4530000000000000u | word;
}
/* 2^84 plus a product of 64 bits, rounded to zero, has lost the product's lower word, and has the upper one for its lower. */
template <uint32_t FACTOR> FA_DEVICE uint64_t multiply_double(uint64_t x) {
  uint64_t product;
  asm("{ .reg .f64 d; mov.b64 d, %1; fma.rz.f64 d, d, %2, %3; mov.b64 %0, d; }"
      : "=l"(product)
      : "l"(x), "d"(FACTOR * 0x1p-32), "d"(0x1p84 - FACTOR * 0x1p52));
  return product;
}
FA_DEVICE void or_if_at_least(uint32_t &to, uint32_t bits, uint32_t x, uint32_t limit) {
  asm("{ .reg .pred is; setp.ge.u32 is, %2, %3; @is or.b32 %0, %0, %1; }"
      : "+r"(to)
      : "r"(bits), "r"(x), "r"(limit));
}
FA_DEVICE void stmatrix_x4(uint32_t shared, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
FA_DEVICE void stmatrix_x4_trans(uint32_t shared, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
FA_DEVICE int from_lane(int x, int lane) {
  return __shfl_sync(0xffffffffu, x, lane);
}
FA_DEVICE bool elected() {
  int is;
  asm volatile("{ .reg .pred is; elect.sync _|is, 0xffffffff; selp.s32 %0, 1, 0, is; }" : "=r"(is));
  return is != 0;
}
FA_DEVICE bool any_lane(bool x) {
  return __any_sync(0xffffffffu, x) != 0;
}
template <int N> FA_DEVICE void registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> FA_DEVICE void registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

/* ---- barriers ---- */

FA_DEVICE void mbarrier_init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
FA_DEVICE void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
FA_DEVICE void mbarrier_arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
FA_DEVICE void mbarrier_arrive_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
FA_DEVICE void mbarrier_wait(uint32_t bar, int parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n"
               "}" ::"r"(bar),
               "r"(parity)
               : "memory");
}
template <int THREADS> FA_DEVICE void named_sync(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(THREADS) : "memory");
}
template <int THREADS> FA_DEVICE void named_sync_of_roles(int id) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "n"(THREADS) : "memory");
}
template <int THREADS> FA_DEVICE void named_arrive(int id) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(THREADS) : "memory");
}

/* ---- clusters ---- */

FA_DEVICE int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
FA_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n"
               "barrier.cluster.wait.acquire;" ::
                   : "memory");
}
FA_DEVICE void cluster_end() {
  asm volatile("barrier.cluster.arrive.relaxed;\n"
               "barrier.cluster.wait;" ::
                   : "memory");
}
FA_DEVICE uint32_t cluster_address(uint32_t shared, int rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(rank));
  return address;
}
FA_DEVICE uint32_t load_cluster4(uint32_t address) {
  uint32_t v;
  asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}
FA_DEVICE vec4 load_cluster16(uint32_t address) {
  vec4 v;
  asm volatile("ld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
/* With .release.cluster this would first be a fence over all of device memory: hundreds of clocks. */
FA_DEVICE void mbarrier_arrive_at(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}
FA_DEVICE void copy_shared_to_cluster(uint32_t to, uint32_t from, uint32_t bytes, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          to),
      "r"(from), "r"(bytes), "r"(bar)
      : "memory");
}

/* ---- bulk copies (TMA) ---- */

FA_DEVICE void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
FA_DEVICE void tma_prefetch_map(const fa_tensor_map *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
FA_DEVICE void tma_load(uint32_t shared, const fa_tensor_map *map, uint32_t bar, int c0, int c1, int c2,
                        int c3) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
               "%4, %5, %6}], [%2];" ::"r"(shared),
               "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}
FA_DEVICE void tma_load_both(uint32_t shared, const fa_tensor_map *map, uint32_t bar, int c0, int c1, int c2,
                             int c3) {
  const uint16_t ranks = 3; /* one bit per rank */
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "h"(ranks)
      : "memory");
}
FA_DEVICE void tma_store(const fa_tensor_map *map, uint32_t shared, int c0, int c1, int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
      "r"(shared), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
FA_DEVICE void bulk_add(float *to, uint32_t shared, uint32_t bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
               "r"(shared), "r"(bytes)
               : "memory");
}
FA_DEVICE void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
FA_DEVICE void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
template <int N> FA_DEVICE void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

/* ---- warpgroup MMAs ---- */

FA_DEVICE void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
FA_DEVICE void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Keeps the compiler from moving a use of d above the wait. */
template <int TILES> FA_DEVICE void pin(float (&d)[TILES][4]) {
  FA_UNROLL
  for (int i = 0; i < TILES; ++i)
    asm volatile("" : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])::"memory");
}
template <int N, int TILES> FA_DEVICE void wgmma_wait(float (&d)[TILES][4]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
  pin(d);
}

template <int N> FA_DEVICE void wgmma_wait_operands() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/* The MMA with N / 8 column tiles. The strings of FA_R* name the accumulators' operands, x0... the operands
 * after them. */
template <int TILES, class T> struct wgmma_of;

#define FA_D1(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define FA_D2(i) FA_D1(i), FA_D1(i + 1)
#define FA_D4(i) FA_D2(i), FA_D2(i + 2)
#define FA_D8(i) FA_D4(i), FA_D4(i + 4)
#define FA_D16(i) FA_D8(i), FA_D8(i + 8)
#define FA_R0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define FA_R1 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define FA_R2 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define FA_R3 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define FA_R4 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define FA_R5 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define FA_R6 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define FA_R7 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define FA_R8 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define FA_R9 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define FA_R10 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define FA_R11 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define FA_R12 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define FA_R13 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define FA_R14 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define FA_R15 ", %120, %121, %122, %123, %124, %125, %126, %127"

#define FA_WGMMA(N, TYPE, NAME, x0, x1, x2, x3, x4, x5, x6)                                                  \
  template <> struct wgmma_of<N / 8, TYPE> {                                                                 \
    template <int TRANS_A, int TRANS_B>                                                                      \
    FA_DEVICE static void ss(float (&d)[N / 8][4], uint64_t a, uint64_t b, int accumulate) {                 \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, " x2 ", 0; wgmma.mma_async.sync.aligned.m64n" #N          \
                   "k16.f32." NAME "." NAME " {" FA_RS##N "}, " x0 ", " x1 ", p, 1, 1, " x3 ", " x4 "; }"    \
                   : FA_DS##N                                                                                \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(TRANS_A), "n"(TRANS_B));                           \
    }                                                                                                        \
    template <int TRANS_B>                                                                                   \
    FA_DEVICE static void rs(float (&d)[N / 8][4], const uint32_t (&a)[4], uint64_t b, int accumulate) {     \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, " x5 ", 0; wgmma.mma_async.sync.aligned.m64n" #N          \
                   "k16.f32." NAME "." NAME " {" FA_RS##N "}, {" x0 ", " x1 ", " x2 ", " x3 "}, " x4         \
                                                          ", p, 1, 1, " x6 "; }"                             \
                   : FA_DS##N                                                                                \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TRANS_B));     \
    }                                                                                                        \
  };
#define FA_WGMMA_BOTH(N, ...)                                                                                \
  FA_WGMMA(N, f16, "f16", __VA_ARGS__)                                                                       \
  FA_WGMMA(N, bf16, "bf16", __VA_ARGS__)
#define FA_DS16 FA_D2(0)
#define FA_RS16 FA_R0
#define FA_DS32 FA_D4(0)
#define FA_RS32 FA_R0 FA_R1
#define FA_DS64 FA_D8(0)
#define FA_RS64 FA_R0 FA_R1 FA_R2 FA_R3
#define FA_DS80 FA_D8(0), FA_D2(8)
#define FA_RS80 FA_R0 FA_R1 FA_R2 FA_R3 FA_R4
#define FA_DS96 FA_D8(0), FA_D4(8)
#define FA_RS96 FA_R0 FA_R1 FA_R2 FA_R3 FA_R4 FA_R5
#define FA_DS112 FA_D8(0), FA_D4(8), FA_D2(12)
#define FA_RS112 FA_R0 FA_R1 FA_R2 FA_R3 FA_R4 FA_R5 FA_R6
#define FA_DS128 FA_D16(0)
#define FA_RS128 FA_R0 FA_R1 FA_R2 FA_R3 FA_R4 FA_R5 FA_R6 FA_R7
#define FA_DS160 FA_D16(0), FA_D4(16)
#define FA_RS160 FA_R0 FA_R1 FA_R2 FA_R3 FA_R4 FA_R5 FA_R6 FA_R7 FA_R8 FA_R9
#define FA_DS176 FA_D16(0), FA_D4(16), FA_D2(20)
#define FA_RS176 FA_R0 FA_R1 FA_R2 FA_R3 FA_R4 FA_R5 FA_R6 FA_R7 FA_R8 FA_R9 FA_R10
#define FA_DS192 FA_D16(0), FA_D8(16)
#define FA_RS192 FA_R0 FA_R1 FA_R2 FA_R3 FA_R4 FA_R5 FA_R6 FA_R7 FA_R8 FA_R9 FA_R10 FA_R11
#define FA_DS256 FA_D16(0), FA_D16(16)
#define FA_RS256                                                                                             \
  FA_R0 FA_R1 FA_R2 FA_R3 FA_R4 FA_R5 FA_R6 FA_R7 FA_R8 FA_R9 FA_R10 FA_R11 FA_R12 FA_R13 FA_R14 FA_R15
FA_WGMMA_BOTH(16, "%8", "%9", "%10", "%11", "%12", "%13", "%14")
FA_WGMMA_BOTH(32, "%16", "%17", "%18", "%19", "%20", "%21", "%22")
FA_WGMMA_BOTH(64, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
FA_WGMMA_BOTH(80, "%40", "%41", "%42", "%43", "%44", "%45", "%46")
FA_WGMMA_BOTH(96, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
FA_WGMMA_BOTH(112, "%56", "%57", "%58", "%59", "%60", "%61", "%62")
FA_WGMMA_BOTH(128, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
FA_WGMMA_BOTH(160, "%80", "%81", "%82", "%83", "%84", "%85", "%86")
FA_WGMMA_BOTH(176, "%88", "%89", "%90", "%91", "%92", "%93", "%94")
FA_WGMMA_BOTH(192, "%96", "%97", "%98", "%99", "%100", "%101", "%102")
FA_WGMMA_BOTH(256, "%128", "%129", "%130", "%131", "%132", "%133", "%134")

/* Of bytes, which are 32 deep, and of tf32, 8 deep; both have one order. */
#define FA_WGMMA_ONE_ORDER(N, TYPE, NAME, x0, x1, x2, x3, x4, x5)                                            \
  template <> struct wgmma_of<N / 8, TYPE> {                                                                 \
    template <int, int>                                                                                      \
    FA_DEVICE static void ss(float (&d)[N / 8][4], uint64_t a, uint64_t b, int accumulate) {                 \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, " x2 ", 0; wgmma.mma_async.sync.aligned.m64n" #N          \
                   NAME " {" FA_RS##N "}, " x0 ", " x1 ", p, 1, 1; }"                                        \
                   : FA_DS##N                                                                                \
                   : "l"(a), "l"(b), "r"(accumulate));                                                       \
    }                                                                                                        \
    template <int>                                                                                           \
    FA_DEVICE static void rs(float (&d)[N / 8][4], const uint32_t (&a)[4], uint64_t b, int accumulate) {     \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, " x5 ", 0; wgmma.mma_async.sync.aligned.m64n" #N          \
                   NAME " {" FA_RS##N "}, {" x0 ", " x1 ", " x2 ", " x3 "}, " x4 ", p, 1, 1; }"              \
                   : FA_DS##N                                                                                \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                   \
    }                                                                                                        \
  };
#define FA_WGMMA_E4M3(N, ...) FA_WGMMA_ONE_ORDER(N, e4m3, "k32.f32.e4m3.e4m3", __VA_ARGS__)
#define FA_WGMMA_TF32(N, ...) FA_WGMMA_ONE_ORDER(N, f32, "k8.f32.tf32.tf32", __VA_ARGS__)
FA_WGMMA_E4M3(32, "%16", "%17", "%18", "%19", "%20", "%21")
FA_WGMMA_E4M3(64, "%32", "%33", "%34", "%35", "%36", "%37")
FA_WGMMA_E4M3(128, "%64", "%65", "%66", "%67", "%68", "%69")
FA_WGMMA_E4M3(192, "%96", "%97", "%98", "%99", "%100", "%101")
FA_WGMMA_TF32(32, "%16", "%17", "%18", "%19", "%20", "%21")
FA_WGMMA_TF32(64, "%32", "%33", "%34", "%35", "%36", "%37")
FA_WGMMA_TF32(128, "%64", "%65", "%66", "%67", "%68", "%69")

template <int TRANS_A, int TRANS_B, int TILES, class T>
FA_DEVICE void wgmma_ss(float (&d)[TILES][4], uint64_t a, uint64_t b, int accumulate, T) {
  wgmma_of<TILES, T>::template ss<TRANS_A, TRANS_B>(d, a, b, accumulate);
}
template <int TRANS_B, int TILES, class T>
FA_DEVICE void wgmma_rs(float (&d)[TILES][4], const uint32_t (&a)[4], uint64_t b, int accumulate, T) {
  wgmma_of<TILES, T>::template rs<TRANS_B>(d, a, b, accumulate);
}

} // namespace fa

#endif
