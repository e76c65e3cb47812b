/* The order in which clusters of gpu/kernels/hopper_backward/pair.cuh add to dQ in a deterministic call: from the last keys to
 * the first. The four warpgroups of a cluster add to columns of their own, and its blocks take turns without each other: there
 * is a semaphore for either half of the columns. A warp of the producers takes a block's turns and passes them on, so that the
 * consumers wait for no memory. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_TURNS_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_TURNS_CUH

#include "gpu/kernels/hopper_backward/pair_config.cuh"

namespace fa {

/* The block's semaphore of a row tile. */
template <class C>
FA_DEVICE unsigned *hopper_pair_semaphore_of(const fa_backward_params &p, const hopper_pair_tile &at) {
  static_assert(C::BM == C::RANKS * FA_DQ_SEMAPHORE_ROWS, "one for each block of a cluster");
  return p.dq_semaphore + workspace_row<C::D>(p, static_cast<int>(blockIdx.z), at.head, at.block * C::BM) / FA_DQ_SEMAPHORE_ROWS +
         cluster_rank();
}

/* True if the cluster with the next keys, which adds before this one, visits the row tile too. By the masks by position, the
 * clusters that visit a row tile are contiguous. */
template <class C> FA_DEVICE bool hopper_pair_has_predecessor(const fa_backward_params &p, int next, int tile) {
  const sequence seq = hopper_load_sequence<C>(p.forward);
  const int first = next * (C::RANKS * C::BN);
  if (first >= seq.len_k) return false;
  const block_range tiles = query_blocks<C>(p.forward, seq, first, min_int(first + C::RANKS * C::BN, seq.len_k));
  return tiles.begin <= tile && tile < tiles.end;
}

/* Step n: from when it is the block's turn until its consumers have added. There is no deadlock: a cluster waits only for one that
 * started earlier and visits the same row tiles in the same order. One lane. */
template <class C>
FA_DEVICE void hopper_pair_take_turn(const fa_backward_params &p, hopper_pair_key_tiles<C> keys,
                                     const hopper_pair_tile &at, unsigned n) {
  typedef hopper_pair_barriers<C> bar;
  const int next = keys.block(p) / C::RANKS + 1; /* also the number that this cluster leaves, as they begin with 1 */
  unsigned *const semaphore = hopper_pair_semaphore_of<C>(p, at);
  if (hopper_pair_has_predecessor<C>(p, next, at.block)) semaphore_wait(semaphore, static_cast<unsigned>(next) + 1);
  mbarrier_arrive(bar::dq_ready());
  mbarrier_wait(bar::dq_added(), static_cast<int>(n % 2));
  semaphore_release(semaphore, static_cast<unsigned>(next));
}

/* All of a block's turns, by a warp. */
template <class C> FA_DEVICE void hopper_pair_take_turns(const fa_backward_params &p, int lane) {
  const hopper_pair_key_tiles<C> keys;
  if (!keys.is_there(p)) return;
  pipeline_state<C::STAGES> pipe;
  hopper_pair_walk<C> at(p.forward, hopper_pair_load_key_tile<C>(p, keys));
  FA_NO_UNROLL
  while (at.is_there(hopper_pair_load_key_tile<C>(p, keys))) {
    if (lane == 0) hopper_pair_take_turn<C>(p, keys, at.tile(pipe), pipe.n);
    pipe.next();
    at = at.after(hopper_pair_load_key_tile<C>(p, keys));
  }
}

/* Around the additions of a step's dQ, by the consumers: waits until it is the block's turn, and says that all are made. */
template <class C>
FA_DEVICE void hopper_pair_dq_wait(const fa_backward_params &p, pipeline_state<C::STAGES> pipe) {
  if (C::DQ_SEMAPHORE && p.dq_semaphore) mbarrier_wait(hopper_pair_barriers<C>::dq_ready(), static_cast<int>(pipe.n % 2));
}
template <class C> FA_DEVICE void hopper_pair_dq_arrive(const fa_backward_params &p, int thread) {
  if (!C::DQ_SEMAPHORE || !p.dq_semaphore) return;
  sync_warp(); /* all lanes have added */
  hopper_release(hopper_pair_barriers<C>::dq_added(), thread);
}

} // namespace fa

#endif
