/* Multi-head latent attention over a KV cache for sm_90a: queries and keys have 576 columns, the first 512 of a key are
 * its value, and many query heads share one KV head. A block has 64 packed rows (cache/range.cuh) and three warpgroups:
 *
 *   the scores      Q in registers; of each tile S = Q K^T, the softmax, P into shared memory
 *   two of values   each with half of O's columns in registers; of each tile O += P V. One thread of the
 *                   first also looks pages up and loads tiles of 64 keys
 *
 * Tensor cores never make the same scores twice, and read Q from registers: with it in shared memory, that would be as
 * busy as they are. The values' groups are a tile behind the scores, so that one works while the other has to wait. A
 * tile is loaded once, as K and V. */
#ifndef FA_GPU_KERNELS_HOPPER_LATENT_MAIN_CUH
#define FA_GPU_KERNELS_HOPPER_LATENT_MAIN_CUH

#include "gpu/kernels/hopper_latent/scores.cuh"
#include "gpu/kernels/hopper_latent/values.cuh"

namespace fa {

/* The LSE of a split in which the rows see no key. */
template <class C>
FA_DEVICE void store_latent_empty_split(const fa_cache_params &p, const cache_work_tile &work, int thread) {
  if (thread < work.n_rows)
    store_lse(p, work, unpack_row(p, work.kv_head, work.row0 + thread), -infinity());
}

/* Grid: x over blocks of rows and splits (load.cuh), with RANKS = 2 an even number of the former; y over KV heads, z
 * over sequences. Blocks of a cluster have rows of the same query and so the same keys. */
template <class C> FA_DEVICE void hopper_latent(const fa_hopper_latent_params &p) {
  const int thread = static_cast<int>(threadIdx.x), group = uniform(thread / 128);
  next_kernel_may_start();
  const cache_work_tile work = load_latent_work_tile<C>(p.c);
  if (work.n_rows <= 0) return;
  if (work.hi <= work.lo && p.c.n_splits > 1) {
    store_latent_empty_split<C>(p.c, work, thread);
    return;
  }
  if (thread == 0) init_latent_barriers<C>();
  if (C::RANKS == 2)
    cluster_sync();
  else
    sync_block();
  latent_producer<C> producer = {p, 0};
  if (thread == 128) {
    producer.find_page(work, 0);
    FA_NO_UNROLL
    for (int i = 0; i < C::STAGES - 1; ++i) producer.load(work, i);
  }
  if (thread == 0) store_latent_numbers<C>(p.c, work);
  load_latent_q<C>(p.c, work, thread);
  if (group == 0) {
    registers_up<C::SCORES_REGISTERS>();
    make_latent_scores<C>(p, latent_tiles<C>(work), thread);
  } else {
    registers_down<C::VALUES_REGISTERS>();
    add_latent_values<C>(p, work, producer, group - 1, thread % 128);
  }
  if (C::RANKS == 2) cluster_sync(); /* the other block may still load to this one, or arrive on its barriers */
}

} // namespace fa

#endif
