/* What a bulk copy writes to shared memory, and what it reads from there, byte for byte. */
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

/* Every product of the kernels: names that begin with form_. */
#define FA_FORM(name, ...)                                                                                   \
  extern "C" __global__ void __launch_bounds__(fa::DESCRIPTOR_THREADS, 1)                                    \
      form_##name(const __grid_constant__ fa::descriptor_params p) {                                         \
    fa::check_form<__VA_ARGS__>(p);                                                                          \
  }
FA_ALL_FORMS
