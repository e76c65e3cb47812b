/* The order in which clusters of gpu/kernels/hopper_backward/pair.cuh add to dQ in a deterministic call: from the last keys to
 * the first. The four warpgroups of a cluster add to columns of their own, and its blocks take turns without each other: there
 * is a semaphore for either half of the columns. Two warps of the producers take a block's turns and pass them on, so that the
 * consumers wait for no memory: one warp would take longer than a step to do both. */
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
  if (next >= static_cast<int>(gridDim.x) / C::RANKS || first >= seq.len_k) return false;
  const block_range tiles = query_blocks<C>(p.forward, seq, first, min_int(first + C::RANKS * C::BN, seq.len_k));
  return tiles.begin <= tile && tile < tiles.end;
}

/* Which steps a block has turns for, one lane at a time: turn(at, n) for step n. */
template <class C, class F>
FA_DEVICE void hopper_pair_each_turn(const fa_backward_params &p, int lane, const F &turn) {
  const hopper_pair_key_tiles<C> keys;
  if (!keys.is_there(p)) return;
  pipeline_state<C::STAGES> pipe;
  hopper_pair_walk<C> at(p.forward, hopper_pair_load_key_tile<C>(p, keys));
  FA_NO_UNROLL
  while (at.is_there(hopper_pair_load_key_tile<C>(p, keys))) {
    if (lane == 0) turn(at.tile(pipe), static_cast<int>(pipe.n % 2));
    pipe.next();
    at = at.after(hopper_pair_load_key_tile<C>(p, keys));
  }
}

/* The number that a cluster leaves in the semaphores: from 1 on. */
template <class C> FA_DEVICE int hopper_pair_number(const fa_backward_params &p) {
  return hopper_pair_key_tiles<C>().block(p) / C::RANKS + 1;
}

/* A warp that takes the turns. It is a step ahead: the next turn is taken while the consumers add. There is no deadlock: a cluster
 * waits only for one that started earlier and visits the same row tiles in the same order. */
template <class C> FA_DEVICE void hopper_pair_take_turns(const fa_backward_params &p, int lane) {
  typedef hopper_pair_barriers<C> bar;
  hopper_pair_each_turn<C>(p, lane, [&](const hopper_pair_tile &at, int phase) {
    const int next = hopper_pair_number<C>(p);
    if (hopper_pair_has_predecessor<C>(p, next, at.block))
      semaphore_wait(hopper_pair_semaphore_of<C>(p, at), static_cast<unsigned>(next) + 1);
    mbarrier_wait(bar::dq_ready(), phase ^ 1); /* the step before has begun to add */
    mbarrier_arrive(bar::dq_ready());
  });
}

/* A warp that passes them on. The consumers add no more before it has seen that they have added. */
template <class C> FA_DEVICE void hopper_pair_pass_turns(const fa_backward_params &p, int lane) {
  typedef hopper_pair_barriers<C> bar;
  if (lane == 0) mbarrier_arrive(bar::dq_ready());
  hopper_pair_each_turn<C>(p, lane, [&](const hopper_pair_tile &at, int phase) {
    mbarrier_wait(bar::dq_added(), phase);
    mbarrier_arrive(bar::dq_ready());
    semaphore_release(hopper_pair_semaphore_of<C>(p, at), static_cast<unsigned>(hopper_pair_number<C>(p)));
  });
}

} // namespace fa

#endif
