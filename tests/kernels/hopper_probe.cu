/* What a bulk copy writes to shared memory, and what it reads from there, byte for byte; products by the pipe of doubles. */
#include "gpu/kernels/hopper/linear.cuh"
#include "tests/kernels/descriptor_forms.cuh"

using namespace fa;

struct probe_params {
  fa_tensor_map map;
  uint32_t *words; /* [n_words] in the order of shared memory */
  int n_words, at[4];
};

static constexpr int BARRIER_AT = 65536;

extern "C" __global__ void probe_load(const __grid_constant__ probe_params p) {
  const uint32_t bar = shared_base() + BARRIER_AT;
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    mbarrier_init_fence();
  }
  sync_block();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect(bar, 4 * p.n_words);
    tma_load(shared_base(), &p.map, bar, p.at[0], p.at[1], p.at[2], p.at[3]);
  }
  mbarrier_wait(bar, 0);
  for (int i = threadIdx.x; i < p.n_words; i += blockDim.x)
    store_global(p.words + i, load_shared4(shared_base() + 4 * i));
}

extern "C" __global__ void probe_store(const __grid_constant__ probe_params p) {
  for (int i = threadIdx.x; i < p.n_words; i += blockDim.x)
    store_shared4(shared_base() + 4 * i, load_global(p.words + i));
  fence_async();
  sync_block();
  if (threadIdx.x == 0) {
    tma_store(&p.map, shared_base(), p.at[0], p.at[1], p.at[2], p.at[3]);
    tma_store_commit();
    tma_store_wait_read<0>();
  }
}

/* Products of 8 bits, 64 rows by 8 columns, 32 deep: by wgmma, and by mma.sync. */
struct fp8_params {
  const uint8_t *a, *b; /* [64][32], [8][32] */
  const float *c;       /* [64][8] */
  float *d;             /* [2][64][8]: wgmma's, mma.sync's */
};

/* Byte k of a row of a K-major operand without swizzle: cores of 8 rows by 16 bytes. */
__device__ static uint32_t core_byte(int row, int k) {
  return row / 8 * 256 + k / 16 * 128 + row % 8 * 16 + k % 16;
}

__device__ static uint64_t core_descriptor(uint32_t shared) {
  return (uint64_t)(shared >> 4 & 0x3fff) | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32;
}

/* Four bytes of a row from k on. */
__device__ static uint32_t word_of(const uint8_t *row, int k) {
  return *(const uint32_t *)(row + k);
}

/* Products of words by the pipe of doubles against whole ones, of 2^20 words spread out and of those around powers of two. */
struct double_params {
  unsigned *wrong;
};
template <uint32_t FACTOR> __device__ static unsigned wrong_product(uint32_t word) {
  const uint64_t got = fa::multiply_double<FACTOR>(fa::word_as_double(word));
  return got != fa::word_as_double(static_cast<uint32_t>(static_cast<uint64_t>(word) * FACTOR >> 32));
}
__device__ static unsigned wrong_products(uint32_t word) {
  return wrong_product<fa::PHILOX_FACTOR_X>(word) + wrong_product<fa::PHILOX_FACTOR_Z>(word);
}
extern "C" __global__ void probe_double(const __grid_constant__ double_params p) {
  unsigned wrong = 0;
  for (uint32_t i = threadIdx.x; i < 1u << 20; i += blockDim.x) wrong += wrong_products(i * 4099u);
  for (uint32_t i = threadIdx.x; i < 32 * 128; i += blockDim.x) wrong += wrong_products((1u << i % 32) + i / 32 - 64);
  atomicAdd(p.wrong, wrong);
}

#define FP8_PROBE(name, type)                                                                                \
  extern "C" __global__ void name(const __grid_constant__ fp8_params p) {                                    \
    __shared__ alignas(1024) uint8_t a[2048], b[256];                                                        \
    const int t = threadIdx.x, lane = t % 32, row = t / 32 * 16 + lane / 4, k = lane % 4 * 4, n = lane / 4;  \
    for (int i = t; i < 2048; i += 128) a[core_byte(i / 32, i % 32)] = p.a[i];                               \
    for (int i = t; i < 256; i += 128) b[core_byte(i / 32, i % 32)] = p.b[i];                                \
    float d[4], e[4];                                                                                        \
    for (int i = 0; i < 4; ++i) d[i] = e[i] = p.c[(row + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2];             \
    asm volatile("fence.proxy.async;" ::: "memory");                                                         \
    __syncthreads();                                                                                         \
    const uint64_t da = core_descriptor((uint32_t)__cvta_generic_to_shared(a)),                              \
                   db = core_descriptor((uint32_t)__cvta_generic_to_shared(b));                              \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                                  \
    asm volatile("{ .reg .pred q; setp.ne.b32 q, 1, 0; wgmma.mma_async.sync.aligned.m64n8k32.f32." type      \
                 "." type " {%0, %1, %2, %3}, %4, %5, q, 1, 1; }"                                            \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                            \
                 : "l"(da), "l"(db));                                                                        \
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                                           \
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                                           \
    const uint8_t *x = p.a + row * 32, *y = p.b + n * 32;                                                    \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." type "." type                                      \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                      \
                 : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3])                                            \
                 : "r"(word_of(x, k)), "r"(word_of(x + 256, k)), "r"(word_of(x, k + 16)),                    \
                   "r"(word_of(x + 256, k + 16)), "r"(word_of(y, k)), "r"(word_of(y, k + 16)));              \
    for (int i = 0; i < 4; ++i) {                                                                            \
      const int at = (row + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2;                                           \
      p.d[at] = d[i];                                                                                        \
      p.d[512 + at] = e[i];                                                                                  \
    }                                                                                                        \
  }
FP8_PROBE(probe_e4m3, "e4m3")
FP8_PROBE(probe_e5m2, "e5m2")

/* Every product of the kernels: names that begin with form_. */
#define FA_FORM(name, ...)                                                                                   \
  extern "C" __global__ void __launch_bounds__(fa::DESCRIPTOR_THREADS, 1)                                    \
      form_##name(const __grid_constant__ fa::descriptor_params p) {                                         \
    fa::check_form<__VA_ARGS__>(p);                                                                          \
  }
FA_ALL_FORMS
