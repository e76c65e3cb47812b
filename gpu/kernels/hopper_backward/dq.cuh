/* How dQ of a step gets to memory. Either the consumers add it themselves, 16 bytes at a time, or (DQ_COPIES) they leave it in
 * shared memory, and two warps of the producers add it from there with bulk copies. That costs the consumers neither addresses
 * nor waits for memory. In deterministic calls those warps also keep the order in which blocks add. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_DQ_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_DQ_CUH

#include "gpu/kernels/hopper_backward/bias.cuh"

namespace fa {

/* Where 16 rows of a group's columns of dQ begin in the accumulator, whose tiles have the order of the registers. first: column
 * of the group. */
template <class C>
FA_DEVICE float *hopper_dq_accumulator(const fa_backward_params &p, int head, int row0, int group, int warp,
                                       int first) {
  const int row = row0 + (C::BM == 64 ? 0 : 64 * group) + 16 * warp;
  const int chunk = (C::BM == 64 ? group * (C::DQ_FIRST / 8) : 0) + first / 8;
  return p.dq_accum + (C::SPLITS ? own_accumulator(p) : 0) +
         workspace_row<C::D>(p, hopper_grid_batch<C>(p), head, row) * C::D + chunk * 128;
}

/* Adds the group's part of dQ, or its columns from `first` on. */
template <class C, int TILES>
FA_DEVICE void hopper_atomic_add_dq(const fa_backward_params &p, const float (&dq)[TILES][4], int head,
                                    int row0, int group, int thread, int first) {
  float *to = hopper_dq_accumulator<C>(p, head, row0, group, thread / 32, first) + thread % 32 * 4;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n) atomic_add4(to + n * 128, dq[n]);
}

/* Around these additions, in deterministic calls: waits until it is the block's turn, and arrives when all are made. BARRIERS: the
 * kernel's, with dq_ready and dq_added. */
template <class C, class BARRIERS>
FA_DEVICE void hopper_dq_wait(const fa_backward_params &p, pipeline_state<C::STAGES> pipe) {
  if (C::DQ_SEMAPHORE && p.dq_semaphore) mbarrier_wait(BARRIERS::dq_ready(), static_cast<int>(pipe.n % 2));
}
template <class C, class BARRIERS> FA_DEVICE void hopper_dq_arrive(const fa_backward_params &p, int thread) {
  if (!C::DQ_SEMAPHORE || !p.dq_semaphore) return;
  sync_warp(); /* all lanes have added */
  hopper_release(BARRIERS::dq_added(), thread);
}

/* A warp's place in shared memory for its 16 rows of step n. */
template <class C> FA_DEVICE uint32_t hopper_dq_place(unsigned n, int group, int warp) {
  const int place = static_cast<int>(n % C::DQ_PLACES);
  return shared_base() + C::DQ_AT + (8 * place + 4 * group + warp) * C::DQ_PLACE_BYTES;
}

/* Leaves dQ of step n there, or its columns from `first` on; then hopper_release_dq tells the warp that adds it. */
template <class C, int TILES>
FA_DEVICE void hopper_stage_dq(const float (&dq)[TILES][4], unsigned n, int group, int thread, int first) {
  mbarrier_wait(hopper_backward_all_barriers<C>::dq_empty(group, n), static_cast<int>(n / C::DQ_PLACES % 2) ^ 1);
  const uint32_t to = hopper_dq_place<C>(n, group, thread / 32) + first * 64 + thread % 32 * 16;
  FA_UNROLL
  for (int i = 0; i < TILES; ++i)
    store_shared16(to + i * 512, vec4{float_bits(dq[i][0]), float_bits(dq[i][1]), float_bits(dq[i][2]),
                                      float_bits(dq[i][3])});
}
template <class C> FA_DEVICE void hopper_release_dq(unsigned n, int group, int thread) {
  fence_async();
  sync_warp();
  hopper_release(hopper_backward_all_barriers<C>::dq_full(group, n), thread);
}

/* The semaphore of a row tile: its number. */
template <class C>
FA_DEVICE int hopper_dq_semaphore_of(const fa_backward_params &p, int batch, int head, int tile) {
  return static_cast<int>(workspace_row<C::D>(p, batch, head, tile * C::BM) / FA_DQ_SEMAPHORE_ROWS);
}

/* True if key block + 1, which adds before this one, visits the row tile too. By the masks by position, the
 * key blocks that visit a row tile are contiguous. A call whose sequences are longer than it says has no block for the rest, for
 * which nobody waits. */
template <class C> FA_DEVICE bool hopper_has_predecessor(const fa_backward_params &p, int block, int tile) {
  const hopper_key_tile next = hopper_load_key_tile<C>(p, block + 1);
  return block + 1 < static_cast<int>(gridDim.x) && next.key0 < next.seq.len_k && next.blocks.begin <= tile &&
         tile < next.blocks.end;
}

/* Adds the rows that a consumer's warp left, and waits until they have been read. */
template <class C>
FA_DEVICE void hopper_copy_dq(const fa_backward_params &p, int head, int tile, unsigned n, int group, int warp) {
  bulk_add(hopper_dq_accumulator<C>(p, head, tile * C::BM, group, warp, 0), hopper_dq_place<C>(n, group, warp),
           (group == 0 ? C::DQ_FIRST : C::DQ_SECOND) * 64);
  tma_store_commit();
  tma_store_wait_read<0>();
}

/* Step n of a group. */
template <class C>
FA_DEVICE void hopper_add_group_dq(const fa_backward_params &p, int head, int tile, unsigned n, int group, int lane) {
  typedef hopper_backward_all_barriers<C> bar;
  mbarrier_wait(bar::dq_full(group, n), static_cast<int>(n / C::DQ_FULLS % 2));
  if (lane < 4) hopper_copy_dq<C>(p, head, tile, n, group, lane);
  sync_warp();
  if (lane == 0) mbarrier_arrive(bar::dq_empty(group, n));
}

/* Step n of both groups, after the block with the next keys has added to the row tile. There is no deadlock, as that one started
 * earlier and visits the same row tiles in the same order. */
template <class C>
FA_DEVICE void hopper_add_dq_in_order(const fa_backward_params &p, int block, int head, int tile, unsigned n, int lane) {
  typedef hopper_backward_all_barriers<C> bar;
  const unsigned own_number = static_cast<unsigned>(block) + 1;
  unsigned *const semaphore = p.dq_semaphore + hopper_dq_semaphore_of<C>(p, static_cast<int>(blockIdx.z), head, tile);
  if (lane == 0 && hopper_has_predecessor<C>(p, block, tile)) semaphore_wait(semaphore, own_number + 1);
  sync_warp();
  for (int group = 0; group < C::GROUPS; ++group)
    mbarrier_wait(bar::dq_full(group, n), static_cast<int>(n / C::DQ_FULLS % 2));
  if (lane < 4 * C::GROUPS) hopper_copy_dq<C>(p, head, tile, n, lane / 4, lane % 4);
  sync_warp();
  if (lane < C::GROUPS) mbarrier_arrive(bar::dq_empty(lane, n));
  if (lane < 4 * C::GROUPS) tma_store_wait();
  sync_warp();
  if (lane == 0) semaphore_release(semaphore, own_number);
}

template <class C, bool ORDERED>
FA_DEVICE void hopper_add_all_dq(const fa_backward_params &p, const hopper_bias_maps &maps, int which, int lane) {
  const int block = hopper_key_blocks<C>().block(p);
  unsigned n = 0;
  FA_NO_UNROLL
  for (int i = 0; i < p.forward.heads_per_kv; ++i) {
    const int head = hopper_first_head<C>(p) + i;
    const block_range tiles = hopper_load_key_tile<C>(p, opaque(block)).blocks;
    FA_NO_UNROLL
    for (int tile = tiles.begin; tile < tiles.end; ++tile, ++n) {
      if constexpr (C::BIAS) {
        if (p.dbias)
          hopper_store_dbias<C>(maps.dbias, hopper_load_key_tile<C>(p, opaque(block)), head, tile, n, which, lane);
      }
      if constexpr (!ORDERED)
        hopper_add_group_dq<C>(p, head, tile, n, which, lane);
      else if (static_cast<int>(n % 2) == which)
        hopper_add_dq_in_order<C>(p, opaque(block), opaque(head), opaque(tile), n, lane);
    }
  }
}

/* The warps that add, `which` of two: each has a group of its own or, in a deterministic call, every second step of both groups.
 * To wait for its turn, to add and to pass the turn on takes a warp longer than a step does. */
template <class C>
FA_DEVICE void hopper_backward_add_dq(const fa_backward_params &p, const hopper_bias_maps &maps, int which, int lane) {
  if (!hopper_key_blocks<C>().is_there(p)) return;
  if constexpr (C::DQ_SEMAPHORE) {
    if (p.dq_semaphore) return hopper_add_all_dq<C, true>(p, maps, which, lane);
  }
  hopper_add_all_dq<C, false>(p, maps, which, lane);
}

} // namespace fa

#endif
